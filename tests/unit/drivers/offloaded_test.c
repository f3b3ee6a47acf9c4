/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames on their way to and from a device that does a part of the work: the frames that it gets,
 * and that the engine has whole frames again in every case.
 */
#include <criterion/criterion.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "base/bits.h"
#include "offers.h"
#include "wire/encode.h"
#include "wire/opcode.h"

#define EVERYTHING UINT64_MAX
#define SUMS	   (OFFLOAD_IPV4_CKSUM_TX | OFFLOAD_IPV4_CKSUM_RX)
#define TAGS	   (OFFLOAD_VLAN_TX | OFFLOAD_VLAN_RX)
#define ASKED	   (RTE_MBUF_F_TX_VLAN | RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM)
#define TCI	   0xb007u /* priority 5, DEI, VLAN 7 */
#define L3	   RTE_ETHER_HDR_LEN
#define PAYLOAD	   64u

TestSuite(offloaded, .init = offers_begin, .timeout = 60);

static struct port *port;

static void open_port(uint32_t offloads)
{
	char why[256] = "";

	offers.rx_capa = offers.tx_capa = EVERYTHING;
	offers.offloads = offloads;
	offers.tx_room = OFFERS_FRAMES;
	port = offers_open("net_offers0", 0, 0, why, sizeof(why));
	cr_assert_not_null(port, "%s", why);
}

/* A RoCE packet as the engine makes it. */
static struct rte_mbuf *packet(bool ipv6, bool tagged)
{
	struct address_vector av = { .vlan = tagged ? TCI & 0xfff : 0,
				     .priority = TCI >> 13,
				     .hop_limit = 64,
				     .src_port = 0xc001 };
	struct packet p = { .opcode = SERVICE_RC << 5 | OPB_SEND_ONLY, .payload_length = PAYLOAD };
	struct rte_mbuf *m = offers_buffer();
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	struct flow flow;
	size_t n;

	memset(av.src_gid.octet, 0x20, 16);
	if (!ipv6)
		memcpy(av.src_gid.octet, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
	av.dst_gid = av.src_gid;
	av.dst_gid.octet[15] = 1;
	flow_init(&flow, &av);
	n = packet_encode(frame, &flow, &p, 0);
	memset(frame + n, 0xf0, PAYLOAD);
	rte_pktmbuf_append(m, (uint16_t)packet_seal(frame, &flow, n, PAYLOAD));
	if (tagged) /* the engine sends no DEI, but a raw queue pair may */
		frame[L3] = TCI >> 8;
	return m;
}

static const uint8_t *octets(struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod(m, const uint8_t *);
}

static void expect_same(struct rte_mbuf *m, struct rte_mbuf *whole, const char *what)
{
	cr_assert_eq(m->data_len, whole->data_len, "%s: %u octets", what, m->data_len);
	cr_assert_eq(m->pkt_len, whole->pkt_len, "%s", what);
	cr_expect_arr_eq(octets(m), octets(whole), whole->data_len, "%s", what);
	cr_expect_eq(m->ol_flags & ASKED, 0, "%s: it is whole, and asks for nothing", what);
}

static uint16_t send_one(struct rte_mbuf *m)
{
	return port->ops->tx_burst(port, 0, &m, 1);
}

static void end(struct rte_mbuf *m, struct rte_mbuf *whole)
{
	rte_pktmbuf_free(m);
	rte_pktmbuf_free(whole);
	port->ops->close(port);
}

static struct rte_mbuf *copy_of(struct rte_mbuf *m)
{
	struct rte_mbuf *copy = rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX);

	cr_assert_not_null(copy);
	return copy;
}

/* ---- sending ---- */

/* With the field 0 a device that makes no checksum would send a wrong one, and the case wire/offloads-v4 would see it. */
Test(offloaded, the_device_is_to_make_the_checksum)
{
	struct rte_mbuf *m = packet(false, false), *whole = copy_of(m);
	uint8_t wanted[256];

	open_port(SUMS);
	cr_assert_eq(send_one(m), 1);
	cr_assert_eq(offers.tx[0], m);
	cr_expect_eq(m->ol_flags & ASKED, RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM);
	cr_expect_eq(m->l2_len, L3);
	cr_expect_eq(m->l3_len, 20);
	memcpy(wanted, octets(whole), whole->data_len);
	cr_assert_neq(load_be16(wanted + L3 + 10), 0, "software had made it");
	memset(wanted + L3 + 10, 0, 2);
	cr_expect_arr_eq(octets(m), wanted, whole->data_len);
	end(m, whole);
}

Test(offloaded, the_device_is_to_put_the_tag_in)
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		struct rte_mbuf *m = packet(ipv6, true), *whole = copy_of(m);

		open_port(TAGS);
		offers.tx_count = 0;
		cr_assert_eq(send_one(m), 1);
		cr_expect_eq(m->ol_flags & ASKED, RTE_MBUF_F_TX_VLAN);
		cr_expect_eq(m->vlan_tci, TCI, "priority, DEI, VLAN: %x", m->vlan_tci);
		cr_assert_eq(m->data_len, whole->data_len - RTE_VLAN_HLEN);
		cr_expect_arr_eq(octets(m), octets(whole), 12, "the addresses");
		cr_expect_arr_eq(octets(m) + 12, octets(whole) + 16, m->data_len - 12);
		end(m, whole);
	}
}

/* Where the header begins depends on whether the card or the engine inserts the tag. */
Test(offloaded, the_header_is_found_behind_a_tag)
{
	struct rte_mbuf *m = packet(false, true), *whole = copy_of(m);

	open_port(SUMS);
	cr_assert_eq(send_one(m), 1);
	cr_expect_eq(m->l2_len, L3 + RTE_VLAN_HLEN);
	cr_expect_eq(load_be16(octets(m) + L3 + RTE_VLAN_HLEN + 10), 0);
	end(m, whole);
	m = packet(false, true);
	whole = copy_of(m);
	open_port(SUMS | TAGS);
	cr_assert_eq(send_one(m), 1);
	cr_expect_eq(m->ol_flags & ASKED, ASKED);
	cr_expect_eq(m->l2_len, L3);
	cr_expect_eq(m->vlan_tci, TCI);
	cr_expect_eq(load_be16(octets(m) + L3 + 10), 0);
	end(m, whole);
}

/*
 * A frame that waits for room stays as the engine made it: it may be captured then, or copied for
 * this host.
 */
Test(offloaded, a_frame_that_is_not_taken_is_as_it_was)
{
	for (int tagged = 0; tagged < 2; tagged++) {
		struct rte_mbuf *m = packet(false, tagged), *whole = copy_of(m);

		open_port(SUMS | TAGS);
		offers.tx_room = 0;
		for (int tries = 0; tries < 3; tries++) {
			cr_assert_eq(send_one(m), 0);
			expect_same(m, whole, "refused");
		}
		end(m, whole);
	}
}

Test(offloaded, of_a_burst_the_first_ones_are_the_device_s)
{
	struct rte_mbuf *m[3], *whole = packet(false, true);

	open_port(SUMS | TAGS);
	for (uint32_t i = 0; i < 3; i++)
		m[i] = packet(false, true);
	offers.tx_room = 2;
	cr_assert_eq(port->ops->tx_burst(port, 0, m, 3), 2);
	cr_expect_eq(m[0]->ol_flags & ASKED, ASKED);
	cr_expect_eq(m[1]->ol_flags & ASKED, ASKED);
	expect_same(m[2], whole, "the third one");
	rte_pktmbuf_free(m[0]);
	rte_pktmbuf_free(m[1]);
	end(m[2], whole);
}

/* The kernel's frames, and those of raw queue pairs, which may want to send a wrong checksum. */
Test(offloaded, other_frames_keep_their_checksum)
{
	static const struct {
		const char *what;
		uint16_t at;
		uint8_t octet;
	} rows[] = {
		{ "ARP", L3 - 1, 0x06 },	   { "ICMP", L3 + 9, 1 },
		{ "options", L3, 0x46 },	   { "a fragment", L3 + 6, 0x20 },
		{ "a later fragment", L3 + 7, 1 }, { "another port", L3 + 22, 0 },
		{ "a service tag", L3 - 2, 0x88 },
	};

	open_port(SUMS | TAGS);
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rte_mbuf *m = packet(false, false), *whole;

		*rte_pktmbuf_mtod_offset(m, uint8_t *, rows[i].at) = rows[i].octet;
		whole = copy_of(m);
		cr_assert_eq(send_one(m), 1);
		expect_same(m, whole, rows[i].what);
		rte_pktmbuf_free(m);
		rte_pktmbuf_free(whole);
	}
	port->ops->close(port);
}

/* A raw queue pair may send them. */
Test(offloaded, short_frames_are_not_read_beyond_their_end)
{
	open_port(SUMS | TAGS);
	for (uint16_t n = 1; n < L3 + RTE_VLAN_HLEN + 28; n++) {
		struct rte_mbuf *m = packet(false, false), *whole;

		rte_pktmbuf_trim(m, (uint16_t)(m->data_len - n));
		whole = copy_of(m);
		offers.tx_room = 1;
		offers.tx_count = 0;
		cr_assert_eq(send_one(m), 1);
		expect_same(m, whole, "short");
		rte_pktmbuf_free(m);
		rte_pktmbuf_free(whole);
	}
	port->ops->close(port);
}

Test(offloaded, ipv6_has_no_checksum)
{
	struct rte_mbuf *m = packet(true, false), *whole = copy_of(m);

	open_port(SUMS | TAGS);
	cr_assert_eq(send_one(m), 1);
	expect_same(m, whole, "IPv6");
	end(m, whole);
}

static uint16_t refuse_offloads(struct rte_mbuf **frames, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		if ((frames[i]->ol_flags & ASKED) != 0) {
			rte_errno = ENOTSUP;
			return i;
		}
	return n;
}

Test(offloaded, a_frame_that_the_driver_will_not_prepare_leaves_as_software_made_it)
{
	struct rte_mbuf *m[3], *whole = packet(false, true);

	open_port(SUMS | TAGS);
	offers.prepare = refuse_offloads;
	for (uint32_t i = 0; i < 3; i++)
		m[i] = packet(false, true);
	cr_assert_eq(port->ops->tx_burst(port, 0, m, 3), 3);
	for (uint32_t i = 0; i < 3; i++) {
		cr_assert_eq(offers.tx[i], m[i], "in their order");
		expect_same(m[i], whole, "not prepared");
	}
	rte_pktmbuf_free(m[0]);
	rte_pktmbuf_free(m[1]);
	end(m[2], whole);
}

/* As net_virtio does. */
static uint16_t insert_tags(struct rte_mbuf **frames, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		if ((frames[i]->ol_flags & RTE_MBUF_F_TX_VLAN) != 0)
			cr_assert_eq(rte_vlan_insert(&frames[i]), 0);
	return n;
}

Test(offloaded, a_driver_may_put_the_tag_in_by_itself)
{
	struct rte_mbuf *m = packet(false, true), *whole = copy_of(m);

	open_port(SUMS | TAGS);
	offers.prepare = insert_tags;
	offers.tx_room = 0;
	cr_assert_eq(send_one(m), 0);
	expect_same(m, whole, "refused");
	offers.tx_room = 1;
	cr_assert_eq(send_one(m), 1);
	cr_expect_eq(m->l2_len, L3 + RTE_VLAN_HLEN);
	cr_expect_arr_eq(octets(m), octets(whole), L3 + RTE_VLAN_HLEN, "one tag");
	end(m, whole);
}

Test(offloaded, without_offloads_frames_are_left_alone)
{
	struct rte_mbuf *m = packet(false, true), *whole = copy_of(m);

	open_port(0);
	offers.prepare = refuse_offloads;
	cr_assert_eq(send_one(m), 1);
	expect_same(m, whole, "sent");
	end(m, whole);
}

/* ---- receiving ---- */

/* As a device that took the tag out delivers it. */
static struct rte_mbuf *stripped(struct rte_mbuf *whole)
{
	struct rte_mbuf *m = copy_of(whole);

	cr_assert_eq(rte_vlan_strip(m), 0);
	cr_assert_eq(m->data_len, whole->data_len - RTE_VLAN_HLEN);
	cr_assert_eq(m->vlan_tci, TCI);
	return m;
}

static uint16_t receive(struct rte_mbuf *one, struct rte_mbuf *two, struct rte_mbuf **frames)
{
	offers.rx[0] = one;
	offers.rx[1] = two;
	offers.rx_count = two != NULL ? 2 : 1;
	return port->ops->rx_burst(port, 0, frames, OFFERS_FRAMES);
}

/*
 * The engine treats this tag like any other: it refuses other VLANs, and a capture shows the tag.
 */
Test(offloaded, the_tag_of_a_received_frame_is_put_back)
{
	struct rte_mbuf *whole = packet(false, true), *untagged = packet(true, false);
	struct rte_mbuf *frames[OFFERS_FRAMES], *plain = copy_of(untagged);

	open_port(TAGS);
	cr_assert_eq(receive(stripped(whole), plain, frames), 2);
	expect_same(frames[0], whole, "tagged");
	expect_same(frames[1], untagged, "untagged");
	rte_pktmbuf_free(frames[0]);
	rte_pktmbuf_free(untagged);
	end(frames[1], whole);
}

/* A driver that delivers a frame in pieces, and its tag beside it. */
Test(offloaded, a_chain_is_joined_and_gets_its_tag_back)
{
	struct rte_mbuf *whole = packet(false, true), *m = stripped(whole), *rest = offers_buffer();
	struct rte_mbuf *frames[OFFERS_FRAMES];
	uint16_t head = 40, tail = (uint16_t)(m->data_len - head);

	memcpy(rte_pktmbuf_append(rest, tail), octets(m) + head, tail);
	rte_pktmbuf_trim(m, tail);
	cr_assert_eq(rte_pktmbuf_chain(m, rest), 0);
	open_port(TAGS);
	cr_assert_eq(receive(m, NULL, frames), 1);
	cr_assert_eq(frames[0]->nb_segs, 1);
	expect_same(frames[0], whole, "joined");
	end(frames[0], whole);
}

Test(offloaded, a_frame_without_room_for_its_tag_is_dropped_and_counted)
{
	struct rte_mbuf *whole = packet(false, true), *m = stripped(whole), *other = copy_of(whole);
	struct rte_mbuf *frames[OFFERS_FRAMES];

	m->data_off = 0;
	open_port(TAGS);
	cr_assert_eq(receive(m, other, frames), 1);
	cr_assert_eq(frames[0], other);
	cr_expect_eq(ethdev_dropped(port, REASON_RX_TRUNCATED), 1);
	end(other, whole);
}
