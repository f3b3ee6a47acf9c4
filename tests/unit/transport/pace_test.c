/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "config/limits.h"
#include "transport/pace.h"

Test(pace, grows_by_one_for_sixteen_and_stops_at_the_limit)
{
	struct pace p;

	pace_init(&p);
	cr_assert_eq(p.window, LIMIT_WINDOW_START);
	pace_acknowledged(&p, 15);
	cr_assert_eq(p.window, LIMIT_WINDOW_START);
	pace_acknowledged(&p, 1);
	cr_assert_eq(p.window, LIMIT_WINDOW_START + 1);
	pace_acknowledged(&p, 40);
	cr_assert_eq(p.window, LIMIT_WINDOW_START + 3, "many at once count as many");
	for (uint32_t i = 0; i < 10 * LIMIT_WINDOW; i++)
		pace_acknowledged(&p, 64);
	cr_assert_eq(p.window, LIMIT_WINDOW);
}

Test(pace, losses_close_together_halve_it_down_to_the_floor)
{
	struct pace p = { .window = 256 };

	pace_lost(&p);
	cr_assert_eq(p.window, 128);
	pace_acknowledged(&p, 15);
	pace_lost(&p);
	cr_assert_eq(p.window, 64);
	for (int i = 0; i < 10; i++)
		pace_lost(&p);
	cr_assert_eq(p.window, LIMIT_WINDOW_FLOOR);
}

Test(pace, a_loss_that_stands_alone_costs_an_eighth)
{
	struct pace p = { .window = 128 };

	pace_acknowledged(&p, 64);
	cr_assert_eq(p.window, 132);
	pace_lost(&p);
	cr_assert_eq(p.window, 132 - 16);
	pace_acknowledged(&p, 63);
	pace_lost(&p);
	cr_assert_eq(p.window, (116 + 3) - 119 / 2, "one packet short of standing alone");
}

Test(pace, one_loss_in_a_hundred_leaves_a_window_that_does_not_stall)
{
	struct pace p;

	pace_init(&p);
	for (int i = 0; i < 1000; i++) {
		pace_acknowledged(&p, 100);
		pace_lost(&p);
	}
	cr_assert_geq(p.window, 40);
}

Test(pace, silence_halves_it_and_forgets_what_was_counted)
{
	struct pace p;

	pace_init(&p);
	pace_acknowledged(&p, 15);
	pace_silent(&p);
	cr_assert_eq(p.window, LIMIT_WINDOW_START / 2);
	pace_acknowledged(&p, 1);
	cr_assert_eq(p.window, LIMIT_WINDOW_START / 2);
}
