/* SPDX-License-Identifier: BSD-3-Clause */
/* The offloads that the engine asks a device for, whatever it announces. */
#include <criterion/criterion.h>
#include <inttypes.h>

#include <rte_ethdev.h>

#include "base/bits.h"
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
Test(offloads, unless_more_is_wanted_buffers_in_bulk_are_asked_for)
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

static const struct {
	uint32_t wanted;
	uint64_t rx, tx; /* DPDK's */
} asked[] = {
	{ OFFLOAD_IPV4_CKSUM_TX | OFFLOAD_IPV4_CKSUM_RX, RTE_ETH_RX_OFFLOAD_IPV4_CKSUM,
	  RTE_ETH_TX_OFFLOAD_IPV4_CKSUM },
	{ OFFLOAD_VLAN_TX | OFFLOAD_VLAN_RX, RTE_ETH_RX_OFFLOAD_VLAN_STRIP,
	  RTE_ETH_TX_OFFLOAD_VLAN_INSERT },
};

/*
 * The device that `offers` describes is asked for these offloads besides those that every device is
 * asked for, and the port has these.
 */
static void expect_asked_of(const char *name, uint64_t rx, uint64_t tx, uint32_t done)
{
	char why[256] = "";
	struct port *p = offers_open(name, 0, 7, why, sizeof(why));

	cr_assert_not_null(p, "%s", why);
	cr_expect_eq(offers.rx_asked, rx, "rx %" PRIx64, offers.rx_asked);
	cr_expect_eq(offers.tx_asked & ~RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE, tx, "tx %" PRIx64,
		     offers.tx_asked);
	cr_expect_eq(p->offloads, done, "%x", p->offloads);
	p->ops->close(p);
}

static void expect_asked(uint64_t rx, uint64_t tx, uint32_t done)
{
	expect_asked_of("net_offers0", rx, tx, done);
}

/* ---- auto ---- */

Test(offloads, a_card_has_the_checksum_by_itself)
{
	offers.rx_capa = offers.tx_capa = EVERYTHING;
	offers.card = true;
	offers.offloads = OFFLOAD_AUTO;
	expect_asked(asked[0].rx, asked[0].tx, asked[0].wanted);
	offers.rx_capa = 0;
	expect_asked(0, asked[0].tx, OFFLOAD_IPV4_CKSUM_TX);
	offers.tx_capa = 0;
	expect_asked(0, 0, 0);
}

Test(offloads, a_software_port_has_none_by_itself)
{
	offers.rx_capa = offers.tx_capa = EVERYTHING;
	offers.offloads = OFFLOAD_AUTO;
	expect_asked(0, 0, 0);
}

/*
 * With it the driver would send frame by frame. A user who asks for it by name gets it
 * nevertheless.
 */
Test(offloads, a_driver_that_leaves_its_fast_path_is_not_asked_to_send)
{
	offers.rx_capa = offers.tx_capa = EVERYTHING;
	offers.card = true;
	offers.offloads = OFFLOAD_AUTO;
	expect_asked_of("net_ixgbe0", asked[0].rx, 0, OFFLOAD_IPV4_CKSUM_RX);
	offers.offloads = asked[0].wanted;
	expect_asked_of("net_ixgbe0", asked[0].rx, asked[0].tx, asked[0].wanted);
}

Test(offloads, none_is_none_on_a_card_too)
{
	offers.rx_capa = offers.tx_capa = EVERYTHING;
	offers.card = true;
	expect_asked(0, 0, 0);
}

/* ---- by name ---- */

Test(offloads, what_the_user_wants_is_asked_for)
{
	offers.rx_capa = offers.tx_capa = EVERYTHING;
	for (uint32_t i = 0; i < ARRAY_SIZE(asked); i++) {
		offers.offloads = asked[i].wanted;
		expect_asked(asked[i].rx, asked[i].tx, asked[i].wanted);
	}
	offers.offloads = asked[0].wanted | asked[1].wanted;
	expect_asked(asked[0].rx | asked[1].rx, asked[0].tx | asked[1].tx, offers.offloads);
}

/* Each direction by itself: net_vmxnet3 and others support one direction only. */
Test(offloads, what_the_device_does_not_announce_stays_in_software)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(asked); i++) {
		offers.offloads = asked[i].wanted;
		offers.rx_capa = EVERYTHING & ~asked[i].rx;
		offers.tx_capa = EVERYTHING;
		expect_asked(0, asked[i].tx,
			     asked[i].wanted & (OFFLOAD_IPV4_CKSUM_TX | OFFLOAD_VLAN_TX));
		offers.rx_capa = EVERYTHING;
		offers.tx_capa = EVERYTHING & ~asked[i].tx;
		expect_asked(asked[i].rx, 0,
			     asked[i].wanted & (OFFLOAD_IPV4_CKSUM_RX | OFFLOAD_VLAN_RX));
		offers.rx_capa = offers.tx_capa = 0;
		expect_asked(0, 0, 0);
	}
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
