/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_modify_qp(3). A table says which attributes a transition needs and allows (IBTA 11.2.5.2,
 * table 96). Nothing changes before the attributes and their ranges are checked.
 */
#include <assert.h>
#include <errno.h>

#include "base/bits.h"
#include "transport/copied.h"
#include "transport/requester/flight.h"
#include "transport/requester/kind.h"
#include "transport/requester/operation.h"
#include "transport/qp.h"
#include "transport/responder/behind.h"
#include "transport/responder/reply.h"
#include "transport/requester/request.h"
#include "transport/requester/retry.h"
#include "transport/transport.h"

#define A(name) QP_ATTR_##name

/* Attributes that stand together in many rows. */
#define RC_TUNABLE \
	(A(CUR_STATE) | A(ACCESS_FLAGS) | A(ALT_PATH) | A(PATH_MIG_STATE) | A(MIN_RNR_TIMER))
#define UC_TUNABLE (A(CUR_STATE) | A(ACCESS_FLAGS) | A(ALT_PATH) | A(PATH_MIG_STATE))
#define UD_TUNABLE (A(CUR_STATE) | A(QKEY))
#define UC_ROUTE   (A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN))
#define RC_ROUTE   (UC_ROUTE | A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER))
#define CONNECTED  (A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS))
#define DATAGRAM   (A(PKEY_INDEX) | A(PORT) | A(QKEY))
#define RC_SENDING (A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(SQ_PSN) | A(MAX_RD_ATOMIC))
#define RC_MOVED                                                                         \
	(A(PORT) | A(AV) | A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_RD_ATOMIC) | \
	 A(MAX_DEST_RD_ATOMIC) | A(ALT_PATH) | A(ACCESS_FLAGS) | A(PKEY_INDEX) |         \
	 A(MIN_RNR_TIMER) | A(PATH_MIG_STATE))
#define UC_MOVED (A(AV) | A(ALT_PATH) | A(ACCESS_FLAGS) | A(PKEY_INDEX) | A(PATH_MIG_STATE))
#define NOTIFY	 A(EN_SQD_ASYNC_NOTIFY)

/* XRC: the initiator has RC's attributes of a requester, the target those of a responder. */
#define TGT_SENDING (A(TIMEOUT) | A(SQ_PSN))
#define INI_MOVED   (RC_MOVED & ~(A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER)))
#define TGT_MOVED   (RC_MOVED & ~(A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_RD_ATOMIC)))

enum {
	COLUMN_RC,
	COLUMN_UC,
	COLUMN_UD,
	COLUMN_INI,
	COLUMN_TGT,
	COLUMN_RAW,
	COLUMNS
};

struct transition {
	bool legal[COLUMNS];
	uint32_t required[COLUMNS];
	uint32_t optional[COLUMNS];
};

#define ALL                                        \
	{                                          \
		true, true, true, true, true, true \
	}

#define CONNECTING (A(ALT_PATH) | A(ACCESS_FLAGS) | A(PKEY_INDEX))
#define TUNABLE                                                            \
	{                                                                  \
		RC_TUNABLE, UC_TUNABLE, UD_TUNABLE, UC_TUNABLE, RC_TUNABLE \
	}

#define RUNNING                                                                             \
	{                                                                                   \
		RC_TUNABLE | A(RATE_LIMIT), UC_TUNABLE | A(RATE_LIMIT),                     \
			UD_TUNABLE | A(RATE_LIMIT), UC_TUNABLE | A(RATE_LIMIT), RC_TUNABLE, \
			A(RATE_LIMIT)                                                       \
	}

/* One column each: RC, UC, UD, XRC initiator, XRC target, RAW_PACKET. */
static const struct transition transitions[7][7] = {
	[QP_STATE_RESET][QP_STATE_RESET] = { .legal = ALL },
	[QP_STATE_RESET][QP_STATE_INIT] = { ALL, .required = { CONNECTED, CONNECTED, DATAGRAM,
							       CONNECTED, CONNECTED, A(PORT) } },
	[QP_STATE_INIT][QP_STATE_INIT] = { ALL, .optional = { CONNECTED, CONNECTED, DATAGRAM,
							      CONNECTED, CONNECTED } },
	[QP_STATE_INIT][QP_STATE_RTR] = { ALL,
					  { RC_ROUTE, UC_ROUTE, 0, UC_ROUTE, RC_ROUTE },
					  { CONNECTING, CONNECTING, A(PKEY_INDEX) | A(QKEY),
					    CONNECTING, CONNECTING } },
	[QP_STATE_RTR][QP_STATE_RTS] = { ALL,
					 { RC_SENDING, A(SQ_PSN), A(SQ_PSN), RC_SENDING,
					   TGT_SENDING, 0 },
					 { RC_TUNABLE, UC_TUNABLE, UD_TUNABLE, UC_TUNABLE,
					   RC_TUNABLE, A(RATE_LIMIT) } },
	[QP_STATE_RTS][QP_STATE_RTS] = { ALL, .optional = RUNNING },
	[QP_STATE_RTS][QP_STATE_SQD] = { ALL,
					 .optional = { NOTIFY, NOTIFY, NOTIFY, NOTIFY, NOTIFY } },
	[QP_STATE_SQD][QP_STATE_RTS] = { ALL, .optional = TUNABLE },
	[QP_STATE_SQD][QP_STATE_SQD] = { ALL,
					 .optional = { RC_MOVED, UC_MOVED, A(PKEY_INDEX) | A(QKEY),
						       INI_MOVED, TGT_MOVED } },
	[QP_STATE_SQE][QP_STATE_RTS] = { { false, true, true, false, false, true },
					 .optional = { 0, A(CUR_STATE) | A(ACCESS_FLAGS),
						       UD_TUNABLE } },
};

/* To RESET from anywhere, to ERR from anywhere but RESET, without attributes (IBTA 10.3.1). */
static const struct transition without_attributes = { .legal = ALL };

static const struct transition *transition_of(uint32_t from, uint32_t to)
{
	if (to == QP_STATE_RESET || (to == QP_STATE_ERR && from != QP_STATE_RESET))
		return &without_attributes;
	return &transitions[from][to];
}

static bool column_of(uint32_t type, uint32_t *column)
{
	static const uint8_t columns[] = {
		[QP_TYPE_RC] = 1 + COLUMN_RC,	     [QP_TYPE_UC] = 1 + COLUMN_UC,
		[QP_TYPE_UD] = 1 + COLUMN_UD,	     [QP_TYPE_XRC_SEND] = 1 + COLUMN_INI,
		[QP_TYPE_XRC_RECV] = 1 + COLUMN_TGT, [QP_TYPE_RAW_PACKET] = 1 + COLUMN_RAW
	};

	if (type >= ARRAY_SIZE(columns) || columns[type] == 0)
		return false;
	*column = columns[type] - 1u;
	return true;
}

static const char *check_transition(const struct qp *qp, const struct qp_attributes *a,
				    uint32_t mask, uint32_t to)
{
	const struct transition *t;
	uint32_t column;

	assert(qp->state <= QP_STATE_ERR);
	if (!column_of(qp->type, &column))
		return "queue pairs of this type cannot be modified";
	if (to > QP_STATE_ERR)
		return "no such state";
	if ((mask & A(CUR_STATE)) && a->cur_state != qp->state)
		return "cur_qp_state is not the state of the queue pair";
	t = transition_of(qp->state, to);
	mask &= ~(uint32_t)A(STATE);
	if (!t->legal[column])
		return "the state cannot be reached from the present one";
	if ((mask & t->required[column]) != t->required[column])
		return "an attribute that this transition requires is missing";
	if ((mask & ~(t->required[column] | t->optional[column])) != 0)
		return "an attribute does not belong to this transition";
	if (qp->state == QP_STATE_SQD && !qp_drained(qp) && to != QP_STATE_ERR &&
	    to != QP_STATE_RESET)
		return "the send queue is still draining";
	if (qp->state == QP_STATE_SQE && to == QP_STATE_RTS && qp->req.una != qp->req.tail)
		return "the send queue is still being flushed";
	return NULL;
}

/* One row for each attribute: its largest value, and its smallest if that is not 0. */
static const char *check_values(const struct qp *qp, const struct qp_attributes *a, uint32_t mask)
{
	const struct qp_caps *caps = &qp->caps;
	const struct {
		uint32_t attribute, value, least, most;
		const char *why;
	} range[] = {
		{ A(PKEY_INDEX), a->pkey_index, 0, LIMIT_PKEYS - 1, "pkey_index is out of range" },
		{ A(PORT), a->port_num, 1, 1, "there is no such port" },
		{ A(AV), a->path.port_num, 1, 1, "the address vector names no port" },
		{ A(AV), a->path.is_global, 1, 1, "RoCE needs a GRH: is_global is 0" },
		{ A(AV), a->path.sgid_index, 0, LIMIT_GIDS - 1, "sgid_index is out of range" },
		{ A(PATH_MTU), a->path_mtu, 1, caps->port_mtu, "path_mtu exceeds the port's MTU" },
		{ A(TIMEOUT), a->timeout, 0, 31, "timeout is over 31" },
		{ A(RETRY_CNT), a->retry_cnt, 0, 7, "retry_cnt is over 7" },
		{ A(RNR_RETRY), a->rnr_retry, 0, 7, "rnr_retry is over 7" },
		{ A(MIN_RNR_TIMER), a->min_rnr_timer, 0, 31, "min_rnr_timer is over 31" },
		{ A(MAX_RD_ATOMIC), a->max_rd_atomic, 0, caps->max_rd_atomic,
		  "max_rd_atomic exceeds the device's limit" },
		{ A(MAX_DEST_RD_ATOMIC), a->max_dest_rd_atomic, 0, caps->max_rd_atomic,
		  "max_dest_rd_atomic exceeds the device's limit" },
		{ A(MAX_DEST_RD_ATOMIC), a->max_dest_rd_atomic, 0, qp->resp.records,
		  "max_dest_rd_atomic has no memory" },
		{ A(DEST_QPN), a->dest_qpn, 0, PSN_MASK, "dest_qp_num has more than 24 bits" },
		{ A(PATH_MIG_STATE), a->path_mig_state, 0, 0, "path migration is not supported" },
		{ A(ALT_PATH), 1, 0, 0, "alternate paths are not supported" },
		{ A(RATE_LIMIT), a->rate_limit, 0, LIMIT_RATE, "rate_limit exceeds the device's" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(range); i++) {
		if ((mask & range[i].attribute) &&
		    (range[i].value < range[i].least || range[i].value > range[i].most))
			return range[i].why;
	}
	return NULL;
}

static void store_attributes(struct qp_attributes *to, const struct qp_attributes *a, uint32_t mask)
{
#define STORE(ATTRIBUTE, field)  \
	if (mask & A(ATTRIBUTE)) \
		to->field = a->field;
	STORE(ACCESS_FLAGS, access_flags)
	STORE(PKEY_INDEX, pkey_index)
	STORE(PORT, port_num)
	STORE(QKEY, qkey)
	STORE(AV, path)
	STORE(PATH_MTU, path_mtu)
	STORE(TIMEOUT, timeout)
	STORE(RETRY_CNT, retry_cnt)
	STORE(RNR_RETRY, rnr_retry)
	STORE(RQ_PSN, rq_psn)
	STORE(MAX_RD_ATOMIC, max_rd_atomic)
	STORE(MIN_RNR_TIMER, min_rnr_timer)
	STORE(SQ_PSN, sq_psn)
	STORE(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic)
	STORE(PATH_MIG_STATE, path_mig_state)
	STORE(DEST_QPN, dest_qpn)
	STORE(EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify)
	STORE(RATE_LIMIT, rate_limit)
#undef STORE
}

/* ibv_mtu 1 is 256 octets. The path of a datagram is not known, so the port's limit counts. */
static uint8_t mtu_shift_of(const struct qp *qp)
{
	uint32_t mtu = qp->type == QP_TYPE_UD ? qp->caps.port_mtu : qp->attr.path_mtu;

	return (uint8_t)(7 + (mtu == 0 ? 1 : mtu));
}

/* Derives what the data path reads from the attributes. */
static void apply_attributes(struct qp *qp)
{
	const struct qp_attributes *a = &qp->attr;

	qp->mtu_shift = mtu_shift_of(qp);
	qp->mtu = 1u << qp->mtu_shift;
	assert(qp->mtu >= 256 && qp->mtu <= 4096 && "check_values, and the port's own");
	rate_set(&qp->req.rate, a->rate_limit,
		 qp->type == QP_TYPE_RAW_PACKET ? qp->caps.max_frame : qp->mtu);
	qp->req.paced_until = TIME_NEVER; /* it is asked again */
	qp->dest_qpn = a->dest_qpn;
	qp->min_rnr_timer = a->min_rnr_timer;
	qp->resp.remembered = a->max_dest_rd_atomic;
	assert(qp->resp.remembered <= qp->resp.records && "check_values");
	qp->resp.access = a->access_flags;
	qp->req.timeout = a->timeout == 0 ? TIME_NEVER : UINT64_C(4096) << a->timeout;
}

/* Retries are counted down: setting another attribute must not restore them during an outage. */
static void apply_counts(struct qp *qp, uint32_t mask)
{
	if (mask & A(RETRY_CNT))
		qp->req.retries = qp->attr.retry_cnt;
	if (mask & A(RNR_RETRY))
		qp->req.rnr_retries = qp->attr.rnr_retry;
}

/* RESET forgets the work of both queues; none of it completes (IBTA 10.3.1). */
static void reset(struct qp *qp)
{
	struct requester *r = &qp->req;
	struct responder *s = &qp->resp;

	tickets_abandon(qp);
	operation_abandon(qp);
	qp->receives.taken = qp->receives.done;
	r->retired = r->una = r->nxt = r->begun = r->tail;
	r->own_retired = r->own_posted;
	r->rd_atomic = 0;
	r->more_parts = 0;
	r->failed = false;
	r->flush_reason = REASON_FLUSHED;
	r->drain_notify = false;
	flight_release(qp);
	flight_over(qp);
	retry_reset(qp);
	s->open = KIND_UNDEFINED;
	s->kept = false;
	s->msn = 0;
	s->reported = false;
	s->cnp_at = 0;
	s->nak_at = TIME_NEVER;
	s->selection_due = false;
	behind_reset(s);
	s->record_head = s->record_owed = 0;
	reply_abandon(&qp->resp);
	if (s->records > 0)
		memset(s->record, 0, s->records * sizeof(*s->record));
	memset(&qp->attr, 0, sizeof(qp->attr));
	r->retries = r->rnr_retries = 0;
	qp->events = 0;
	qp->last_wqe_due = false;
	qp->established = false;
	qp->selective = false;
}

static void enter_state(struct qp *qp, uint32_t from, uint32_t to)
{
	struct requester *r = &qp->req;

	assert(to <= QP_STATE_ERR && "check_transition");
	qp->state = (uint8_t)to;
	if (from == QP_STATE_INIT && to == QP_STATE_RTR) {
		qp->resp.expected_psn = qp->attr.rq_psn & PSN_MASK;
		qp->resp.acked_psn = psn_add(qp->resp.expected_psn, PSN_MASK);
		qp->resp.ahead_psn = qp->resp.acked_psn;
	} else if (from == QP_STATE_RTR && to == QP_STATE_RTS) {
		r->una_psn = r->nxt_psn = r->top_psn = r->new_psn = qp->attr.sq_psn & PSN_MASK;
	} else if (from == QP_STATE_RTS && to == QP_STATE_SQD) {
		r->drain_notify = qp->attr.en_sqd_async_notify;
		request_drained(qp);
		request_ask(qp);
	}
	request_fail_in_turn(qp);
}

void qp_port_carries(struct qp *qp, uint32_t port_mtu, uint32_t max_frame)
{
	assert(port_mtu >= 1 && port_mtu <= 5);
	if (qp->state > QP_STATE_INIT)
		return;
	qp->caps.port_mtu = (uint16_t)port_mtu;
	qp->caps.max_frame = max_frame;
}

int qp_modify(struct qp *qp, const struct qp_attributes *a, uint32_t mask, const char **why)
{
	uint32_t from = qp->state, to = mask & A(STATE) ? a->state : from;
	const char *wrong = check_transition(qp, a, mask, to);

	if (wrong == NULL)
		wrong = check_values(qp, a, mask);
	if (why != NULL)
		*why = wrong;
	if (wrong != NULL)
		return EINVAL;
	if (to == QP_STATE_ERR) {
		tickets_abandon(qp);
		enter_error(qp);
		reply_abandon(&qp->resp);
		return 0;
	}
	if (to == QP_STATE_RESET)
		reset(qp);
	if (from == QP_STATE_RTS && to == QP_STATE_SQD && !(mask & NOTIFY))
		qp->attr.en_sqd_async_notify = 0;
	store_attributes(&qp->attr, a, mask);
	apply_attributes(qp);
	apply_counts(qp, mask);
	enter_state(qp, from, to);
	return 0;
}

const struct qp_path *qp_address_vector(const struct qp *qp)
{
	return &qp->attr.path;
}

void qp_query(const struct qp *qp, struct qp_attributes *a)
{
	*a = qp->attr;
	a->state = qp->state;
	a->cur_state = qp->state;
	a->sq_draining = qp->state == QP_STATE_SQD && !qp_drained(qp);
	/* Once a direction runs, its next PSN (as Linux rxe reports it). */
	if (qp->state >= QP_STATE_RTR)
		a->rq_psn = qp->resp.expected_psn;
	if (qp->state >= QP_STATE_RTS)
		a->sq_psn = qp->req.nxt_psn;
}
