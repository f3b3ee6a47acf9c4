/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device is asked to do, whatever it announces. */
#include <criterion/criterion.h>

#include <rte_ethdev.h>

#include "offers.h"

#define EVERYTHING UINT64_MAX

TestSuite(offloads, .init = offers_begin, .timeout = 60);

static void open_and_close(const char *name, uint16_t vlan)
{
	char why[256] = "";
	struct port *p = offers_open(name, 0, vlan, why, sizeof(why));

	cr_assert_not_null(p, "%s", why);
	p->ops->close(p);
}

/*
 * No SCATTER, MULTI_SEGS, checksums or tags: ixgbe, i40e and ice would leave their vector paths for them, and the
 * engine has all of that in its headers.
 */
Test(offloads, of_all_that_a_device_has_only_buffers_in_bulk_are_asked_for)
{
	offers.rx_capa = offers.tx_capa = EVERYTHING;
	open_and_close("net_offers0", 7);
	cr_assert_eq(offers.tx_asked, RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE);
	cr_assert_eq(offers.rx_asked, 0);
	cr_assert_eq(offers.vlan, 0, "it does not filter, so there is nothing to let pass");
}

Test(offloads, a_device_is_not_asked_for_what_it_has_not)
{
	offers.rx_capa = EVERYTHING & ~RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
	offers.tx_capa = EVERYTHING & ~RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	open_and_close("net_virtio_offers0", 7);
	cr_assert_eq(offers.tx_asked, 0);
	cr_assert_eq(offers.rx_asked, 0);
	cr_assert_eq(offers.vlan, 0);
}

Test(offloads, virtio_lets_the_vlan_of_the_engine_pass)
{
	offers.rx_capa = EVERYTHING;
	open_and_close("net_virtio_offers0", 7);
	cr_assert_eq(offers.rx_asked, RTE_ETH_RX_OFFLOAD_VLAN_FILTER);
	cr_assert_eq(offers.vlan, 7);
}

Test(offloads, virtio_is_told_of_no_vlan_by_an_engine_without_tags)
{
	offers.rx_capa = EVERYTHING;
	open_and_close("net_virtio_offers0", 0);
	cr_assert_eq(offers.vlan, 0);
}

Test(offloads, an_engine_is_told_that_its_vlan_cannot_pass)
{
	char why[256] = "";

	offers.rx_capa = EVERYTHING;
	offers.vlan_answer = -ENOTSUP;
	cr_assert_null(offers_open("net_virtio_offers0", 0, 7, why, sizeof(why)));
	cr_assert_str_eq(
		why,
		"net_virtio_offers0 drops tagged frames, and cannot be told to let VLAN 7 pass: "
		"Operation not supported");
}
