/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of a run: decoded by what was remembered of the one before, and as any other. */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "frames.h"
#include "wire/alike.h"
#include "wire/encode.h"
#include "wire/opcode.h"

static const uint8_t middles[] = { 0x01, 0x07, 0x0e, 0x21, 0x27, 0xae };

struct made {
	struct flow flow;
	size_t headers, length; /* octets */
	uint8_t frame[FRAME_MAX], payload[1500];
};

static void make(struct made *m, int ipv6, uint8_t opcode, uint32_t payload, uint32_t psn, bool ask)
{
	struct address_vector av = address_of(ipv6, 0);
	struct packet p = packet_of(opcode, NULL, payload);
	uint32_t sum;

	p.psn = psn;
	p.ack_req = ask;
	p.selective = true;
	p.late = 3;
	for (uint32_t i = 0; i < payload; i++)
		m->payload[i] = (uint8_t)(i * 7 + psn);
	flow_init(&m->flow, &av);
	m->headers = packet_encode(m->frame, &m->flow, &p, 99);
	sum = icrc_begin_copy(m->frame + m->flow.l3, m->headers - m->flow.l3, m->frame + m->headers,
			      m->payload, payload);
	m->length = packet_seal_summed(m->frame, &m->flow, m->headers, payload, sum);
}

static void same(const struct packet *a, const struct packet *b)
{
	cr_assert_eq(a->opcode, b->opcode);
	cr_assert_eq(a->solicited, b->solicited);
	cr_assert_eq(a->mig_req, b->mig_req);
	cr_assert_eq(a->fecn, b->fecn);
	cr_assert_eq(a->becn, b->becn);
	cr_assert_eq(a->ack_req, b->ack_req);
	cr_assert_eq(a->selective, b->selective);
	cr_assert_eq(a->late, b->late);
	cr_assert_eq(a->pad, b->pad);
	cr_assert_eq(a->checksum, b->checksum);
	cr_assert_eq(a->pkey, b->pkey);
	cr_assert_eq(a->dest_qpn, b->dest_qpn);
	cr_assert_eq(a->psn, b->psn);
	cr_assert_eq(a->payload, b->payload);
	cr_assert_eq(a->payload_length, b->payload_length);
	cr_assert_eq(a->sender, b->sender);
	cr_assert_eq(a->ecn, b->ecn);
	cr_assert_eq(a->traffic_class, b->traffic_class);
	cr_assert_eq(a->hop_limit, b->hop_limit);
	cr_assert_eq(a->multicast, b->multicast);
	cr_assert_eq(a->src_port, b->src_port);
	cr_assert_eq(a->ip_header, b->ip_header);
	cr_assert(gid_equal(&a->src_gid, &b->src_gid));
	cr_assert(gid_equal(&a->dst_gid, &b->dst_gid));
}

static void expect_same(struct alike *a, const struct made *m)
{
	struct packet p, q;

	cr_assert(alike_is(a, m->frame, m->length));
	cr_assert_eq(packet_decode(&p, m->frame, m->length, &untagged), REASON_NONE);
	cr_assert_eq(alike_decode(a, &q, m->frame, NULL), REASON_NONE);
	same(&q, &p);
}

static void remember(struct alike *a, const struct made *m)
{
	struct packet p;

	cr_assert_eq(packet_decode(&p, m->frame, m->length, &untagged), REASON_NONE);
	alike_remember(a, &p, m->frame, m->length);
}

Test(alike, is_decoded_as_any_other)
{
	static const uint32_t payloads[] = { 64, 256, 1021, 1024, 1500 };
	static struct made m;

	for (uint32_t i = 0; i < ARRAY_SIZE(middles); i++)
		for (uint32_t n = 0; n < ARRAY_SIZE(payloads); n++)
			for (int ipv6 = 0; ipv6 < 2; ipv6++) {
				struct alike a = { 0 };

				make(&m, ipv6, middles[i], payloads[n], 0xfffffe, true);
				remember(&a, &m);
				expect_same(&a, &m);
				make(&m, ipv6, middles[i], payloads[n], 0xffffff, false);
				expect_same(&a, &m);
				make(&m, ipv6, middles[i], payloads[n], 0, true);
				expect_same(&a, &m);
			}
}

/* Each bit of the headers but AckReq, the reserved bits beside it and the PSN makes it another frame. */
Test(alike, other_headers_are_not_alike)
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		static struct made m;
		struct alike a = { 0 };

		make(&m, ipv6, 0x07, 1024, 5, false);
		remember(&a, &m);
		for (size_t bit = 0; bit < 8 * m.headers; bit++) {
			m.frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
			cr_assert_eq(alike_is(&a, m.frame, m.length), bit / 8 >= m.headers - 4,
				     "bit %zu", bit);
			m.frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		cr_assert_not(alike_is(&a, m.frame, m.length - 1));
		cr_assert_not(alike_is(&a, m.frame, m.length + 1));
	}
}

/* ... and each bit that changes from there on makes its ICRC wrong. */
Test(alike, a_wrong_icrc_is_noticed)
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		static struct made m;
		struct alike a = { 0 };
		struct packet p;

		make(&m, ipv6, 0x07, 1021, 5, false);
		remember(&a, &m);
		for (size_t bit = 8 * (m.headers - 4); bit < 8 * m.length; bit++) {
			m.frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
			cr_assert(alike_is(&a, m.frame, m.length));
			cr_assert_eq(alike_decode(&a, &p, m.frame, NULL), REASON_ICRC, "bit %zu",
				     bit);
			m.frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		expect_same(&a, &m);
	}
}

Test(alike, only_what_is_in_the_middle_is_remembered)
{
	static const uint8_t zeros[16];
	static struct made m;
	struct alike a = { 0 };

	for (uint32_t opcode = 0; opcode < 256; opcode++) {
		bool is = false;

		if (!opcode_defined((uint8_t)opcode))
			continue;
		for (uint32_t i = 0; i < ARRAY_SIZE(middles); i++)
			is |= opcode == middles[i];
		a.length = 0;
		make(&m, 0, (uint8_t)opcode, opcode_is((uint8_t)opcode, OP_PAYLOAD) ? 256 : 0, 5,
		     false);
		remember(&a, &m);
		cr_expect_eq(a.length != 0, is, "opcode %#x", opcode);
	}
	a = (struct alike){ 0 };
	cr_expect_not(alike_is(&a, m.frame, m.length));
	cr_expect_not(alike_is(&a, zeros + 8, 0), "an empty frame");
}

/* Another run: nothing of the one before is left. */
Test(alike, the_last_one_is_remembered)
{
	static struct made m;
	struct alike a = { 0 };

	for (int ipv6 = 0; ipv6 < 2; ipv6++)
		for (uint32_t i = 0; i < ARRAY_SIZE(middles); i++) {
			make(&m, ipv6, middles[i], 1024, i, false);
			remember(&a, &m);
			expect_same(&a, &m);
		}
}
