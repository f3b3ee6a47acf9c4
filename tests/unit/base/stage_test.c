/* SPDX-License-Identifier: BSD-3-Clause */
/* The stopwatch of stages: every cycle is one stage's. */
#include <criterion/criterion.h>

#include "base/stage.h"

static uint64_t now;
static uint32_t readings;

static uint64_t read_clock(void)
{
	readings++;
	return now;
}

static uint64_t sum_of(const struct stage_watch *w)
{
	uint64_t sum = 0;

	for (enum stage i = 0; i < STAGE_COUNT; i++)
		sum += w->cycles[i];
	return sum;
}

static void reset(void)
{
	now = 1000;
	readings = 0;
}

TestSuite(stage, .init = reset);

Test(stage, each_cycle_is_of_the_stage_that_it_was_in)
{
	struct stage_watch w;

	stage_start(&w, read_clock, STAGE_RX);
	now += 7;
	stage_switch(&w, STAGE_DECODE);
	now += 20;
	stage_switch(&w, STAGE_TRANSPORT);
	now += 300;
	stage_switch(&w, STAGE_RX);
	now += 4;
	stage_switch(&w, STAGE_TX);
	now += 99; /* of nobody until the next switch */
	cr_expect_eq(w.cycles[STAGE_RX], 11);
	cr_expect_eq(w.passes[STAGE_RX], 2);
	cr_expect_eq(w.cycles[STAGE_DECODE], 20);
	cr_expect_eq(w.cycles[STAGE_TRANSPORT], 300);
	cr_expect_eq(w.passes[STAGE_TRANSPORT], 1);
	cr_expect_eq(w.cycles[STAGE_KEY] + w.passes[STAGE_KEY], 0, "it was not passed");
	cr_expect_eq(w.cycles[STAGE_TX] + w.passes[STAGE_TX], 0, "it goes on");
	cr_expect_eq(sum_of(&w), w.since - 1000);
	cr_expect_eq(w.longest, 300);
	cr_expect_eq(readings, 5, "the start and each switch read the clock once");
}

Test(stage, what_nests_is_not_counted_twice)
{
	struct stage_watch w;
	enum stage outer, inner;

	stage_start(&w, read_clock, STAGE_TRANSPORT);
	now += 10;
	outer = stage_nest(&w, STAGE_COMPLETE);
	now += 5;
	inner = stage_nest(&w, STAGE_KEY);
	now += 3;
	stage_switch(&w, inner);
	now += 2;
	stage_switch(&w, outer);
	now += 1;
	stage_switch(&w, STAGE_OTHER);
	cr_expect_eq(w.cycles[STAGE_TRANSPORT], 11);
	cr_expect_eq(w.cycles[STAGE_COMPLETE], 7);
	cr_expect_eq(w.cycles[STAGE_KEY], 3);
	cr_expect_eq(sum_of(&w), now - 1000);
}

Test(stage, nobody_measures)
{
	enum stage before = stage_nest(NULL, STAGE_KEY);

	stage_switch(NULL, before);
	cr_expect_eq(readings, 0);
}

Test(stage, a_start_forgets)
{
	struct stage_watch w;

	stage_start(&w, read_clock, STAGE_RX);
	now += 50;
	stage_switch(&w, STAGE_TX);
	stage_start(&w, read_clock, STAGE_DECODE);
	now += 1;
	stage_switch(&w, STAGE_TX);
	cr_expect_eq(sum_of(&w), 1);
	cr_expect_eq(w.passes[STAGE_DECODE], 1);
	cr_expect_eq(w.passes[STAGE_RX], 0);
}

Test(stage, each_has_a_name)
{
	for (enum stage i = 0; i < STAGE_COUNT; i++) {
		cr_expect_gt(stage_name(i)[0], '\0');
		cr_expect_gt(stage_what(i)[0], '\0');
	}
	cr_expect_str_eq(stage_name(STAGE_COPY_SUM), "copy+sum");
}
