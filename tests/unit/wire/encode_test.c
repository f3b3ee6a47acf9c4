/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "frames.h"
#include "wire/opcode.h"

static void expect_same_headers(const struct packet *a, const struct packet *b, unsigned int flags)
{
	const char *name = opcode_table[a->opcode].name;

	cr_expect_eq(a->opcode, b->opcode, "%s", name);
	cr_expect_eq(a->solicited, b->solicited, "%s", name);
	cr_expect_eq(a->mig_req, b->mig_req, "%s", name);
	cr_expect_eq(a->fecn, b->fecn, "%s", name);
	cr_expect_eq(a->becn, b->becn, "%s", name);
	cr_expect_eq(a->ack_req, b->ack_req, "%s", name);
	cr_expect_eq(a->pkey, b->pkey, "%s", name);
	cr_expect_eq(a->dest_qpn, b->dest_qpn, "%s", name);
	cr_expect_eq(a->psn, b->psn, "%s", name);
	if (flags & OP_DETH)
		cr_expect(a->qkey == b->qkey && a->src_qpn == b->src_qpn, "%s DETH", name);
	if (flags & (OP_RETH | OP_ATOMIC_ETH))
		cr_expect(a->va == b->va && a->rkey == b->rkey, "%s va, rkey", name);
	if (flags & OP_RETH)
		cr_expect_eq(a->dma_length, b->dma_length, "%s", name);
	if (flags & OP_ATOMIC_ETH)
		cr_expect(a->swap_add == b->swap_add && a->compare == b->compare, "%s", name);
	if (flags & OP_AETH)
		cr_expect(a->syndrome == b->syndrome && a->msn == b->msn, "%s AETH", name);
	if (flags & OP_ATOMIC_ACK_ETH)
		cr_expect_eq(a->original, b->original, "%s", name);
	if (flags & OP_IMM)
		cr_expect_eq(a->imm, b->imm, "%s", name);
	if (flags & OP_IETH)
		cr_expect_eq(a->invalidate_rkey, b->invalidate_rkey, "%s", name);
	if (flags & OP_XRCETH)
		cr_expect_eq(a->srqn, b->srqn, "%s", name);
	if (flags & OP_FETH)
		cr_expect_eq(a->feth, b->feth, "%s", name);
}

static void round_trip(uint8_t opcode, int ipv6, uint16_t vlan, uint32_t length)
{
	struct address_vector av = address_of(ipv6, vlan);
	struct decode_options options = { .check_icrc = true, .vlan = vlan };
	uint8_t payload[64], frame[FRAME_MAX];
	struct packet p = packet_of(opcode, payload, length), q;
	size_t n;

	memset(payload, 0x5a, sizeof(payload));
	n = frame_of(frame, &av, &p);
	memset(&q, 0xee, sizeof(q));
	cr_assert_eq(packet_decode(&q, frame, n, &options), REASON_NONE, "opcode %#x", opcode);
	expect_same_headers(&p, &q, opcode_table[opcode].flags);
	cr_expect_eq(q.payload_length, length);
	cr_expect_eq(q.pad, -length & 3);
	cr_expect_arr_eq(q.payload, payload, length);
	cr_expect(gid_equal(&q.src_gid, &av.src_gid) && gid_equal(&q.dst_gid, &av.dst_gid));
	cr_expect_eq(q.src_port, av.src_port);
	cr_expect_eq(q.hop_limit, 64);
	cr_expect_eq(q.traffic_class, 2);
	cr_expect_eq(q.ecn, 2);
	cr_expect_eq(q.ip_header, vlan ? 18 : 14);
	cr_expect_not(q.multicast);
}

Test(encode, what_is_encoded_is_decoded)
{
	for (unsigned int o = 0; o < 256; o++)
		for (unsigned int way = 0; opcode_defined((uint8_t)o) && way < 4; way++)
			for (uint32_t n = 0; n <= (opcode_is((uint8_t)o, OP_PAYLOAD) ? 9 : 0); n++)
				round_trip((uint8_t)o, way & 1, way & 2 ? 100 : 0, n);
}

/*
 * Summing the payload while copying it, in pieces of any size, gives the same frame as packet_seal.
 */
Test(encode, sealing_with_a_sum_makes_the_same_frame)
{
	uint8_t payload[300], a[FRAME_MAX], b[FRAME_MAX];
	struct address_vector av = address_of(1, 0);
	struct flow flow;

	flow_init(&flow, &av);
	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 37);
	for (uint32_t length = 0; length <= sizeof(payload); length++) {
		struct packet p = packet_of(0x04, payload, length);
		size_t n = frame_of(a, &av, &p), h;
		uint32_t sum, cut = length / 3;

		memset(b, 0xee, sizeof(b));
		h = packet_encode(b, &flow, &p, 0x1234);
		sum = icrc_begin(b + flow.l3, h - flow.l3);
		sum = icrc_copy(sum, b + h, payload, cut);
		sum = icrc_copy(sum, b + h + cut, payload + cut, length - cut);
		cr_assert_eq(packet_seal_summed(b, &flow, h, length, sum), n);
		cr_assert_arr_eq(a, b, n, "%u octets", length);
		cr_assert_eq(b[n], 0xee, "an octet behind the frame");
	}
}

/* hostile H-11: a frame without its ICRC. */
Test(encode, a_frame_without_icrc_is_accepted_only_unchecked)
{
	const struct decode_options trusting = { .check_icrc = false };
	struct address_vector av = address_of(0, 0);
	struct packet p = packet_of(0x04, (const uint8_t *)"hello", 5), q;
	uint8_t frame[FRAME_MAX];
	struct flow flow;
	size_t n;

	flow_init(&flow, &av);
	n = packet_encode(frame, &flow, &p, 1);
	memcpy(frame + n, "hello", 5);
	n = packet_seal_unsummed(frame, n, 5);
	cr_expect_eq(n, 14 + 20 + 8 + 12 + 8 + 4);
	cr_expect_arr_eq(frame + n - 7, "\0\0\0\0\0\0\0", 7);
	cr_expect_eq(packet_decode(&q, frame, n, &trusting), REASON_NONE);
	cr_expect_eq(packet_decode(&q, frame, n, &untagged), REASON_ICRC);
}

/* The IPv4 checksum comes from a sum in the flow; it must equal the one made from the header. */
Test(encode, the_ipv4_checksum_is_right_for_every_identification)
{
	struct address_vector av = address_of(0, 0);
	struct packet p = packet_of(0x11, NULL, 0);
	uint8_t a[128], b[128];
	struct flow flow;

	for (unsigned int tos = 0; tos < 256; tos += 51) {
		av.traffic_class = (uint8_t)tos;
		flow_init(&flow, &av);
		for (uint32_t id = 0; id < 0x10000; id += 3) {
			packet_encode(a, &flow, &p, (uint16_t)id);
			memcpy(b, a, sizeof(b));
			frame_fix_checksum(b, 14);
			cr_assert_arr_eq(a + 14, b + 14, 20, "identification %#x", id);
		}
	}
}

/* The middle of a message: what differs is the PSN, and AckReq. */
Test(encode, alike_headers_are_those_of_the_packet)
{
	static const uint8_t opcodes[] = { 0x01, 0x07, 0x0e, 0xa1 /* XRC */ };

	for (uint32_t i = 0; i < 2 * ARRAY_SIZE(opcodes); i++) {
		struct address_vector av = address_of(i & 1, i & 2 ? 5 : 0);
		struct packet p = packet_of(opcodes[i / 2], NULL, 1024);
		uint8_t before[FRAME_MAX] = { 0 }, a[FRAME_MAX] = { 0 }, b[FRAME_MAX] = { 0 };
		struct flow flow;
		size_t n;

		flow_init(&flow, &av);
		p.psn = 0xffffff;
		p.ack_req = true;
		n = packet_encode(before, &flow, &p, 77);
		p.psn = 0;
		p.ack_req = false;
		cr_assert_eq(packet_encode(b, &flow, &p, 77), n);
		packet_encode_alike(a, before, flow.length, p.psn);
		cr_assert_arr_eq(a, b, n, "opcode %#x", p.opcode);
	}
}

Test(encode, numbers_too_wide_do_not_reach_their_neighbours)
{
	struct address_vector av = address_of(0, 0);
	struct packet p = packet_of(0x64, NULL, 0), q;
	uint8_t frame[FRAME_MAX];

	p.dest_qpn = p.psn = p.src_qpn = 0xff000001;
	p.ack_req = p.solicited = false;
	cr_assert_eq(packet_decode(&q, frame, frame_of(frame, &av, &p), &untagged), REASON_NONE);
	cr_expect(q.dest_qpn == 1 && q.psn == 1 && q.src_qpn == 1);
	cr_expect(!q.ack_req && !q.fecn && !q.becn && !q.solicited && !q.mig_req);
	cr_expect_eq(frame[14 + 20 + 8 + 4], 0, "reserved bits are sent as 0");
	cr_expect_eq(frame[14 + 20 + 8 + 12 + 4], 0, "reserved bits are sent as 0");
}
