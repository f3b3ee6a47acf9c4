/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "config/limits.h"
#include "transport/requester/window.h"

Test(window, grows_by_one_for_sixteen_and_stops_at_the_limit)
{
	struct window w;

	window_init(&w);
	cr_assert_eq(w.packets, LIMIT_WINDOW_START);
	window_acknowledged(&w, 15);
	cr_assert_eq(w.packets, LIMIT_WINDOW_START);
	window_acknowledged(&w, 1);
	cr_assert_eq(w.packets, LIMIT_WINDOW_START + 1);
	window_acknowledged(&w, 40);
	cr_assert_eq(w.packets, LIMIT_WINDOW_START + 3, "many at once count as many");
	for (uint32_t i = 0; i < 10 * LIMIT_WINDOW; i++)
		window_acknowledged(&w, 64);
	cr_assert_eq(w.packets, LIMIT_WINDOW);
}

/* hostile H-58: notifications without end. */
Test(window, losses_close_together_halve_it_down_to_the_floor)
{
	struct window w = { .packets = 256 };

	window_lost(&w);
	cr_assert_eq(w.packets, 128);
	window_acknowledged(&w, 15);
	window_lost(&w);
	cr_assert_eq(w.packets, 64);
	for (int i = 0; i < 10; i++)
		window_lost(&w);
	cr_assert_eq(w.packets, LIMIT_WINDOW_FLOOR);
}

Test(window, a_loss_that_stands_alone_costs_an_eighth)
{
	struct window w = { .packets = 128 };

	window_acknowledged(&w, 64);
	cr_assert_eq(w.packets, 132);
	window_lost(&w);
	cr_assert_eq(w.packets, 132 - 16);
	window_acknowledged(&w, 63);
	window_lost(&w);
	cr_assert_eq(w.packets, (116 + 3) - 119 / 2, "one packet short of standing alone");
}

Test(window, one_loss_in_a_hundred_leaves_a_window_that_does_not_stall)
{
	struct window w;

	window_init(&w);
	for (int i = 0; i < 1000; i++) {
		window_acknowledged(&w, 100);
		window_lost(&w);
	}
	cr_assert_geq(w.packets, 40);
}

Test(window, silence_halves_it_and_forgets_what_was_counted)
{
	struct window w;

	window_init(&w);
	window_acknowledged(&w, 15);
	window_silent(&w);
	cr_assert_eq(w.packets, LIMIT_WINDOW_START / 2);
	window_acknowledged(&w, 1);
	cr_assert_eq(w.packets, LIMIT_WINDOW_START / 2);
}
