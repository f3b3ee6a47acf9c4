/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that stay at home: binding a memory window and invalidating a key (IBTA 10.6.5, 10.6.6).
 * They take no PSN. An operation begins when every request before it is complete, including a
 * READ's data, and nothing behind it begins before its end. So earlier packets meet the old key,
 * later packets the new one. Nothing is in flight, so the requester's cursors stand on the
 * operation as on a message of no packets: una, nxt and no PSN between them.
 */
#include <assert.h>

#include "transport/events.h"
#include "transport/requester/kind.h"
#include "transport/requester/operation.h"
#include "transport/qp.h"
#include "transport/requester/request.h"

bool operation_may_begin(const struct qp *qp)
{
	const struct requester *r = &qp->req;

	return r->operating == OPERATING_NO && r->una == r->begun &&
	       qp->tickets.settled >= r->landing;
}

static void describe(const struct qp *qp, struct key_operation *o)
{
	const struct requester *r = &qp->req;
	const struct send_work *w = request_at(r, r->una);

	assert(kind_is_local(message_at(r, r->una)->kind) && r->una + 1 == r->begun);
	*o = (struct key_operation){ .bind = message_at(r, r->una)->kind == KIND_BIND_MW,
				     .user = qp->user };
	if (!o->bind) {
		o->key = w->imm;
		return;
	}
	o->key = w->rkey;
	o->new_key = w->imm;
	o->region_key = w->bind_lkey;
	o->access = w->bind_access;
	o->address = w->remote_addr;
	o->length = w->bind_length;
}

/* The oldest request, just begun, is an operation. */
enum next_packet operation_next(struct qp *qp, const struct key_table *keys)
{
	struct requester *r = &qp->req;
	enum reason why = REASON_NONE;

	assert(r->operating == OPERATING_NO && "operation_may_begin");
	describe(qp, &r->operation);
	if (!r->operation.bind)
		why = key_check_invalidate(keys, r->operation.key, qp->user);
	if (why != REASON_NONE) {
		/* "Memory management operation error" (IBTA 11.6.2) */
		request_failed(qp, r->una, STATUS_MW_BIND_ERR, REASON_INVALIDATE_KEY);
		return NEXT_NOTHING;
	}
	r->operating = OPERATING;
	return NEXT_OPERATION;
}

const struct key_operation *qp_operation(const struct qp *qp)
{
	return qp->req.operating == OPERATING ? &qp->req.operation : NULL;
}

void operation_abandon(struct qp *qp)
{
	if (qp->req.operating == OPERATING)
		qp->req.operating = OPERATING_FOR_NOTHING;
}

void qp_operation_done(struct qp *qp, enum work_status status, enum reason why)
{
	struct requester *r = &qp->req;
	uint8_t was = r->operating;

	r->operating = OPERATING_NO;
	if (was != OPERATING)
		return;
	if (status != STATUS_SUCCESS) {
		request_failed(qp, r->una, status, why);
		return;
	}
	r->una++;
	r->nxt = r->una;
	assert(r->una == r->begun && "it was alone");
	request_fail_in_turn(qp);
	request_drained(qp);
}
