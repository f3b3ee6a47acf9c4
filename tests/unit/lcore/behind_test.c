/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets behind a gap wait in the order of their PSNs, go on when it closes, and go with their queue pair. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "base/bits.h"
#include "lcore/moving/behind.h"
#include "lcore/moving/slots.h"
#include "loop_rig.h"
#include "wire/opcode.h"

#define POLLS 20000

static struct rig *r;
static struct engine_qp *q; /* the receiver of side 0's requests */

static void begin(void)
{
	rig_timeout = 0;
	r = rig_open();
	q = &r->side[1].qp;
	for (uint32_t i = 0; i < RIG_BUFFER; i++)
		r->side[0].buffer[i] = (uint8_t)(i * 7 + 3);
}

static void end(void)
{
	rig_close(r);
}

TestSuite(behind, .init = begin, .fini = end, .timeout = 60);

/* ---- packets that were never sent ---- */

static void keep(uint32_t psn)
{
	const struct packet p = { .opcode = OPB_WRITE_MIDDLE, .psn = psn };
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->engine.pool);

	cr_assert_not_null(m);
	cr_assert(behind_keep(r->engine.lcore, q, &p, m, clock_now()));
}

static void expect_order(const uint32_t *psn, uint32_t n)
{
	const struct held_packet *e;
	uint32_t i = 0;

	TAILQ_FOREACH(e, &q->behind[0], place)
	{
		cr_assert_lt(i, n);
		cr_expect_eq(e->packet.psn, psn[i], "place %u: %x, not %x", i, e->packet.psn,
			     psn[i]);
		i++;
	}
	cr_expect_eq(i, n);
	cr_expect_eq(q->behind_count, n);
}

static void expect_no_buffers(void)
{
	cr_expect_not(behind_any(q));
	cr_expect_eq(rte_mempool_in_use_count(r->engine.pool), 0, "%u buffers are lost",
		     rte_mempool_in_use_count(r->engine.pool));
}

Test(behind, they_stand_in_the_order_of_their_psns)
{
	static const uint32_t come[] = { 5, 3, 9, 4, 8, 2, 10 };
	static const uint32_t stand[] = { 2, 3, 4, 5, 8, 9, 10 };

	for (uint32_t i = 0; i < ARRAY_SIZE(come); i++)
		keep(come[i]);
	expect_order(stand, ARRAY_SIZE(stand));
	behind_release(r->engine.lcore, q, clock_now());
	expect_order(stand, ARRAY_SIZE(stand));
	behind_forget(r->engine.lcore, q);
	expect_no_buffers();
}

/* The peer begins shortly before the wrap. */
static void connect_at(uint32_t psn)
{
	struct qp_attributes a = { .state = QP_STATE_RESET, .port_num = 1 }, now;

	qp_query(q->core, &now);
	cr_assert_eq(qp_modify(q->core, &a, QP_ATTR_STATE, NULL), 0);
	a.state = QP_STATE_INIT;
	cr_assert_eq(
		qp_modify(q->core, &a,
			  QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS,
			  NULL),
		0);
	a = now;
	a.state = QP_STATE_RTR;
	a.rq_psn = psn;
	cr_assert_eq(qp_modify(q->core, &a,
			       QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
				       QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC |
				       QP_ATTR_MIN_RNR_TIMER,
			       NULL),
		     0);
}

Test(behind, their_order_goes_across_the_wrap)
{
	static const uint32_t stand[] = { 0xfffffe, 0xffffff, 0, 1, 2 };

	connect_at(0xfffffd);
	keep(1);
	keep(0xffffff);
	keep(2);
	keep(0xfffffe);
	keep(0);
	expect_order(stand, ARRAY_SIZE(stand));
	behind_forget(r->engine.lcore, q);
	expect_no_buffers();
}

Test(behind, in_err_and_in_reset_they_go)
{
	keep(3);
	keep(2);
	qp_fail(q->core, REASON_CLIENT_GONE);
	lcore_qp_touch(r->engine.lcore, q, clock_now());
	expect_no_buffers();
	connect_at(0);
	keep(3);
	cr_assert_eq(qp_modify(q->core, &(struct qp_attributes){ .state = QP_STATE_RESET },
			       QP_ATTR_STATE, NULL),
		     0);
	lcore_qp_touch(r->engine.lcore, q, clock_now());
	expect_no_buffers();
}

Test(behind, a_queue_pair_that_goes_leaves_none)
{
	keep(3);
	keep(7);
	lcore_qp_detach(r->engine.lcore, q, clock_now());
	expect_no_buffers();
	directory_publish(&r->engine, q); /* rig_close detaches it again */
}

/* Far behind the gap they need bits, of which there are a few sets: each is back when none waits. hostile H-159 */
Test(behind, far_ones_take_bits_and_give_them_back)
{
	for (uint32_t i = 0; i < 2 * LIMIT_BEHIND_FAR; i++) {
		keep(3);
		keep(LIMIT_WINDOW_MOST - 1);
		expect_order((uint32_t[]){ 3, LIMIT_WINDOW_MOST - 1 }, 2);
		behind_forget(r->engine.lcore, q);
	}
	expect_no_buffers();
}

/*
 * A program has its share; packets beyond it are dropped with a reason, and sent again. hostile
 * H-159
 */
Test(behind, what_finds_no_room_is_dropped_and_counted)
{
	const uint64_t *full = &r->engine.lcore->stats.by_reason[REASON_BEHIND_FULL];
	struct packet p = { .opcode = OPB_WRITE_MIDDLE };
	uint32_t kept = 0;

	for (; kept <= LIMIT_BEHIND; kept++) {
		p.psn = 1 + kept % (LIMIT_WINDOW - 1);
		if (!behind_keep(r->engine.lcore, q, &p, NULL, clock_now()))
			break;
	}
	cr_expect(kept >= LIMIT_WINDOW && kept <= r->engine.buffers / 2,
		  "%u of %u buffers: what is sent needs some, too", kept, r->engine.buffers);
	cr_expect_eq(*full, 1);
	cr_expect_eq(q->behind_count, kept);
	behind_forget(r->engine.lcore, q);
	keep(1);
	cr_expect_eq(*full, 1);
	behind_forget(r->engine.lcore, q);
}

/* ---- traffic ---- */

/* Takes this one of the frames that are on their way, as soon as there is one behind it, too. */
static struct rte_mbuf *take_frame(uint32_t index)
{
	struct lcore *l = r->engine.lcore;
	struct rte_mbuf *m;

	for (int i = 0; i < POLLS && l->loop_head - l->loop_tail < index + 2; i++)
		rig_poll(r);
	cr_assert_geq(l->loop_head - l->loop_tail, index + 2, "there are no such frames");
	index += l->loop_tail;
	m = l->loop[index % LIMIT_LOOP];
	for (; index + 1 != l->loop_head; index++)
		l->loop[index % LIMIT_LOOP] = l->loop[(index + 1) % LIMIT_LOOP];
	l->loop_head--;
	return m;
}

static void put_frame(struct rte_mbuf *m)
{
	struct lcore *l = r->engine.lcore;

	l->loop[l->loop_head++ % LIMIT_LOOP] = m;
}

static void wait_behind(const struct engine_qp *at, uint32_t direction)
{
	for (int i = 0; i < POLLS && TAILQ_EMPTY(&at->behind[direction]); i++)
		rig_poll(r);
	cr_assert_not(TAILQ_EMPTY(&at->behind[direction]), "nothing waits behind the gap");
}

static void finish(uint32_t side)
{
	for (int i = 0; i < POLLS && r->side[side].completions == 0; i++)
		rig_poll(r);
	cr_assert_eq(r->side[side].completions, 1);
	cr_expect_eq(r->side[side].last.status, STATUS_SUCCESS);
	cr_expect_eq(memcmp(r->side[0].buffer, r->side[1].buffer, RIG_BUFFER), 0);
	for (int i = 0; i < 100; i++)
		rig_poll(r);
	cr_expect_not(behind_any(&r->side[0].qp));
	expect_no_buffers();
}

/* A late one closes the gap; also one that is sent again does, as long as the late one is away. */
Test(behind, requests_wait_for_the_one_that_is_missing)
{
	struct rte_mbuf *late;

	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
	late = take_frame(1);
	wait_behind(q, 0);
	cr_expect_eq(r->side[0].completions, 0);
	put_frame(late);
	finish(0);
}

/* READ responses are placed, but that of an atomic waits. */
static void post_fetching(void)
{
	cr_assert(rig_post(r, 1, WORK_RDMA_READ, RIG_BUFFER, WORK_SIGNALED));
	cr_assert(rig_post(r, 1, WORK_ATOMIC_FETCH_AND_ADD, 8, 0));
}

Test(behind, responses_wait_for_the_one_that_is_missing)
{
	struct rte_mbuf *late;

	post_fetching();
	late = take_frame(1);
	wait_behind(q, 1);
	cr_expect_eq(r->side[1].completions, 0);
	put_frame(late);
	finish(1);
}

Test(behind, responses_go_with_their_queue_pair)
{
	struct rte_mbuf *late;

	post_fetching();
	late = take_frame(1);
	wait_behind(q, 1);
	behind_forget(r->engine.lcore, q);
	cr_expect(TAILQ_EMPTY(&q->behind[1]));
	cr_expect_eq(q->behind_count, 0);
	qp_fail(q->core, REASON_CLIENT_GONE);
	lcore_qp_touch(r->engine.lcore, q, clock_now());
	rte_pktmbuf_free(late);
	for (int i = 0; i < 100; i++)
		rig_poll(r);
	expect_no_buffers();
}

/* Once the sender has heard of its peer, which keeps packets. */
Test(behind, what_is_lost_is_sent_again_alone)
{
	const uint64_t *again = &r->engine.lcore->stats.retransmitted;

	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	for (int i = 0; i < POLLS && r->side[0].completions == 0; i++)
		rig_poll(r);
	r->side[0].completions = 0;
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
	rte_pktmbuf_free(take_frame(1));
	finish(0);
	cr_expect_eq(*again, 1, "%lu packets were sent again", *again);
}
