/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port that takes few frames, or none: no packet is made twice, no queue pair starves, no retry
 * is used. The port is a program's own, as with embedding: two functions and a ring between them.
 */
#include <criterion/criterion.h>
#include <time.h>

#include <rte_mbuf.h>

#include "loop_rig.h"
#include "loop_wire.h"
#include "lcore/moving/outlet.h"

#define POLLS 20000

static uint32_t takes; /* frames that the port has room for */
static uint64_t taken;
static uint32_t asked; /* how often */

static uint16_t port_tx(struct port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	uint16_t i = 0;

	asked++;
	for (; i < n && takes > 0; i++, takes--, taken++)
		wire[wire_head++ % WIRE] = m[i];
	return i;
}

static const struct port_ops ops = { .rx_burst = wire_rx, .tx_burst = port_tx };
static struct port port = { .ops = &ops, .name = "test", .queues = 1 };

/* The queue pairs of a rig send through the port, and to themselves. */
static struct rig *open_with_port(void)
{
	struct rig *r = rig_open();

	rig_use_port(r, &port);
	takes = 0;
	return r;
}

static void close_with_port(struct rig *r)
{
	for (; wire_tail != wire_head; wire_tail++)
		rte_pktmbuf_free(wire[wire_tail % WIRE]);
	rig_close(r);
}

static uint64_t resent(const struct rig *r)
{
	return r->engine.lcore->stats.retransmitted;
}

/* At most the 5 us after which a full port is asked again. */
static void polls(struct rig *r, nanotime time)
{
	nanotime end = clock_now() + time;

	do
		rig_poll(r);
	while (clock_now() < end);
}

/* The port takes one frame a poll: every packet is made once, and both queue pairs have their turns. */
Test(outlet, no_packet_is_made_twice)
{
	struct rig *r = open_with_port();

	for (uint32_t i = 0; i < 64; i++) {
		cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
		cr_assert(rig_post(r, 2, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	}
	for (int i = 0; i < POLLS && r->side[0].completions + r->side[2].completions < 128; i++) {
		takes = 1;
		polls(r, 6 * TIME_US);
	}
	cr_assert_eq(r->side[0].completions, 64);
	cr_assert_eq(r->side[2].completions, 64);
	cr_assert_eq(r->side[0].last.status, STATUS_SUCCESS);
	cr_assert_eq(resent(r), 0);
	cr_assert_eq(r->engine.lcore->stats.tx_packets, taken);
	cr_assert_gt(r->engine.lcore->stats.by_reason[REASON_TX_FULL], 0);
	close_with_port(r);
}

/* Longer than all retries of the program together: not one of them is spent. */
Test(outlet, a_port_that_takes_nothing_costs_no_retry)
{
	struct rig *r;

	rig_timeout = 8; /* 1 ms */
	r = open_with_port();
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	polls(r, 40 * TIME_MS);
	cr_assert_eq(r->engine.lcore->stats.timeouts, 0);
	cr_assert_eq(taken, 0);
	takes = UINT32_MAX;
	for (int i = 0; i < POLLS && r->side[0].completions == 0; i++)
		rig_poll(r);
	cr_assert_eq(r->side[0].completions, 1);
	cr_assert_eq(r->side[0].last.status, STATUS_SUCCESS);
	cr_assert_eq(resent(r), 0);
	close_with_port(r);
}

/* After its bound the port is stuck: that has a reason, and now the program's retries count. */
Test(outlet, a_stuck_port_has_a_bound_and_a_reason)
{
	struct rig *r;

	rig_timeout = 8;
	r = open_with_port();
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	polls(r, LIMIT_STUCK_MS * TIME_MS);
	for (int i = 0; i < POLLS && r->side[0].completions == 0; i++)
		polls(r, TIME_MS);
	cr_assert_gt(r->engine.lcore->stats.by_reason[REASON_PORT_STUCK], 0);
	cr_assert_eq(r->side[0].completions, 1);
	cr_assert_eq(r->side[0].last.status, STATUS_RETRY_EXC_ERR);
	cr_assert_not(outlets_wait(r->engine.lcore), "nothing waits there for ever");
	/* The other queue pair works as soon as the port does. */
	takes = UINT32_MAX;
	cr_assert(rig_post(r, 2, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	for (int i = 0; i < POLLS && r->side[2].completions == 0; i++)
		rig_poll(r);
	cr_assert_eq(r->side[2].last.status, STATUS_SUCCESS);
	close_with_port(r);
}

/* The port does not hold up what goes round inside the engine. */
Test(outlet, the_other_way_stays_open)
{
	struct rig *r = open_with_port();

	r->side[2].qp.flow_state = r->side[3].qp.flow_state = FLOW_LOOP;
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
	cr_assert(rig_post(r, 2, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
	for (int i = 0; i < POLLS && r->side[2].completions == 0; i++)
		rig_poll(r);
	cr_assert_eq(r->side[2].completions, 1);
	cr_assert_eq(r->side[0].completions, 0);
	takes = UINT32_MAX;
	for (int i = 0; i < POLLS && r->side[0].completions == 0; i++)
		rig_poll(r);
	cr_assert_eq(r->side[0].last.status, STATUS_SUCCESS);
	cr_assert_eq(resent(r), 0);
	close_with_port(r);
}

/* A queue pair that goes takes its frames along. */
Test(outlet, frames_of_a_destroyed_queue_pair_are_dropped)
{
	struct rig *r = open_with_port();
	uint32_t before = rte_mempool_in_use_count(r->engine.pool);

	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
	cr_assert(rig_post(r, 2, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	polls(r, 100 * TIME_US);
	cr_assert(outlets_wait(r->engine.lcore));
	lcore_qp_detach(r->engine.lcore, &r->side[0].qp, clock_now());
	takes = UINT32_MAX;
	for (int i = 0; i < POLLS && r->side[2].completions == 0; i++)
		rig_poll(r);
	cr_assert_eq(r->side[2].last.status, STATUS_SUCCESS);
	cr_assert_eq(taken, 2, "a WRITE and its acknowledgement");
	for (uint32_t i = 0; i < LIMIT_BLANK_POLLS; i++)
		rig_poll(r); /* buffers for more frames go back */
	cr_assert_eq(rte_mempool_in_use_count(r->engine.pool), before);
	directory_publish(&r->engine, &r->side[0].qp); /* rig_close detaches it again */
	close_with_port(r);
}

static uint32_t in_ring(struct rig *r, uint32_t side)
{
	return ring_readable(&r->side[side].qp.sq);
}

/* One queue pair's doorbell does not hold up a poll, or another queue pair. */
Test(outlet, a_drain_is_bounded)
{
	const uint32_t many = 3 * LIMIT_DRAIN;
	struct rig *r;

	rig_depth = 1024;
	r = open_with_port();
	for (uint32_t i = 0; i < many; i++)
		cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, i + 1 == many ? WORK_SIGNALED : 0));
	cr_assert(rig_post(r, 2, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	rig_poll(r);
	cr_assert_eq(in_ring(r, 0), many - LIMIT_DRAIN);
	cr_assert_eq(in_ring(r, 2), 0);
	rig_poll(r);
	cr_assert_eq(in_ring(r, 0), many - 2 * LIMIT_DRAIN);
	takes = UINT32_MAX;
	for (int i = 0; i < POLLS && r->side[0].completions == 0; i++)
		rig_poll(r);
	cr_assert_eq(r->side[0].completions, 1, "the rest came without another doorbell");
	cr_assert_eq(r->side[0].last.status, STATUS_SUCCESS);
	close_with_port(r);
}

#define POSTED (3 * LIMIT_DRAIN + 1) /* receives */

/* The queue pair gets these receives, and then fails. */
static void fail_with_receives(struct rig *r, uint32_t side)
{
	struct engine_qp *q = &r->side[side].qp;

	for (uint32_t i = 0; i < POSTED; i++)
		cr_assert(rig_receive(r, side));
	qp_fail(q->core, REASON_CLIENT_GONE);
	lcore_qp_touch(r->engine.lcore, q, clock_now());
}

static uint32_t unflushed(struct rig *r, uint32_t side)
{
	return ring_readable(&r->side[side].qp.rq);
}

/* hostile H-25: nor does the flush of a receive ring, in ERR, whatever else happens to the queue pair. */
Test(outlet, a_flush_is_bounded)
{
	struct rig *r = rig_open();
	struct engine_qp *q = &r->side[0].qp;

	fail_with_receives(r, 0);
	cr_assert_eq(unflushed(r, 0), POSTED - LIMIT_DRAIN);
	qp_settled(r->engine.lcore, q, clock_now());
	cr_expect_eq(unflushed(r, 0), POSTED - LIMIT_DRAIN, "a packet flushes more out of turn");
	rig_poll(r);
	cr_expect_eq(unflushed(r, 0), POSTED - 2 * LIMIT_DRAIN);
	rig_poll(r);
	cr_expect_eq(unflushed(r, 0), 1);
	rig_poll(r);
	cr_expect_eq(unflushed(r, 0), 0, "the rest came without a doorbell");
	cr_expect_eq(r->side[0].completions, POSTED);
	cr_expect_eq(r->side[0].last.status, STATUS_WR_FLUSH_ERR);
	cr_expect(drains_none(&r->engine.lcore->drains),
		  "the empty ring is looked at in each poll");
	rig_close(r);
}

/* Receives that are flushed count among what one poll takes of all queue pairs. */
Test(outlet, flushes_are_part_of_what_a_poll_takes)
{
	const uint32_t sends = LIMIT_DRAIN / 2 + 1; /* of two queue pairs */
	struct rig *r;

	rig_depth = 1024;
	r = rig_open();
	for (uint32_t i = 0; i < RIG_SIDES; i++)
		fail_with_receives(r, i);
	for (uint32_t i = 0; i < 2 * sends; i++)
		cr_assert(rig_post(r, i % 2, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	rig_poll(r);
	cr_expect_eq(in_ring(r, 0) + in_ring(r, 1), 0);
	cr_expect_eq(unflushed(r, 2), POSTED - 2 * LIMIT_DRAIN);
	cr_expect_eq(unflushed(r, 3), POSTED - LIMIT_DRAIN, "this poll had taken enough before");
	rig_poll(r);
	cr_expect_eq(unflushed(r, 3), POSTED - 2 * LIMIT_DRAIN);
	rig_close(r);
}

/* Requests that find no room in the window cost nothing until there is some. */
Test(outlet, a_full_window_is_not_asked_again_and_again)
{
	struct rig *r = open_with_port();
	uint32_t posted = 0;

	while (rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED))
		posted++;
	polls(r, TIME_MS);
	cr_assert_gt(in_ring(r, 0), 0, "the window is not full");
	cr_expect(drains_none(&r->engine.lcore->drains), "its ring is looked at in each poll");
	takes = UINT32_MAX;
	for (int i = 0; i < POLLS && r->side[0].completions < posted; i++)
		rig_poll(r);
	cr_assert_eq(r->side[0].completions, posted);
	cr_assert_eq(r->side[0].last.status, STATUS_SUCCESS);
	close_with_port(r);
}

/* Each poll would spend its time on a port that is full. */
Test(outlet, a_full_port_is_asked_again_after_a_while)
{
	struct rig *r = open_with_port();
	struct lcore *l = r->engine.lcore;
	struct outlet *o = &l->outlets->outlet[OUTLET_PORT];
	uint32_t before;

	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	for (int i = 0; i < POLLS && outlet_waiting(o) == 0; i++)
		rig_poll(r);
	cr_assert_eq(outlet_waiting(o), 1);
	before = asked;
	outlets_flush(l, o->again_at - 1);
	cr_expect_eq(asked, before, "too early");
	outlets_flush(l, o->again_at);
	cr_expect_gt(asked, before);
	close_with_port(r);
}

/* It was blocked because many frames stood in the lcore's own ring, and these are gone. */
Test(outlet, a_blocked_queue_pair_goes_on_though_no_frame_waits)
{
	struct rig *r = rig_open();
	struct lcore *l = r->engine.lcore;
	struct engine_qp *q = &r->side[0].qp;

	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	doorbells_poll(l, clock_now());
	cr_assert(q->is_ready);
	outlet_block(l, q);
	cr_assert_not(outlets_wait(l));
	for (int i = 0; i < POLLS && r->side[0].completions == 0; i++)
		rig_poll(r);
	cr_assert_eq(r->side[0].completions, 1);
	cr_assert_eq(r->side[0].last.status, STATUS_SUCCESS);
	rig_close(r);
}
