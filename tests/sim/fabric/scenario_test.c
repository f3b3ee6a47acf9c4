/* SPDX-License-Identifier: BSD-3-Clause */
/* Scenarios in a short form. A failure prints how to repeat it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/work.h"
#include "scenario.h"

static struct scenario_result run(const struct scenario_config *c)
{
	struct scenario_result r;

	cr_assert_null(scenario_refuses(c), "%s", scenario_refuses(c));
	scenario_run(c, &r);
	cr_assert(r.ok,
		  "%s (again: uroce sim --scenario %s --peers %s --seed %llu, and what this test "
		  "sets)",
		  r.why, scenario_name(c->scenario), scenario_peers_name(c->peers),
		  (unsigned long long)c->seed);
	cr_assert_gt(r.messages, 0);
	return r;
}

static struct scenario_config small(enum scenario s, enum peers peers)
{
	struct scenario_config c = scenario_defaults(s);

	c.peers = peers;
	c.time = 4e6;
	c.senders = s == SCENARIO_INCAST ? 4 : 1;
	if (s == SCENARIO_MANY)
		c.qps = 64;
	return c;
}

/* Each scenario with hosts of each kind: every message arrives once, in order and unchanged. */
Test(scenario, all_of_them_with_all_makes, .timeout = 240)
{
	for (enum scenario s = 0; s < SCENARIOS; s++)
		for (enum peers peers = 0; peers < PEERS; peers++)
			for (uint64_t seed = 1; seed <= 2; seed++) {
				struct scenario_config c = small(s, peers);
				struct scenario_result r;

				c.seed = seed;
				r = run(&c);
				cr_expect(r.use > 0 && r.use < 1, "%s: %g", scenario_name(s),
					  r.use);
				cr_expect(r.fairness > 0 && r.fairness <= 1.000001);
				cr_expect_leq(r.median, r.slow);
				cr_expect_eq(r.failed, 0);
			}
}

Test(scenario, every_operation, .timeout = 240)
{
	static const uint8_t opcode[] = { WORK_RDMA_WRITE, WORK_SEND, WORK_RDMA_READ };

	for (size_t i = 0; i < sizeof(opcode); i++) {
		struct scenario_config c = small(SCENARIO_REORDER, PEERS_UROCE);

		c.opcode = opcode[i];
		c.loss = 0.002;
		run(&c);
	}
}

/*
 * A receiver keeps packets that arrive early, so only lost packets are sent again. A receiver
 * without room for them is slower, but not stuck.
 */
Test(scenario, a_receiver_without_room_is_not_stuck, .timeout = 240)
{
	struct scenario_config c = small(SCENARIO_REORDER, PEERS_UROCE);
	struct scenario_result r[2];

	c.reorder = 0;
	c.loss = 0.005;
	for (int i = 0; i < 2; i++) {
		c.forgetful = i;
		r[i] = run(&c);
	}
	cr_expect_gt(r[1].again, r[0].again);
	cr_expect_gt(r[1].use, r[0].use / 20, "%g without room, %g with it", r[1].use, r[0].use);
}

/* One queue pair between hosts as fast as engines on net_memif. Virtual time makes the result repeatable. */
static struct scenario_config one_queue_pair(uint8_t opcode)
{
	struct scenario_config c = small(SCENARIO_REORDER, PEERS_UROCE);

	c.opcode = opcode;
	c.reorder = 0;
	c.rate = 30e9;
	c.delay = 3500;
	c.packet_time = 200;
	c.depth = 64;
	c.time = 40e6;
	return c;
}

/* Frames that overtake others by up to 32 places do not count as lost: nothing is sent again. */
Test(scenario, reordering_costs_nothing, .timeout = 240)
{
	static const uint8_t opcode[] = { WORK_RDMA_WRITE, WORK_SEND, WORK_RDMA_READ };

	for (size_t i = 0; i < sizeof(opcode); i++) {
		struct scenario_config c = one_queue_pair(opcode[i]);
		struct scenario_result r;

		c.reorder = 0.01;
		r = run(&c);
		cr_expect_gt(r.use, 0.9, "operation %u: %g", opcode[i], r.use);
		cr_expect_lt(r.again, 0.001, "operation %u: %g", opcode[i], r.again);
	}
}

/* Lost packets are found in round trips, and only they are sent again. */
Test(scenario, a_loss_costs_round_trips_and_not_timeouts, .timeout = 240)
{
	static const struct {
		uint8_t opcode;
		double least; /* of the line, with 1 % lost in each direction */
	} row[] = { { WORK_RDMA_WRITE, 0.8 }, { WORK_SEND, 0.8 }, { WORK_RDMA_READ, 0.5 } };

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct scenario_config c = one_queue_pair(row[i].opcode);
		struct scenario_result r;

		c.loss = 0.01;
		r = run(&c);
		cr_expect_gt(r.use, row[i].least, "operation %u: %g", row[i].opcode, r.use);
		cr_expect_lt(r.again, 0.1);
		cr_expect_eq(r.timeouts, 0);
	}
}

Test(scenario, the_seed_decides, .timeout = 240)
{
	struct scenario_config c = small(SCENARIO_BOTTLENECK, PEERS_UROCE);
	struct scenario_result a, b;

	c.loss = 0.01;
	a = run(&c);
	b = run(&c);
	cr_expect_eq(memcmp(&a, &b, sizeof(a)), 0);
	c.seed = 2;
	b = run(&c);
	cr_expect_neq(a.packets, b.packets);
}

/*
 * One sender alone, with nothing in its way, fills the line, and neither loses nor repeats packets.
 */
Test(scenario, nothing_is_lost_without_reason, .timeout = 240)
{
	for (enum peers peers = 0; peers < PEERS_MIXED; peers++) {
		struct scenario_config c = small(SCENARIO_INCAST, peers);
		struct scenario_result r;

		c.senders = 1;
		r = run(&c);
		cr_expect_gt(r.use, 0.9, "%s: %g", scenario_peers_name(peers), r.use);
		cr_expect_eq(r.dropped, 0);
		cr_expect_eq(r.again, 0);
		cr_expect_eq(r.timeouts, 0);
	}
}

Test(scenario, marks_come_with_a_threshold_only, .timeout = 240)
{
	struct scenario_config c = small(SCENARIO_INCAST, PEERS_DCQCN);
	struct scenario_result r = run(&c);

	cr_expect_gt(r.marked, 0);
	cr_expect_gt(r.cnps, 0);
	c.ecn = 0;
	r = run(&c);
	cr_expect_eq(r.marked, 0);
	cr_expect_eq(r.cnps, 0);
}

/* UC and UD share the line with a transfer: messages that arrive are whole, and some do arrive. */
Test(scenario, what_nothing_acknowledges_beside, .timeout = 240)
{
	for (enum scenario s = 0; s < SCENARIOS; s++)
		for (enum beside_kind kind = BESIDE_UC; kind <= BESIDE_UD; kind++) {
			struct scenario_config c = small(s, PEERS_UROCE);
			struct scenario_result r;

			c.beside = kind;
			r = run(&c);
			cr_expect_gt(r.beside_sent, 90);
			cr_expect_gt(r.beside_arrived, r.beside_sent / 4);
		}
}

/* rdma_cm shares the line: lost messages are repeated, and every connection is made and ended. */
Test(scenario, connections_beside, .timeout = 240)
{
	for (enum scenario s = 0; s < SCENARIOS; s++)
		for (uint32_t lossy = 0; lossy < 2; lossy++) {
			struct scenario_config c = small(s, PEERS_UROCE);
			struct scenario_result r;

			c.beside = BESIDE_CM;
			c.loss = lossy ? 0.05 : 0;
			r = run(&c);
			cr_expect_gt(r.beside_sent, 90);
			cr_expect_eq(r.beside_arrived, r.beside_sent);
		}
}

/* A peer without congestion control overflows the queue; the core notices that it fills. */
Test(scenario, a_short_receive_ring_overflows, .timeout = 240)
{
	struct scenario_config c = small(SCENARIO_MANY, PEERS_LINUX);
	struct scenario_result r;

	c.ring = 96;
	c.receiver_time = 1000;
	c.refuses = 0;
	c.size = 4096;
	r = run(&c);
	cr_expect_gt(r.overflowed, 100);
	cr_expect_eq(r.refused, 0);
	c.peers = PEERS_UROCE;
	r = run(&c);
	cr_expect_lt(r.overflowed, 10);
}

Test(scenario, a_port_that_refuses_loses_nothing, .timeout = 240)
{
	struct scenario_config c = small(SCENARIO_MANY, PEERS_UROCE);
	struct scenario_result r;

	c.refuses = 0.2;
	c.refuses_for = 20e3;
	r = run(&c);
	cr_expect_gt(r.refused, 10);
	cr_expect_eq(r.dropped, 0);
	cr_expect_eq(r.overflowed, 0);
	cr_expect_eq(r.timeouts, 0);
	/* if an answer is late, a probe may ask whether a packet was lost */
	cr_expect_lt(r.again, 0.005, "nothing was lost: %g", r.again);
}

/* An answer takes 80 ms, and the timer of a program 67 ms. Nothing is lost. */
Test(scenario, a_round_trip_longer_than_the_ack_timeout, .timeout = 240)
{
	struct scenario_config c = scenario_defaults(SCENARIO_BOTTLENECK);
	struct scenario_result r;

	c.senders = 1;
	c.trunk_delay = 40e6;
	c.rate = 1e9;
	c.depth = 64;
	c.timeout = 14;
	c.time = 4e9;
	r = run(&c);
	cr_expect_gt(r.use, 0.2, "%g", r.use);
	cr_expect_lt(r.timeouts, 8);
}

/*
 * Sixteen packets, one of each sender, take 54 ms, and the queue has room for 210 ms. So a round
 * trip becomes longer than the timer of a program while everything is repeated.
 */
Test(scenario, a_queue_longer_than_the_ack_timeout, .timeout = 240)
{
	struct scenario_config c = scenario_defaults(SCENARIO_INCAST);
	struct scenario_result r;

	c.senders = 16;
	c.rate = 10e6;
	c.size = 4096;
	c.timeout = 14;
	c.time = 10e9;
	r = run(&c);
	cr_expect_gt(r.use, 0.8, "%g", r.use);
	cr_expect_lt(r.dropped, 0.02, "%g", r.dropped);
	cr_expect_lt(r.again, 0.05, "%g", r.again);
}

/*
 * Queues make round trips twenty times as long as the first samples. Each packet is probed for
 * then, until the wait for a probe has grown as much.
 */
Test(scenario, a_long_queue_is_not_probed, .timeout = 240)
{
	struct scenario_config c = scenario_defaults(SCENARIO_INCAST);
	struct scenario_result r;

	c.senders = 16;
	c.rate = 1e9;
	c.ecn = 0;
	c.buffer = 4 << 20;
	c.time = 500e6;
	r = run(&c);
	cr_expect_eq(r.dropped, 0);
	cr_expect_lt(r.again, 0.01, "%g", r.again);
	cr_expect_gt(r.use, 0.95, "%g", r.use);
}

/* A round trip of 21 ms is a slow port's queue. It must show, or the queue overflows. */
Test(scenario, a_slow_port_does_not_overflow, .timeout = 240)
{
	struct scenario_config c = scenario_defaults(SCENARIO_BOTTLENECK);
	struct scenario_result r;

	c.senders = 2;
	c.rate = 100e6;
	c.ecn = 0;
	c.buffer = 256 << 10;
	c.depth = 16;
	c.time = 2e9;
	r = run(&c);
	cr_expect_lt(r.dropped, 0.01, "%g", r.dropped);
	cr_expect_gt(r.use, 0.9, "%g", r.use);
}

/*
 * READs that share a slow cable. The request that is timed leaves while an earlier part of the READ
 * is under way, so its round trip shows the queue that this READ causes for others.
 */
Test(scenario, reads_share_a_slow_cable, .timeout = 240)
{
	static const struct {
		uint32_t senders, depth;
	} row[] = { { 1, 2 }, { 2, 2 }, { 3, 2 }, { 4, 2 }, { 4, 1 }, { 8, 2 }, { 8, 1 } };

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct scenario_config c = scenario_defaults(SCENARIO_BOTTLENECK);
		struct scenario_result r;

		c.senders = row[i].senders;
		c.depth = row[i].depth;
		c.opcode = WORK_RDMA_READ;
		c.time = 50e6;
		r = run(&c);
		cr_expect_gt(r.use, 0.97, "row %zu: %g", i, r.use);
		cr_expect_gt(r.fairness, 0.95, "row %zu: %g", i, r.fairness);
		cr_expect_lt(r.slow, 3e6, "row %zu: %g", i, (double)r.slow);
	}
}

/* So many begin at once that their single packets make a queue before they know the way. */
Test(scenario, many_share_a_slow_cable, .timeout = 240)
{
	static const uint8_t opcode[] = { WORK_RDMA_WRITE, WORK_RDMA_READ };

	for (size_t i = 0; i < sizeof(opcode); i++) {
		struct scenario_config c = scenario_defaults(SCENARIO_BOTTLENECK);
		struct scenario_result r;

		c.senders = 36;
		c.opcode = opcode[i];
		c.time = 200e6;
		r = run(&c);
		cr_expect_gt(r.fairness, 0.95, "operation %u: %g", opcode[i], r.fairness);
		cr_expect_gt(r.use, 0.8, "operation %u: %g", opcode[i], r.use);
	}
}

/* The queue is so short that it overflows before the delay of this way tells. */
Test(scenario, marks_slow_those_who_read, .timeout = 240)
{
	struct scenario_config c = scenario_defaults(SCENARIO_BOTTLENECK);
	struct scenario_result r;

	c.opcode = WORK_RDMA_READ;
	c.trunk_delay = 100e3;
	c.buffer = 128 << 10;
	c.depth = 16;
	c.time = 100e6;
	r = run(&c);
	cr_expect_lt(r.dropped, 0.01, "%g", r.dropped);
	cr_expect_gt(r.fairness, 0.95, "%g", r.fairness);
}

/* Ten milliseconds at 1 Gbit/s, through a switch that does not mark. */
static struct scenario_config long_way(uint64_t buffer)
{
	struct scenario_config c = scenario_defaults(SCENARIO_BOTTLENECK);

	c.rate = 1e9;
	c.trunk_delay = 5e6;
	c.ecn = 0;
	c.buffer = buffer;
	c.depth = 256;
	c.time = 1e9;
	return c;
}

/*
 * A long way with a switch whose queue is a fifth of what is on the way. A READ that asked for all of its window at
 * once would be a burst that overflows it each time.
 */
Test(scenario, large_reads_on_a_long_way, .timeout = 240)
{
	struct scenario_config c = long_way(256 << 10);
	struct scenario_result r;

	c.senders = 1;
	c.opcode = WORK_RDMA_READ;
	c.size = 1 << 20;
	scenario_run(&c, &r);
	cr_expect_gt(r.use, 0.5, "%g", r.use);
}

/* A READ that is larger than the queue of the port does not overflow it. */
Test(scenario, large_reads_do_not_overflow_a_port, .timeout = 240)
{
	struct scenario_config c = scenario_defaults(SCENARIO_BOTTLENECK);
	struct scenario_result r;

	c.senders = 1;
	c.opcode = WORK_RDMA_READ;
	c.size = 1 << 20;
	c.time = 100e6;
	r = run(&c);
	cr_expect_eq(r.dropped, 0, "%g", r.dropped);
	cr_expect(r.longest > 0 && r.longest < c.buffer, "%g octets", (double)r.longest);
	cr_expect_lt(r.again, 0.001, "%g", r.again);
	cr_expect_gt(r.use, 0.95, "%g", r.use);
}

/*
 * The queue of a port is full after half a millisecond, and a round trip takes ten. So delay says
 * nothing, and only the share of packets that are lost does.
 */
Test(scenario, a_queue_too_short_to_show_in_delay, .timeout = 240)
{
	struct scenario_config c = long_way(64 << 10);
	struct scenario_result r;

	scenario_run(&c, &r);
	cr_expect(r.ok, "%s", r.why);
	cr_expect_eq(r.failed, 0);
	cr_expect_gt(r.use, 0.7, "%g", r.use);
	cr_expect_lt(r.dropped, 0.3, "%g", r.dropped);
}

/*
 * Each of them gives up after eight tries: 1, 2, and six times 4 timeouts of 4.2 ms. A path that
 * lets one packet go at a time must not make them give up one after the other.
 */
Test(scenario, all_find_out_together_that_a_peer_is_gone, .timeout = 240)
{
	struct scenario_config c = small(SCENARIO_MANY, PEERS_UROCE);
	struct scenario_result r;

	c.loss = 1;
	c.timeout = 10;
	scenario_run(&c, &r);
	cr_assert_eq(r.failed, c.qps);
	cr_assert_geq(r.last_failure, 27 * UINT64_C(4194304));
	cr_assert_lt(r.last_failure, 30 * UINT64_C(4194304), "%.1f ms",
		     (double)r.last_failure / 1e6);
}

/*
 * `gone` queue pairs whose peer's program is killed, and `left` others. Returns how much of the
 * line the others use from then on, as a share of what they use without the first ones.
 */
static double share_beside_killed(struct scenario_config c, uint32_t gone, uint32_t left)
{
	struct scenario_result beside, alone;

	c.qps = left;
	scenario_run(&c, &alone);
	cr_assert(alone.ok, "%s", alone.why);
	c.qps = gone + left;
	c.gone = gone;
	scenario_run(&c, &beside);
	cr_assert(beside.ok, "%s", beside.why);
	cr_assert_eq(beside.timeouts, 0, "they are not needed");
	return beside.left / alone.left;
}

/*
 * Packets to the dead would fill the window that all queue pairs to this peer share. Timers would
 * take seconds, and the measured time is ten milliseconds.
 */
Test(scenario, those_whose_peer_is_killed_hold_up_no_others, .timeout = 240)
{
	static const struct {
		uint32_t gone, left, size;
		uint8_t opcode;
		bool late; /* the others begin afterwards */
		double loss, least;
	} row[] = { { 64, 1, 65536, WORK_RDMA_WRITE, false, 0, 0.9 },
		    { 64, 1, 65536, WORK_RDMA_WRITE, true, 0, 0.9 },
		    { 64, 1, 65536, WORK_RDMA_READ, true, 0, 0.9 },
		    { 64, 1, 65536, WORK_SEND, false, 0.01, 0.75 },
		    { 32, 32, 65536, WORK_RDMA_WRITE, false, 0, 0.9 },
		    { 1000, 1, 4096, WORK_RDMA_WRITE, true, 0, 0.4 } };

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct scenario_config c = scenario_defaults(SCENARIO_MANY);
		double share;

		c.size = row[i].size;
		c.opcode = row[i].opcode;
		c.late = row[i].late;
		c.loss = row[i].loss;
		c.packet_time = 200;
		c.refuses = 0;
		c.timeout = 20;
		c.time = 11e6;
		share = share_beside_killed(c, row[i].gone, row[i].left);
		cr_expect_gt(share, row[i].least, "row %zu: %.3f", i, share);
	}
}

Test(scenario, plots_itself, .timeout = 240)
{
	struct scenario_config c = small(SCENARIO_BOTTLENECK, PEERS_UROCE);
	char path[] = "/tmp/uroce-plot-XXXXXX", text[1 << 16];
	int fd = mkstemp(path);
	ssize_t n;

	cr_assert_geq(fd, 0);
	c.svg = path;
	run(&c);
	n = read(fd, text, sizeof(text) - 1);
	cr_assert_gt(n, 1000);
	text[n] = '\0';
	cr_expect_eq(strncmp(text, "<svg ", 5), 0);
	cr_expect_not_null(strstr(text, "</svg>"));
	cr_expect_null(strstr(text, "nan"));
	cr_expect_not_null(strstr(text, "queue in front of it"));
	close(fd);
	unlink(path);
}
