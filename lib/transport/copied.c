/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports of copies: their effect on the queue pair. A report for any ticket but the next one
 * belongs to an abandoned copy and is ignored.
 */
#include <assert.h>

#include "transport/copied.h"
#include "transport/events.h"
#include "transport/requester/kind.h"
#include "transport/qp.h"
#include "transport/requester/request.h"
#include "transport/requester/request_check.h"
#include "transport/responder/respond.h"
#include "transport/unreliable.h"
#include "transport/responder/verdict.h"

/* A READ whose landing is unfinished did not happen: the requester stands before it again. */
static void landings_forget(struct qp *qp)
{
	struct requester *r = &qp->req;

	for (uint32_t i = r->retired; i != r->una; i++) {
		const struct message *m = message_at(r, i);

		if (kind_is_fetching(m->kind) && !ticket_settled(&qp->tickets, m->ticket)) {
			r->una = r->nxt = i;
			return;
		}
	}
}

void tickets_abandon(struct qp *qp)
{
	if (!tickets_open(&qp->tickets))
		return;
	landings_forget(qp);
	receives_fail_behind(&qp->receives, qp->tickets.settled + 1, STATUS_WR_FLUSH_ERR,
			     REASON_FLUSHED);
	qp->tickets.settled = qp->tickets.issued;
	assert(!tickets_open(&qp->tickets));
}

/*
 * The memory of a ticket was not there, or its key could not be invalidated. If it was a peer's
 * request, the peer gets a NAK and everything accepted behind it is forgotten, receive requests
 * included. If it was a landing, the request and the queue pair fail.
 */
static __attribute__((noinline)) void ticket_failed(struct qp *qp, const struct ticket *t)
{
	enum reason why = t->kind == TICKET_RECEIVE	 ? REASON_RECEIVE_MEMORY
			  : t->kind == TICKET_INVALIDATE ? REASON_INVALIDATE_KEY
							 : REASON_MEMORY_FAULT;
	uint64_t failed = qp->tickets.settled + 1;
	bool receive = t->kind == TICKET_RECEIVE || t->kind == TICKET_INVALIDATE;

	assert(failed <= qp->tickets.issued && t == ticket_at(&qp->tickets, failed));
	if (qp_type_unreliable(qp->type)) {
		unreliable_copy_failed(qp, t, why);
		return;
	}
	if (t->kind == TICKET_LANDING && (int32_t)(t->owner - qp->req.una) > 0) {
		/* It came before what precedes it, and fails in its turn. */
		request_set_fault(message_at(&qp->req, t->owner), STATUS_LOC_PROT_ERR, why);
		qp->tickets.settled = failed;
		return;
	}
	if (t->kind == TICKET_LANDING) {
		request_failed(qp, t->owner, STATUS_LOC_PROT_ERR, why);
		tickets_abandon(qp);
		return;
	}
	if (qp->state == QP_STATE_ERR && qp->resp.nak == 0) { /* the peer knows already */
		tickets_abandon(qp);
		return;
	}
	landings_forget(qp);
	enter_error(qp); /* an open message's receive request is flushed with the others */
	receives_fail_behind(&qp->receives, failed,
			     receive ? verdict_of(why)->receive_status : STATUS_WR_FLUSH_ERR,
			     receive ? why : REASON_FLUSHED);
	qp->tickets.settled = qp->tickets.issued;
	respond_failed(qp, why, t->psn, t->msn);
}

static void ticket_reported(struct qp *qp, uint64_t number, bool ok)
{
	const struct ticket *t = ticket_at(&qp->tickets, number);

	assert(number == qp->tickets.settled + 1 && "in their order");
	if (!ok) {
		ticket_failed(qp, t);
		return;
	}
	qp->tickets.settled = number;
	if (t->kind == TICKET_LANDING)
		request_drained(qp);
}

void qp_copied(struct qp *qp, uint64_t ticket, bool ok)
{
	if (ticket == qp->tickets.settled + 1 && ticket <= qp->tickets.issued)
		ticket_reported(qp, ticket, ok);
}

void qp_atomic_done(struct qp *qp, uint64_t ticket, uint64_t original, bool ok)
{
	if (ticket != qp->tickets.settled + 1 || ticket > qp->tickets.issued)
		return;
	assert(ticket_at(&qp->tickets, ticket)->kind == TICKET_ATOMIC &&
	       "reported as it was given");
	/* The record has it before the reply may leave, because a repetition returns it, too. */
	record_at(&qp->resp, ticket_at(&qp->tickets, ticket)->owner)->original = original;
	ticket_reported(qp, ticket, ok);
}
