/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One request while the responder looks at it, and its effects. The responders of reliable and
 * unreliable connections share both.
 */
#ifndef TRANSPORT_RESPOND_H
#define TRANSPORT_RESPOND_H

#include <assert.h>

#include "base/bits.h"
#include "transport/outcomes.h"
#include "transport/qp.h"
#include "transport/responder/reply.h"
#include "wire/opcode.h"

struct arrival {
	struct qp *qp;
	const struct packet *p;
	const struct opcode_info *op;
	const struct recv_work *offer;
	const struct key_table *keys;
	struct outcome *out;
	nanotime now;
	/* A repeated READ or atomic, once duplicate_check found it: its record. */
	struct record *record;
	uint32_t record_index;
};

/* The octets of this packet that go into memory. */
static inline uint32_t stored_length(const struct arrival *a)
{
	uint32_t n = a->p->payload_length;

	if (a->op->kind != KIND_SEND || !(a->op->flags & OP_FIRST))
		return n;
	assert(a->offer != NULL && "check_offer comes first");
	return n - MIN_OF(n, a->offer->strip);
}

/* A request from the peer of a reliable connection. */
enum reason respond_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			     const struct key_table *keys, nanotime now, struct outcome *out);
/* The request with this PSN came behind a gap and is kept. */
void respond_held(struct qp *qp, uint32_t psn);
/*
 * The expected PSN has passed the packet with this PSN. Something waits behind a gap (holding), or
 * for the time at which a gap is reported (nak_at), so there may be another gap now.
 */
void respond_passed(struct qp *qp, uint32_t psn, nanotime now);
/* The time to report a gap may have come. */
void respond_expired(struct qp *qp, nanotime now);

/* The request with this PSN is refused: to ERR, and a NAK is owed. */
void respond_failed(struct qp *qp, enum reason why, uint32_t psn, uint32_t msn);

/* A SEND or WRITE packet that passed every check. */
void respond_take_data(const struct arrival *a);
/*
 * The record of a request with an answer of so many octets, in place of the oldest. The answer waits
 * for all tickets issued so far.
 */
static inline void respond_record(struct qp *qp, const struct packet *p, uint8_t kind,
				  uint32_t length)
{
	struct responder *r = &qp->resp;
	struct record *rec = record_at(r, r->record_head);

	assert(r->remembered > 0 && r->remembered <= r->records && "check_resources");
	record_oldest(r)->owed = false;
	reply_forget_answered(r);
	r->record_head++;
	r->msn = psn_add(r->msn, 1); /* a READ counts when it starts (C9-148) */
	/* All but the parts: there are none, and clearing them would cost more than the rest. */
	rec->kind = kind;
	rec->psn = rec->reply_psn = p->psn;
	rec->packets = packets_of(qp, length);
	rec->va = rec->reply_va = p->va;
	rec->length = rec->reply_length = length;
	rec->rkey = p->rkey;
	rec->pd = qp->user.pd;
	rec->msn = r->msn;
	rec->ticket = qp->tickets.issued;
	rec->original = 0;
	rec->replied = 0;
	rec->owed = true;
	rec->repeated = false;
	rec->parts = 0;
	r->expected_psn = psn_add(p->psn, rec->packets);
}

#endif
