/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs of the simulator as tests. A failure prints the seed and how to repeat the run. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <stdlib.h>

#include "base/bits.h"
#include "seeds.h"
#include "sim.h"

static struct sim_result run(const struct sim_config *c)
{
	struct sim_result r;

	sim_run(c, &r);
	cr_assert(r.ok,
		  "seed %llu: %s (again: uroce sim --seed %llu --messages %u, and the "
		  "impairments of this test)",
		  (unsigned long long)c->seed, r.why, (unsigned long long)c->seed, c->messages);
	return r;
}

static struct sim_config clean(uint64_t seed, uint32_t messages)
{
	return (struct sim_config){ .seed = seed, .messages = messages, .qps = 4, .delay = 5000 };
}

/*
 * The seed chooses everything: sizes, links, faults, late copies, late receive requests. `./check sim` runs
 * 300 of them.
 */
Test(sim, many_seeds, .timeout = 300)
{
	struct sim_config c = sim_defaults();
	uint64_t broken = 0, lost = 0, corrupted = 0, refused = 0, alike = 0;

	c.messages = 150;
	for (c.seed = 1; c.seed <= SEEDS(104); c.seed++) {
		struct sim_result r = run(&c);

		broken += r.broken;
		lost += r.link.lost;
		corrupted += r.link.corrupted;
		refused += r.reasons[REASON_ICRC];
		alike += r.alike;
	}
	cr_expect_gt(alike, SEEDS(1000), "%llu packets as in runs", (unsigned long long)alike);
	/* The seeds had the intended faults. */
	cr_assert(broken > SEEDS(12) && lost > SEEDS(250) && corrupted > SEEDS(25) &&
			  refused > SEEDS(12),
		  "%llu broken, %llu lost, %llu corrupted, %llu refused by ICRC",
		  (unsigned long long)broken, (unsigned long long)lost,
		  (unsigned long long)corrupted, (unsigned long long)refused);
}

/* protocol-map 169: one direction each; every message arrives in the SRQ that it names */
Test(sim, xrc_under_loss, .timeout = 300)
{
	for (uint64_t seed = 1; seed <= SEEDS(20); seed++) {
		struct sim_config c = clean(seed, 200);
		struct sim_result r;

		c.xrc = 1;
		c.loss = 0.01;
		r = run(&c);
		cr_assert_eq(r.broken, 0);
		cr_assert_eq(r.messages, 4 * 200);
		cr_assert_gt(r.link.lost, 0);
	}
}

/* protocol-map 106: without a fault nothing fails, however wrong the order */
Test(sim, reordering_and_duplication_break_nothing, .timeout = 300)
{
	for (uint64_t seed = 1; seed <= SEEDS(20); seed++) {
		struct sim_config c = clean(seed, 200);
		struct sim_result r;

		c.reorder = 0.2;
		c.duplicate = 0.2;
		r = run(&c);
		cr_assert_eq(r.broken, 0);
		cr_assert_eq(r.messages, 2 * 4 * 200);
	}
}

/*
 * A READ response is overtaken by the next one, which counts as a loss, and by a fatal NAK. After
 * the NAK the peer answers no more: story/nak_test.c has this message by message.
 */
Test(sim, a_nak_that_overtakes_a_repeated_response)
{
	struct sim_config c = sim_defaults();

	c.seed = UINT64_C(7770000000000501);
	cr_assert_eq(run(&c).link.lost, 0);
}

Test(sim, every_message_arrives_through_loss, .timeout = 300)
{
	for (uint64_t seed = 1; seed <= SEEDS(20); seed++) {
		struct sim_config c = clean(seed, 200);
		struct sim_result r;

		c.loss = 0.03;
		c.corrupt = 0.02;
		r = run(&c);
		cr_assert_eq(r.broken, 0);
		cr_assert_eq(r.messages, 2 * 4 * 200);
		cr_assert_gt(r.link.lost, 0);
	}
}

/*
 * A link that loses a quarter of the frames may end connections, but never delivers a wrong octet.
 */
Test(sim, a_hopeless_link_never_corrupts_data, .timeout = 300)
{
	for (uint64_t seed = 1; seed <= SEEDS(10); seed++) {
		struct sim_config c = clean(seed, 100);

		c.loss = 0.2;
		c.corrupt = 0.05;
		run(&c);
	}
}

Test(sim, memory_that_cannot_be_reached, .timeout = 300)
{
	for (uint64_t seed = 1; seed <= SEEDS(40); seed++) {
		struct sim_config c = clean(seed, 200);

		c.fail_copies = 0.002;
		run(&c);
	}
}

/* Found by a campaign: an ACK after a NAK that was lost. story/selective_test.c has it. */
Test(sim, a_copy_that_fails_when_a_gap_has_closed)
{
	struct sim_config c = sim_defaults();

	c.messages = 20;
	c.fail_copies = 0.002;
	c.loss = 0.2;
	c.corrupt = 0.05;
	for (uint64_t seed = 23; seed <= 165; seed += 142) {
		c.seed = seed;
		run(&c);
	}
}

Test(sim, the_same_seed_repeats_the_run, .timeout = 300)
{
	struct sim_config c = sim_defaults();
	struct sim_result first, second;

	c.seed = 77;
	c.messages = 100;
	first = run(&c);
	second = run(&c);
	cr_assert_eq(memcmp(&first, &second, sizeof(first)), 0);
	c.seed = 78;
	second = run(&c);
	cr_assert_neq(first.link.octets, second.link.octets, "another seed must give another run");
}

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

/* The loss of one frame in a hundred slows the connection, but does not stall it. */
Test(sim, goodput_under_one_percent_loss, .timeout = 300)
{
	double ratio[15];

	for (uint32_t i = 0; i < ARRAY_SIZE(ratio); i++) {
		struct sim_config c = clean(100 + i, 400);
		struct sim_result good = run(&c), bad;

		c.loss = 0.01;
		bad = run(&c);
		ratio[i] = (double)bad.octets / (double)bad.time /
			   ((double)good.octets / (double)good.time);
	}
	qsort(ratio, ARRAY_SIZE(ratio), sizeof(ratio[0]), by_value);
	cr_log_info("of the goodput without loss: %.3f .. %.3f, median %.3f", ratio[0], ratio[14],
		    ratio[7]);
	cr_assert_gt(ratio[7], 0.12, "the median is %.3f of the goodput without loss", ratio[7]);
	cr_assert_gt(ratio[0], 0.01, "the worst is %.3f of the goodput without loss", ratio[0]);
}

/* Losses are repaired without sending everything again. */
Test(sim, retransmissions_are_in_proportion_to_loss, .timeout = 300)
{
	struct sim_config c = clean(5, 1000);
	struct sim_result good = run(&c), bad;

	c.loss = 0.01;
	bad = run(&c);
	cr_assert_lt(bad.link.sent, good.link.sent * 3 / 2, "%llu packets instead of %llu",
		     (unsigned long long)bad.link.sent, (unsigned long long)good.link.sent);
}
