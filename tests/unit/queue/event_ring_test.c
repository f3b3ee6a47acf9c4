/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of events: their order, their places, and what a program may claim. */
#include <criterion/criterion.h>
#include <string.h>

#include "queue/event_ring.h"

static const uint32_t starts[] = { 0, 7, 0x7fffffff, 0xfffffffa };

static _Alignas(64) char memory[sizeof(struct event_page) + LIMIT_CM_SHOWN * sizeof(uint64_t)];
static struct event_page *page;
static uint32_t posted, taken,
	collected; /* the engine's, the program's, and what the former knows */

static void begin_at(uint32_t position)
{
	cr_assert_eq(event_ring_bytes(sizeof(uint64_t)), sizeof(memory));
	memset(memory, 0, sizeof(memory));
	page = (struct event_page *)(void *)memory;
	posted = taken = collected = position;
	event_ring_post(page, posted);
	event_ring_take(page, taken);
}

static void post(uint64_t what)
{
	*(uint64_t *)event_ring_at(page, posted, sizeof(uint64_t)) = what;
	event_ring_post(page, ++posted);
}

/* 0: there is none. */
static uint64_t take(void)
{
	const uint64_t *record = event_ring_oldest(page, taken, sizeof(uint64_t));
	uint64_t what = record != NULL ? *record : 0;

	if (record != NULL)
		event_ring_take(page, ++taken);
	return what;
}

static uint32_t collect(void)
{
	uint32_t before = collected;

	collected = event_ring_taken(page, collected, posted);
	return collected - before;
}

Test(event_ring, in_order_and_across_the_wrap)
{
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		uint64_t sent = 0, seen = 0;

		begin_at(starts[i]);
		cr_expect_eq(take(), 0);
		for (uint32_t round = 0; round < 5; round++) {
			while (posted - collected < LIMIT_CM_SHOWN)
				post(++sent);
			cr_expect_eq(collect(), 0, "nothing was taken yet");
			for (uint32_t k = 0; k < LIMIT_CM_SHOWN - 3; k++)
				cr_assert_eq(take(), ++seen);
			cr_expect_eq(collect(), LIMIT_CM_SHOWN - 3);
		}
		while (seen < sent)
			cr_assert_eq(take(), ++seen);
		cr_expect_eq(take(), 0);
		cr_expect_eq(collect(), 3);
	}
}

/* hostile H-146: a position that the engine never gave out changes nothing. */
Test(event_ring, forged_positions)
{
	static const uint32_t by[] = { 4, 5, LIMIT_CM_SHOWN, 0x7fffffff, 0x80000000, 0xffffffff };

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		begin_at(starts[i]);
		for (uint64_t k = 1; k <= 3; k++)
			post(k);
		for (size_t k = 0; k < sizeof(by) / sizeof(by[0]); k++) {
			event_ring_take(page, starts[i] + by[k]);
			cr_expect_eq(collect(), 0, "start %u, by %u", starts[i], by[k]);
		}
		event_ring_take(page, starts[i] + 3);
		cr_expect_eq(collect(), 3);
	}
}
