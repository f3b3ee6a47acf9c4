/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose packet buffers are in private memory when there are no hugepages, with a device of each driver. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "drivers/buffers.h"
#include "drivers/ethdev/ethdev.h"
#include "net_namespace.h"

#define BUFFERS 1023u

static char folder[] = "/tmp/takes_any_test_XXXXXX"; /* of sockets */

static void begin(void)
{
	static char prefix[64];
	/* zero-copy of net_memif wants --single-file-segments */
	char *arguments[] = { (char *)"takes_any_test",
			      (char *)"--no-huge",
			      (char *)"--no-shconf",
			      (char *)"--no-pci",
			      (char *)"--single-file-segments",
			      (char *)"-m",
			      (char *)"128",
			      (char *)"-l",
			      (char *)"0",
			      prefix,
			      (char *)"--log-level=lib.vhost.*:error" };

	net_namespace_enter();
	if (access("/dev/net/tun", R_OK | W_OK) != 0) {
		fprintf(stderr, "skipped: this host has no /dev/net/tun\n");
		cr_skip_test("no /dev/net/tun");
	}
	ip("link add near type veth peer name far");
	ip("link set near up");
	snprintf(prefix, sizeof(prefix), "--file-prefix=takes_any_test_%d", (int)getpid());
	cr_assert_geq(rte_eal_init(ARRAY_SIZE(arguments), arguments), 0, "EAL");
	cr_assert_not_null(mkdtemp(folder));
}

static void end(void)
{
	rte_vdev_uninit("net_virtio_user0");
	rte_vdev_uninit("net_vhost0");
	cr_assert_eq(chdir(folder), 0);
	unlink("vhost");
	unlink("memif");
	cr_expect_eq(rmdir(folder), 0);
}

TestSuite(takes_any, .init = begin, .fini = end, .timeout = 120);

struct device {
	const char *name, *arguments;
	const char *socket; /* the last argument, and its name in the folder; NULL: none */
	bool any;
};

static const struct device devices[] = {
	{ "net_af_packet0", "iface=near", NULL, true },
	{ "net_af_xdp0", "iface=near", NULL, true },
	{ "net_memif0", "role=server,id=1,socket-abstract=no,socket", "memif", true },
	{ "net_null0", "", NULL, true },
	{ "net_pcap0", "iface=near", NULL, true },
	{ "net_tap0", "iface=tapped", NULL, true },
	{ "net_vhost0", "iface", "vhost", true },
	/* The peer maps the EAL's files. */
	{ "net_memif1", "role=client,zero-copy=yes,id=2,socket-abstract=no,socket", "memif",
	  false },
	{ "net_virtio_user0", "path", "vhost", false },
	/* Another engine may have the buffers. */
	{ "net_ring0", "", NULL, false },
	{ "net_impair0", "port=net_memif0", NULL, true },
	{ "net_impair1", "port=net_memif1", NULL, false },
};

static bool is_private(struct rte_mempool *pool)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	bool private = rte_mem_virt2memseg(m, NULL) == NULL;

	rte_pktmbuf_free(m);
	return private;
}

/* vhost listens as soon as it is configured, and virtio_user connects when it is made. */
static void make(const struct device *d)
{
	struct rte_eth_conf none = { 0 };
	char arguments[192];
	uint16_t id;

	snprintf(arguments, sizeof(arguments), "%s%s%s%s%s", d->arguments,
		 d->socket != NULL ? "=" : "", d->socket != NULL ? folder : "",
		 d->socket != NULL ? "/" : "", d->socket != NULL ? d->socket : "");
	cr_assert_eq(rte_vdev_init(d->name, arguments), 0, "%s %s", d->name, arguments);
	cr_assert_eq(rte_eth_dev_get_port_by_name(d->name, &id), 0);
	if (strcmp(d->name, "net_vhost0") == 0)
		cr_assert_eq(rte_eth_dev_configure(id, 1, 1, &none), 0);
}

static void expect_pool(const struct device *d)
{
	uint16_t room = (uint16_t)(RTE_PKTMBUF_HEADROOM + ethdev_buffer_octets(d->name, 1500));
	struct rte_mempool *pool = ethdev_pool(d->name, "frames", BUFFERS, 0, room);

	cr_assert_not_null(pool, "%s: %s", d->name, rte_strerror(rte_errno));
	cr_expect_geq(rte_mempool_avail_count(pool), BUFFERS, "%s", d->name);
	cr_expect_geq(rte_pktmbuf_data_room_size(pool), room, "%s", d->name);
	cr_expect_eq(is_private(pool), d->any, "%s: the pool of its port", d->name);
	cr_expect_eq(ethdev_pool_is_private(d->name), d->any, "%s", d->name);
	rte_mempool_free(pool);
}

Test(takes_any, the_pool_of_a_port_is_private_if_its_driver_copies)
{
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		make(&devices[i]);
		expect_pool(&devices[i]);
	}
	cr_expect_not(ethdev_pool_is_private("net_nothing0"));
}

/* An engine of a program, which has given it an open port, and no pool. */
static void expect_port(const struct device *d)
{
	uint32_t octets = MAX_OF(2048u, ethdev_buffer_octets(d->name, 1500));
	struct ethdev_options o = { .name = d->name, .queues = 1, .socket = SOCKET_ID_ANY };
	char why[256] = "";
	struct rte_mempool *own;
	struct port *p;

	o.pool = ethdev_pool(d->name, "frames", BUFFERS, 0,
			     (uint16_t)(RTE_PKTMBUF_HEADROOM + octets));
	cr_assert_not_null(o.pool, "%s: %s", d->name, rte_strerror(rte_errno));
	p = ethdev_open(&o, why, sizeof(why));
	cr_assert_not_null(p, "%s", why);
	cr_expect_eq(buffers_are_private(p), d->any, "%s", d->name);
	own = buffers_make("own", BUFFERS, 2048, p);
	cr_assert_not_null(own, "%s: %s", d->name, rte_strerror(rte_errno));
	cr_expect_eq(is_private(own), d->any, "%s: the engine's pool", d->name);
	rte_mempool_free(own);
	p->ops->close(p);
	rte_mempool_free(o.pool);
}

Test(takes_any, the_pool_of_an_engine_follows_its_port)
{
	uint32_t opened = 0;

	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		const struct device *d = &devices[i];

		if (strcmp(d->name, "net_af_packet0") != 0 && strcmp(d->name, "net_null0") != 0 &&
		    strcmp(d->name, "net_tap0") != 0 && strcmp(d->name, "net_ring0") != 0)
			continue;
		make(d);
		expect_port(d);
		opened++;
	}
	cr_assert_eq(opened, 4);
}
