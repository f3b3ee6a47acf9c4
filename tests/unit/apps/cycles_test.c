/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cycles a packet: the cost of reading the clock is subtracted, and the two ends of a packet count
 * as one packet.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cycles.h"

/* This many packets received and made, with all cycles in this stage. */
static struct reply_cycles reply_of(uint64_t received, uint64_t made, enum stage s, uint64_t cycles)
{
	struct reply_cycles r = { .hz = 2000000000, .rounds = 3, .switch_cycles = 20 };

	r.stage[STAGE_DECODE].passes = received;
	r.stage[STAGE_ENCODE].passes = made;
	r.stage[s].cycles = cycles;
	return r;
}

Test(cycles, of_a_packet)
{
	struct reply_cycles asks = reply_of(2, 8, STAGE_KEY, 1000);
	struct reply_cycles answers = reply_of(8, 2, STAGE_KEY, 500);
	struct cycles_table t = { .columns = 2, .of = { &asks, &answers } };

	cr_expect_eq(cycles_packets(&asks), 10);
	cr_expect_float_eq(cycles_a_packet(&t, 0, STAGE_KEY), 100, 1e-9);
	cr_expect_float_eq(cycles_a_packet(&t, 1, STAGE_KEY), 50, 1e-9);
	cr_expect_float_eq(cycles_both_ends(&t, STAGE_KEY), 150, 1e-9);
	cr_expect_float_eq(cycles_both_ends(&t, STAGE_COUNT), 150, 1e-9);
	cr_expect_eq(cycles_a_packet(&t, 0, STAGE_TX), 0);
}

Test(cycles, readings_of_the_clock_are_subtracted)
{
	struct reply_cycles r = reply_of(10, 0, STAGE_DECODE, 1000);

	cr_expect_float_eq(cycles_in(&r, STAGE_DECODE), 1000 - 10 * 20, 1e-9);
	r.stage[STAGE_KEY].passes = 5;
	r.stage[STAGE_KEY].cycles = 90;
	cr_expect_eq(cycles_in(&r, STAGE_KEY), 0, "not less than nothing");
}

Test(cycles, of_no_packet)
{
	struct reply_cycles r = reply_of(0, 0, STAGE_OTHER, 1000);
	struct cycles_table t = { .columns = 2, .of = { &r, &r } };

	cr_expect_eq(cycles_a_packet(&t, 0, STAGE_COUNT), 0);
	cr_expect_eq(cycles_both_ends(&t, STAGE_COUNT), 0);
}

Test(cycles, the_table_has_a_line_for_each_stage)
{
	struct reply_cycles r = reply_of(4, 6, STAGE_TX, 1234);
	struct cycles_table t = {
		.title = "title", .columns = 2, .name = { "one", "two" }, .of = { &r, &r }
	};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	cycles_print(out, &t);
	fclose(out);
	cr_expect(strncmp(text, "title\nstage             one        two       both\n", 49) == 0,
		  "%s", text);
	cr_expect_not_null(strstr(text, "\ntx              123.4      123.4      246.8  "), "%s",
			   text);
	cr_expect_not_null(strstr(text, "\npackets            10         10\n"), "%s", text);
	for (enum stage s = 0; s < STAGE_COUNT; s++)
		cr_expect_not_null(strstr(text, stage_what(s)));
	free(text);
}
