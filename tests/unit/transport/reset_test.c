/* SPDX-License-Identifier: BSD-3-Clause */
/* After RESET a queue pair is like a new one: nothing of the last connection shows in the next. */
#include <criterion/criterion.h>
#include <string.h>

#include "pair.h"

static struct pair pair;
static struct pair_options o;

static void start(void)
{
	o = pair_options();
	o.mtu = 1;
	pair_init(&pair, &o);
}

static void finish(void)
{
	pair_close(&pair);
}

TestSuite(reset, .init = start, .fini = finish, .timeout = 30);

static void to(struct qp *qp, const struct qp_attributes *from, enum qp_state state, uint32_t mask)
{
	struct qp_attributes a = *from;
	const char *why = "";

	a.state = state;
	cr_assert_eq(qp_modify(qp, &a, mask | QP_ATTR_STATE, &why), 0, "%s", why);
}

/* Goes through RESET to RTR, connected as before, but its peer begins at this PSN. */
static void connect_again(struct end *e, uint32_t psn)
{
	struct qp_attributes a;

	qp_query(e->qp, &a);
	a.rq_psn = psn;
	to(e->qp, &a, QP_STATE_RESET, 0);
	to(e->qp, &a, QP_STATE_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
	to(e->qp, &a, QP_STATE_RTR,
	   QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
		   QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
}

static void to_rts(struct end *e)
{
	struct qp_attributes a;

	pair_attributes(&o, &a);
	to(e->qp, &a, QP_STATE_RTS,
	   QP_ATTR_TIMEOUT | QP_ATTR_SQ_PSN | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
		   QP_ATTR_MAX_RD_ATOMIC);
}

static void reconnect(void)
{
	connect_again(&pair.a, o.psn);
	connect_again(&pair.b, o.psn);
	to_rts(&pair.a);
	to_rts(&pair.b);
	pair.a.queue_head = pair.a.queue_tail;
	pair.b.queue_head = pair.b.queue_tail;
	pair.a.done_count = pair.b.done_count = 0;
	pair.a.events = pair.b.events = 0;
	pair.a.reason = pair.b.reason = REASON_NONE;
}

static void expect_write(void)
{
	pair_fill(pair.a.memory, 1000, 5);
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 1000, 0);
	pair_until(&pair, &pair.a, 1, 4);
	cr_assert_eq(pair.a.done_count, 1);
	cr_expect_eq(pair.a.done[0].status, STATUS_SUCCESS);
	cr_expect_arr_eq(pair.a.memory, pair.b.memory, 1000);
	cr_expect_eq(pair.b.reason, REASON_NONE, "%s", reason_sentence(pair.b.reason));
}

/* Half of a message came: the next connection does not wait for the rest. */
Test(reset, no_message_is_open)
{
	struct packet p = pair_packet(&pair, &pair.b, OPB_WRITE_FIRST, o.psn);
	uint8_t payload[256] = { 0 };

	p.va = PAIR_IOVA;
	p.rkey = pair.b.key;
	p.dma_length = 1000;
	p.payload = payload;
	p.payload_length = sizeof(payload);
	cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_NONE);
	reconnect();
	expect_write();
}

/* The most READs possible are under way, and never answered. */
Test(reset, no_read_is_under_way)
{
	struct packet p;
	uint32_t sent = 0;

	for (uint32_t i = 0; i < 8; i++)
		pair_post(&pair, &pair.a, WORK_RDMA_READ, WORK_SIGNALED, 0, 8, 0);
	while (pair_next(&pair, &pair.a, &p))
		sent++;
	cr_assert_eq(sent, o.max_rd_atomic);
	reconnect();
	pair_post(&pair, &pair.a, WORK_RDMA_READ, WORK_SIGNALED, 0, 8, 0);
	pair_until(&pair, &pair.a, 1, 4);
	cr_assert_eq(pair.a.done_count, 1);
	cr_expect_eq(pair.a.done[0].status, STATUS_SUCCESS);
}

#define ATOMICS 16u /* as many as there are records of */

/* A request with an old PSN is not answered again from before the reset. */
Test(reset, no_atomic_is_remembered)
{
	struct packet p, answer;
	uint64_t value;

	for (uint32_t i = 0; i < ATOMICS; i++) {
		p = pair_packet(&pair, &pair.b, OPB_FETCH_ADD, o.psn + i);
		p.va = PAIR_IOVA;
		p.rkey = pair.b.key;
		p.swap_add = 3;
		cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_NONE);
		cr_assert(pair_next(&pair, &pair.b, &answer));
	}
	connect_again(&pair.b, (o.psn + ATOMICS) & PSN_MASK);
	for (uint32_t i = 0; i < ATOMICS; i++) {
		p.psn = (o.psn + i) & PSN_MASK;
		pair_inject(&pair, &pair.b, &p);
		cr_expect_not(pair_next(&pair, &pair.b, &answer), "of the last connection: %u", i);
	}
	memcpy(&value, pair.b.memory, sizeof(value));
	cr_expect_eq(value, 3 * ATOMICS, "and nothing is added");
}

/* No event tells of what happened before. */
Test(reset, no_event_is_left)
{
	qp_fail(pair.b.qp, REASON_CLIENT_GONE);
	reconnect();
	cr_expect_eq(qp_take_events(pair.b.qp), 0);
	expect_write();
}

/* IBTA 11.6.3.1: COMM_EST is for each connection. */
Test(reset, each_connection_is_established)
{
	struct packet p = pair_packet(&pair, &pair.b, OPB_WRITE_ONLY, o.psn);
	uint8_t payload[8] = { 0 };

	p.va = PAIR_IOVA;
	p.rkey = pair.b.key;
	p.dma_length = p.payload_length = sizeof(payload);
	p.payload = payload;
	for (uint32_t i = 0; i < 3; i++) {
		connect_again(&pair.b, o.psn);
		pair.b.events = 0;
		cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_NONE);
		cr_expect_eq(pair.b.events, QP_EVENT_COMM_EST, "connection %u", i);
	}
}

/* Posted and begun work is forgotten without a completion. */
Test(reset, no_work_is_left)
{
	struct packet p;

	for (uint32_t i = 0; i < 5; i++)
		pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 3000, 0);
	for (uint32_t i = 0; i < 3; i++)
		cr_assert(pair_next(&pair, &pair.a, &p));
	reconnect();
	pair_run(&pair);
	cr_expect_eq(pair.a.done_count, 0);
	cr_expect_eq(qp_deadline(pair.a.qp), TIME_NEVER);
	expect_write();
}

/* A copy under way does not affect the next connection. */
Test(reset, no_copy_is_waited_for)
{
	pair.b.hold = true;
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 8, 0);
	pair_run(&pair);
	cr_assert_eq(pair.a.done_count, 0);
	reconnect();
	pair.b.hold = false;
	pair_settle(&pair, &pair.b, false);
	expect_write();
}
