/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The middle of a large message arrives, several packets in one step: what alike.c is for packets that leave. The checks
 * are those of expected.h and plain_answer.h for such packets, the effects those of all of them together. A path
 * sees one answer for several READ responses, as for several WRITEs. READ responses behind a gap are placed at once
 * (answer.c), so they come in runs, too.
 *
 *	FIRST  MIDDLE | MIDDLE  MIDDLE  ...  MIDDLE | LAST
 *	    ordinary            in one step	     ordinary
 */
#include <assert.h>

#include "transport/events.h"
#include "transport/requester/overtaken.h"
#include "transport/requester/parts.h"
#include "transport/requester/plain_answer.h"
#include "transport/requester/recovery.h"
#include "transport/responder/expected.h"
#include "wire/header.h"
#include "wire/opcode.h"

/* A mark of the network is answered packet by packet, and an open ticket comes before later ones. */
static bool may_come_alike(const struct qp *qp, const struct packet *p)
{
	const uint32_t receiving =
		1u << QP_STATE_RTR | 1u << QP_STATE_RTS | 1u << QP_STATE_SQD | 1u << QP_STATE_SQE;

	return qp->type == QP_TYPE_RC && (receiving & 1u << qp->state) &&
	       opcode_is_middle(p->opcode) && p->payload_length == qp->mtu && p->pad == 0 &&
	       p->ecn != ECN_CE && !tickets_open(&qp->tickets);
}

/* Nobody knows where a SEND ends, but its receive request does not end before it. */
static uint32_t requests_expected(const struct qp *qp, const struct packet *p,
				  const struct key_table *keys, uint32_t most,
				  struct span_list *place)
{
	const struct responder *r = &qp->resp;
	const struct packet next = { .psn = psn_add(p->psn, 1) };
	uint8_t kind = opcode_table[p->opcode].kind;
	uint32_t rest = r->length - r->offset, n;

	if ((kind != KIND_SEND && kind != KIND_WRITE) || !expected_in_turn(qp, &next, kind) ||
	    qp->srq != r->srq || r->holding > 0 || r->nak_at != TIME_NEVER || rest == 0)
		return 0;
	n = MIN_OF(most, (kind == KIND_SEND ? rest : rest - 1) >> qp->mtu_shift);
	return n > 0 && expected_middle_passes(qp, n << qp->mtu_shift, keys, place) ? n : 0;
}

/* Packet p came behind a gap, and is the newest one. */
static bool came_ahead(const struct qp *qp, const struct packet *p)
{
	const struct requester *r = &qp->req;

	return qp->state == QP_STATE_RTS && !r->alone && r->una != r->begun &&
	       kind_is_fetching(message_at(r, r->una)->kind) && overtaken_by_none(qp, p->psn);
}

/* In the middle of the READ with number i, behind its first `done` packets. */
static uint32_t middles_expected(const struct qp *qp, uint32_t i, uint32_t done,
				 const struct key_table *keys, uint32_t most,
				 struct span_list *place)
{
	const struct message *m = message_at(&qp->req, i);
	const struct send_work *w = request_at(&qp->req, i);
	struct part part;
	uint32_t n;

	if (m->kind != KIND_READ_REQUEST || m->fault != REASON_NONE || done == m->packets)
		return 0;
	part = part_of(m, done);
	if (done == part.begin || done + 1 == part.end)
		return 0;
	n = MIN_OF(most, part.end - 1 - done);
	if (!qp->req.board.clean)
		n = overtaken_all_sent_once(&qp->req, psn_add(m->first_psn, done), n);
	return n > 0 && key_one_span_of_list(keys, send_work_sge(w), w->num_sge, qp->user,
					     ACCESS_LOCAL_WRITE, done << qp->mtu_shift,
					     n << qp->mtu_shift, place)
		       ? n
		       : 0;
}

static uint32_t responses_expected(const struct qp *qp, const struct packet *p,
				   const struct key_table *keys, uint32_t most,
				   struct span_list *place)
{
	const struct requester *r = &qp->req;
	uint32_t next = psn_add(p->psn, 1), i;

	if (r->una_psn == next && plain_answer_is_undisturbed(qp) && !plain_answer_may_fail(r))
		i = r->una;
	else if (came_ahead(qp, p))
		i = message_of(r, p->psn);
	else
		return 0;
	return middles_expected(qp, i, (next - message_at(r, i)->first_psn) & PSN_MASK, keys, most,
				place);
}

uint32_t qp_expects_alike(const struct qp *qp, const struct packet *p, const struct key_table *keys,
			  uint32_t most, struct span_list *place)
{
	uint32_t n = 0;

	span_list_clear(place);
	if (may_come_alike(qp, p))
		n = opcode_is(p->opcode, OP_RESPONSE) ? responses_expected(qp, p, keys, most, place)
						      : requests_expected(qp, p, keys, most, place);
	return place->has_peer ? 0 : n;
}

/* They count, but nobody waits for their copies. */
static void tickets_pass(struct tickets *t, uint32_t n)
{
	assert(!tickets_open(t));
	t->issued += n;
	t->settled = t->issued;
}

static void requests_received(struct qp *qp, const struct packet *p, uint32_t n, uint32_t asked)
{
	struct responder *r = &qp->resp;

	qp->tickets.placing = qp->tickets.issued;
	r->expected_psn = psn_add(r->expected_psn, n);
	r->offset += n << qp->mtu_shift;
	if (asked == 0)
		return;
	r->ack_due = true;
	r->ack_due_psn = psn_add(p->psn, asked);
}

static void responses_received(struct qp *qp, const struct packet *p, uint32_t n, nanotime now)
{
	struct requester *r = &qp->req;
	bool in_turn = r->una_psn == psn_add(p->psn, 1);
	struct message *m = message_at(r, in_turn ? r->una : message_of(r, p->psn));

	flight_heard(qp);
	if (qp->path != NULL)
		qp->path->heard += n - 1;
	m->ticket = (uint32_t)qp->tickets.issued;
	r->landing = qp->tickets.issued;
	assert(psn_after(message_end(m), psn_add(p->psn, 1 + n)) &&
	       "the last one is not in the middle");
	if (in_turn) {
		r->una_psn = psn_add(r->una_psn, n);
		plain_answer_progress(qp, now);
	} else {
		recovery_run_held(qp, psn_add(p->psn, 1), n, now);
		flight_trim(qp, true);
	}
}

void qp_received_alike(struct qp *qp, const struct packet *p, uint32_t n, uint32_t asked,
		       nanotime now)
{
	assert(n > 0 && asked <= n);
	tickets_pass(&qp->tickets, n);
	if (opcode_is(p->opcode, OP_RESPONSE))
		responses_received(qp, p, n, now);
	else
		requests_received(qp, p, n, asked);
}
