/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow control of rsockets: how much may be sent and where it goes, across every wrap. */
#include <criterion/criterion.h>
#include <string.h>

#include "rdmacm/rsockets/rs_flow.h"

#define HALF	4096u
#define CREDITS 16u

static struct rs_inflow in;
static uint32_t lengths[CREDITS + 1];

static void begin(void)
{
	rs_inflow_init(&in, HALF, CREDITS, lengths);
}

TestSuite(rs_flow, .init = begin);

static uint32_t take_all(void)
{
	uint32_t taken = 0;
	struct rs_piece p;

	while ((p = rs_inflow_next(&in, UINT32_MAX)).length > 0) {
		cr_assert_leq(p.offset + p.length, 2 * HALF);
		rs_inflow_take(&in, p.length);
		taken += p.length;
	}
	return taken;
}

Test(rs_flow, the_second_half_is_published_first)
{
	struct rs_piece half;

	cr_assert(rs_inflow_owes(&in));
	cr_expect_eq(rs_inflow_grant(&in, &half), CREDITS);
	cr_expect_eq(half.offset, HALF);
	cr_expect_eq(half.length, HALF);
	cr_expect(!rs_inflow_owes(&in), "the peer has both halves");
}

Test(rs_flow, a_half_is_published_again_when_as_much_was_taken)
{
	struct rs_piece half;

	rs_inflow_grant(&in, &half);
	cr_assert(rs_inflow_announce(&in, HALF - 1));
	cr_expect_eq(take_all(), HALF - 1);
	cr_expect(!rs_inflow_owes(&in), "one octet is missing");
	cr_assert(rs_inflow_announce(&in, 1));
	cr_expect_eq(take_all(), 1);
	cr_assert(rs_inflow_owes(&in));
	cr_expect_eq(rs_inflow_grant(&in, &half), CREDITS + 2);
	cr_expect_eq(half.offset, 0, "the emptied half");
}

Test(rs_flow, more_than_was_published_is_refused)
{
	cr_expect(!rs_inflow_announce(&in, HALF + 1));
	cr_expect(rs_inflow_announce(&in, HALF));
	cr_expect(!rs_inflow_announce(&in, 1), "the second half is not published");
}

Test(rs_flow, a_message_across_two_buffers_is_refused)
{
	struct rs_piece half;

	rs_inflow_grant(&in, &half);
	cr_assert(rs_inflow_announce(&in, HALF - 10));
	cr_expect(!rs_inflow_announce(&in, 11));
	cr_expect(rs_inflow_announce(&in, 10));
	cr_expect(rs_inflow_announce(&in, HALF));
}

Test(rs_flow, more_messages_than_credits_are_refused)
{
	for (uint32_t i = 0; i < CREDITS; i++)
		cr_assert(rs_inflow_announce(&in, 1), "message %u", i);
	cr_expect(!rs_inflow_announce(&in, 1));
}

Test(rs_flow, an_empty_message_is_done_with_at_once)
{
	for (uint32_t i = 0; i < 3 * CREDITS; i++)
		cr_assert(rs_inflow_announce(&in, 0));
	cr_expect(!rs_inflow_waits(&in));
	cr_expect_eq(in.seen, 3 * CREDITS);
}

/* Credits are renewed when half of them are used: not with each message, not too late, also at the wrap. */
Test(rs_flow, credits_are_renewed_when_half_of_them_are_used)
{
	uint32_t used = 0;
	struct rs_piece half;

	rs_inflow_grant(&in, &half);
	for (uint32_t i = 0; i < 3u << 16; i++) {
		rs_inflow_pass(&in);
		used++;
		cr_assert_eq(rs_inflow_owes(&in), used == CREDITS / 2, "message %u, %u used", i,
			     used);
		if (used < CREDITS / 2)
			continue;
		rs_inflow_grant(&in, &half);
		used = 0;
	}
}

Test(rs_flow, looking_ahead_takes_nothing)
{
	struct rs_inflow ahead;

	cr_assert(rs_inflow_announce(&in, 7));
	cr_assert(rs_inflow_announce(&in, 5));
	ahead = in;
	rs_inflow_take(&ahead, 7);
	cr_expect_eq(rs_inflow_next(&ahead, 100).offset, 7);
	cr_expect_eq(rs_inflow_next(&ahead, 100).length, 5);
	cr_expect_eq(rs_inflow_next(&in, 100).offset, 0);
	cr_expect_eq(rs_inflow_next(&in, 3).length, 3);
}

/*
 * Both ends together, with message lengths that divide nothing: the sender writes where the
 * receiver reads, and the message numbers wrap at 2^16.
 */
Test(rs_flow, both_ends_agree_across_the_wraps)
{
	static uint8_t buffer[2 * HALF];
	struct rs_outflow out;
	struct rs_piece target = { .offset = 0, .length = HALF }, next = { 0 }, half, p;
	uint32_t sent = 0, taken = 0;

	rs_outflow_init(&out, 2 * LIMIT_RS_LOW_WATER, 8, 4);
	out.granted = CREDITS;
	for (uint32_t round = 0; round < 200000; round++) {
		uint32_t n = 1 + round * 7919 % 900;

		if (rs_inflow_owes(&in)) {
			out.granted = rs_inflow_grant(&in, &half);
			if (half.length > 0) {
				cr_assert_eq(next.length, 0, "more than two buffers");
				next = half;
			}
		}
		if (target.length == 0) {
			target = next;
			next.length = 0;
		}
		if (rs_outflow_may_send(&out, target.length)) {
			n = n < target.length ? n : target.length;
			for (uint32_t i = 0; i < n; i++)
				buffer[target.offset + i] = (uint8_t)(sent + i);
			sent += n;
			target.offset += n;
			target.length -= n;
			out.sent++;
			rs_outflow_sent(&out, n);
			cr_assert_lt(out.offset, out.size);
			cr_assert(rs_inflow_announce(&in, n), "round %u", round);
			rs_outflow_done(&out, n);
		}
		p = rs_inflow_next(&in, 1 + round * 104729 % 1000);
		for (uint32_t i = 0; i < p.length; i++)
			cr_assert_eq(buffer[p.offset + i], (uint8_t)(taken + i));
		if (p.length > 0)
			rs_inflow_take(&in, p.length);
		taken += p.length;
	}
	cr_expect_gt(sent, 1000 * HALF, "stuck after %u octets", sent);
	cr_expect_gt(in.half, 0);
	cr_expect_lt((uint16_t)(out.sent - in.seen), CREDITS + 1);
}

Test(rs_flow, pieces_at_the_end_of_the_buffer)
{
	struct rs_outflow out;
	struct rs_piece p[2];

	rs_outflow_init(&out, 10000, 8, 4);
	rs_outflow_sent(&out, 9990);
	rs_outflow_done(&out, 9990);
	cr_expect_eq(rs_outflow_pieces(&out, 10, p), 1);
	cr_expect_eq(p[0].offset, 9990);
	cr_expect_eq(rs_outflow_pieces(&out, 11, p), 2);
	cr_expect_eq(p[0].length, 10);
	cr_expect_eq(p[1].offset, 0);
	cr_expect_eq(p[1].length, 1);
	rs_outflow_sent(&out, 11);
	cr_expect_eq(out.offset, 1);
}

Test(rs_flow, nothing_is_sent_without_a_credit_a_place_or_room)
{
	struct rs_outflow out;

	rs_outflow_init(&out, 2 * LIMIT_RS_LOW_WATER, 2, 4);
	cr_expect(!rs_outflow_may_send(&out, 1), "no credits");
	out.granted = 1;
	cr_expect(rs_outflow_may_send(&out, 1));
	cr_expect(!rs_outflow_may_send(&out, 0), "no room at the peer");
	rs_outflow_sent(&out, LIMIT_RS_LOW_WATER + 1);
	cr_expect(!rs_outflow_may_send(&out, 1), "no room here");
	rs_outflow_done(&out, LIMIT_RS_LOW_WATER + 1);
	rs_outflow_sent(&out, 0);
	rs_outflow_sent(&out, 0);
	cr_expect(!rs_outflow_may_send(&out, 1), "no place in the send queue");
}
