/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where there are many queue pairs, the memory of the next one is asked for before its turn, and before its
 * packet is passed in. Where there are few, nobody asks.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "lcore/turns/ahead.h"
#include "loop_rig.h"
#include "loop_wire.h"

#define POLLS 200000
#define MANY  64u

static struct rig *r;
static uint32_t asked; /* how often for a core, by anybody */
static uint32_t for_frames[RIG_SIDES]; /* ... of each side, since a frame of it was passed in */
static bool in_turn; /* the one that has its turn asks for the next one */
static const struct qp *next; /* ... which is this one */
static const struct qp *receiver; /* the last that was passed a packet */
static uint32_t foreseen, surprises;

void __real_qp_ahead(const struct qp *qp);
void __wrap_qp_ahead(const struct qp *qp);
void __real_qp_requests_ahead(const struct qp *qp);
void __wrap_qp_requests_ahead(const struct qp *qp);
enum next_packet __real_qp_next_packet(struct qp *qp, const struct key_table *keys, nanotime now,
				       struct packet *p, struct span_list *gather,
				       nanotime *not_before);
enum next_packet __wrap_qp_next_packet(struct qp *qp, const struct key_table *keys, nanotime now,
				       struct packet *p, struct span_list *gather,
				       nanotime *not_before);
void __real_qp_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			const struct key_table *keys, nanotime now, struct outcome *out);
void __wrap_qp_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			const struct key_table *keys, nanotime now, struct outcome *out);

static uint32_t side_of(const struct qp *qp)
{
	uint32_t i = 0;

	while (r->side[i].qp.core != qp)
		i++;
	return i;
}

void __wrap_qp_ahead(const struct qp *qp)
{
	asked++;
	if (in_turn)
		next = qp;
	else
		for_frames[side_of(qp)]++;
	__real_qp_ahead(qp);
}

void __wrap_qp_requests_ahead(const struct qp *qp)
{
	foreseen += next == qp;
	in_turn = true;
	__real_qp_requests_ahead(qp);
}

enum next_packet __wrap_qp_next_packet(struct qp *qp, const struct key_table *keys, nanotime now,
				       struct packet *p, struct span_list *gather,
				       nanotime *not_before)
{
	in_turn = false;
	return __real_qp_next_packet(qp, keys, now, p, gather, not_before);
}

void __wrap_qp_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			const struct key_table *keys, nanotime now, struct outcome *out)
{
	uint32_t side = side_of(qp);

	if (receiver != qp) {
		surprises += for_frames[side] == 0;
		for_frames[side] = 0;
		receiver = qp;
	}
	__real_qp_received(qp, p, offer, keys, now, out);
}

static uint16_t port_tx(struct port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		wire[wire_head++ % WIRE] = m[i];
	return n;
}

static const struct port_ops ops = { .rx_burst = wire_rx, .tx_burst = port_tx };
static struct port port = { .ops = &ops, .name = "test", .queues = 1 };

static void open_with_port(void)
{
	r = rig_open();
	rig_use_port(r, &port);
}

static void close_rig(void)
{
	rig_close(r);
}

TestSuite(ahead, .init = open_with_port, .fini = close_rig);

/* Both pairs send so many messages of 8 octets, and all arrive. */
static void exchange(void)
{
	for (uint32_t i = 0; i < MANY; i++) {
		cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
		cr_assert(rig_post(r, 2, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	}
	for (int i = 0; i < POLLS && r->side[0].completions + r->side[2].completions < 2 * MANY;
	     i++)
		rig_poll(r);
	cr_assert_eq(r->side[0].completions, MANY);
	cr_assert_eq(r->side[2].completions, MANY);
	cr_assert_eq(r->side[2].last.status, STATUS_SUCCESS);
}

Test(ahead, few_queue_pairs_are_not_asked_for)
{
	cr_assert_eq(r->engine.lcore->qps, RIG_SIDES);
	r->engine.lcore->qps = LIMIT_QPS_NEAR;
	exchange();
	cr_assert_eq(asked, 0);
}

Test(ahead, many_are_asked_for_before_their_packets_and_turns)
{
	r->engine.lcore->qps = LIMIT_QPS_NEAR + 1;
	exchange();
	cr_assert_eq(surprises, 0, "%u times packets came for a queue pair unasked for", surprises);
	cr_assert_gt(foreseen, MANY / LIMIT_TURN, "%u turns were foreseen", foreseen);
}

/* What is no RoCE frame, is for nobody, or for a queue pair of another lcore, is left alone. */
Test(ahead, frames_of_others_are_left_alone)
{
	struct lcore *l = r->engine.lcore;
	struct rte_mbuf *m[2];

	l->qps = LIMIT_QPS_NEAR + 1;
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	lcore_poll(l);
	cr_assert_eq(wire_head, 1);
	m[0] = wire[0];
	m[1] = rte_pktmbuf_alloc(r->engine.pool);
	memset(rte_pktmbuf_append(m[1], 60), 0xff, 60);
	asked = 0;
	ahead_of_frames(l, m, 2);
	cr_assert_eq(asked, 1);
	r->side[1].qp.lcore = l + 1;
	ahead_of_frames(l, m, 2);
	cr_assert_eq(asked, 1, "another lcore has it");
	r->side[1].qp.lcore = l;
	rte_pktmbuf_free(m[1]);
}

Test(ahead, an_lcore_knows_how_many_live_there)
{
	struct lcore *l = r->engine.lcore;
	struct lcore *other = calloc(1, sizeof(*other));
	struct qp_move move = { .qp = &r->side[0].qp, .to = other };
	struct qp_attributes a = { .state = QP_STATE_RESET };

	cr_assert_eq(qp_modify(r->side[0].qp.core, &a, QP_ATTR_STATE, NULL), 0);
	lcore_qp_move(l, &move, clock_now());
	cr_assert_eq(l->qps, RIG_SIDES - 1);
	cr_assert_eq(other->qps, 1);
	r->side[0].qp.lcore = l;
	l->qps = RIG_SIDES;
	free(other);
	lcore_qp_detach(l, &r->side[0].qp, clock_now());
	cr_assert_eq(l->qps, RIG_SIDES - 1);
	lcore_qp_attach(l, &r->side[0].qp, clock_now());
	cr_assert_eq(l->qps, RIG_SIDES);
}
