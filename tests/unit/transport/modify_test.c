/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_modify_qp(3) against IBTA 11.2.5.2, written down a second time: every state, every target,
 * every single attribute added to or taken from what the transition needs; and after each refusal
 * the whole queue pair is compared octet by octet.
 */
#include <errno.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "pair.h"

#define A(name) QP_ATTR_##name
#define PKEY	A(PKEY_INDEX)

/* All attributes, one bit each (except STATE). */
static const uint32_t every[] = {
	A(CUR_STATE),
	A(EN_SQD_ASYNC_NOTIFY),
	A(ACCESS_FLAGS),
	PKEY,
	A(PORT),
	A(QKEY),
	A(AV),
	A(PATH_MTU),
	A(TIMEOUT),
	A(RETRY_CNT),
	A(RNR_RETRY),
	A(RQ_PSN),
	A(MAX_RD_ATOMIC),
	A(ALT_PATH),
	A(MIN_RNR_TIMER),
	A(SQ_PSN),
	A(MAX_DEST_RD_ATOMIC),
	A(PATH_MIG_STATE),
	A(CAP),
	A(DEST_QPN),
	A(RATE_LIMIT),
	1u << 30,
};

struct row {
	uint32_t type, from, to, required, optional;
};

#define RESET QP_STATE_RESET
#define INIT  QP_STATE_INIT
#define RTR   QP_STATE_RTR
#define RTS   QP_STATE_RTS
#define SQD   QP_STATE_SQD
#define SQE   QP_STATE_SQE
#define ERR   QP_STATE_ERR
#define RC    QP_TYPE_RC
#define UC    QP_TYPE_UC
#define UD    QP_TYPE_UD
#define INI   QP_TYPE_XRC_SEND
#define TGT   QP_TYPE_XRC_RECV
#define RAW   QP_TYPE_RAW_PACKET

/* ALT_PATH belongs to some transitions, but is refused as unsupported: it is left out. */
static const struct row rows[] = {
	{ RC, RESET, INIT, PKEY | A(PORT) | A(ACCESS_FLAGS), 0 },
	{ UC, RESET, INIT, PKEY | A(PORT) | A(ACCESS_FLAGS), 0 },
	{ UD, RESET, INIT, PKEY | A(PORT) | A(QKEY), 0 },
	{ RC, INIT, INIT, 0, PKEY | A(PORT) | A(ACCESS_FLAGS) },
	{ UC, INIT, INIT, 0, PKEY | A(PORT) | A(ACCESS_FLAGS) },
	{ UD, INIT, INIT, 0, PKEY | A(PORT) | A(QKEY) },
	{ RC, INIT, RTR,
	  A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN) | A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER),
	  A(ACCESS_FLAGS) | PKEY },
	{ UC, INIT, RTR, A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN), A(ACCESS_FLAGS) | PKEY },
	{ UD, INIT, RTR, 0, PKEY | A(QKEY) },
	{ RC, RTR, RTS, A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(SQ_PSN) | A(MAX_RD_ATOMIC),
	  A(CUR_STATE) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE) | A(MIN_RNR_TIMER) },
	{ UC, RTR, RTS, A(SQ_PSN), A(CUR_STATE) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE) },
	{ UD, RTR, RTS, A(SQ_PSN), A(CUR_STATE) | A(QKEY) },
	{ RC, RTS, RTS, 0,
	  A(CUR_STATE) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE) | A(MIN_RNR_TIMER) | A(RATE_LIMIT) },
	{ UC, RTS, RTS, 0, A(CUR_STATE) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE) | A(RATE_LIMIT) },
	{ UD, RTS, RTS, 0, A(CUR_STATE) | A(QKEY) | A(RATE_LIMIT) },
	{ RC, RTS, SQD, 0, A(EN_SQD_ASYNC_NOTIFY) },
	{ UC, RTS, SQD, 0, A(EN_SQD_ASYNC_NOTIFY) },
	{ UD, RTS, SQD, 0, A(EN_SQD_ASYNC_NOTIFY) },
	{ RC, SQD, RTS, 0, A(CUR_STATE) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE) | A(MIN_RNR_TIMER) },
	{ UC, SQD, RTS, 0, A(CUR_STATE) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE) },
	{ UD, SQD, RTS, 0, A(CUR_STATE) | A(QKEY) },
	{ RC, SQD, SQD, 0,
	  A(PORT) | A(AV) | A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_RD_ATOMIC) |
		  A(MAX_DEST_RD_ATOMIC) | A(ACCESS_FLAGS) | PKEY | A(MIN_RNR_TIMER) |
		  A(PATH_MIG_STATE) },
	{ UC, SQD, SQD, 0, A(AV) | A(ACCESS_FLAGS) | PKEY | A(PATH_MIG_STATE) },
	{ UD, SQD, SQD, 0, PKEY | A(QKEY) },
	{ INI, RESET, INIT, PKEY | A(PORT) | A(ACCESS_FLAGS), 0 },
	{ TGT, RESET, INIT, PKEY | A(PORT) | A(ACCESS_FLAGS), 0 },
	{ INI, INIT, INIT, 0, PKEY | A(PORT) | A(ACCESS_FLAGS) },
	{ TGT, INIT, INIT, 0, PKEY | A(PORT) | A(ACCESS_FLAGS) },
	{ INI, INIT, RTR, A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN), A(ACCESS_FLAGS) | PKEY },
	{ TGT, INIT, RTR,
	  A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN) | A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER),
	  A(ACCESS_FLAGS) | PKEY },
	{ INI, RTR, RTS, A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(SQ_PSN) | A(MAX_RD_ATOMIC),
	  A(CUR_STATE) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE) },
	{ TGT, RTR, RTS, A(TIMEOUT) | A(SQ_PSN),
	  A(CUR_STATE) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE) | A(MIN_RNR_TIMER) },
	{ INI, RTS, RTS, 0, A(CUR_STATE) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE) | A(RATE_LIMIT) },
	{ TGT, RTS, RTS, 0, A(CUR_STATE) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE) | A(MIN_RNR_TIMER) },
	{ INI, RTS, SQD, 0, A(EN_SQD_ASYNC_NOTIFY) },
	{ TGT, RTS, SQD, 0, A(EN_SQD_ASYNC_NOTIFY) },
	{ INI, SQD, RTS, 0, A(CUR_STATE) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE) },
	{ TGT, SQD, RTS, 0, A(CUR_STATE) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE) | A(MIN_RNR_TIMER) },
	{ INI, SQD, SQD, 0,
	  A(PORT) | A(AV) | A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_RD_ATOMIC) |
		  A(ACCESS_FLAGS) | PKEY | A(PATH_MIG_STATE) },
	{ TGT, SQD, SQD, 0,
	  A(PORT) | A(AV) | A(TIMEOUT) | A(MAX_DEST_RD_ATOMIC) | A(ACCESS_FLAGS) | PKEY |
		  A(MIN_RNR_TIMER) | A(PATH_MIG_STATE) },
	{ UC, SQE, RTS, 0, A(CUR_STATE) | A(ACCESS_FLAGS) },
	{ UD, SQE, RTS, 0, A(CUR_STATE) | A(QKEY) },
	{ RAW, RESET, INIT, A(PORT), 0 },
	{ RAW, INIT, INIT, 0, 0 },
	{ RAW, INIT, RTR, 0, 0 },
	{ RAW, RTR, RTS, 0, A(RATE_LIMIT) },
	{ RAW, RTS, RTS, 0, A(RATE_LIMIT) },
	{ RAW, RTS, SQD, 0, 0 },
	{ RAW, SQD, RTS, 0, 0 },
	{ RAW, SQD, SQD, 0, 0 },
	{ RAW, SQE, RTS, 0, 0 },
};

static const struct row *row_of(uint32_t type, uint32_t from, uint32_t to)
{
	static struct row any;

	if (to == RESET || (to == ERR && from != RESET)) {
		any = (struct row){ type, from, to, 0, 0 };
		return &any;
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].type == type && rows[i].from == from && rows[i].to == to)
			return &rows[i];
	return NULL;
}

static void *memory, *image;
static size_t octets;

static struct qp *fresh(uint32_t type, uint32_t state)
{
	struct qp_caps caps = { .type = type,
				.qpn = 5,
				.pd = 1,
				.max_send_wr = 4,
				.max_send_sge = 2,
				.max_recv_sge = 2,
				.max_rd_atomic = 16,
				.port_mtu = 4 };
	struct qp *qp;

	octets = qp_memory_size(&caps);
	free(memory);
	free(image);
	memory = aligned_alloc(64, octets);
	image = malloc(octets);
	memset(memory, 0, octets);
	qp = qp_init(memory, &caps);
	qp->state = (uint8_t)state;
	return qp;
}

static struct qp_attributes good(uint32_t from, uint32_t to)
{
	struct pair_options o = pair_options();
	struct qp_attributes a;

	pair_attributes(&o, &a);
	a.state = to;
	a.cur_state = from;
	a.dest_qpn = 0x123456;
	a.qkey = 0x11111111;
	return a;
}

/* One call; checks what may and may not have changed. */
static void try(uint32_t type, uint32_t from, uint32_t to, uint32_t mask,
		const struct qp_attributes *a, bool legal)
{
	struct qp *qp = fresh(type, from);
	const char *why = "untouched";
	int ret;

	memcpy(image, memory, octets);
	ret = qp_modify(qp, a, mask, &why);
	if (legal) {
		cr_expect_eq(ret, 0, "type %u, %u to %u, mask %#x: %s", type, from, to, mask, why);
		cr_expect_eq(qp_state(qp), to);
		cr_expect_null(why);
	} else {
		cr_expect_eq(ret, EINVAL, "type %u, %u to %u, mask %#x", type, from, to, mask);
		cr_expect_eq(memcmp(image, memory, octets), 0, "type %u, %u to %u, mask %#x", type,
			     from, to, mask);
		cr_expect(ret != EINVAL || (why != NULL && why[0] != '\0'));
	}
}

static void try_transition(uint32_t type, uint32_t from, uint32_t to)
{
	const struct row *r = row_of(type, from, to);
	struct qp_attributes a = good(from, to);
	uint32_t base = A(STATE) | (r != NULL ? r->required : 0);

	try(type, from, to, base, &a, r != NULL);
	for (uint32_t i = 0; i < ARRAY_SIZE(every); i++) {
		bool belongs = r != NULL && ((r->required | r->optional) & every[i]);
		bool needed = r != NULL && (r->required & every[i]);

		try(type, from, to, base | every[i], &a, belongs);
		try(type, from, to, base & ~every[i], &a, r != NULL && !needed);
	}
	if (r != NULL)
		try(type, from, to, base | r->optional, &a, true);
}

TestSuite(modify, .timeout = 60);

/* hostile H-105: another number of records; H-106: any mask, state and value. */
Test(modify, every_transition_and_attribute)
{
	static const uint32_t types[] = { RC, UC, UD, INI, TGT, RAW };

	for (uint32_t t = 0; t < ARRAY_SIZE(types); t++)
		for (uint32_t from = RESET; from <= ERR; from++)
			for (uint32_t to = RESET; to <= ERR + 1; to++)
				try_transition(types[t], from, to);
}

/* Without STATE in the mask the queue pair stays in its state, if the table has such a transition.
 */
Test(modify, without_a_state)
{
	for (uint32_t from = RESET; from <= ERR; from++) {
		struct qp_attributes a = good(from, 99);

		try(RC, from, from, 0, &a, row_of(RC, from, from) != NULL);
	}
}

/* hostile H-106: any mask, state and value. */
Test(modify, ranges)
{
	struct qp_attributes a;

#define RANGE(FROM, TO, field, last_good, first_bad)                       \
	do {                                                               \
		uint32_t mask = A(STATE) | row_of(RC, FROM, TO)->required; \
		a = good(FROM, TO);                                        \
		a.field = last_good;                                       \
		try(RC, FROM, TO, mask, &a, true);                         \
		a.field = first_bad;                                       \
		try(RC, FROM, TO, mask, &a, false);                        \
	} while (0)

	RANGE(RESET, INIT, port_num, 1, 2);
	RANGE(RESET, INIT, port_num, 1, 0);
	RANGE(RESET, INIT, pkey_index, 0, 1);
	RANGE(INIT, RTR, path_mtu, 4, 5); /* the port carries 2048 */
	RANGE(INIT, RTR, path_mtu, 1, 0);
	RANGE(INIT, RTR, min_rnr_timer, 31, 32);
	RANGE(INIT, RTR, max_dest_rd_atomic, 16, 17);
	RANGE(INIT, RTR, dest_qpn, 0xffffff, 0x1000000);
	RANGE(INIT, RTR, path.is_global, 1, 0);
	RANGE(INIT, RTR, path.port_num, 1, 2);
	RANGE(INIT, RTR, path.sgid_index, LIMIT_GIDS - 1, LIMIT_GIDS);
	RANGE(RTR, RTS, timeout, 31, 32);
	RANGE(RTR, RTS, retry_cnt, 7, 8);
	RANGE(RTR, RTS, rnr_retry, 7, 8);
	RANGE(RTR, RTS, max_rd_atomic, 16, 17);
#undef RANGE
	a = good(RTS, RTS);
	a.cur_state = SQD;
	try(RC, RTS, RTS, A(STATE) | A(CUR_STATE), &a, false);
	a = good(RTS, RTS);
	a.path_mig_state = 1;
	try(RC, RTS, RTS, A(STATE) | A(PATH_MIG_STATE), &a, false);
	a = good(INIT, RTR);
	try(RC, INIT, RTR, A(STATE) | row_of(RC, INIT, RTR)->required | A(ALT_PATH), &a, false);
}

Test(modify, query_returns_what_was_set)
{
	struct pair_options o = pair_options();
	struct qp_attributes a;
	static struct pair pair;

	o.psn = 0x1fffffe; /* the low 24 bits count */
	pair_init(&pair, &o);
	qp_query(pair.a.qp, &a);
	cr_assert_eq(a.state, QP_STATE_RTS);
	cr_assert_eq(a.cur_state, QP_STATE_RTS);
	cr_assert_eq(a.path_mtu, o.mtu);
	cr_assert_eq(a.timeout, o.timeout);
	cr_assert_eq(a.retry_cnt, 7);
	cr_assert_eq(a.rnr_retry, 7);
	cr_assert_eq(a.min_rnr_timer, 12);
	cr_assert_eq(a.max_rd_atomic, 4);
	cr_assert_eq(a.max_dest_rd_atomic, 4);
	cr_assert_eq(a.dest_qpn, 0x12);
	cr_assert_eq(a.access_flags, o.access);
	cr_assert_eq(a.sq_psn, 0xfffffe);
	cr_assert_eq(a.rq_psn, 0xfffffe);
	cr_assert_eq(a.path.dgid.octet[15], 2);
	cr_assert_eq(a.path.hop_limit, 64);
	cr_assert_eq(a.sq_draining, 0);
	pair_close(&pair);
}

/* SQD: begun requests finish, no others begin, SQ_DRAINED comes once; then back to RTS. */
Test(modify, send_queue_drains)
{
	struct pair_options o = pair_options();
	struct qp_attributes a = { .state = SQD, .en_sqd_async_notify = 1 };
	static struct pair pair;
	struct packet first;

	pair_init(&pair, &o);
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 3000, 0);
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 8, 0);
	cr_assert(pair_next(&pair, &pair.a, &first)); /* lost: the first of three packets */
	cr_assert_eq(qp_modify(pair.a.qp, &a, A(STATE) | A(EN_SQD_ASYNC_NOTIFY), NULL), 0);
	qp_query(pair.a.qp, &a);
	cr_assert_eq(a.sq_draining, 1);
	a.state = RTS;
	cr_assert_eq(qp_modify(pair.a.qp, &a, A(STATE), NULL), EINVAL, "still draining");
	pair_run(&pair);
	cr_assert_eq(pair.a.done_count, 1, "the second request waits");
	cr_assert_eq(pair.a.events, QP_EVENT_SQ_DRAINED);
	qp_query(pair.a.qp, &a);
	cr_assert_eq(a.sq_draining, 0);
	pair.a.events = 0;
	pair_run(&pair);
	cr_assert_eq(pair.a.events, 0, "once");
	a.state = RTS;
	cr_assert_eq(qp_modify(pair.a.qp, &a, A(STATE), NULL), 0);
	pair_run(&pair);
	cr_assert_eq(pair.a.done_count, 2);
	pair_close(&pair);
}

Test(modify, drained_at_once_when_idle)
{
	struct pair_options o = pair_options();
	struct qp_attributes a = { .state = SQD, .en_sqd_async_notify = 1 };
	static struct pair pair;

	pair_init(&pair, &o);
	cr_assert_eq(qp_modify(pair.a.qp, &a, A(STATE) | A(EN_SQD_ASYNC_NOTIFY), NULL), 0);
	cr_assert_eq(qp_take_events(pair.a.qp), QP_EVENT_SQ_DRAINED);
	a.state = RTS;
	cr_assert_eq(qp_modify(pair.a.qp, &a, A(STATE), NULL), 0);
	a.state = SQD;
	cr_assert_eq(qp_modify(pair.a.qp, &a, A(STATE), NULL), 0);
	cr_assert_eq(qp_take_events(pair.a.qp), 0, "not asked for");
	pair_close(&pair);
}
