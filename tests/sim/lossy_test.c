/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable services over good and bad links. A failure prints the seed of its run. */
#include <criterion/criterion.h>

#include "lossy.h"
#include "seeds.h"

static struct sim_result run(const struct sim_config *c)
{
	struct sim_result r;

	lossy_run(c, &r);
	cr_assert(r.ok,
		  "seed %llu: %s (again: uroce sim --unreliable --seed %llu --messages %u, and the "
		  "impairments of this test)",
		  (unsigned long long)c->seed, r.why, (unsigned long long)c->seed, c->messages);
	return r;
}

/* protocol-map 123, 172, 175: without loss everything arrives, once and in order */
Test(lossy, a_perfect_link_loses_nothing, .timeout = 300)
{
	for (uint64_t seed = 1; seed <= SEEDS(30); seed++) {
		struct sim_config c = { .seed = seed, .messages = 300, .delay = 5000 };
		struct sim_result r = run(&c);

		cr_assert_eq(r.broken, 0);
		cr_assert_eq(r.reasons[REASON_NONE], r.link.sent);
	}
}

/* protocol-map 50, 172, 173, 174 */
Test(lossy, messages_arrive_whole, .timeout = 300)
{
	uint64_t delivered = 0, sent = 0, gaps = 0, outside = 0, damaged = 0;

	for (uint64_t seed = 1; seed <= SEEDS(150); seed++) {
		struct sim_config c = { .seed = seed,
					.messages = 300,
					.delay = 5000,
					.loss = seed % 2 ? 0.05 : 0.002,
					.duplicate = seed % 3 ? 0.03 : 0,
					.reorder = seed % 5 ? 0.05 : 0,
					.corrupt = seed % 7 ? 0.02 : 0 };
		struct sim_result r = run(&c);

		delivered += r.messages;
		sent += r.requests;
		gaps += r.reasons[REASON_PSN_AHEAD];
		outside += r.reasons[REASON_OPCODE_SEQUENCE];
		damaged += r.reasons[REASON_ICRC];
	}
	/* The runs had the intended faults, and yet many messages arrived. */
	cr_assert(gaps > SEEDS(1000) && outside > SEEDS(1000) && damaged > SEEDS(100),
		  "%llu gaps, %llu outside, %llu ICRC", (unsigned long long)gaps,
		  (unsigned long long)outside, (unsigned long long)damaged);
	cr_assert_gt(delivered, sent / 4, "%llu of %llu", (unsigned long long)delivered,
		     (unsigned long long)sent);
}

/* protocol-map 134: send queues stop and resume; the other direction is not affected */
Test(lossy, local_errors_stop_only_a_send_queue, .timeout = 300)
{
	for (uint64_t seed = 1; seed <= SEEDS(60); seed++) {
		struct sim_config c = { .seed = seed,
					.messages = 300,
					.delay = 5000,
					.faults = 1,
					.loss = seed % 2 ? 0.02 : 0 };
		struct sim_result r = run(&c);

		cr_assert_gt(r.broken, 0);
	}
}

Test(lossy, many_seeds, .timeout = 300)
{
	struct sim_config c = sim_defaults();

	c.messages = 100;
	c.unreliable = true;
	for (c.seed = 1; c.seed <= SEEDS(200); c.seed++) {
		struct sim_result r;

		sim_run(&c, &r);
		cr_assert(r.ok, "seed %llu: %s", (unsigned long long)c.seed, r.why);
	}
}
