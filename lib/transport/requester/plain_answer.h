/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nearly all READ responses are alike: the next one, as it was asked for, on an undisturbed queue
 * pair. The checks and effects are those of answer.c for such a packet. Inline, too (plain.h).
 */
#ifndef TRANSPORT_PLAIN_ANSWER_H
#define TRANSPORT_PLAIN_ANSWER_H

#include <assert.h>

#include "base/bits.h"
#include "memory/spans.h"
#include "transport/qp.h"
#include "transport/requester/flight.h"
#include "transport/requester/kind.h"
#include "transport/requester/parts.h"
#include "transport/requester/request.h"
#include "transport/requester/retry.h"
#include "transport/requester/sample.h"
#include "wire/opcode.h"

/* Nothing that was sent is known to have arrived or to be lost. */
static inline bool plain_answer_is_undisturbed(const struct qp *qp)
{
	const struct requester *r = &qp->req;

	return qp->state == QP_STATE_RTS && r->una != r->begun && r->una_psn != r->top_psn &&
	       r->nxt_psn == r->top_psn && r->board.clean && r->board.probes == 0 && !r->alone &&
	       (qp->path == NULL || qp->path->given_up == r->given_up);
}

/* The packet that is due after so many of this READ. */
static inline bool plain_answer_is_asked_for(const struct qp *qp, const struct message *m,
					     const struct packet *p, const struct opcode_info *op,
					     uint32_t done)
{
	uint32_t rest = m->length - (done << qp->mtu_shift), shape;
	struct part part;

	if (m->kind != KIND_READ_REQUEST)
		return false;
	part = part_of(m, done);
	shape = (done == part.begin) * (uint32_t)OP_FIRST |
		(done + 1 == part.end) * (uint32_t)OP_LAST;
	return (op->flags & (OP_FIRST | OP_LAST)) == shape &&
	       p->payload_length == MIN_OF(rest, qp->mtu) &&
	       (!(op->flags & OP_AETH) || (p->syndrome & SYNDROME_CLASS) == SYNDROME_ACK);
}

static inline void plain_answer_take(struct qp *qp, struct message *m, const struct packet *p,
				     const struct opcode_info *op, struct outcome *out)
{
	struct requester *r = &qp->req;

	out->flags = OUTCOME_PLACE;
	out->source = p->payload;
	out->ticket = ticket_issue(&qp->tickets, TICKET_LANDING, p->psn, qp->resp.msn, r->una);
	m->ticket = (uint32_t)out->ticket;
	r->landing = out->ticket;
	r->una_psn = psn_add(r->una_psn, 1);
	if (r->una_psn != message_end(m)) {
		if (op->flags & OP_LAST)
			r->more_parts--;
		return;
	}
	assert(r->rd_atomic > 0 && "this READ was counted");
	r->una++;
	r->rd_atomic--;
}

static inline bool plain_answer_may_fail(const struct requester *r)
{
	return r->una != r->tail &&
	       (r->una == r->begun || message_at(r, r->una)->fault != REASON_NONE);
}

static inline void plain_answer_progress(struct qp *qp, nanotime now)
{
	sample_acknowledged(qp, now);
	if (qp->path != NULL)
		qp->path->doubt = 0; /* nobody had to ask */
	retry_progress(qp, now);
	if (plain_answer_may_fail(&qp->req))
		request_fail_in_turn(qp);
	flight_arrived(qp);
}

/*
 * Takes the packet if it is the next READ response, well formed, while nothing is lost, repeated or
 * failing. False: another case; nothing has changed, and answer.c finds out what to do.
 */
static inline bool plain_answer_received(struct qp *qp, const struct packet *p,
					 const struct opcode_info *op, const struct key_table *keys,
					 nanotime now, struct outcome *out)
{
	struct requester *r = &qp->req;
	struct message *m = message_at(r, r->una);
	const struct work_sge *sge = send_work_sge(request_at(r, r->una));
	uint32_t done = (p->psn - m->first_psn) & PSN_MASK;

	if (op->kind != KIND_READ_RESPONSE || p->psn != r->una_psn ||
	    !plain_answer_is_undisturbed(qp) || !plain_answer_is_asked_for(qp, m, p, op, done) ||
	    !key_one_span_of_list(keys, sge, request_at(r, r->una)->num_sge, qp->user,
				  ACCESS_LOCAL_WRITE, done << qp->mtu_shift, p->payload_length,
				  &out->place))
		return false;
	flight_heard(qp);
	plain_answer_take(qp, m, p, op, out);
	plain_answer_progress(qp, now);
	return true;
}

#endif
