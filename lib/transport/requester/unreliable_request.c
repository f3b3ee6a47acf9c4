/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester of services without acknowledgements: request.c's. A packet that has left counts as
 * acknowledged; the window is the packets that were made but not reported. A local error stops only
 * the send queue: in SQE everything flushes until the program goes back to RTS (IBTA 10.3.1.6).
 */
#include <assert.h>

#include "transport/attributes.h"
#include "transport/events.h"
#include "transport/requester/operation.h"
#include "transport/qp.h"
#include "transport/requester/request.h"
#include "transport/unreliable.h"

void enter_sq_error(struct qp *qp)
{
	struct requester *r = &qp->req;

	assert(qp_type_unreliable(qp->type) &&
	       (qp->state == QP_STATE_RTS || qp->state == QP_STATE_SQD));
	qp->state = QP_STATE_SQE;
	qp->events |= QP_EVENT_SQ_ERROR;
	r->paced_until = TIME_NEVER;
	operation_abandon(qp);
	r->drain_notify = false;
	/* No PSN is used twice. No message waits for the packets of late reports. */
	r->una_psn = r->nxt_psn = r->top_psn = r->new_psn;
}

void qp_sent(struct qp *qp, const struct packet *p)
{
	struct requester *r = &qp->req;

	if (!qp_type_unreliable(qp->type) || p->psn != r->una_psn || r->una_psn == r->nxt_psn ||
	    (qp->state != QP_STATE_RTS && qp->state != QP_STATE_SQD))
		return;
	assert(r->una != r->begun && "it was made");
	r->una_psn = psn_add(r->una_psn, 1);
	if (r->una_psn == message_end(message_at(r, r->una)))
		r->una++;
	request_fail_in_turn(qp);
	request_drained(qp);
}

void qp_refused(struct qp *qp, const struct packet *p, enum work_status status, enum reason why)
{
	if (qp_type_unreliable(qp->type))
		request_refuse(qp, p->psn, status, why);
}
