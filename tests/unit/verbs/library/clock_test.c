/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wall clock and the engine's clock, read by a program that loses its processor between the
 * two.
 */
#include <criterion/criterion.h>
#include <stdint.h>
#include <time.h>

#include "base/bits.h"
#include "base/time.h"
#include "verbs/queues/cq.h"

#define APART (1700000000 * TIME_S + 123456789) /* how far the wall clock is ahead */
#define LOSS  (3 * TIME_MS)
#define CLOSE (100 * TIME_US)

static struct client_page page;
static struct carrier carrier = { .page = &page };
static struct attachment attachment = { .carrier = &carrier };
static uint32_t lost_before, lost_behind; /* a bit for each reading of the wall clock */
static uint32_t readings;

static uint64_t engine_now(void)
{
	uint64_t ticks = __builtin_ia32_rdtsc() - page.clock.tsc;

	return page.clock.ns + (uint64_t)(((unsigned __int128)ticks * page.clock.mult) >> 32);
}

static void lose_processor(void)
{
	uint64_t end = engine_now() + LOSS;

	while (engine_now() < end)
		;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	uint32_t bit = 1u << readings++ % 32;
	uint64_t wall;

	if (lost_before & bit)
		lose_processor();
	wall = engine_now() + APART;
	*t = (struct timespec){ (time_t)(wall / TIME_S), (long)(wall % TIME_S) };
	if (lost_behind & bit)
		lose_processor();
	return 0;
}

/* hostile H-141: a clock that jumps. */
Test(clock, is_right_when_the_processor_is_lost_between_readings)
{
	static const struct {
		uint32_t before, behind;
	} cases[] = { { 0, 0 }, { 1, 0 }, { 0, 1 }, { 1, 2 } };

	page.clock = (struct clock_page){ .tsc = __builtin_ia32_rdtsc(),
					  .ns = 5 * TIME_S,
					  .mult = UINT64_C(1) << 31 };
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t apart;

		lost_before = cases[i].before;
		lost_behind = cases[i].behind;
		readings = 0;
		apart = clock_to_wall(&attachment);
		cr_expect(apart < APART + CLOSE && apart + CLOSE > APART,
			  "row %zu: %ld ns off after %u readings", i, (long)(apart - APART),
			  readings);
	}
}

Test(clock, is_read_a_bounded_number_of_times)
{
	lost_before = lost_behind = UINT32_MAX;
	page.clock.mult = UINT64_C(1) << 31;
	clock_to_wall(&attachment);
	cr_expect_lt(readings, 10);
}
