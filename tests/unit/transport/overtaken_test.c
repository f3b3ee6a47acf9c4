/* SPDX-License-Identifier: BSD-3-Clause */
/* READs and atomics alone are looked at together after a loss. That finds what a look at each of them finds. */
#include <criterion/criterion.h>
#include <string.h>

#include "transport/requester/kind.h"
#include "transport/requester/overtaken.h"
#include "wire/opcode.h"

#define MESSAGES 16u

static struct message message[MESSAGES];
static struct requester one, other;
static uint64_t state;

static uint32_t pick(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

static uint32_t somewhere(void)
{
	return psn_add(one.una_psn, pick(on_its_way(&one) + 1));
}

/* Two messages or more, across the wrap now and then; of the first one, some PSNs are acknowledged. */
static void make_requester(void)
{
	uint32_t n = 2 + pick(MESSAGES - 2), psn = (PSN_MASK - 40 + pick(80)) & PSN_MASK;

	memset(&one, 0, sizeof(one));
	one.message = message;
	one.slot_mask = MESSAGES - 1;
	one.board.words = PSN_SET_WORDS;
	one.una = pick(1000);
	one.begun = one.una + n;
	for (uint32_t i = one.una; i != one.begun; i++) {
		*message_at(&one, i) = (struct message){ .kind = KIND_READ_REQUEST,
							 .first_psn = psn,
							 .packets = 1 + pick(12) };
		psn = message_end(message_at(&one, i));
	}
	one.una_psn = psn_add(message_at(&one, one.una)->first_psn,
			      pick(message_at(&one, one.una)->packets));
	one.top_psn = psn;
}

static void make_board(void)
{
	struct board *b = &one.board;
	uint32_t before = pick(6);

	b->old_mark = somewhere();
	b->young_mark = somewhere();
	b->gap = psn_add(somewhere(), PSN_MASK + 1 - before); /* it may be a stale one */
	for (uint32_t i = 0, n = on_its_way(&one); i < n; i++) {
		uint32_t set = pick(2 * BOARD_SETS);

		if (set < BOARD_SETS)
			psn_set_add(board_set(b, set), psn_add(one.una_psn, i));
	}
}

Test(overtaken, together_or_each)
{
	uint32_t found = 0;

	state = 1;
	for (uint32_t i = 0; i < 200000; i++) {
		uint32_t all, data;
		bool asked = pick(2);

		make_requester();
		make_board();
		all = somewhere();
		data = somewhere();
		other = one;
		one.rd_atomic = one.begun - one.una;
		other.rd_atomic = one.rd_atomic - 1; /* as if one of them were a WRITE */
		cr_assert_eq(overtaken(&one, all, data, asked), overtaken(&other, all, data, asked),
			     "try %u", i);
		cr_assert_arr_eq(one.board.own, other.board.own, sizeof(one.board.own), "try %u",
				 i);
		cr_assert_eq(one.board.twice, other.board.twice);
		found += psn_set_first(board_set(&one.board, BOARD_LOST), one.una_psn,
				       on_its_way(&one)) < on_its_way(&one);
	}
	cr_assert_gt(found, 1000);
}

Test(overtaken, each_psn_has_its_message)
{
	state = 2;
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t psn, of;

		make_requester();
		psn = psn_add(one.una_psn, pick(on_its_way(&one)));
		of = message_of(&one, psn);
		cr_assert(psn_within(psn, message_at(&one, of)->first_psn,
				     message_at(&one, of)->packets));
		cr_assert_eq(message_of(&one, message_at(&one, one.una)->first_psn), one.una);
	}
}
