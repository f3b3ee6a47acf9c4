/* SPDX-License-Identifier: BSD-3-Clause */
/* The single packets with which a path begins, to see the way before there is a queue. */
#include <string.h>

#include "path_rig.h"

/* Many paths that begin at once see the way without a queue, because their packets go alone at
 * different times.
 */
Test(path_look, looks_at_the_way_with_single_packets)
{
	nanotime now = TIME_S, opens[2][LIMIT_PATH_LOOKS];
	struct path p;

	for (uint32_t k = 0; k < 2; k++) {
		path_init(&p);
		for (uint32_t i = 0; i < LIMIT_PATH_LOOKS; i++) {
			cr_assert(path_may_send(&p, 1000, now));
			path_sent(&p, 1000, 0, now);
			cr_assert_not(path_may_send(&p, 1000, now + TIME_S), "it is alone");
			now += 20 * US + k;
			path_rtt(&p, 20 * US, now);
			path_gone(&p, 1000, true);
			opens[k][i] = path_opens_at(&p, 1000, now) - now;
			cr_assert_leq(opens[k][i], 150 * US);
			now += opens[k][i];
		}
		path_sent(&p, 1000, 0, now);
		cr_assert(path_may_send(&p, 1000, now), "the way is known");
	}
	cr_assert_neq(memcmp(opens[0], opens[1], sizeof(opens[0])), 0);
}

/* The packet that gave the first sample may have been lost: then a probe was answered after a millisecond. */
Test(path_look, one_long_sample_does_not_end_the_looks)
{
	nanotime now = TIME_S;
	struct path p;

	path_init(&p);
	path_rtt(&p, 2 * TIME_MS, now);
	cr_expect_eq(p.looks, 1);
	path_sent(&p, 100, 0, now + TIME_MS);
	cr_expect_not(path_may_send(&p, 100, now + TIME_S), "one packet at a time, as before");
	path_gone(&p, 100, true);
	path_rtt(&p, 10 * US, now + TIME_MS);
	cr_expect_eq(p.looks, 2);
	cr_expect_eq(path_min_rtt(&p), 10 * US);
	path_rtt(&p, 2 * TIME_MS, now + 2 * TIME_MS);
	cr_expect_eq(p.looks, LIMIT_PATH_LOOKS, "the way is long");
}

/* One packet alone, whose answer takes so long. Returns how long the next one waits then. */
static nanotime look_at(struct path *p, nanotime rtt, nanotime now)
{
	path_sent(p, 1000, 0, now);
	path_rtt(p, rtt, now + rtt);
	path_gone(p, 1000, true);
	return path_opens_at(p, 1000, now + rtt) - (now + rtt);
}

/* Many begin at once: their single packets wait for each other. They are further apart then, but not without end. */
Test(path_look, looks_that_meet_others_are_further_apart)
{
	nanotime now = TIME_S, apart = 0, most = 0;
	struct path p;

	path_init(&p);
	look_at(&p, 20 * US, now);
	for (uint32_t i = 0; i < 8; i++) {
		now += TIME_MS;
		apart = look_at(&p, 100 * US + i, now);
		most = MAX_OF(most, apart);
		cr_assert_leq(apart, 600 * US);
		cr_assert_eq(p.looks, 1, "they show a queue, and not the way");
	}
	cr_assert_gt(most, 150 * US);
	for (uint32_t i = 2; i <= LIMIT_PATH_LOOKS; i++) {
		now += TIME_MS;
		look_at(&p, 100 * US + i, now);
		cr_assert_eq(p.looks, i, "not for ever");
	}
}

/* ... but a host that is late itself has met nobody. */
Test(path_look, looks_of_a_late_host_stay_as_they_are)
{
	const struct late late = { .time = 90 * US };
	nanotime now = TIME_S;
	struct path p;

	path_init(&p);
	p.late = &late;
	look_at(&p, 20 * US, now);
	look_at(&p, 100 * US, now + TIME_MS);
	cr_expect_eq(p.looks, 2);
	cr_expect_eq(p.met, 0);
}

/* If every packet is repeated, nothing gives a sample; the path does not probe for ever. */
Test(path_look, looks_end_without_samples)
{
	nanotime now = TIME_S;
	struct path p;

	path_init(&p);
	path_rtt(&p, 20 * US, now);
	for (uint32_t i = 0; i < LIMIT_PATH_LOOKS; i++, now += TIME_MS) {
		path_sent(&p, 1000, 0, now);
		path_probed(&p);
		path_gone(&p, 1000, true);
	}
	path_sent(&p, 1000, 0, now);
	cr_assert(path_may_send(&p, 1000, now));
}
