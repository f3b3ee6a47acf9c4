/* SPDX-License-Identifier: BSD-3-Clause */
/* A path with a long round trip: its window is spread, and grows in steps. */
#include "path_rig.h"

/* On a long way a queue of a few milliseconds is the network's; no host's ring is taken for short.
 */
Test(path_long, a_long_way_is_no_late_host)
{
	nanotime now = TIME_S;
	struct path p;

	begin(&p);
	p.starting = false;
	p.window = 16 << 20;
	path_rtt(&p, 10 * TIME_MS, now);
	path_rtt(&p, 12 * TIME_MS, now += TIME_MS);
	path_rtt(&p, 12 * TIME_MS, now += TIME_MS);
	path_lost(&p, false, now);
	cr_assert_eq(p.small_until, 0);
	cr_assert_eq(p.window, 16 << 20);
}

/* A long way's path in its second phase, with a window of 100 packets. */
static void begin_long(struct path *p, nanotime rtt)
{
	begin(p);
	p->starting = false;
	p->packet = p->mean = 1000;
	p->window = 100 * p->packet;
	for (uint32_t i = 0; i < 4; i++)
		path_rtt(p, rtt, TIME_S);
}

/*
 * The first packets of a short way may all be lost, and then a probe after a millisecond gives the first sample. In
 * sim/loss five of 64 senders were spread for that.
 */
Test(path_long, a_late_first_sample_does_not_make_a_way_long)
{
	struct path p;

	begin(&p);
	p.starting = false;
	p.packet = p.mean = 1000;
	p.window = 100 * p.packet;
	path_rtt(&p, TIME_MS, TIME_S);
	p.looks = LIMIT_PATH_LOOKS;
	for (uint32_t i = 0; i < 100; i++) {
		cr_assert(path_may_send(&p, 1000, TIME_S), "%u packets were sent", i);
		path_sent(&p, 1000, 0, TIME_S);
	}
}

/* A switch on a long way does not get a window at once: the window takes three quarters of the
 * round trip.
 */
Test(path_long, a_window_is_spread_over_a_long_round_trip)
{
	nanotime now = TIME_S, next;
	uint32_t sent = 0, most = 0, at_once;
	struct path p;

	begin_long(&p, 10 * TIME_MS);
	while (sent < 100) {
		for (at_once = 0; path_may_send(&p, 1000, now) && sent < 100; sent++, at_once++)
			path_sent(&p, 1000, 0, now);
		most = MAX_OF(most, at_once);
		next = path_opens_at(&p, 1000, now);
		cr_assert_eq(path_room(&p, now), 0);
		if (sent == 100)
			break;
		cr_assert(next > now && next < now + TIME_MS, "%u: when it may go on", sent);
		now = next;
	}
	cr_assert_leq(most, 6);
	cr_assert(now - TIME_S > 6900 * US && now - TIME_S <= 7500 * US, "%lu", now - TIME_S);
	cr_assert_eq(p.flying, p.window);
	cr_assert_eq(path_opens_at(&p, 1000, now + TIME_S), TIME_NEVER, "the window is full");

	begin_long(&p, 900 * US);
	for (sent = 0; path_may_send(&p, 1000, now); sent++)
		path_sent(&p, 1000, 0, now);
	cr_assert_eq(sent, 100, "as a window is on a short way");
}

/* Its effect shows two round trips later, so it does not double in each, however short the queue
 * is.
 */
Test(path_long, a_long_way_is_filled_in_steps)
{
	nanotime now = TIME_S;
	uint64_t before;
	struct path p;

	begin_long(&p, 10 * TIME_MS);
	p.rounds = 12;
	for (uint32_t i = 0; i < 20; i++) {
		before = p.window;
		p.used = p.window;
		path_sent(&p, (uint32_t)before, 0, now += 10 * TIME_MS);
		path_rtt(&p, 10 * TIME_MS, now);
		path_gone(&p, before, true);
		cr_assert_gt(p.window, before);
		cr_assert_leq(p.window, before + MAX_OF(before / 8, p.packet), "round %u", i);
	}
	cr_assert_gt(p.window, 700 * 1000);
}
