/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that have carried more than 2^23 packets in order. On the circle of PSNs whatever was
 * noted at their beginning lies in front of them then, not behind.
 *
 *	          first PSN
 *	        .-----o-----.
 *	  1     |           v  2      1: what lies in front of the expected PSN
 *	        '----->o----'         2: what lies behind it
 *	          expected PSN
 */
#include "story/story.h"
#include "story/story_sides.h"
#include "transport/psn.h"
#include "transport/qp.h"

#define MANY ((1u << 23) + 1000)

static const uint32_t next = A_PSN + MANY;

/* Begun by `a`: b has received that many WRITEs without octets, so that the keys do not matter. */
static void begin(bool selective)
{
	struct packet p = { .opcode = OPCODE(SERVICE_RC, OPB_WRITE_ONLY),
			    .dest_qpn = B_QPN,
			    .pkey = 0xffff };
	struct outcome out;
	uint32_t refused = 0;

	story(.recovery = true, .selective = selective);
	p.src_gid = story_gid(a);
	p.dst_gid = story_gid(b);
	for (uint32_t i = 0; i < MANY; i++) {
		p.psn = (A_PSN + i) & PSN_MASK;
		qp_received(b->q->core, &p, NULL, &b->node.keys, ms(1000), &out);
		refused += out.reason != REASON_NONE;
	}
	cr_assert_eq(refused, 0);
	cr_assert(psn_after(A_PSN, next), "the first PSN lies in front");
}

static void write_at(uint32_t psn)
{
	inject(b, OPB_WRITE_ONLY, psn, at_memory(b, 0, 0), .ack_req = true);
}

/* protocol-map 59, 53: a network that swaps two packets is no loss */
Test(long_life, packets_that_change_places_are_no_gap)
{
	for (uint32_t selective = 0; selective < 2; selective++) {
		begin(selective);
		write_at(next + 1);
		cr_expect_eq(b->q->core->resp.nak, 0, "the gap may close");
		write_at(next);
		cr_expect_eq(qp_deadline(b->q->core), TIME_NEVER, "nothing is missing any more");
		cr_expect_eq(expect_packet(b, "RC ACK", next + 1)->syndrome & SYNDROME_CLASS,
			     SYNDROME_ACK);
		expect_silence(b);
	}
}

/* protocol-map 59, 87: what comes behind a SEND that found no receive request is no gap either */
Test(long_life, packets_behind_one_that_was_not_ready)
{
	begin(false);
	inject(b, OPB_SEND_ONLY, next, .payload_length = 4, .ack_req = true);
	expect_nak(b, SYNDROME_RNR | 12, next, MANY);
	write_at(next + 1);
	post_receive(b, 1, 4);
	inject(b, OPB_SEND_ONLY, next, .payload_length = 4, .ack_req = true);
	expect_receive(b, 1, STATUS_SUCCESS, 4);
	cr_expect_eq(qp_deadline(b->q->core), TIME_NEVER, "nothing is missing any more");
	cr_expect_eq(expect_packet(b, "RC ACK", next + 1)->syndrome & SYNDROME_CLASS, SYNDROME_ACK);
	expect_silence(b);
}
