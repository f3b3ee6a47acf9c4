/* SPDX-License-Identifier: BSD-3-Clause */
#include "path_rig.h"

Test(path, knows_nothing_at_first)
{
	struct path p;

	path_init(&p);
	cr_assert_eq(path_srtt(&p), 0);
	cr_assert_eq(path_min_rtt(&p), 0);
	cr_assert_eq(path_srtt(NULL), 0, "a queue pair without a path knows nothing, ever");
	cr_assert_eq(path_min_rtt(NULL), 0);
}

Test(path, smooths_an_eighth_of_each_sample)
{
	struct path p;

	path_init(&p);
	path_rtt(&p, 80 * US, 1);
	cr_assert_eq(p.srtt, 80 * US, "the first is all that is known");
	cr_assert_eq(p.rttvar, 40 * US);
	path_rtt(&p, 160 * US, 2);
	cr_assert_eq(p.srtt, 90 * US);
	cr_assert_eq(p.rttvar, 50 * US);
	cr_assert_eq(p.min_rtt, 80 * US);
}

Test(path, follows_a_change_up_and_down)
{
	struct path p;

	path_init(&p);
	for (uint32_t i = 0; i < 100; i++)
		path_rtt(&p, 10 * US, i);
	for (uint32_t i = 0; i < 100; i++)
		path_rtt(&p, 1000 * US, 100 + i);
	cr_assert_gt(p.srtt, 990 * US);
	for (uint32_t i = 0; i < 200; i++)
		path_rtt(&p, 10 * US, 200 + i);
	cr_assert_lt(p.srtt, 11 * US);
}

Test(path, forgets_the_least_after_two_periods)
{
	const nanotime period = LIMIT_PATH_MIN_S * TIME_S;
	struct path p;

	path_init(&p);
	path_rtt(&p, 10 * US, 0);
	path_rtt(&p, 30 * US, 1);
	path_rtt(&p, 30 * US, period + 1);
	cr_assert_eq(p.min_rtt, 10 * US, "of the last period");
	path_rtt(&p, 40 * US, 2 * period + 2);
	cr_assert_eq(p.min_rtt, 30 * US, "the 10 us are two periods old");
}

/* Round trips of zero and of minutes are bounded, and never become "not known". hostile H-160 */
Test(path, bounds_absurd_samples)
{
	const nanotime absurd[] = { 0, 1, 3, 600 * TIME_S, TIME_NEVER };
	struct path p;

	path_init(&p);
	for (uint32_t i = 0; i < 10000; i++) {
		path_rtt(&p, absurd[i % ARRAY_SIZE(absurd)], i);
		cr_assert(p.srtt > 0 && p.srtt <= LIMIT_PATH_RTT_MS * TIME_MS);
		cr_assert_leq(p.rttvar, LIMIT_PATH_RTT_MS * TIME_MS);
	}
	cr_assert_eq(p.min_rtt, 1);
	for (uint32_t i = 0; i < 1000; i++)
		path_rtt(&p, 0, i);
	cr_assert(p.srtt > 0 && p.srtt < 100);
}

Test(path, begins_small_and_doubles)
{
	nanotime now = TIME_S;
	struct path p;

	begin(&p);
	cr_assert_eq(p.window, LIMIT_PATH_START);
	round_trips(&p, 4, 20 * US, &now);
	cr_assert(p.window > 14 * LIMIT_PATH_START && p.window <= 16 * LIMIT_PATH_START);
}

Test(path, grows_by_a_packet_for_each_time_once_it_was_held_back)
{
	nanotime now = TIME_S;
	uint64_t before;
	struct path p;

	begin(&p);
	round_trips(&p, 4, LIMIT_PATH_STEP_US * US, &now);
	path_cnp(&p, now);
	before = p.window;
	/* With a queue above half of the allowed delay, the window grows, but slowly. */
	round_trips(&p, 10, (LIMIT_PATH_STEP_US + LIMIT_PATH_STEP_US / 6) * US, &now);
	cr_assert(p.window >= before + 8 * p.packet && p.window <= before + 12 * p.packet,
		  "%lu from %lu", p.window, before);
}

/* After long without a queue, the window grows faster and faster. */
Test(path, grows_in_haste_where_there_is_no_queue)
{
	nanotime now = TIME_S;
	uint64_t before, slow;
	struct path p;

	begin(&p);
	round_trips(&p, 8, 20 * US, &now);
	path_cnp(&p, now);
	before = p.window;
	round_trips(&p, 3, 20 * US, &now);
	slow = p.window - before;
	round_trips(&p, 20, 20 * US, &now);
	before = p.window;
	round_trips(&p, 3, 20 * US, &now);
	cr_assert_gt(p.window - before, 8 * slow, "%lu and %lu", p.window - before, slow);
}

/* An unused window says nothing of the network. */
Test(path, does_not_grow_when_it_is_not_used)
{
	nanotime now = TIME_S;
	struct path p;

	begin(&p);
	for (uint32_t i = 0; i < 1000; i++) {
		path_sent(&p, 1000, 0, now);
		now += 20 * US;
		path_rtt(&p, 20 * US, now);
		path_gone(&p, 1000, true);
	}
	cr_assert_eq(p.window, LIMIT_PATH_START);
}

/* The window shrinks by the excess delay, at most to a half, once a round trip, and never to a
 * stop.
 */
Test(path, shrinks_with_delay)
{
	nanotime now = TIME_S, rtt = 100 * US;
	uint64_t before;
	struct path p;

	begin(&p);
	round_trips(&p, 9, 20 * US, &now);
	before = p.window;
	cr_assert_gt(before, 2 * LIMIT_PATH_FLOOR);
	path_rtt(&p, rtt, now);
	path_rtt(&p, rtt, now + 19 * US);
	cr_assert_eq(p.window, before,
		     "for less than a round trip, it may be somebody's scheduler");
	path_rtt(&p, rtt, now += 20 * US);
	cr_assert(p.window < before && p.window >= before / 2);
	before = p.window;
	path_rtt(&p, rtt, now + 1);
	cr_assert_eq(p.window, before, "once a round trip");
	for (uint32_t i = 0; i < 200; i++)
		path_rtt(&p, 10 * TIME_MS, now += 20 * TIME_MS);
	cr_assert_eq(p.window, LIMIT_PATH_FLOOR, "it may be a host that is late: %lu", p.window);
	for (uint32_t i = 0; i < 200; i++) {
		path_rtt(&p, 500 * US, now += TIME_MS);
		path_lost(&p, false, now);
	}
	cr_assert_eq(p.window, LIMIT_PATH_LEAST, "it is the network: %lu", p.window);
	cr_assert_leq(path_opens_at(&p, 1000, now), now,
		      "nothing is on its way: one packet may go");
}

/* A window below a packet paces. */
Test(path, paces_below_a_packet)
{
	nanotime now = TIME_S;
	struct path p;

	begin(&p);
	path_rtt(&p, 100 * US, now);
	p.window = 250;
	cr_assert(path_may_send(&p, 1000, now));
	path_sent(&p, 1000, 0, now);
	cr_assert_not(path_may_send(&p, 1000, now + TIME_S), "one at a time");
	cr_assert_eq(path_opens_at(&p, 1000, now), TIME_NEVER);
	path_gone(&p, 1000, false);
	cr_assert_eq(path_opens_at(&p, 1000, now), now + 400 * US);
	cr_assert_not(path_may_send(&p, 1000, now + 399 * US));
	cr_assert(path_may_send(&p, 1000, now + 400 * US));
	p.window = 1;
	path_sent(&p, 1000, 0, now);
	path_gone(&p, 1000, false);
	cr_assert_eq(path_opens_at(&p, 1000, now), now + LIMIT_PATH_PAUSE_MS * TIME_MS);
}

/* hostile H-58: A flood of CNPs: one counts for each round trip, and some packet always goes. */
Test(path, a_flood_of_cnps_does_not_stop_it)
{
	nanotime now = TIME_S;
	uint64_t before;
	struct path p;

	begin(&p);
	round_trips(&p, 6, 20 * US, &now);
	before = p.window;
	for (uint32_t i = 0; i < 1000; i++)
		path_cnp(&p, now);
	cr_assert_eq(p.window, before / 2, "as one: alpha begins at 1");
	for (uint32_t i = 0; i < 100000; i++)
		path_cnp(&p, now += US);
	cr_assert_geq(p.window, LIMIT_PATH_MARKED);
	cr_assert_leq(path_opens_at(&p, 1000, now), now, "one packet may go at once");
	path_sent(&p, 1000, 0, now);
	path_gone(&p, 1000, true);
	cr_assert_leq(path_opens_at(&p, 1000, now), now + 40 * US);
	for (uint32_t i = 0; i < 50; i++, now += 20 * US)
		round_trips(&p, 1, 20 * US, &now);
	cr_assert_gt(p.window, 40 * p.packet, "it recovers when the flood is over: %lu", p.window);
}

/* An hour of silence calms it, however short a time between two updates is. */
Test(path, a_cnp_is_forgotten_in_silence)
{
	static const nanotime rtts[] = { 20 * US, 50 * US, 500 * US, TIME_MS, 10 * TIME_MS };

	for (uint32_t i = 0; i < ARRAY_SIZE(rtts); i++) {
		nanotime now = TIME_S;
		struct path p;

		begin(&p);
		for (uint32_t k = 0; k < 10; k++)
			path_rtt(&p, rtts[i], now);
		path_cnp(&p, now);
		cr_assert_eq(p.alpha, ALPHA_ONE);
		path_sent(&p, 1000, 0, now + 3600 * TIME_S);
		cr_expect_lt(p.alpha, ALPHA_ONE / 50, "%lu us: %u of %u are left", rtts[i] / US,
			     p.alpha, ALPHA_ONE);
	}
}

/* An update of alpha that is made up for counts as much as one that came in time. */
Test(path, silence_calms_as_much_as_traffic)
{
	static const nanotime lengths[] = { 2 * TIME_MS, 5 * TIME_MS, 20 * TIME_MS, 60 * TIME_MS };

	for (uint32_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		nanotime now = TIME_S;
		struct path busy, silent;
		double off;

		begin(&busy);
		for (uint32_t k = 0; k < 10; k++)
			path_rtt(&busy, TIME_MS, now);
		path_cnp(&busy, now);
		silent = busy;
		for (nanotime t = 0; t <= lengths[i]; t += 50 * US) {
			path_sent(&busy, 1000, 0, now + t);
			path_gone(&busy, 1000, true);
		}
		path_sent(&silent, 1000, 0, now + lengths[i]);
		off = ((double)busy.alpha - silent.alpha) / ALPHA_ONE;
		cr_expect(off > -0.01 && off < 0.01, "%lu ms: %u and %u", lengths[i] / TIME_MS,
			  busy.alpha, silent.alpha);
	}
}

/* A bad cable is not congestion; a loss while round trips grow is. */
Test(path, a_loss_without_delay_costs_nothing)
{
	nanotime now = TIME_S;
	uint64_t before;
	struct path p;

	before = go_on(&p, &now);
	path_lost(&p, false, now);
	cr_assert_eq(p.window, before);
	path_rtt(&p, 24 * US, now);
	path_rtt(&p, 24 * US, now);
	path_lost(&p, false, now);
	cr_assert_eq(p.window, before, "below the target");
	path_rtt(&p, 26 * US, now);
	path_rtt(&p, 26 * US, now);
	path_lost(&p, false, now);
	cr_assert_eq(p.window, before, "where delay alone keeps it");
	cr_assert(!p.full);
	path_rtt(&p, 30 * US, now);
	path_rtt(&p, 30 * US, now);
	path_lost(&p, false, now);
	cr_assert(p.window < before && p.window >= before / 2);
}

/* ... but many losses are congestion: buffers that are too short to show as delay. */
Test(path, losses_of_many_are_congestion)
{
	nanotime now = TIME_S;
	uint64_t before;
	struct path p;

	before = go_on(&p, &now);
	for (uint32_t i = 0; i < 2000; i++) {
		path_sent(&p, 1000, i % 2 == 0 ? 1000 : 0, now);
		path_gone(&p, 1000, false);
	}
	cr_assert_eq(p.window, before);
	cr_assert(!p.full);
	path_lost(&p, false, now);
	cr_assert_lt(p.window, before);
	cr_assert(p.full);
}

/* Of so many packets without a queue that shows, `again` of each 128 are sent again. */
static void lose(struct path *p, uint32_t packets, uint32_t again, nanotime now)
{
	for (uint32_t i = 0; i < packets; i++) {
		path_sent(p, 1000, i % 128 < again ? 1000 : 0, now);
		path_gone(p, 1000, i % 128 >= again);
	}
	path_rtt(p, 20 * US, now);
}

/*
 * What arrives of a batch is what goes through. That does not wait for the next loss: a queue pair
 * with a large window notices one only when all that it sent before the last one is through.
 */
Test(path, the_window_follows_what_goes_through)
{
	nanotime now = TIME_S;
	uint64_t before, after;
	struct path p;

	go_on(&p, &now);
	p.packet = p.mean = 1000;
	p.held = 1;
	lose(&p, 128, 48, now);
	before = p.window;
	lose(&p, 128, 48, now += 20 * US);
	after = p.window;
	cr_assert(after >= before * 5 / 8 && after < before * 3 / 4, "%lu of %lu", after, before);
	lose(&p, 128, 48, now + 10 * US);
	cr_assert_geq(p.window, after, "that left before the window shrank");
	now += TIME_MS;
	lose(&p, 128, 10, now);
	cr_assert_geq(p.window, after, "a bad cable may lose so many");
	p.rounds = 12;
	after = p.window;
	lose(&p, 128, 0, now);
	cr_assert(p.window > after && p.window < after + 8 * p.packet, "%lu after %lu: slowly",
		  p.window, after);
	for (uint32_t i = 0; i < 100; i++)
		lose(&p, 128, 64, now += TIME_MS);
	cr_assert_geq(p.window, p.packet);
	cr_assert_leq(p.window, 8 * p.packet);
}

/* A burst of losses is over, and then the peer is late for a reason of its own. */
Test(path, a_host_that_is_late_after_many_losses_has_a_window_that_suffices)
{
	nanotime now = TIME_S;
	struct path p;

	go_on(&p, &now);
	p.packet = p.mean = 1000;
	for (uint32_t i = 0; i < 10; i++)
		lose(&p, 128, 64, now += TIME_MS);
	cr_assert(p.lossy);
	for (uint32_t i = 0; i < 1000; i++) {
		path_sent(&p, 1000, 0, now += 2 * TIME_MS);
		path_gone(&p, 1000, true);
		path_rtt(&p, 2 * TIME_MS, now);
	}
	cr_assert_geq(p.window, p.packet, "%lu", p.window);
}

/* Three of the requests of eight READs are lost: with their responses that is more than a third of the octets. */
Test(path, few_large_reads_are_not_many_packets)
{
	const uint32_t read = 16 * LIMIT_PATH_PACKET;
	nanotime now = 1000 * US;
	struct path p;

	path_init(&p);
	p.starting = false;
	path_rtt(&p, 20 * US, now);
	path_rtt(&p, 20 * US, now);
	for (uint32_t n = 0; n < 8; n++) {
		path_sent(&p, read, n < 3 ? LIMIT_PATH_PACKET : 0, now);
		path_gone(&p, read, n >= 3);
	}
	path_lost(&p, false, now);
	cr_assert(!p.lossy);
	cr_assert(!p.full, "a bad cable may do that");
}

/* ... but most of the responses of one are. */
Test(path, many_responses_of_one_read_are_congestion)
{
	const uint32_t read = 256 * LIMIT_PATH_PACKET, lost = 200 * LIMIT_PATH_PACKET;
	nanotime now = 1000 * US;
	struct path p;

	path_init(&p);
	p.starting = false;
	p.window = 2 * (uint64_t)read;
	path_rtt(&p, 20 * US, now);
	path_rtt(&p, 20 * US, now);
	path_sent(&p, read, 0, now);
	path_gone(&p, lost, false);
	path_sent(&p, lost, lost, now += TIME_MS);
	path_lost(&p, false, now);
	cr_assert(p.lossy);
	cr_assert(p.full);
	cr_assert_lt(p.window, 3 * (uint64_t)read / 2, "%lu", p.window);
}

/* A network that reorders packets is expected to do so for a while, by at most the maximum of
 * places.
 */
Test(path, order_is_trusted_until_it_changed)
{
	nanotime now = TIME_S;
	struct path p;

	begin(&p);
	p.starting = true;
	cr_assert_eq(path_places(&p, now), LIMIT_REORDER, "nothing is known yet");
	p.starting = false;
	cr_assert_eq(path_places(&p, now), LIMIT_REORDER_FIRST);
	path_reordered(&p, 1, now);
	cr_assert_eq(path_places(&p, now), LIMIT_REORDER_FIRST);
	path_reordered(&p, 15, now);
	path_reordered(&p, 10, now);
	cr_assert_eq(path_places(&p, now), 30, "others may change it by more");
	path_reordered(&p, 5000, now);
	cr_assert_eq(path_places(&p, now + TIME_S), LIMIT_REORDER);
	cr_assert_eq(path_places(&p, now + (LIMIT_PATH_MIN_S + 1) * TIME_S), LIMIT_REORDER_FIRST);
	p.full = true;
	cr_assert_eq(path_places(&p, now + (LIMIT_PATH_MIN_S + 1) * TIME_S), LIMIT_REORDER);
}

/* A full network does not lose packets again and again without delay. A bad cable does. */
Test(path, losses_that_stand_alone_say_that_a_network_is_not_full)
{
	nanotime now = TIME_S;
	struct path p;

	go_on(&p, &now);
	path_rtt(&p, 30 * US, now);
	path_rtt(&p, 30 * US, now);
	path_lost(&p, false, now);
	cr_assert(p.full);
	cr_assert_eq(path_places(&p, now), LIMIT_REORDER);
	path_rtt(&p, 20 * US, now);
	path_rtt(&p, 20 * US, now);
	for (uint32_t i = 1; i < LIMIT_PATH_LONE; i++)
		path_lost(&p, false, now);
	cr_assert_eq(path_places(&p, now), LIMIT_REORDER);
	cr_assert(!path_losses_are_lone(&p));
	path_lost(&p, false, now);
	cr_assert(path_losses_are_lone(&p));
	cr_assert_eq(path_places(&p, now), LIMIT_REORDER_FIRST);
	for (uint32_t i = 0; i < 300; i++)
		path_lost(&p, false, now);
	cr_assert(path_losses_are_lone(&p), "for as long as they do");
	path_cnp(&p, now);
	cr_assert(!path_losses_are_lone(&p), "the network itself says so");
	cr_assert_eq(path_places(&p, now), LIMIT_REORDER);
}

/* Karn: the wait for a probe grows with each one that was answered, and so may have been needless. */
Test(path, answered_probes_make_silence_longer)
{
	struct path p;

	begin(&p);
	for (uint32_t i = 1; i < 4; i++) {
		path_probed(&p);
		cr_assert_eq(p.doubt, i - 1);
		path_doubt(&p, 1);
		cr_assert_eq(p.doubt, i);
	}
	path_doubt(&p, 100);
	cr_assert_lt(p.doubt, 10);
	cr_assert_eq(p.events[PATH_PROBE], 3);
	path_rtt(&p, 20 * US, 1);
	cr_assert_eq(p.doubt, 0);
}

/* One queue pair probes for a quiet path. One probes at once if a later packet of another was answered. */
Test(path, one_probe_asks_for_all_that_are_quiet)
{
	struct path p;
	nanotime now = TIME_S, quiet = now - TIME_MS;

	begin(&p);
	cr_expect_eq(path_ask(&p, false, quiet, now, now + TIME_MS), now, "the first one");
	cr_expect_eq(path_ask(&p, false, quiet, now + 1, now + 2 * TIME_MS), now + TIME_MS,
		     "others wait");
	cr_expect_eq(path_ask(&p, false, quiet, now + TIME_MS, now + 2 * TIME_MS), now + TIME_MS,
		     "nobody answered");
	path_answered(&p, quiet);
	cr_expect_eq(path_ask(&p, false, quiet, now + TIME_MS, now + 3 * TIME_MS),
		     now + 2 * TIME_MS, "what left no later says nothing");
	path_answered(&p, quiet + 1);
	path_answered(&p, quiet - 1);
	cr_expect_eq(path_ask(&p, false, quiet, now + TIME_MS, now + 3 * TIME_MS), now + TIME_MS,
		     "one that left later was answered");
	cr_expect_eq(path_ask(NULL, false, quiet, now, now + 1), now);
}
