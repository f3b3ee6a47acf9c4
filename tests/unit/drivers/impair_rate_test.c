/* SPDX-License-Identifier: BSD-3-Clause */
/* The rate of net_impair, the buffer before it, and changes of both. */
#include <criterion/criterion.h>

#include <rte_mbuf.h>

#include "drivers/net_impair/impair.h"
#include "impair_rig.h"

TestSuite(impair_rate, .init = impair_rig_begin, .timeout = 60);

/*
 * A slow line, with the time in the test's hand: 8 Mbit/s is an octet a microsecond, and the clock
 * ticks in microseconds, too.
 */
static struct impair_path narrow_path;

static void narrow(struct impair_rules *rules, uint32_t paths)
{
	rules->rate = 8000000;
	rules->frequency = 1000000;
	rules->overtaken = 1;
	impair_path_init(&narrow_path, rules, 0, paths);
}

/* How many frames leave by now. */
static uint32_t leave(uint64_t now, uint32_t *marked)
{
	struct rte_mbuf *frames[64];
	uint16_t n = impair_take(&narrow_path, frames, 64, now);

	for (uint16_t i = 0; i < n; i++) {
		if (marked != NULL)
			*marked += (rte_pktmbuf_mtod(frames[i], uint8_t *)[15] & 3) == 3;
		rte_pktmbuf_free(frames[i]);
	}
	return n;
}

Test(impair_rate, frames_leave_at_the_rate)
{
	struct impair_rules rules = { .queue = 10000, .ecn = UINT64_MAX };

	narrow(&rules, 1);
	for (uint32_t i = 0; i < 10; i++)
		impair_admit(&narrow_path, frame(i), 1000);
	for (uint32_t i = 1; i <= 10; i++) {
		cr_expect_eq(leave(1000 + i * LENGTH - 1, NULL), 0, "frame %u is early", i);
		cr_expect_eq(leave(1000 + i * LENGTH, NULL), 1, "frame %u is late", i);
	}
	/* after a pause the line is free: the unused rate was not saved up */
	impair_admit(&narrow_path, frame(10), 50000);
	cr_expect_eq(leave(50000 + LENGTH - 1, NULL), 0);
	cr_expect_eq(leave(50000 + LENGTH, NULL), 1);
	cr_expect_eq(narrow_path.counters.overflowed, 0);
}

Test(impair_rate, a_delay_comes_after_the_rate)
{
	struct impair_rules rules = { .queue = 10000, .ecn = UINT64_MAX, .delay = 500 };

	narrow(&rules, 1);
	impair_admit(&narrow_path, frame(0), 0);
	cr_expect_eq(leave(LENGTH + 499, NULL), 0);
	cr_expect_eq(leave(LENGTH + 500, NULL), 1);
}

Test(impair_rate, what_finds_the_buffer_full_is_dropped_and_counted)
{
	struct impair_rules rules = { .queue = 5 * LENGTH, .ecn = UINT64_MAX };

	narrow(&rules, 1);
	for (uint32_t i = 0; i < 8; i++)
		impair_admit(&narrow_path, frame(i), 0);
	cr_expect_eq(narrow_path.counters.overflowed, 3);
	cr_expect_eq(narrow_path.counters.dropped, 0, "these were not lost at random");
	impair_admit(&narrow_path, frame(8), LENGTH - 1); /* an octet is missing */
	cr_expect_eq(narrow_path.counters.overflowed, 4);
	impair_admit(&narrow_path, frame(9), LENGTH);
	cr_expect_eq(narrow_path.counters.overflowed, 4);
	cr_expect_eq(leave(6 * LENGTH, NULL), 6);
	cr_expect_eq(rte_mempool_in_use_count(pool), 0);
}

Test(impair_rate, a_buffer_does_not_hold_the_sender_back)
{
	struct impair_rules rules = { .queue = 16u << 20, .ecn = UINT64_MAX };

	narrow(&rules, 1);
	for (uint32_t i = 0; i < 5000; i++) {
		cr_assert_geq(impair_room(&narrow_path), 32);
		impair_admit(&narrow_path, frame(i), 0);
	}
	/* the line keeps 4095 frames, however many octets the buffer has */
	cr_expect_gt(narrow_path.counters.overflowed, 0);
	impair_path_clear(&narrow_path);
	cr_expect_eq(rte_mempool_in_use_count(pool), 0);
}

Test(impair_rate, past_the_threshold_ect_frames_are_marked)
{
	struct impair_rules rules = { .queue = 10000, .ecn = 3 * LENGTH };
	uint32_t marked = 0;

	narrow(&rules, 1);
	for (uint32_t i = 0; i < 10; i++)
		impair_admit(&narrow_path, frame(i), 0);
	cr_expect_eq(leave(10 * LENGTH, &marked), 10);
	cr_expect_eq(marked, 6, "those that found more than three frames waiting");
	cr_expect_eq(narrow_path.counters.queue_marked, 6);
	cr_expect_eq(narrow_path.counters.ce_marked, 0);
}

Test(impair_rate, frames_that_are_not_ect_are_not_marked)
{
	struct impair_rules rules = { .queue = 10000, .ecn = LENGTH };
	uint32_t marked = 0;

	narrow(&rules, 1);
	for (uint32_t i = 0; i < 10; i++) {
		struct rte_mbuf *m = frame(i);

		rte_pktmbuf_mtod(m, uint8_t *)[15] = 0;
		impair_admit(&narrow_path, m, 0);
	}
	cr_expect_eq(leave(10 * LENGTH, &marked), 10);
	cr_expect_eq(marked, 0);
	cr_expect_eq(narrow_path.counters.queue_marked, 0);
}

Test(impair_rate, queues_share_the_rate_and_the_buffer)
{
	struct impair_rules rules = { .queue = 4 * LENGTH, .ecn = UINT64_MAX };

	narrow(&rules, 2);
	for (uint32_t i = 0; i < 4; i++)
		impair_admit(&narrow_path, frame(i), 0);
	cr_expect_eq(narrow_path.counters.overflowed, 2);
	cr_expect_eq(leave(2 * LENGTH - 1, NULL), 0);
	cr_expect_eq(leave(2 * LENGTH, NULL), 1);
	cr_expect_eq(leave(4 * LENGTH, NULL), 1);
}

/* Ten frames wait at 8 Mbit/s; two have left when the rate changes. */
static void narrow_with_ten(struct impair_rules *rules)
{
	narrow(rules, 1);
	for (uint32_t i = 0; i < 10; i++)
		impair_admit(&narrow_path, frame(i), 0);
	cr_assert_eq(leave(2 * LENGTH, NULL), 2);
}

Test(impair_rate, what_waits_leaves_at_the_changed_rate)
{
	struct impair_rules rules = { .queue = 10000, .ecn = UINT64_MAX };
	uint64_t changed_at = 2 * LENGTH;

	narrow_with_ten(&rules);
	impair_rule_set(&rules.rate, 4000000);
	cr_expect_eq(leave(changed_at, NULL), 0);
	impair_admit(&narrow_path, frame(10), changed_at);
	for (uint32_t i = 1; i <= 9; i++) {
		cr_expect_eq(leave(changed_at + 2 * i * LENGTH - 1, NULL), 0, "%u is early", i);
		cr_expect_eq(leave(changed_at + 2 * i * LENGTH, NULL), 1, "%u is late", i);
	}
	cr_expect_eq(rte_mempool_in_use_count(pool), 0);
}

Test(impair_rate, without_the_rate_what_waits_leaves_at_once)
{
	struct impair_rules rules = { .queue = 8 * LENGTH, .ecn = UINT64_MAX };

	narrow_with_ten(&rules);
	cr_assert_eq(narrow_path.counters.overflowed, 2);
	impair_rule_set(&rules.rate, 0);
	impair_admit(&narrow_path, frame(10), 2 * LENGTH);
	cr_expect_eq(leave(2 * LENGTH, NULL), 7);
	/* the next rate has an empty buffer */
	impair_rule_set(&rules.rate, 8000000);
	for (uint32_t i = 0; i < 9; i++)
		impair_admit(&narrow_path, frame(i), 1000);
	cr_expect_eq(narrow_path.counters.overflowed, 3);
	cr_expect_eq(leave(1000 + 8 * LENGTH - 1, NULL), 7);
	cr_expect_eq(leave(1000 + 8 * LENGTH, NULL), 1);
	cr_expect_eq(rte_mempool_in_use_count(pool), 0);
}

/* The rate goes between a look at the room and the frames that were to fill it. */
Test(impair_rate, without_the_rate_a_full_line_overflows)
{
	struct impair_rules rules = { .queue = 16 << 20, .ecn = UINT64_MAX };
	uint32_t left = 0, n;

	narrow(&rules, 1);
	for (uint32_t i = 0; i < IMPAIR_LINE; i++)
		impair_admit(&narrow_path, frame(i), 0);
	cr_assert_eq(impair_line_room(&narrow_path), 0);
	cr_assert_gt(impair_room(&narrow_path), 32);
	impair_rule_set(&rules.rate, 0);
	for (uint32_t i = 0; i < 32; i++)
		impair_admit(&narrow_path, frame(i), 0);
	while ((n = leave(0, NULL)) > 0)
		left += n;
	cr_expect_eq(left, IMPAIR_LINE);
	cr_expect_eq(narrow_path.counters.overflowed, 32);
	cr_expect_eq(rte_mempool_in_use_count(pool), 0);
}

/* A changed rate does not affect the delay. */
Test(impair_rate, a_changed_rate_leaves_the_delay_alone)
{
	struct impair_rules rules = { .queue = 10000, .ecn = UINT64_MAX, .delay = 500 };

	narrow(&rules, 1);
	impair_admit(&narrow_path, frame(0), 0);
	impair_rule_set(&rules.rate, 0);
	cr_expect_eq(leave(100, NULL), 0, "it has passed the rate at %u", LENGTH);
	cr_expect_eq(leave(LENGTH + 499, NULL), 0);
	cr_expect_eq(leave(LENGTH + 500, NULL), 1);
}

Test(impair_rate, buffer_and_threshold_may_change_too)
{
	struct impair_rules rules = { .queue = 10 * LENGTH, .ecn = UINT64_MAX };

	narrow_with_ten(&rules);
	impair_rule_set(&rules.ecn, 4 * LENGTH);
	impair_rule_set(&rules.queue, 9 * LENGTH);
	impair_admit(&narrow_path, frame(10), 2 * LENGTH);
	impair_admit(&narrow_path, frame(11), 2 * LENGTH);
	cr_expect_eq(narrow_path.counters.queue_marked, 1);
	cr_expect_eq(narrow_path.counters.overflowed, 1);
	impair_path_clear(&narrow_path);
}
