/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "config/limits.h"
#include "transport/pace.h"

Test(pace, grows_by_one_a_window_and_stops_at_the_limit)
{
	struct pace p;

	pace_init(&p);
	cr_assert_eq(p.window, LIMIT_WINDOW_START);
	pace_acknowledged(&p, LIMIT_WINDOW_START - 1);
	cr_assert_eq(p.window, LIMIT_WINDOW_START);
	pace_acknowledged(&p, 1);
	cr_assert_eq(p.window, LIMIT_WINDOW_START + 1);
	for (uint32_t i = 0; i < 10 * LIMIT_WINDOW; i++)
		pace_acknowledged(&p, p.window);
	cr_assert_eq(p.window, LIMIT_WINDOW);
}

Test(pace, halves_at_a_gap_and_keeps_the_floor)
{
	static const uint32_t expected[] = { 32, 16, 8, 4, 4, 4 };
	struct pace p;

	cr_assert_eq(LIMIT_WINDOW_START, 64, "the table below begins there");
	pace_init(&p);
	for (uint32_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		pace_lost(&p);
		cr_assert_eq(p.window, expected[i], "loss %u: %u", i, p.window);
	}
}

Test(pace, starts_over_from_the_floor_after_silence)
{
	struct pace p;

	pace_init(&p);
	pace_acknowledged(&p, LIMIT_WINDOW_START - 1);
	pace_silent(&p);
	cr_assert_eq(p.window, LIMIT_WINDOW_FLOOR);
	pace_acknowledged(&p, 1); /* what counted towards the old window is forgotten */
	cr_assert_eq(p.window, LIMIT_WINDOW_FLOOR);
}
