/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The middle of a large message leaves in runs of packets, and arrives as frames like the one before. Frames stay within
 * the lcore, and have ICRCs.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "loop_rig.h"

#define SPLIT 5000u /* octets of the first piece */
#define SMALL 256u /* octets: the least path MTU */

static struct rig *rig;
static uint32_t in_runs; /* packets */

uint32_t __real_qp_next_alike(struct qp *qp, const struct packet *before,
			      const struct key_table *keys, uint32_t most, nanotime now,
			      struct span_list *gather);
uint32_t __wrap_qp_next_alike(struct qp *qp, const struct packet *before,
			      const struct key_table *keys, uint32_t most, nanotime now,
			      struct span_list *gather);

uint32_t __wrap_qp_next_alike(struct qp *qp, const struct packet *before,
			      const struct key_table *keys, uint32_t most, nanotime now,
			      struct span_list *gather)
{
	uint32_t n = __real_qp_next_alike(qp, before, keys, most, now, gather);

	in_runs += n;
	return n;
}

static void open_rig(void)
{
	rig_timeout = 10; /* 4 ms */
	rig = rig_open();
	rig->engine.sum_loop = true;
	for (uint32_t i = 0; i < RIG_BUFFER; i++)
		rig->side[0].buffer[i] = (uint8_t)(i * 7 + i / 256 + 1);
	in_runs = 0;
}

static void close_rig(void)
{
	rig_close(rig);
}

TestSuite(runs, .init = open_rig, .fini = close_rig, .timeout = 60);

static void run(uint32_t side)
{
	nanotime end = clock_now() + 20 * TIME_S;

	while (rig->side[side].completions < 1 && clock_now() < end)
		rig_poll(rig);
	cr_assert_eq(rig->side[side].completions, 1, "side %u completes nothing", side);
	cr_assert_eq(rig->side[side].last.status, STATUS_SUCCESS);
}

static void expect_arrived(void)
{
	for (uint32_t i = 0; i < 1000 && rte_mempool_in_use_count(rig->engine.pool) > 0; i++)
		rig_poll(rig); /* the last acknowledgement is on its way */
	cr_expect_arr_eq(rig->side[1].buffer, rig->side[0].buffer, RIG_BUFFER);
	cr_expect_eq(rte_mempool_in_use_count(rig->engine.pool), 0);
}

Test(runs, of_a_write)
{
	cr_assert(rig_post(rig, 0, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
	run(0);
	expect_arrived();
	cr_expect_geq(in_runs, 12, "%u of 16 packets", in_runs);
	cr_expect_eq(rig->engine.lcore->stats.retransmitted, 0);
}

Test(runs, of_a_send)
{
	cr_assert(rig_receive(rig, 1));
	cr_assert(rig_post(rig, 0, WORK_SEND, RIG_BUFFER, 0));
	run(1);
	expect_arrived();
	cr_expect_geq(in_runs, 12, "%u of 16 packets", in_runs);
}

Test(runs, of_the_responses_of_a_read)
{
	cr_assert(rig_post(rig, 1, WORK_RDMA_READ, RIG_BUFFER, WORK_SIGNALED));
	run(1);
	expect_arrived();
	cr_expect_geq(in_runs, 12, "%u of 16 packets", in_runs);
}

/* Payloads of two spans, and those on either side. */
Test(runs, memory_in_two_pieces_is_sent_from_both)
{
	struct region *m =
		(struct region *)(uintptr_t)key_withdraw(&rig->engine.keys, rig->side[0].key);
	struct region *two = calloc(1, sizeof(*two) + 2 * sizeof(two->piece[0]));
	uint8_t *first = malloc(SPLIT);

	cr_assert(two != NULL && first != NULL);
	memcpy(two, m, sizeof(*two));
	two->pieces = 2;
	two->piece[0] = (struct region_piece){ .direct = first };
	two->piece[1] =
		(struct region_piece){ .offset = SPLIT, .direct = rig->side[0].buffer + SPLIT };
	memcpy(first, rig->side[0].buffer, SPLIT);
	key_publish(&rig->engine.keys, rig->side[0].key, two);
	cr_assert(rig_post(rig, 0, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
	run(0);
	expect_arrived();
	key_withdraw(&rig->engine.keys, rig->side[0].key);
	key_publish(&rig->engine.keys, rig->side[0].key, m);
	free(two);
	free(first);
}

static uint64_t sent_in_a_poll(void)
{
	uint64_t before = rig->side[0].qp.sent;

	rig_poll(rig);
	return rig->side[0].qp.sent - before;
}

/* Five packets, then messages of one turn each: the first turn is longer, so that each of the others is one message. */
Test(runs, a_turn_goes_on_to_the_end_of_its_message)
{
	cr_assert(rig_post(rig, 0, WORK_RDMA_WRITE, 5 * RIG_BUFFER / LIMIT_TURN, 0));
	for (uint32_t i = 1; i <= 9; i++)
		cr_assert(
			rig_post(rig, 0, WORK_RDMA_WRITE, RIG_BUFFER, i == 9 ? WORK_SIGNALED : 0));
	cr_expect_eq(sent_in_a_poll(), 5 + LIMIT_ROUND);
	cr_expect_eq(sent_in_a_poll(), LIMIT_ROUND);
	run(0);
	expect_arrived();
}

static void open_rig_of_small_packets(void)
{
	rig_close(rig);
	rig_mtu = 1;
	open_rig();
}

/* Messages of sixteen turns, one packet late: no turn goes on for another one. */
Test(runs, a_turn_does_not_go_on_for_long)
{
	open_rig_of_small_packets();
	cr_assert(rig_post(rig, 0, WORK_RDMA_WRITE, SMALL, 0));
	for (uint32_t i = 1; i <= 2; i++)
		cr_assert(
			rig_post(rig, 0, WORK_RDMA_WRITE, RIG_BUFFER, i == 2 ? WORK_SIGNALED : 0));
	cr_expect_eq(sent_in_a_poll(), LIMIT_ROUND);
	cr_expect_eq(sent_in_a_poll(), LIMIT_ROUND);
	run(0);
	expect_arrived();
}

/* One sends messages that are nearly two turns long, and the other one messages of one turn. */
Test(runs, turns_that_go_on_are_paid_back)
{
	const struct engine_qp *one, *other;
	uint64_t ahead = 0, behind = 0;

	open_rig_of_small_packets();
	for (uint32_t i = 0; i < 60; i++) {
		cr_assert(rig_post(rig, 0, WORK_RDMA_WRITE, (2 * LIMIT_TURN - 1) * SMALL, 0));
		cr_assert(rig_post(rig, 2, WORK_RDMA_WRITE, LIMIT_TURN * SMALL, 0));
		cr_assert(rig_post(rig, 2, WORK_RDMA_WRITE, LIMIT_TURN * SMALL, 0));
	}
	one = &rig->side[0].qp;
	other = &rig->side[2].qp;
	for (uint32_t i = 0; i < 1000 && one->sent < 1000 && other->sent < 1000; i++) {
		rig_poll(rig);
		ahead = MAX_OF(ahead, one->sent - MIN_OF(one->sent, other->sent));
		behind = MAX_OF(behind, other->sent - MIN_OF(one->sent, other->sent));
	}
	cr_assert(one->sent >= 1000 || other->sent >= 1000, "%" PRIu64 " and %" PRIu64 " packets",
		  one->sent, other->sent);
	cr_expect_leq(ahead, 3 * LIMIT_TURN, "%" PRIu64 " packets more", ahead);
	cr_expect_leq(behind, 3 * LIMIT_TURN, "%" PRIu64 " packets fewer", behind);
}

/* Makes the lcore drop the frame with this index among those that wait in its loop. */
static void damage(struct lcore *l, uint32_t index)
{
	struct rte_mbuf *m = l->loop[(l->loop_tail + index) % LIMIT_LOOP];

	rte_pktmbuf_mtod(m, uint8_t *)[m->data_len - 1000] ^= 0x10;
}

/* What follows a lost packet waits at the receiver. */
Test(runs, rounds_are_shorter_while_packets_are_lost)
{
	struct lcore *l = rig->engine.lcore;
	const struct engine_qp *q = &rig->side[0].qp;
	uint64_t most = 0, again_at;

	for (uint32_t i = 1; i <= 100; i++)
		cr_assert(rig_post(rig, 0, WORK_RDMA_WRITE, RIG_BUFFER,
				   i == 100 ? WORK_SIGNALED : 0));
	cr_assert_eq(sent_in_a_poll(), LIMIT_ROUND);
	cr_assert_eq(sent_in_a_poll(), LIMIT_ROUND);
	damage(l, 20);
	for (uint32_t i = 0; i < 1000 && q->again == 0; i++)
		rig_poll(rig);
	cr_assert_eq(q->again, 1);
	again_at = q->sent;
	for (uint32_t i = 0; i < 1000 && q->sent + LIMIT_ROUND < again_at + LIMIT_WARY; i++)
		most = MAX_OF(most, sent_in_a_poll());
	cr_expect_geq(most, LIMIT_ROUND / 2);
	cr_expect_lt(most, LIMIT_ROUND, "%" PRIu64 " packets in a poll", most);
	for (uint32_t i = 0; i < 1000 && q->sent < again_at + LIMIT_WARY; i++)
		rig_poll(rig);
	cr_assert_geq(q->sent, again_at + LIMIT_WARY, "%" PRIu64 " packets", q->sent - again_at);
	cr_expect_eq(sent_in_a_poll(), LIMIT_ROUND, "as before");
	run(0);
	expect_arrived();
}

/* One octet of a frame changes on its way: the victim's memory never sees it, and the packet is sent again. */
Test(runs, a_damaged_frame_of_a_run_changes_nothing)
{
	struct lcore *l = rig->engine.lcore;

	cr_assert(rig_post(rig, 0, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
	for (uint32_t i = 0; i < 1000 && l->loop_head - l->loop_tail < 8; i++)
		rig_poll(rig);
	cr_assert_geq(l->loop_head - l->loop_tail, 8, "no run leaves");
	damage(l, 6);
	for (uint32_t i = 0; i < 1000 && l->stats.by_reason[REASON_ICRC] == 0; i++)
		rig_poll(rig);
	cr_expect_eq(l->stats.by_reason[REASON_ICRC], 1);
	for (uint32_t i = 0; i < RIG_BUFFER; i++)
		cr_assert(rig->side[1].buffer[i] == 0 ||
				  rig->side[1].buffer[i] == rig->side[0].buffer[i],
			  "octet %u", i);
	run(0);
	expect_arrived();
	cr_expect_gt(l->stats.retransmitted, 0);
}
