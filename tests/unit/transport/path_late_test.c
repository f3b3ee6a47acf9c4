/* SPDX-License-Identifier: BSD-3-Clause */
/* Late hosts at either end of a path are not a full network. */
#include "path_rig.h"

/* A peer that pauses answers all at once when it goes on. That is not a queue. */
Test(path_late, a_pause_of_the_peer_is_no_queue)
{
	nanotime now = TIME_S;
	uint64_t before;
	struct path p;

	begin(&p);
	round_trips(&p, 7, 20 * US, &now);
	before = p.window;
	now += 80 * US;
	for (uint32_t i = 0; i < 19; i++)
		path_rtt(&p, (100 - i) * US, now + i * US);
	path_rtt(&p, 20 * US, now + 19 * US);
	path_rtt(&p, 100 * US, now + 20 * US);
	cr_assert_eq(p.window, before);
}

/* The caller's own lateness is not the network's. */
Test(path_late, what_the_caller_is_late_is_not_the_networks)
{
	struct late late = { .time = 200 * US };
	nanotime now = TIME_S;
	struct path p;

	begin(&p);
	p.late = &late;
	round_trips(&p, 2, 20 * US, &now);
	path_rtt(&p, 210 * US, now);
	path_rtt(&p, 210 * US, now += 20 * US);
	cr_assert_eq(p.events[PATH_CUT], 0);
	late.time = 0;
	path_rtt(&p, 210 * US, now);
	path_rtt(&p, 210 * US, now += 20 * US);
	cr_assert_eq(p.events[PATH_CUT], 1);
}

/* The time that a copying peer takes for its turns is not the network's either. */
Test(path_late, what_the_peer_is_late_is_not_the_networks)
{
	nanotime now = TIME_S;
	struct path p;

	begin(&p);
	path_peer_says(&p, late_step(200 * US));
	round_trips(&p, 2, 20 * US, &now);
	path_rtt(&p, 210 * US, now);
	path_rtt(&p, 210 * US, now += 20 * US);
	cr_assert_eq(p.events[PATH_CUT], 0);
	path_peer_says(&p, 0);
	path_rtt(&p, 210 * US, now);
	path_rtt(&p, 210 * US, now += 20 * US);
	cr_assert_eq(p.events[PATH_CUT], 1);
	path_peer_says(NULL, 5);
}

/* A host with a shared core may answer late at any time: delay alone does not close its window. */
Test(path_late, hosts_that_share_a_core_keep_a_window)
{
	static const struct {
		nanotime late;
		uint64_t least;
	} rows[] = { { 10 * US, LIMIT_PATH_LEAST }, { 100 * US, LIMIT_PATH_FLOOR } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		nanotime now = TIME_S;
		struct path p;

		begin(&p);
		p.window = 2 * LIMIT_PATH_FLOOR;
		path_rtt(&p, 20 * US, now);
		path_peer_says(&p, late_step(rows[i].late));
		for (uint32_t n = 0; n < 40; n++)
			path_rtt(&p, 900 * US, now += TIME_MS);
		cr_expect_gt(p.events[PATH_CUT], 0);
		cr_expect(rows[i].least == LIMIT_PATH_FLOOR ? p.window == LIMIT_PATH_FLOOR
							    : p.window < LIMIT_PATH_HOSTS,
			  "%lu", p.window);
	}
}

/* A peer that lies about its lateness gets a longer queue, but not an endless one. hostile H-160 */
Test(path_late, a_peer_cannot_be_late_without_end)
{
	struct path p;

	begin(&p);
	path_peer_says(&p, LATE_STEPS - 1);
	cr_assert_lt(p.peer_late, 10 * TIME_MS);
}

/* A late host gets more packets than its ring has room for, and loses some. */
Test(path_late, a_ring_that_overflowed_has_a_bound_in_packets)
{
	const uint32_t octets = 80;
	nanotime now = TIME_S;
	struct path p;

	begin(&p);
	p.window = LIMIT_PATH_FLOOR;
	p.starting = false;
	for (uint32_t i = 0; i < 1000; i++)
		path_sent(&p, octets, 0, now);
	path_gone(&p, p.flying, true);
	path_rtt(&p, 20 * US, now);
	path_lost(&p, false, now);
	cr_expect_eq(p.window, LIMIT_PATH_FLOOR, "nobody is late: a bad cable");
	path_peer_says(&p, late_step(TIME_MS));
	path_lost(&p, false, now);
	cr_expect_lt(p.window, 2 * LIMIT_PATH_RING * octets);
	for (uint32_t i = 0; i < 1000; i++)
		round_trips(&p, 1, 20 * US, &now);
	cr_expect_lt(p.window, 2 * LIMIT_PATH_RING * 1000, "it grows no further");
	now += LIMIT_PATH_MIN_S * TIME_S;
	path_rtt(&p, 20 * US, now);
	round_trips(&p, 100, 20 * US, &now);
	cr_expect_gt(p.window, LIMIT_PATH_RING * 1000, "... for a while: %lu", p.window);
}

/* ... nor does the window open further before a loss. */
Test(path_late, a_path_to_a_late_host_opens_as_far_as_a_ring)
{
	static const nanotime late[] = { 0, TIME_MS };

	for (size_t i = 0; i < ARRAY_SIZE(late); i++) {
		nanotime now = TIME_S;
		struct path p;

		begin(&p);
		path_peer_says(&p, late_step(late[i]));
		round_trips(&p, 12, 20 * US, &now);
		if (late[i] != 0)
			cr_expect_lt(p.window, 3 * LIMIT_PATH_RING * 1000 / 2, "%lu", p.window);
		else
			cr_expect_gt(p.window, 4 * LIMIT_PATH_RING * 1000, "%lu", p.window);
	}
}

/* A peer that drops all behind a gap makes each loss repeat the packets that wait for a late host.
 */
Test(path_late, a_peer_that_often_goes_back_has_a_small_window)
{
	static const struct {
		nanotime rtt;
		bool goes_back, small;
	} rows[] = { { 20 * US, true, true },
		     { 20 * US, false, false },
		     { 2 * TIME_MS, true, false } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		nanotime now = TIME_S;
		uint64_t few;
		struct path p;

		begin(&p);
		few = LIMIT_PATH_GO_BACK * p.packet;
		path_peer_says(&p, late_step(TIME_MS));
		round_trips(&p, 8, rows[i].rtt, &now);
		p.starting = false;
		p.window = LIMIT_PATH_FLOOR;
		path_lost(&p, rows[i].goes_back, now);
		cr_expect_gt(p.window, 2 * few, "row %zu: one may be an accident", i);
		path_lost(&p, rows[i].goes_back, now);
		cr_expect_eq(p.window <= few, rows[i].small, "row %zu: %lu", i, p.window);
		round_trips(&p, 20, rows[i].rtt, &now);
		cr_expect_eq(p.window <= few, rows[i].small, "row %zu, growing: %lu", i, p.window);
		round_trips(&p, 100, rows[i].rtt, &now);
		cr_expect_gt(p.window, 2 * few, "row %zu: nothing was lost for long: %lu", i,
			     p.window);
	}
}

/* One late answer does not make a late host. */
Test(path_late, a_host_is_late_if_two_answers_are)
{
	nanotime now = TIME_S;
	struct path p;

	go_on(&p, &now);
	path_rtt(&p, 2 * TIME_MS, now);
	path_lost(&p, false, now);
	cr_expect_eq(p.small_until, 0);
	path_rtt(&p, 2 * TIME_MS, now);
	path_lost(&p, false, now);
	cr_expect_gt(p.small_until, now);
}
