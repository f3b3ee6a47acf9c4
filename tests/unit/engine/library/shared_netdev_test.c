/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Engines of liburoce on one Linux interface: one for each VLAN, however they reach it. Each test has a
 * network namespace.
 */
#include "library_rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_bus_vdev.h>
#include <rte_mbuf.h>

#include "../drivers/net_namespace.h"
#include "base/bits.h"

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

static struct uroce_port *open_with(struct uroce_port_options o)
{
	struct uroce_port *port;

	o.size = sizeof(o);
	o.pool = pool;
	port = uroce_port_open(&o, why, sizeof(why));

	cr_assert_not_null(port, "%s", why);
	return port;
}

static struct uroce_port *open_port(void)
{
	return open_with((struct uroce_port_options){ .netdev = "eth0" });
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

/* A port of EAL's on that interface. */
static struct uroce_port *open_vdev(const char *name, const char *arguments)
{
	cr_assert_eq(rte_vdev_init(name, arguments), 0, "%s", name);
	return open_with((struct uroce_port_options){ .name = name });
}

static struct uroce_engine *create_with_address(struct uroce_port *port, const char *name)
{
	struct uroce_options o = library_options();

	o.name = name;
	o.port = port;
	o.pool = pool;
	o.addresses = 1;
	o.address[0] =
		(struct uroce_address){ .octet = { [10] = 0xff, 0xff, 10, 9, 0, 7 }, .prefix = 24 };
	strcpy(why, "");
	return uroce_create(&o, why, sizeof(why));
}

/* The name in DPDK, its driver's arguments; all of them see what comes to eth0. */
static const char *const drivers[][2] = {
	{ "net_af_packet7", "iface=eth0" },
	{ "net_af_packet8", "iface=eth0" },
	{ "net_pcap7", "iface=eth0" },
};

Test(shared_netdev, other_drivers_on_the_interface)
{
	struct uroce_engine *first;

	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++) {
		struct uroce_port *port = open_vdev(drivers[i][0], drivers[i][1]);

		first = create(open_port(), "uroce0", 0);
		cr_assert_not_null(first, "%s", why);
		cr_expect_null(create_with_address(port, "uroce1"), "%s", drivers[i][0]);
		cr_expect_eq(errno, EBUSY);
		cr_expect_not_null(strstr(why, "eth0: another engine (process "), "%s: %s",
				   drivers[i][0], why);
		cr_expect_eq(uroce_destroy(first), 0);
		first = create_with_address(port, "uroce1");
		cr_assert_not_null(first, "%s: %s", drivers[i][0], why);
		port = open_port();
		cr_expect_null(create(port, "uroce0", 0), "%s", drivers[i][0]);
		cr_expect_not_null(strstr(why, "eth0: another engine (process "), "%s: %s",
				   drivers[i][0], why);
		cr_expect_eq(uroce_port_close(port), 0);
		cr_expect_eq(uroce_destroy(first), 0);
	}
}
