/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester's receiving half. Every response acknowledges all requests before it, but only its
 * own response completes a READ or atomic. A later response that arrives first shows that this one
 * was overtaken or lost ("implied NAK", IBTA 9.7.5.1.2).
 */
#include <assert.h>

#include "base/bits.h"
#include "memory/spans.h"
#include "transport/requester/answer.h"
#include "transport/requester/flight.h"
#include "transport/requester/kind.h"
#include "transport/requester/overtaken.h"
#include "transport/qp.h"
#include "transport/requester/parts.h"
#include "transport/requester/recovery.h"
#include "transport/requester/request.h"
#include "transport/requester/retry.h"
#include "transport/requester/sample.h"

/* Something was acknowledged since una_psn was `from`. */
static void progress(struct qp *qp, uint32_t from, nanotime now)
{
	struct requester *r = &qp->req;

	assert(!psn_after(r->una_psn, r->top_psn) && "only what was sent is acknowledged");
	sample_acknowledged(qp, now);
	recovery_advanced(qp, from, now);
	/* The acknowledged packets may be ahead of a cursor that went back. */
	if (psn_after(r->una_psn, r->nxt_psn))
		request_resume(qp);
	retry_progress(qp, now);
	request_fail_in_turn(qp);
	request_drained(qp);
}

/*
 * Acknowledges everything before `end`. False: it stopped at a READ or atomic without its data.
 * That response was overtaken or lost ("implied NAK", IBTA 9.7.5.1.2), as was all that was sent
 * before the packet with PSN `by`.
 */
static bool acknowledge_before(struct qp *qp, uint32_t end, uint32_t by, nanotime now)
{
	struct requester *r = &qp->req;
	uint32_t from = r->una_psn, ahead = (end - from) & PSN_MASK;

	while (ahead > 0 && r->una != r->begun) {
		const struct message *m = message_at(r, r->una);
		uint32_t left = (message_end(m) - r->una_psn) & PSN_MASK, n = MIN_OF(left, ahead);

		if (kind_is_fetching(m->kind))
			break;
		r->una_psn = psn_add(r->una_psn, n);
		r->una += n == left;
		ahead -= n;
	}
	assert((int32_t)(r->begun - r->una) >= 0 && "what was not begun is not acknowledged");
	if (r->una_psn != from)
		progress(qp, from, now);
	if (ahead > 0)
		recovery_stopped(qp, end, by, now);
	return ahead == 0;
}

/* NAK codes (IBTA table 46): what the offending request completes with. */
static const struct {
	uint8_t status; /* enum work_status; 0: the code is not fatal */
	uint8_t reason;
} nak_meaning[] = {
	[SYNDROME_NAK_SEQUENCE & 31] = { 0, REASON_NAK_SEQUENCE },
	[SYNDROME_NAK_INVALID_REQUEST & 31] = { STATUS_REM_INV_REQ_ERR,
						REASON_NAK_INVALID_REQUEST },
	[SYNDROME_NAK_REMOTE_ACCESS & 31] = { STATUS_REM_ACCESS_ERR, REASON_NAK_REMOTE_ACCESS },
	[SYNDROME_NAK_REMOTE_OPERATION & 31] = { STATUS_REM_OP_ERR, REASON_NAK_REMOTE_OPERATION },
};

static enum reason nak_received(struct qp *qp, const struct packet *p, nanotime now)
{
	uint8_t code = p->syndrome & 31;

	if (code >= ARRAY_SIZE(nak_meaning))
		return REASON_SYNDROME_RESERVED;
	if (!acknowledge_before(qp, p->psn, p->psn, now))
		return REASON_ACK_IMPLIED_NAK;
	if (nak_meaning[code].status == 0)
		retry_gap(qp, now);
	else
		request_failed(qp, qp->req.una, nak_meaning[code].status, nak_meaning[code].reason);
	return nak_meaning[code].reason;
}

static enum reason ack_received(struct qp *qp, const struct packet *p, nanotime now)
{
	switch (p->syndrome & SYNDROME_CLASS) {
	case SYNDROME_ACK: /* the credit count in its low bits is not used */
		return acknowledge_before(qp, psn_add(p->psn, 1), psn_add(p->psn, 1), now)
			       ? REASON_NONE
			       : REASON_ACK_IMPLIED_NAK;
	case SYNDROME_RNR:
		if (!acknowledge_before(qp, p->psn, p->psn, now))
			return REASON_ACK_IMPLIED_NAK;
		retry_not_ready(qp, p->syndrome & 31, now);
		return REASON_NAK_RNR;
	case SYNDROME_NAK_SEQUENCE:
		return nak_received(qp, p, now);
	default:
		return REASON_SYNDROME_RESERVED;
	}
}

static enum reason bad_response(struct qp *qp, enum reason why)
{
	request_failed(qp, qp->req.una, STATUS_BAD_RESP_ERR, why);
	return why;
}

static enum reason no_memory(struct qp *qp, enum reason why)
{
	request_failed(qp, qp->req.una, STATUS_LOC_PROT_ERR, why);
	return why;
}

/* Places the data of a response in the elements of request i, from `offset` on. */
static enum reason land(struct qp *qp, const struct key_table *keys, uint32_t i, uint32_t psn,
			uint32_t offset, uint32_t length, struct outcome *out)
{
	struct requester *r = &qp->req;
	const struct send_work *w = request_at(r, i);
	enum reason why;

	if (length == 0)
		return REASON_NONE;
	assert(range_inside(offset, length, message_at(r, i)->length) &&
	       "the checks of a response bound it");
	if (key_one_span_of_list(keys, send_work_sge(w), w->num_sge, qp->user, ACCESS_LOCAL_WRITE,
				 offset, length, &out->place))
		why = REASON_NONE;
	else
		why = key_spans_of_list(keys, send_work_sge(w), w->num_sge, qp->user,
					ACCESS_LOCAL_WRITE, offset, length, &out->place);
	if (why != REASON_NONE) {
		span_list_clear(&out->place);
		return why;
	}
	out->flags = OUTCOME_PLACE;
	out->ticket = ticket_issue(&qp->tickets, TICKET_LANDING, psn, qp->resp.msn, i);
	message_at(r, i)->ticket = (uint32_t)out->ticket;
	r->landing = out->ticket;
	return REASON_NONE;
}

/* The oldest message is a READ or atomic; so many of its responses have come, in order. */
static void responses_passed(struct requester *r, uint32_t n)
{
	const struct message *m = message_at(r, r->una);
	uint32_t done = (r->una_psn - m->first_psn) & PSN_MASK;

	parts_passed(r, m, done, done + n);
	r->una_psn = psn_add(r->una_psn, n);
	if (r->una_psn == message_end(m)) {
		r->una++;
		r->rd_atomic--;
	}
}

/*
 * The gap before responses that are in their places already has closed: they are acknowledged together. True:
 * there were some.
 */
static bool pass_placed(struct qp *qp, nanotime now)
{
	struct requester *r = &qp->req;
	const struct message *m = message_at(r, r->una);
	uint32_t from = r->una_psn,
		 left = MIN_OF((message_end(m) - from) & PSN_MASK, on_its_way(r)), n;

	if (m->kind != KIND_READ_REQUEST || m->fault != REASON_NONE)
		return false;
	n = psn_set_gap(board_set(&r->board, BOARD_HELD), from, left);
	if (n == 0)
		return false;
	responses_passed(r, n);
	progress(qp, from, now);
	return true;
}

/* What had come before the response that was missing: acknowledgements, and responses in their places. */
static void answered_before(struct qp *qp, nanotime now)
{
	struct requester *r = &qp->req;

	while (!r->board.clean && qp->state != QP_STATE_ERR && r->una != r->begun) {
		if (kind_is_fetching(message_at(r, r->una)->kind)) {
			if (!pass_placed(qp, now))
				return;
		} else if (psn_after(r->board.acked, r->una_psn)) {
			acknowledge_before(qp, r->board.acked, r->board.acked, now);
		} else {
			return;
		}
	}
}

/* The oldest unacknowledged PSN (of a READ or atomic) has its response. */
static void answered(struct qp *qp, nanotime now)
{
	struct requester *r = &qp->req;
	uint32_t from = r->una_psn;

	assert(r->una != r->begun && r->rd_atomic > 0 && "a READ or atomic is outstanding");
	responses_passed(r, 1);
	progress(qp, from, now);
	answered_before(qp, now);
}

/*
 * A response has its place in the part of the READ that was asked for. A peer may answer a
 * repetition as a new request (FIRST), go on where it was (MIDDLE), or end a part with a LAST of
 * its own: all are accepted (protocol-map 90).
 */
static enum reason check_read_response(const struct qp *qp, const struct message *m,
				       const struct packet *p, uint32_t done)
{
	uint32_t rest = m->length - (done << qp->mtu_shift);
	bool is_first = opcode_is(p->opcode, OP_FIRST), is_last = opcode_is(p->opcode, OP_LAST);
	struct part part = part_of(m, done);

	if (is_last != (done + 1 == part.end) && !(is_last && m->asked_again))
		return REASON_RESPONSE_OPCODE;
	if (is_first != (done == part.begin) && !m->asked_again)
		return REASON_RESPONSE_OPCODE;
	return p->payload_length == MIN_OF(rest, qp->mtu) ? REASON_NONE : REASON_RESPONSE_LENGTH;
}

/* A READ response without data acknowledges an ATOMIC WRITE or a FLUSH. */
static enum reason check_empty_response(const struct packet *p)
{
	if (p->opcode != OPCODE(SERVICE_RC, OPB_READ_RESPONSE_ONLY))
		return REASON_RESPONSE_OPCODE;
	return p->payload_length == 0 ? REASON_NONE : REASON_RESPONSE_LENGTH;
}

static enum reason read_response_received(struct qp *qp, const struct packet *p,
					  const struct key_table *keys, nanotime now,
					  struct outcome *out)
{
	const struct message *m = message_at(&qp->req, qp->req.una);
	uint32_t done = (p->psn - m->first_psn) & PSN_MASK;
	enum reason why;

	if (!kind_is_fetching(m->kind) || kind_is_atomic(m->kind))
		return bad_response(qp, REASON_RESPONSE_OPCODE);
	why = m->kind == KIND_READ_REQUEST ? check_read_response(qp, m, p, done)
					   : check_empty_response(p);
	if (why != REASON_NONE)
		return bad_response(qp, why);
	why = land(qp, keys, qp->req.una, p->psn, done << qp->mtu_shift, p->payload_length, out);
	if (why != REASON_NONE)
		return no_memory(qp, why);
	out->source = p->payload;
	if (!opcode_is(p->opcode, OP_LAST))
		overtaken_first_response(qp, p->psn, now);
	answered(qp, now);
	return REASON_NONE;
}

static enum reason atomic_ack_received(struct qp *qp, const struct packet *p,
				       const struct key_table *keys, nanotime now,
				       struct outcome *out)
{
	enum reason why;

	if (!kind_is_atomic(message_at(&qp->req, qp->req.una)->kind))
		return bad_response(qp, REASON_RESPONSE_OPCODE);
	why = land(qp, keys, qp->req.una, p->psn, 0, sizeof(out->value), out);
	if (why != REASON_NONE)
		return no_memory(qp, why);
	out->value = p->original; /* in host order, as memory wants it */
	out->source = (const uint8_t *)&out->value;
	answered(qp, now);
	return REASON_NONE;
}

/*
 * A response behind a gap. Its PSN says where the octets of a READ belong, so they are placed at once. An atomic's
 * waits with the caller. What is wrong is dropped: it is asked for again, and fails its READ in its turn.
 */
static enum reason came_ahead(struct qp *qp, const struct packet *p, const struct key_table *keys,
			      nanotime now, struct outcome *out)
{
	const struct requester *r = &qp->req;
	uint32_t i = message_of(r, p->psn), done;
	const struct message *m = message_at(r, i);

	if (psn_set_has(board_set(&r->board, BOARD_HELD), p->psn))
		return REASON_RESPONSE_AHEAD;
	if (m->kind != KIND_READ_REQUEST) {
		out->flags |= OUTCOME_HOLD; /* it is lost itself unless the caller keeps it */
		return REASON_RESPONSE_AHEAD;
	}
	done = (p->psn - m->first_psn) & PSN_MASK;
	if (m->fault != REASON_NONE || opcode_table[p->opcode].kind != KIND_READ_RESPONSE ||
	    check_read_response(qp, m, p, done) != REASON_NONE ||
	    land(qp, keys, i, p->psn, done << qp->mtu_shift, p->payload_length, out) != REASON_NONE)
		return REASON_RESPONSE_AHEAD;
	out->source = p->payload;
	if (!opcode_is(p->opcode, OP_LAST))
		overtaken_first_response(qp, p->psn, now);
	recovery_response_held(qp, p->psn, now);
	return REASON_NONE;
}

bool answer_waits(const struct qp *qp, const struct packet *p)
{
	const struct requester *r = &qp->req;

	if (opcode_table[p->opcode].kind == KIND_ACK ||
	    opcode_table[p->opcode].kind == KIND_SELECTIVE_ACK ||
	    !psn_within(p->psn, r->una_psn, (r->top_psn - r->una_psn) & PSN_MASK))
		return false;
	for (uint32_t i = r->una; i != r->begun; i++) {
		uint32_t from = i == r->una ? r->una_psn : message_at(r, i)->first_psn;

		if (!psn_after(p->psn, from))
			return false;
		if (kind_is_fetching(message_at(r, i)->kind))
			return true;
	}
	return false;
}

/* The PSN of its first bit. */
static uint32_t selection_first(const struct packet *p)
{
	return psn_add(p->psn, 1 + SELECTION_STEP * p->selection_step);
}

/* The PSN behind the newest that it names, or that it acknowledges. */
static uint32_t selection_end(const struct packet *p)
{
	for (uint32_t i = ARRAY_SIZE(p->selection); i-- > 0;) {
		uint64_t word = p->selection[i];

		if (word != 0)
			return psn_add(selection_first(p),
				       64 * i + 64 - (uint32_t)__builtin_clzll(word));
	}
	return psn_add(p->psn, 1);
}

/* Whether it only names packets that were sent. */
static bool selection_is_of_ours(const struct requester *r, const struct packet *p)
{
	return ((selection_end(p) - r->una_psn) & PSN_MASK) <=
	       ((r->top_psn - r->una_psn) & PSN_MASK);
}

static enum reason selective_ack_received(struct qp *qp, const struct packet *p, nanotime now)
{
	struct requester *r = &qp->req;
	uint32_t next = psn_add(p->psn, 1);

	if (!qp->selective)
		return REASON_SELECTIVE_ALIEN;
	if ((p->syndrome & SYNDROME_CLASS) != SYNDROME_ACK)
		return REASON_SYNDROME_RESERVED;
	/* It may acknowledge nothing new: then the selection begins at una_psn. */
	if (!psn_within(next, r->una_psn, ((r->top_psn - r->una_psn) & PSN_MASK) + 1))
		return REASON_ACK_STALE;
	if (!selection_is_of_ours(r, p))
		return REASON_SELECTIVE_WRONG;
	recovery_heard(qp);
	r->board.told = selection_end(p);
	if (next != r->una_psn)
		acknowledge_before(qp, next, next, now);
	if (qp->state != QP_STATE_ERR && r->una_psn != r->top_psn)
		recovery_selected(qp, next, selection_first(p), p->selection, now);
	return REASON_NONE;
}

static enum reason take_answer(struct qp *qp, const struct packet *p, const struct key_table *keys,
			       nanotime now, struct outcome *out)
{
	struct requester *r = &qp->req;
	const struct opcode_info *op = &opcode_table[p->opcode];
	bool stopped;

	if (op->kind == KIND_SELECTIVE_ACK)
		return selective_ack_received(qp, p, now);
	if (!psn_within(p->psn, r->una_psn, (r->top_psn - r->una_psn) & PSN_MASK))
		return REASON_ACK_STALE;
	recovery_heard(qp);
	if (op->kind == KIND_ACK)
		return ack_received(qp, p, now);
	if ((op->flags & OP_AETH) && (p->syndrome & SYNDROME_CLASS) != SYNDROME_ACK)
		return REASON_SYNDROME_RESERVED;
	stopped = !acknowledge_before(qp, p->psn, psn_add(p->psn, 1), now);
	if (qp->state == QP_STATE_ERR || r->una == r->begun)
		return REASON_QP_STATE;
	if (stopped)
		return came_ahead(qp, p, keys, now, out);
	assert(r->una_psn == p->psn && "all before it is acknowledged");
	return op->kind == KIND_READ_RESPONSE ? read_response_received(qp, p, keys, now, out)
					      : atomic_ack_received(qp, p, keys, now, out);
}

enum reason answer_received(struct qp *qp, const struct packet *p, const struct key_table *keys,
			    nanotime now, struct outcome *out)
{
	enum reason why = take_answer(qp, p, keys, now, out);

	flight_trim(qp, true);
	return why;
}
