/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder's sending half. Receiving marks what is owed. Here the debts are paid, in this
 * order, each behind the copies that it vouches for:
 *
 *	0. a congestion notification, which vouches for nothing (mark.h)
 *	1. READ responses and atomic replies, in the requests' order (IBTA 9.7.5.1)
 *	2. one NAK, or one ACK for everything that is in order by then: selective if something waits
 *	   behind a gap and the peer understands it
 */
#include <assert.h>

#include "base/bits.h"
#include "memory/spans.h"
#include "transport/requester/kind.h"
#include "transport/qp.h"
#include "transport/responder/behind.h"
#include "transport/responder/duplicate.h"
#include "transport/responder/mark.h"
#include "transport/responder/reply.h"
#include "transport/responder/respond.h"

/* The oldest record that is owed an answer. */
static struct record *owed_record(const struct responder *r)
{
	for (uint32_t i = r->record_owed; i != r->record_head; i++) {
		if (record_at(r, i)->owed)
			return record_at(r, i);
	}
	return NULL;
}

static uint32_t psn_before(uint32_t psn)
{
	return psn_add(psn, PSN_MASK);
}

/* The newest PSN that may be acknowledged now, and the MSN that goes with it. */
static bool ack_position(const struct qp *qp, uint32_t *psn, uint32_t *msn)
{
	const struct ticket *t =
		tickets_open(&qp->tickets) ? ticket_oldest_request(&qp->tickets) : NULL;

	*psn = psn_before(t != NULL ? t->psn : qp->resp.expected_psn);
	*msn = t != NULL ? t->msn : qp->resp.msn;
	/* Up to an open copy, only what is news to the peer. */
	return t == NULL || psn_after(*psn, qp->resp.acked_psn);
}

bool reply_ready(const struct qp *qp)
{
	const struct responder *r = &qp->resp;
	uint32_t psn, msn;

	if (r->cnp_due)
		return true;
	if (reply_has_records(r)) {
		const struct record *rec = owed_record(r);

		if (rec != NULL)
			return qp->tickets.settled >= rec->ticket;
	}
	if (r->nak != 0)
		return qp->tickets.settled >= r->nak_ticket;
	return r->selection_due || (r->ack_due && ack_position(qp, &psn, &msn));
}

static void aeth(struct packet *p, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	assert(psn <= PSN_MASK && msn <= PSN_MASK && "24 bits each");
	p->syndrome = syndrome;
	p->psn = psn;
	p->msn = msn;
}

static uint8_t read_response_opcode(bool first, bool last)
{
	if (first)
		return last ? OPB_READ_RESPONSE_ONLY : OPB_READ_RESPONSE_FIRST;
	return last ? OPB_READ_RESPONSE_LAST : OPB_READ_RESPONSE_MIDDLE;
}

/*
 * One packet of a READ's data. Only the READ's first PSN is answered by FIRST or ONLY. A repetition
 * from the middle goes on with MIDDLE and LAST (docs/decisions/0002-read-and-rnr.md).
 */
static enum reason read_response(struct qp *qp, const struct key_table *keys, struct record *rec,
				 struct packet *p, struct span_list *gather)
{
	uint32_t offset = rec->replied << qp->mtu_shift,
		 psn = psn_add(rec->reply_psn, rec->replied);
	uint64_t va = rec->reply_va + offset;
	uint32_t n = MIN_OF(rec->reply_length - offset, qp->mtu);
	bool last = offset + n == rec->reply_length;
	struct key_user user;

	assert(rec->owed && offset <= rec->reply_length && "there is a packet left to send");
	p->opcode = OPCODE(qp->service, read_response_opcode(psn == rec->psn, last));
	aeth(p, SYNDROME_ACK_NO_CREDITS, psn, rec->msn);
	p->payload_length = n;
	p->pad = (uint8_t)(-n & 3);
	rec->replied++;
	rec->owed = !last;
	if (last && rec->parts > 0)
		duplicate_next_part(qp, rec);
	if (n == 0)
		return REASON_NONE;
	user = (struct key_user){ .pd = rec->pd, .qpn = qp->qpn };
	if (key_one_span(keys, rec->rkey, user, ACCESS_REMOTE_READ, va, n, gather))
		return REASON_NONE;
	return key_spans(keys, rec->rkey, user, ACCESS_REMOTE_READ, va, n, gather);
}

static void atomic_reply(const struct qp *qp, struct record *rec, struct packet *p)
{
	assert(rec->owed && rec->packets == 1);
	p->opcode = OPCODE(qp->service, OPB_ATOMIC_ACK);
	aeth(p, SYNDROME_ACK_NO_CREDITS, rec->psn, rec->msn);
	p->original = rec->original;
	rec->owed = false;
}

/* False: the READ's memory is no longer there; a NAK is owed instead. */
static bool record_reply(struct qp *qp, const struct key_table *keys, struct record *rec,
			 struct packet *p, struct span_list *gather)
{
	enum reason why = REASON_NONE;

	assert(rec->owed && qp->tickets.settled >= rec->ticket && "behind what it vouches for");
	/* ATOMIC WRITE and FLUSH are answered like a READ of nothing (IBTA A19). */
	if (kind_is_atomic(rec->kind))
		atomic_reply(qp, rec, p);
	else
		why = read_response(qp, keys, rec, p, gather);
	if (why != REASON_NONE) {
		span_list_clear(gather);
		p->payload_length = 0;
		p->pad = 0;
		respond_failed(qp, why, p->psn, rec->msn);
		return false;
	}
	reply_forget_answered(&qp->resp);
	/* The response acknowledges what came before it. */
	if (qp->resp.ack_due && psn_after(p->psn, qp->resp.ack_due_psn))
		qp->resp.ack_due = false;
	if (psn_after(p->psn, qp->resp.acked_psn))
		qp->resp.acked_psn = p->psn;
	return true;
}

static bool nak_reply(struct qp *qp, struct packet *p)
{
	struct responder *r = &qp->resp;

	if (qp->tickets.settled < r->nak_ticket)
		return false;
	assert(!qp_type_unreliable(qp->type) && "whose peers are told nothing");
	p->opcode = OPCODE(qp->service, OPB_ACK);
	aeth(p, r->nak, r->nak_psn, r->nak_msn);
	r->nak = 0;
	return true;
}

static bool ack_reply(struct qp *qp, struct packet *p)
{
	struct responder *r = &qp->resp;
	uint32_t psn, msn;

	assert(r->ack_due && r->nak == 0 && "a NAK goes first");
	if (!ack_position(qp, &psn, &msn))
		return false;
	p->opcode = OPCODE(qp->service, OPB_ACK);
	aeth(p, SYNDROME_ACK_NO_CREDITS, psn, msn);
	r->acked_psn = psn;
	r->ack_due = psn_after(r->ack_due_psn, psn); /* its copy is still open */
	return true;
}

/*
 * Packets behind the newest one that may be acknowledged: those not settled yet, and those that
 * wait behind a gap.
 */
static bool selection_reply(struct qp *qp, struct packet *p)
{
	struct responder *r = &qp->resp;
	uint32_t psn, msn, first;

	assert(r->selection_due && r->nak == 0 && "a NAK goes first");
	if (r->holding == 0) { /* the gap has closed */
		r->selection_due = false;
		r->ack_due = true;
		r->ack_due_psn = psn_before(r->expected_psn);
		return ack_reply(qp, p);
	}
	ack_position(qp, &psn, &msn);
	p->opcode = OPCODE_SELECTIVE_ACK;
	aeth(p, SYNDROME_ACK_NO_CREDITS, psn, msn);
	p->selection_step = behind_step(r, psn, &r->selection_due);
	first = psn_add(psn, 1 + SELECTION_STEP * p->selection_step);
	for (uint32_t i = 0; i < ARRAY_SIZE(p->selection); i++)
		p->selection[i] = behind_came(r, psn_add(first, 64 * i));
	if (psn_after(psn, r->acked_psn))
		r->acked_psn = psn;
	r->ack_due = r->ack_due && psn_after(r->ack_due_psn, psn);
	return true;
}

bool reply_next(struct qp *qp, const struct key_table *keys, struct packet *p,
		struct span_list *gather)
{
	struct responder *r = &qp->resp;

	if (r->cnp_due) {
		mark_notify(qp, p);
		return true;
	}
	if (reply_has_records(r)) {
		struct record *rec = owed_record(r);

		if (rec != NULL && qp->tickets.settled < rec->ticket)
			return false;
		if (rec != NULL && record_reply(qp, keys, rec, p, gather))
			return true;
	}
	if (r->nak != 0)
		return nak_reply(qp, p);
	if (r->selection_due)
		return selection_reply(qp, p);
	return r->ack_due && ack_reply(qp, p);
}

/* The record whose present answer has this PSN. */
static struct record *answering(const struct qp *qp, uint32_t psn, uint32_t *index)
{
	const struct responder *r = &qp->resp;

	for (uint32_t i = 1; i <= r->remembered; i++) {
		struct record *rec = record_at(r, r->record_head - i);

		*index = r->record_head - i;
		if (rec->packets != 0 &&
		    psn_within(psn, rec->reply_psn, packets_of(qp, rec->reply_length)))
			return rec;
	}
	return NULL;
}

void reply_unsent(struct qp *qp, const struct packet *p)
{
	struct responder *r = &qp->resp;
	struct record *rec;
	uint32_t index = 0;

	if (opcode_table[p->opcode].kind == KIND_CNP) {
		r->cnp_due = true;
		path_uncount(qp->path, PATH_CNP_SENT);
	} else if (opcode_table[p->opcode].kind == KIND_SELECTIVE_ACK) {
		r->selection_due = true;
	} else if (opcode_table[p->opcode].kind != KIND_ACK) {
		rec = answering(qp, p->psn, &index);
		if (rec == NULL)
			return;
		rec->owed = true;
		rec->replied = MIN_OF(rec->replied, (p->psn - rec->reply_psn) & PSN_MASK);
		if ((int32_t)(index - r->record_owed) < 0)
			r->record_owed = index;
	} else if ((p->syndrome & SYNDROME_CLASS) != SYNDROME_ACK) {
		r->nak = p->syndrome;
		r->nak_psn = p->psn;
		r->nak_msn = p->msn;
	} else if (r->nak == 0) {
		r->ack_due = true;
		r->ack_due_psn = p->psn;
	}
}

void reply_fault(struct qp *qp, const struct packet *p)
{
	uint32_t index = 0;
	const struct record *rec = answering(qp, p->psn, &index);

	if (rec != NULL && qp->state != QP_STATE_ERR)
		respond_failed(qp, REASON_MEMORY_FAULT, p->psn, rec->msn);
}

void reply_forget(struct responder *r, uint32_t psn)
{
	for (uint32_t i = r->record_owed; i != r->record_head; i++) {
		struct record *rec = record_at(r, i);

		/* By its last PSN, because its end may be half of all PSNs away. */
		if (psn_distance(psn_add(rec->psn, rec->packets - 1), psn) >= 0)
			rec->owed = false;
	}
	reply_forget_answered(r);
}

void reply_abandon(struct responder *r)
{
	for (uint32_t i = r->record_owed; i != r->record_head; i++)
		record_at(r, i)->owed = false;
	r->record_owed = r->record_head;
	r->ack_due = false;
	r->cnp_due = false;
	r->selection_due = false;
	r->nak = 0;
}
