/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots that several lcores claim, step by step, in orders that threads rarely take; across the wrap. */
#include <criterion/criterion.h>

#include "queue/claim.h"

#define STARTS 4u

static const uint32_t starts[STARTS] = { 0, 100, 0x7ffffffe, 0xfffffffe };
static uint64_t head, tail;
static uint32_t shared;

static void begin_at(uint32_t position)
{
	head = tail = claim_word(position, 0xfffffffd); /* the count wraps, too */
	shared = position;
}

/* The position of the slot that is claimed. */
static uint32_t claim(void)
{
	uint64_t seen = head;

	cr_assert(claim_begin(&head, &seen));
	return claim_position(seen);
}

Test(claim, a_reader_of_an_older_head_claims_nothing)
{
	uint64_t seen, now;

	begin_at(5);
	seen = head;
	cr_expect_eq(claim(), 5);
	now = head;
	cr_expect_not(claim_begin(&head, &seen));
	cr_expect_eq(head, now);
	cr_expect_eq(seen, now, "and sees the newest");
	while (!claim_begin(&head, &seen))
		cr_assert_eq(seen, now); /* it may fail spuriously */
	cr_expect_eq(claim_position(head), 7);
}

/*
 * A claim that ends early becomes visible when all before it have ended, and all become visible at
 * once.
 */
Test(claim, a_position_is_shown_when_all_before_it_have_ended)
{
	for (uint32_t i = 0; i < STARTS; i++) {
		uint32_t from = starts[i], position;

		begin_at(from);
		for (uint32_t n = 0; n < 3; n++)
			cr_assert_eq(claim(), from + n);
		cr_expect_not(claim_finish(&head, &tail, &position));
		cr_expect_not(claim_finish(&head, &tail, &position));
		cr_assert(claim_finish(&head, &tail, &position), "from %x", from);
		cr_expect_eq(position, from + 3);
		claim_show(&shared, position);
		cr_expect_eq(shared, from + 3);
	}
}

Test(claim, one_that_began_meanwhile_is_waited_for)
{
	uint32_t position;

	begin_at(0xffffffff);
	claim();
	claim();
	cr_expect_not(claim_finish(&head, &tail, &position));
	claim();
	cr_expect_not(claim_finish(&head, &tail, &position));
	cr_expect(claim_finish(&head, &tail, &position));
	cr_expect_eq(position, 2);
}

/* Two lcores finish one after the other and come to the shared word the other way round. */
Test(claim, what_is_shown_only_advances)
{
	for (uint32_t i = 0; i < STARTS; i++) {
		uint32_t first, second;

		begin_at(starts[i]);
		claim();
		cr_assert(claim_finish(&head, &tail, &first));
		claim();
		cr_assert(claim_finish(&head, &tail, &second));
		claim_show(&shared, second);
		claim_show(&shared, first);
		cr_expect_eq(shared, starts[i] + 2, "from %x", starts[i]);
	}
}
