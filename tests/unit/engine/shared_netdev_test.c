/* SPDX-License-Identifier: BSD-3-Clause */
/* Engines of liburoce on one Linux interface: one for each VLAN. Each test has a network namespace. */
#include "library_rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_mbuf.h>

#include "../drivers/net_namespace.h"

static struct rte_mempool *pool;
static char why[256];

static void begin(void)
{
	net_namespace_enter();
	ip("link add eth0 type veth peer name eth1");
	ip("link set eth0 up");
	ip("link set eth1 up");
	ip("addr add 10.9.0.1/24 dev eth0");
	library_begin();
	pool = rte_pktmbuf_pool_create("frames", 4095, 0, 0, 2048 + 64 + RTE_PKTMBUF_HEADROOM, -1);
	cr_assert_not_null(pool);
}

TestSuite(shared_netdev, .init = begin, .fini = library_end, .timeout = 60);

static struct uroce_port *open_port(void)
{
	const struct uroce_port_options o = { .size = sizeof(o), .netdev = "eth0", .pool = pool };
	struct uroce_port *port = uroce_port_open(&o, why, sizeof(why));

	cr_assert_not_null(port, "%s", why);
	return port;
}

static struct uroce_engine *create(struct uroce_port *port, const char *name, uint16_t vlan)
{
	struct uroce_options o = library_options();

	o.name = name;
	o.port = port;
	o.vlan = vlan;
	o.pool = pool;
	strcpy(why, "");
	return uroce_create(&o, why, sizeof(why));
}

Test(shared_netdev, one_engine_for_each_vlan)
{
	struct uroce_engine *untagged = create(open_port(), "uroce0", 0), *five;
	struct uroce_port *port = open_port();

	cr_assert_not_null(untagged, "%s", why);
	cr_expect_null(create(port, "uroce1", 0));
	cr_expect_eq(errno, EBUSY);
	cr_expect_not_null(strstr(why, "eth0: another engine (process "), "%s", why);
	/* the port stayed the caller's, for an engine of another VLAN */
	five = create(port, "uroce1", 5);
	cr_assert_not_null(five, "%s", why);
	cr_expect_eq(uroce_destroy(untagged), 0);
	untagged = create(open_port(), "uroce0", 0);
	cr_expect_not_null(untagged, "it is free again: %s", why);
	cr_expect_eq(uroce_destroy(untagged), 0);
	cr_expect_eq(uroce_destroy(five), 0);
}

/* A port that got no engine keeps the VLAN only until it gets one. */
Test(shared_netdev, a_claim_follows_the_engine)
{
	struct uroce_options o = library_options();
	struct uroce_port *port = open_port();
	struct uroce_engine *six, *five;

	o.port = port;
	o.vlan = 5;
	o.mtu = 9000; /* more than the port's */
	cr_expect_null(uroce_create(&o, why, sizeof(why)));
	six = create(port, "uroce0", 6);
	cr_assert_not_null(six, "%s", why);
	five = create(open_port(), "uroce1", 5);
	cr_expect_not_null(five, "nobody has this VLAN: %s", why);
	cr_expect_eq(uroce_destroy(six), 0);
	cr_expect_eq(uroce_destroy(five), 0);
}
