/* SPDX-License-Identifier: BSD-3-Clause */
/* The rings that a device is asked for, whatever it prefers and supports. */
#include <criterion/criterion.h>

#include "offers.h"

#define BY_DPDK 512 /* if a driver has no preference */

TestSuite(rings, .init = offers_begin, .timeout = 60);

static void expect_rings(uint16_t descriptors, uint16_t rx, uint16_t tx)
{
	char why[256] = "";
	struct port *p = offers_open("net_offers0", descriptors, 0, why, sizeof(why));

	cr_assert_not_null(p, "%s", why);
	cr_expect_eq(offers.rx_ring, rx, "%u", offers.rx_ring);
	cr_expect_eq(offers.tx_ring, tx, "%u", offers.tx_ring);
	p->ops->close(p);
}

/* DPDK's rte_eth_dev_adjust_nb_rx_tx_desc() alone makes it 32. */
Test(rings, without_a_wish_they_are_not_the_shortest_that_there_are)
{
	offers.least = 32;
	expect_rings(0, BY_DPDK, BY_DPDK);
}

Test(rings, without_a_wish_the_driver_chooses)
{
	offers.least = 32;
	offers.preferred = 256;
	expect_rings(0, 256, 256);
}

Test(rings, a_device_that_has_only_shorter_ones_gets_those)
{
	offers.most = 128;
	expect_rings(0, 128, 128);
}

Test(rings, received_frames_get_a_quarter_of_the_pool_at_most)
{
	offers.preferred = 2048;
	expect_rings(0, (OFFERS_POOL + 1) / 8, 2048);
}

Test(rings, a_wish_is_fulfilled)
{
	offers.preferred = 256;
	expect_rings(64, 64, 64);
}

static void expect_refusal(uint16_t descriptors, const char *line)
{
	char why[256] = "";

	cr_assert_null(offers_open("net_offers0", descriptors, 0, why, sizeof(why)));
	cr_expect_str_eq(why, line);
}

Test(rings, a_wish_that_the_device_cannot_fulfil_is_refused)
{
	offers.least = 64;
	offers.most = 1024;
	expect_refusal(2048, "net_offers0 has rings of 64 to 1024 descriptors, not 2048");
}

Test(rings, a_wish_for_less_is_refused_too)
{
	offers.least = 64;
	offers.most = 1024;
	expect_refusal(32, "net_offers0 has rings of 64 to 1024 descriptors, not 32");
}
