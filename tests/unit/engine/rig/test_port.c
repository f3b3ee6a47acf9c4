/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "engine/port.h"
#include "rig/control_rig.h"
#include "rig/test_port.h"

static struct port_ops ops;
struct port test_port = { .ops = &ops,
			  .name = "test",
			  .mac = { { 2, 0, 0, 0, 0, 1 } },
			  .mtu = 1500,
			  .queues = 1,
			  .socket = -1,
			  .link_up = true,
			  .nap = 100 * TIME_US };

static uint16_t no_frame(struct port *p, uint16_t queue, struct rte_mbuf **frames, uint16_t n)
{
	return 0;
}

static uint16_t free_all(struct port *p, uint16_t queue, struct rte_mbuf **frames, uint16_t n)
{
	rte_pktmbuf_free_bulk(frames, n);
	return n;
}

static int no_bell(struct port *p, uint16_t queue)
{
	return -1;
}

static bool no_change(struct port *p)
{
	return false;
}

static void nothing(struct port *p)
{
}

void test_port_begin(const char *name, const struct port_ops *own, struct uroce_options options)
{
	char why[256];

	ops = *own;
	ops.rx_burst = own->rx_burst != NULL ? own->rx_burst : no_frame;
	ops.tx_burst = own->tx_burst != NULL ? own->tx_burst : free_all;
	ops.bell_fd = own->bell_fd != NULL ? own->bell_fd : no_bell;
	ops.refresh = no_change;
	ops.close = nothing;
	snprintf(path, sizeof(path), "/tmp/uroce-%s-test-%d.sock", name, getpid());
	control_rig_make();
	uroce_destroy(engine);
	options.size = sizeof(options);
	options.lcores = 1;
	options.lcore_ids[0] = rte_get_main_lcore();
	options.adaptive = true;
	options.socket_gid = -1;
	options.socket_path = path;
	options.port = port_for_program(&test_port);
	options.addresses = 1;
	engine = uroce_create(&options, why, sizeof(why));
	cr_assert_not_null(engine, "%s", why);
	cr_assert_eq(uroce_start(engine), 0);
}
