/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The buffers that a port needs for an MTU, and the MTU that it carries with given buffers.
 * virtio's driver is tested as net_virtio_user, whose other end is a net_vhost of the same process.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "drivers/ethdev/ethdev.h"

static char folder[] = "/tmp/carries_test_XXXXXX";
static char path[64];

static void begin(void)
{
	static char prefix[64];
	char *arguments[] = { (char *)"carries_test",
			      (char *)"--no-huge",
			      (char *)"--no-shconf",
			      (char *)"--no-pci",
			      (char *)"-m",
			      (char *)"128",
			      (char *)"-l",
			      (char *)"0",
			      prefix,
			      (char *)"--log-level=lib.vhost.*:error" };
	struct rte_eth_conf none = { 0 };
	char vdev[128];
	uint16_t vhost;

	snprintf(prefix, sizeof(prefix), "--file-prefix=carries_test_%d", (int)getpid());
	cr_assert_geq(rte_eal_init(ARRAY_SIZE(arguments), arguments), 0, "EAL");
	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/vhost", folder);
	snprintf(vdev, sizeof(vdev), "iface=%s", path);
	cr_assert_eq(rte_vdev_init("net_vhost0", vdev), 0, "%s", vdev);
	cr_assert_eq(rte_eth_dev_get_port_by_name("net_vhost0", &vhost), 0);
	cr_assert_eq(rte_eth_dev_configure(vhost, 1, 1, &none), 0); /* from now on it listens */
	snprintf(vdev, sizeof(vdev), "path=%s", path);
	cr_assert_eq(rte_vdev_init("net_virtio_user0", vdev), 0, "%s", vdev);
}

static void end(void)
{
	rte_vdev_uninit("net_virtio_user0");
	rte_vdev_uninit("net_vhost0");
	unlink(path);
	rmdir(folder);
}

TestSuite(carries, .init = begin, .fini = end, .timeout = 60);

static struct port *open_virtio(uint32_t octets, uint16_t mtu, char *why, size_t size)
{
	struct ethdev_options o = {
		.name = "net_virtio_user0", .queues = 1, .mtu = mtu, .socket = SOCKET_ID_ANY
	};

	o.pool = rte_pktmbuf_pool_create("frames", 1023, 0, 0,
					 (uint16_t)(octets + RTE_PKTMBUF_HEADROOM), SOCKET_ID_ANY);
	cr_assert_not_null(o.pool, "%s", rte_strerror(rte_errno));
	return ethdev_open(&o, why, size);
}

/* uroced rounds the size of its buffers up, so some MTUs fitted by luck. */
Test(carries, a_virtio_port_opens_with_the_buffers_that_it_was_said_to_need)
{
	char why[256] = "";
	struct port *p =
		open_virtio(ethdev_buffer_octets("net_virtio_user0", 4200), 4200, why, sizeof(why));

	cr_assert_not_null(p, "%s", why);
	cr_expect_eq(p->mtu, 4200);
	p->ops->close(p);
}

Test(carries, buffers_without_room_for_the_header_of_virtio_are_refused_in_one_line)
{
	char why[256] = "";
	struct port *p = open_virtio(ethdev_mbuf_octets(4200), 4200, why, sizeof(why));

	cr_assert_null(p);
	cr_expect_str_eq(why, "net_virtio_user0 carries an MTU of 4188, not 4200: raise the packet "
			      "buffers' size");
}
