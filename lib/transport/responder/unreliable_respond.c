/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder of an unreliable connection (IBTA 9.8.2): nothing is repeated, so a message with a
 * gap is lost. Any FIRST or ONLY begins anew with its own PSN. A message that a packet cuts or
 * spoils is dropped with the rest of it. Its receive request serves the next message, or completes
 * in error if it came from an SRQ. No packet takes the queue pair to ERR; only errors of its own
 * receive requests do.
 */
#include <assert.h>

#include "base/bits.h"
#include "transport/requester/kind.h"
#include "transport/psn.h"
#include "transport/responder/respond_check.h"
#include "transport/unreliable.h"
#include "transport/responder/verdict.h"

/* The message in progress is cut; `why` is the reason that an SRQ's request reports. */
static void message_drop(struct qp *qp, enum reason why)
{
	struct responder *r = &qp->resp;
	uint8_t status = verdict_of_unreliable(why)->receive_status;
	struct receive_done d = { .wr_id = r->held->wr_id,
				  .srq = r->srq,
				  .ticket = (uint32_t)qp->tickets.issued,
				  .status = status != 0 ? status : STATUS_REM_INV_REQ_ERR,
				  .reason = (uint8_t)why };

	if (r->open == KIND_SEND && qp->caps.has_srq)
		receive_push(&qp->receives, &d);
	else if (r->open == KIND_SEND)
		r->kept = true;
	if (r->open != KIND_UNDEFINED)
		r->msn = psn_add(r->msn, 1);
	r->open = KIND_UNDEFINED;
}

/* The sequence: any message may begin, only the one in progress goes on (protocol-map 172). */
static enum reason check_place(const struct arrival *a)
{
	struct responder *r = &a->qp->resp;
	int32_t ahead = psn_distance(a->p->psn, r->expected_psn);

	if (a->op->flags & OP_FIRST) {
		message_drop(a->qp, REASON_OPCODE_SEQUENCE);
		r->expected_psn = a->p->psn;
		return REASON_NONE;
	}
	if (r->open == KIND_UNDEFINED)
		return REASON_OPCODE_SEQUENCE;
	if (ahead != 0)
		return ahead < 0 ? REASON_DUPLICATE : REASON_PSN_AHEAD;
	return a->op->kind == r->open ? REASON_NONE : REASON_OPCODE_SEQUENCE;
}

static enum reason check(const struct arrival *a)
{
	enum reason why = respond_check_access(a);

	if (why == REASON_NONE && (a->op->flags & OP_CONSUMES))
		why = check_offer(a->qp, a->offer);
	if (why == REASON_NONE)
		why = respond_check_length(a);
	if (why == REASON_NONE)
		why = respond_check_key(a);
	return why;
}

/* The receive request of this packet or its message is itself at fault. */
static void receive_failed(const struct arrival *a, enum reason why, uint8_t status)
{
	struct responder *r = &a->qp->resp;
	const struct recv_work *w = a->op->flags & OP_CONSUMES ? a->offer : r->held;
	struct receive_done d = { .wr_id = w->wr_id,
				  .srq = w == r->held ? r->srq : a->qp->srq,
				  .ticket = (uint32_t)a->qp->tickets.issued,
				  .status = status,
				  .reason = (uint8_t)why };

	assert(status != STATUS_SUCCESS && w != NULL);
	if (w == r->held)
		r->kept = false;
	else
		a->out->flags |= OUTCOME_RECEIVE_USED;
	r->open = KIND_UNDEFINED;
	receive_push(&a->qp->receives, &d);
	enter_error(a->qp);
}

static void drop(const struct arrival *a, enum reason why)
{
	const struct verdict *v = verdict_of_unreliable(why);

	span_list_clear(&a->out->place);
	if (v->fatal)
		receive_failed(a, why, v->receive_status);
	else if (why != REASON_DUPLICATE)
		message_drop(a->qp, why);
}

static void take(const struct arrival *a)
{
	struct responder *r = &a->qp->resp;

	respond_take_data(a);
	if (a->offer == r->held && (a->op->flags & OP_CONSUMES)) {
		r->kept = false;
		a->out->flags &= ~(uint32_t)OUTCOME_RECEIVE_USED;
	}
}

enum reason unreliable_received(struct qp *qp, const struct packet *p,
				const struct recv_work *offer, const struct key_table *keys,
				struct outcome *out)
{
	struct arrival a = {
		.qp = qp, .p = p, .op = &opcode_table[p->opcode], .keys = keys, .out = out
	};
	enum reason why = check_place(&a);

	a.offer = qp->resp.kept ? qp->resp.held : offer;
	if (why == REASON_NONE)
		why = check(&a);
	if (why == REASON_NONE)
		take(&a);
	else
		drop(&a, why);
	return why;
}

/* Not if a message that was cut, or that this packet cuts, leaves its request to the next. */
bool unreliable_wants_receive(const struct qp *qp, const struct packet *p)
{
	const struct responder *r = &qp->resp;

	if (!opcode_is(p->opcode, OP_CONSUMES) || r->kept)
		return false;
	if (opcode_is(p->opcode, OP_FIRST))
		return r->open != KIND_SEND || qp->caps.has_srq;
	return r->open == KIND_WRITE && p->psn == r->expected_psn;
}

/* A WRITE's memory is gone: the WRITE is dropped, with the receive request of its immediate data.
 */
static void write_failed(struct qp *qp, const struct ticket *t, uint64_t number)
{
	assert(number <= qp->tickets.issued && t == ticket_at(&qp->tickets, number));
	for (uint32_t i = qp->receives.taken; i != qp->receives.done; i++) {
		struct receive_done *d = receive_at(&qp->receives, i);

		if (!(d->flags & RECEIVE_BY_WRITE) || (int32_t)(d->ticket - (uint32_t)number) < 0 ||
		    ticket_at(&qp->tickets, d->ticket)->msn != t->msn)
			continue;
		d->status = STATUS_LOC_PROT_ERR;
		d->reason = REASON_MEMORY_FAULT;
	}
	if (qp->resp.open == KIND_WRITE && qp->resp.msn == t->msn)
		message_drop(qp, REASON_MEMORY_FAULT);
	qp->tickets.settled = number;
}

void unreliable_copy_failed(struct qp *qp, const struct ticket *t, enum reason why)
{
	uint64_t number = qp->tickets.settled + 1;

	assert(t->kind != TICKET_LANDING && t->kind != TICKET_ATOMIC && "nothing is fetched here");
	if (t->kind == TICKET_WRITE) {
		write_failed(qp, t, number);
		return;
	}
	enter_error(qp); /* an open message's receive request is flushed with the others */
	receives_fail_behind(&qp->receives, number, verdict_of(why)->receive_status, why);
	qp->tickets.settled = qp->tickets.issued;
}
