/* SPDX-License-Identifier: BSD-3-Clause */
/* How late a caller of the core is, and the steps in which it tells its peers. */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "config/limits.h"
#include "transport/late.h"

#define US TIME_US

/* The steps on the wire are those of docs/wire-extensions.md. */
Test(late, lateness_goes_in_steps_of_half_an_octave)
{
	static const struct {
		nanotime time;
		uint8_t step;
	} rows[] = {
		{ 0, 1 },
		{ 1, 1 },
		{ 256, 1 },
		{ 257, 3 },
		{ 512, 3 },
		{ 513, 4 },
		{ 768, 4 },
		{ 769, 5 },
		{ 1024, 5 },
		{ 1537, 7 },
		{ 20 * US, 14 },
		{ 1000 * US, 25 },
		{ 256 << 15, 31 },
		{ 10 * TIME_MS, 31 },
		{ TIME_NEVER / 4, 31 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		cr_expect_eq(late_step(rows[i].time), rows[i].step, "%lu ns: %u", rows[i].time,
			     late_step(rows[i].time));
	cr_expect_eq(late_time(0), 0, "nothing was said");
	for (uint8_t step = 1; step < LATE_STEPS; step++)
		cr_expect(step == 2 || late_step(late_time(step)) == step, "%u", step);
}

/* A port that took nothing for a while allows longer round trips; this is forgotten in time. */
Test(late, a_port_that_stalls_makes_its_host_late)
{
	nanotime now = TIME_S;
	struct late l = { 0 };

	late_polled(&l, 10 * US, true, now);
	cr_assert_eq(l.time, 10 * US);
	late_stalled(&l, 50 * US, now);
	cr_assert_eq(l.time, 100 * US, "twice: the window is used up when it begins");
	late_stalled(&l, 20 * US, now);
	cr_assert_eq(l.time, 100 * US);
	late_polled(&l, 0, false, now + LIMIT_PATH_STALL_MS * TIME_MS);
	cr_assert_eq(l.time, 100 * US);
	late_polled(&l, 0, false, now + LIMIT_PATH_STALL_MS * TIME_MS + 1);
	cr_assert_eq(l.time, 10 * US, "polls without work say nothing");
	late_polled(&l, 1, true, now + LIMIT_PATH_STALL_MS * TIME_MS + 1);
	cr_assert(l.time < 10 * US && l.time > 9 * US, "%lu: it fades", l.time);
	late_stalled(&l, TIME_NEVER / 4, now);
	cr_assert_eq(l.time, 10 * TIME_MS, "bounded");
}

/* An answer that comes while others have the core is late; idle polls alone must not forget that.
 */
Test(late, a_core_that_was_yielded_makes_its_host_late)
{
	struct late l = { 0 };
	nanotime now = TIME_S;

	late_polled(&l, 10 * US, true, now);
	late_polled(&l, 300 * US, false, now);
	cr_assert_eq(l.time, 300 * US);
	for (uint32_t i = 0; i < 10000; i++)
		late_polled(&l, 1, false, now);
	cr_assert_eq(l.time, 300 * US, "it polls, and knows no better");
	for (uint32_t i = 0; i < LATE_FADES; i++)
		late_polled(&l, 10 * US, true, now);
	cr_assert_lt(l.time, 150 * US, "work shows how late it is now");
	late_polled(&l, TIME_NEVER / 4, false, now);
	cr_assert_eq(l.time, LATE_MOST, "bounded");
}

/* Most idle polls change nothing, but one of them sees that the port takes frames again. */
Test(late, a_port_that_took_nothing_is_forgotten_without_work)
{
	struct late l = { 0 };

	late_polled(&l, 10 * US, false, 1);
	late_stalled(&l, 100 * US, 1);
	cr_expect_eq(l.time, 200 * US);
	late_polled(&l, US, false, LIMIT_PATH_STALL_MS * TIME_MS);
	cr_expect_eq(l.time, 200 * US);
	late_polled(&l, US, false, LIMIT_PATH_STALL_MS * TIME_MS + 2);
	cr_expect_eq(l.time, 10 * US);
	cr_expect_eq(l.step, late_step(10 * US));
}
