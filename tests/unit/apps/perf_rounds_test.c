/* SPDX-License-Identifier: BSD-3-Clause */
/* What uroce perf counts. */
#include <criterion/criterion.h>

#include "rounds.h"

#define QPS 3

static struct rounds r;

static void prepare(void)
{
	cr_assert_eq(rounds_begin(&r, QPS), 0);
}

static void end(void)
{
	rounds_end(&r);
}

TestSuite(perf_rounds, .init = prepare, .fini = end);

/* Each of them completes once, in the same instant. */
static void all_complete(nanotime now)
{
	for (uint32_t i = 0; i < QPS; i++)
		rounds_completed(&r, i);
	cr_assert(rounds_at(&r, now));
}

/* The queue pairs of one round complete at 1000, 2000 ...: what came before the first one is not counted. */
Test(perf_rounds, a_rate_is_that_between_whole_rounds)
{
	cr_assert_not(rounds_at(&r, 400));
	all_complete(1000);
	cr_assert_not(rounds_at(&r, 1500));
	all_complete(2000);
	cr_assert_not(rounds_enough(&r, 1001));
	all_complete(3000);
	cr_assert(rounds_enough(&r, 1001));
	cr_assert_eq(r.last_done - r.first_done, 2 * QPS);
	cr_assert_eq(r.last_at - r.first_at, 2000);
}

Test(perf_rounds, who_completes_often_is_counted_and_ends_no_round)
{
	all_complete(1000);
	for (int i = 0; i < 10; i++)
		rounds_completed(&r, 0);
	rounds_completed(&r, 1);
	cr_assert_not(rounds_at(&r, 5000), "the last queue pair has completed nothing since");
	cr_assert_not(rounds_enough(&r, 1));
	cr_assert_eq(r.left, 1);
	rounds_completed(&r, 2);
	cr_assert(rounds_at(&r, 6000));
	cr_assert_eq(r.last_done - r.first_done, 12);
	cr_assert_eq(r.last_at - r.first_at, 5000);
}

Test(perf_rounds, the_first_round_is_no_measurement)
{
	all_complete(1000);
	cr_assert_not(rounds_enough(&r, 0));
	all_complete(1001);
	cr_assert(rounds_enough(&r, 0));
}
