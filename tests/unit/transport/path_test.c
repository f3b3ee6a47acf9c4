/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "config/limits.h"
#include "transport/path.h"

#define US TIME_US

Test(path, knows_nothing_at_first)
{
	struct path p;

	path_init(&p);
	cr_assert_eq(path_srtt(&p), 0);
	cr_assert_eq(path_min_rtt(&p), 0);
	cr_assert_eq(path_srtt(NULL), 0, "a queue pair without a path knows nothing, ever");
	cr_assert_eq(path_min_rtt(NULL), 0);
}

Test(path, smooths_an_eighth_of_each_sample)
{
	struct path p;

	path_init(&p);
	path_rtt(&p, 80 * US, 1);
	cr_assert_eq(p.srtt, 80 * US, "the first is all that is known");
	cr_assert_eq(p.rttvar, 40 * US);
	path_rtt(&p, 160 * US, 2);
	cr_assert_eq(p.srtt, 90 * US);
	cr_assert_eq(p.rttvar, 50 * US);
	cr_assert_eq(p.min_rtt, 80 * US);
}

Test(path, follows_a_change_up_and_down)
{
	struct path p;

	path_init(&p);
	for (uint32_t i = 0; i < 100; i++)
		path_rtt(&p, 10 * US, i);
	for (uint32_t i = 0; i < 100; i++)
		path_rtt(&p, 1000 * US, 100 + i);
	cr_assert_gt(p.srtt, 990 * US);
	for (uint32_t i = 0; i < 200; i++)
		path_rtt(&p, 10 * US, 200 + i);
	cr_assert_lt(p.srtt, 11 * US);
}

Test(path, forgets_the_least_after_two_periods)
{
	const nanotime period = LIMIT_PATH_MIN_S * TIME_S;
	struct path p;

	path_init(&p);
	path_rtt(&p, 10 * US, 0);
	path_rtt(&p, 30 * US, 1);
	path_rtt(&p, 30 * US, period + 1);
	cr_assert_eq(p.min_rtt, 10 * US, "of the last period");
	path_rtt(&p, 40 * US, 2 * period + 2);
	cr_assert_eq(p.min_rtt, 30 * US, "the 10 us are two periods old");
}

/* Round trips of zero and of minutes are bounded, and never become "not known". */
Test(path, bounds_absurd_samples)
{
	const nanotime absurd[] = { 0, 1, 3, 600 * TIME_S, TIME_NEVER };
	struct path p;

	path_init(&p);
	for (uint32_t i = 0; i < 10000; i++) {
		path_rtt(&p, absurd[i % ARRAY_SIZE(absurd)], i);
		cr_assert(p.srtt > 0 && p.srtt <= LIMIT_PATH_RTT_MS * TIME_MS);
		cr_assert_leq(p.rttvar, LIMIT_PATH_RTT_MS * TIME_MS);
	}
	cr_assert_eq(p.min_rtt, 1);
	for (uint32_t i = 0; i < 1000; i++)
		path_rtt(&p, 0, i);
	cr_assert(p.srtt > 0 && p.srtt < 100);
}
