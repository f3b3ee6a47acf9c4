/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder's effects. A request that passed every check (respond_check.c) is taken in one
 * step. For any other request the verdict table says what is owed to the peer and what becomes of
 * the queue pair.
 */
#include <assert.h>

#include "base/bits.h"
#include "transport/responder/behind.h"
#include "transport/responder/duplicate.h"
#include "transport/events.h"
#include "transport/requester/kind.h"
#include "transport/responder/reply.h"
#include "transport/responder/respond.h"
#include "transport/responder/respond_check.h"
#include "transport/unreliable.h"
#include "transport/responder/verdict.h"

/* Moves the message's cursor past this packet. */
static void message_advance(const struct arrival *a)
{
	struct responder *r = &a->qp->resp;

	if (a->op->flags & OP_FIRST) {
		assert(r->open == KIND_UNDEFINED && "a message begins when none is open");
		r->offset = 0;
		r->srq = a->qp->srq;
		if (a->op->kind == KIND_WRITE) {
			r->va = a->p->va;
			r->rkey = a->p->rkey;
			r->length = a->p->dma_length;
		} else if (!(a->op->flags & OP_LAST)) {
			r->length = (uint32_t)receive_length(a->offer);
			if (a->offer != r->held)
				memcpy(r->held, a->offer,
				       sizeof(*a->offer) +
					       a->offer->num_sge * sizeof(struct work_sge));
		}
	}
	r->offset += stored_length(a);
	r->open = a->op->flags & OP_LAST ? (uint8_t)KIND_UNDEFINED : a->op->kind;
	assert((r->open == KIND_UNDEFINED || r->offset <= r->length) && "respond_check_length");
}

static void receive_complete(const struct arrival *a)
{
	const struct packet *p = a->p;
	bool by_write = a->op->kind == KIND_WRITE;
	const struct recv_work *w = a->op->flags & OP_CONSUMES ? a->offer : a->qp->resp.held;
	bool inv = a->op->flags & OP_IETH;
	struct receive_done d = {
		.wr_id = w->wr_id,
		.mark = w->mark,
		.ticket = (uint32_t)MAX_OF(a->qp->tickets.placing, a->qp->tickets.settled),
		.byte_len = a->qp->resp.offset,
		.imm = inv ? p->invalidate_rkey : p->imm,
		.srq = a->qp->srq,
		.status = STATUS_SUCCESS,
		.reason = REASON_NONE,
		.flags =
			(uint8_t)((a->op->flags & OP_IMM ? RECEIVE_IMM : 0) |
				  (inv ? RECEIVE_INV : 0) | (p->solicited ? RECEIVE_SOLICITED : 0) |
				  (by_write ? RECEIVE_BY_WRITE : 0)),
	};

	receive_push(&a->qp->receives, &d);
}

/* A SEND or WRITE packet that passed every check. */
void respond_take_data(const struct arrival *a)
{
	struct qp *qp = a->qp;
	const struct packet *p = a->p;
	uint32_t n = stored_length(a);

	assert(a->out->place.length == n && "the key's check found where all of it goes");
	if (n > 0) {
		a->out->flags |= OUTCOME_PLACE;
		a->out->source = p->payload + (p->payload_length - n);
		a->out->ticket = ticket_issue(
			&qp->tickets, a->op->kind == KIND_SEND ? TICKET_RECEIVE : TICKET_WRITE,
			p->psn, qp->resp.msn, 0);
	}
	if (a->op->flags & OP_IETH) {
		a->out->flags |= OUTCOME_INVALIDATE;
		a->out->invalidate = p->invalidate_rkey;
		a->out->invalidate_ticket =
			ticket_issue(&qp->tickets, TICKET_INVALIDATE, p->psn, qp->resp.msn, 0);
	}
	message_advance(a);
	if (a->op->flags & OP_CONSUMES)
		a->out->flags |= OUTCOME_RECEIVE_USED;
	if (a->op->flags & OP_LAST) {
		if (a->op->kind == KIND_SEND || (a->op->flags & OP_IMM))
			receive_complete(a);
		qp->resp.msn = psn_add(qp->resp.msn, 1);
	}
	if (p->ack_req && !qp_type_unreliable(qp->type)) {
		qp->resp.ack_due = true;
		qp->resp.ack_due_psn = p->psn;
	}
	qp->resp.expected_psn = psn_add(p->psn, 1);
}

/* A READ, atomic, ATOMIC WRITE or FLUSH that passed: it is owed an answer, and remembered. */
static void take_fetching(struct qp *qp, const struct packet *p, const struct opcode_info *op,
			  struct outcome *out)
{
	const struct responder *r = &qp->resp;
	uint32_t length = op->kind == KIND_READ_REQUEST ? p->dma_length : 0;

	if (kind_is_atomic(op->kind)) {
		out->flags |= OUTCOME_ATOMIC;
		out->atomic.compare_swap = op->kind == KIND_CMP_SWAP;
		out->atomic.swap_add = p->swap_add;
		out->atomic.compare = p->compare;
		out->ticket =
			ticket_issue(&qp->tickets, TICKET_ATOMIC, p->psn, r->msn, r->record_head);
	} else if (op->kind == KIND_ATOMIC_WRITE) {
		out->flags |= OUTCOME_PLACE;
		out->source = p->payload;
		out->ticket = ticket_issue(&qp->tickets, TICKET_WRITE, p->psn, r->msn, 0);
	}
	respond_record(qp, p, op->kind, length);
}

static void owe_nak(struct qp *qp, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	struct responder *r = &qp->resp;

	assert((syndrome & SYNDROME_CLASS) != SYNDROME_ACK);
	r->nak = syndrome;
	r->nak_psn = psn;
	r->nak_msn = msn;
	r->nak_ticket = qp->tickets.issued;
	r->reported = true;
	r->ack_due = false; /* it acknowledges everything before */
}

/*
 * A packet is kept, or the peer was told of a gap or is to be. If not, ahead_psn is of an old
 * gap, and after 2^23 packets it would lie in front of the expected PSN.
 */
static bool gap_is_open(const struct responder *r)
{
	return r->holding > 0 || r->nak_at != TIME_NEVER || r->reported;
}

/* The peer is expected to send the packet again by itself. */
static nanotime patience(const struct qp *qp)
{
	return MAX_OF(4 * path_srtt(qp->path), LIMIT_PATIENCE_US * TIME_US);
}

/*
 * A gap is reported only if it does not close: the network may just have reordered packets. A queue
 * pair without a path knows no time and does not wait.
 */
static void gap_seen(struct qp *qp, uint32_t psn, nanotime now)
{
	struct responder *r = &qp->resp;
	uint32_t places = (r->ahead_psn - r->expected_psn) & PSN_MASK;
	bool dropped = r->nak_at != TIME_NEVER && r->holding == 0; /* its caller had no room */

	if (qp->selective && !dropped) {
		/* The peer is told at once, and decides itself; a NAK follows in case the peer did
		 * not understand.
		 */
		behind_news(r, psn);
		if (r->nak_at == TIME_NEVER)
			r->nak_at = now + patience(qp);
	} else if (qp->path == NULL || places > LIMIT_REORDER) {
		r->nak_at = TIME_NEVER;
		owe_nak(qp, SYNDROME_NAK_SEQUENCE, r->expected_psn, r->msn);
	} else {
		r->nak_at = time_earlier(r->nak_at, now + MAX_OF(path_srtt(qp->path) / 4,
								 LIMIT_REORDER_US * TIME_US));
	}
}

void respond_passed(struct qp *qp, uint32_t psn, nanotime now)
{
	struct responder *r = &qp->resp;

	behind_passed(r, psn, (r->expected_psn - psn) & PSN_MASK);
	r->nak_at = TIME_NEVER;
	if (!psn_after(r->expected_psn, r->ahead_psn))
		gap_seen(qp, r->ahead_psn, now);
}

/*
 * Executes a request that passed, in one step. A later packet may have come before it: then a
 * packet between them is missing now, and the NAK that has not left says so.
 */
static void take(const struct arrival *a)
{
	struct responder *r = &a->qp->resp;
	bool dropped = r->nak == SYNDROME_NAK_SEQUENCE;

	if (r->reported && r->nak == 0)
		r->goes_back = true;
	r->reported = false; /* the expected PSN came: gaps may be reported again */
	r->nak = 0;
	if (kind_is_fetching(a->op->kind))
		take_fetching(a->qp, a->p, a->op, a->out);
	else
		respond_take_data(a);
	if (dropped || r->holding > 0 || r->nak_at != TIME_NEVER)
		respond_passed(a->qp, a->p->psn, a->now);
}

void respond_held(struct qp *qp, uint32_t psn)
{
	behind_add(&qp->resp, psn);
}

void respond_expired(struct qp *qp, nanotime now)
{
	struct responder *r = &qp->resp;

	if (now < r->nak_at)
		return;
	r->nak_at = TIME_NEVER;
	if (!psn_after(r->expected_psn, r->ahead_psn) && r->nak == 0)
		owe_nak(qp, SYNDROME_NAK_SEQUENCE, r->expected_psn, r->msn);
}

void respond_failed(struct qp *qp, enum reason why, uint32_t psn, uint32_t msn)
{
	const struct verdict *v = verdict_of(why);

	assert(v->fatal && v->reply == VERDICT_NAK && "the peer is told why it is over");
	enter_error(qp);
	reply_forget(&qp->resp, psn);
	owe_nak(qp, v->syndrome, psn, msn);
	/* A NAK may be lost, so no later ACK may cover the failed request. */
	qp->resp.selection_due = false;
	qp->events |= v->event;
	if (v->syndrome == SYNDROME_NAK_REMOTE_ACCESS)
		qp->events |= QP_EVENT_REFUSED_ACCESS;
}

/* The receive request that the failing message holds, or was about to take, reports the error. */
static void fail_receive(const struct arrival *a, enum reason why, enum work_status status)
{
	struct responder *r = &a->qp->resp;
	bool offered = r->open == KIND_UNDEFINED && (a->op->flags & OP_CONSUMES) &&
		       a->op->kind == KIND_SEND && a->offer != NULL;
	struct receive_done d = { .ticket = (uint32_t)a->qp->tickets.issued,
				  .srq = offered ? a->qp->srq : r->srq,
				  .status = (uint8_t)status,
				  .reason = (uint8_t)why };

	if (!offered && r->open != KIND_SEND)
		return;
	d.wr_id = offered ? a->offer->wr_id : r->held->wr_id;
	d.mark = offered ? a->offer->mark : r->held->mark;
	r->open = KIND_UNDEFINED;
	if (offered)
		a->out->flags |= OUTCOME_RECEIVE_USED;
	receive_push(&a->qp->receives, &d);
}

/* A repetition is answered like the request: by its record, or by an ACK of all in order. */
static void owe_again(const struct arrival *a)
{
	struct responder *r = &a->qp->resp;

	if (a->record != NULL) {
		duplicate_owe(a);
	} else {
		r->ack_due = true;
		r->ack_due_psn = psn_add(r->expected_psn, PSN_MASK);
	}
}

/* Not further ahead than a uroce peer sends, and not kept already. */
static bool worth_holding(const struct responder *r, uint32_t psn)
{
	return psn_within(psn, r->expected_psn, LIMIT_WINDOW_MOST) && !behind_has(r, psn);
}

/* A packet before it is missing. It is asked nothing more until that has come. */
static enum reason came_ahead(struct qp *qp, uint32_t psn, nanotime now, struct outcome *out)
{
	struct responder *r = &qp->resp;

	if (worth_holding(r, psn))
		out->flags |= OUTCOME_HOLD;
	if (!gap_is_open(r))
		r->goes_back = false;
	if (!gap_is_open(r) || psn_after(psn, r->ahead_psn))
		r->ahead_psn = psn;
	if (!r->reported) {
		gap_seen(qp, psn, now);
		return REASON_PSN_AHEAD;
	}
	if (qp->selective && r->holding > 0)
		behind_news(r, psn); /* also behind a NAK: one comes in a long round trip */
	return REASON_PSN_AHEAD_AGAIN;
}

/*
 * The expected packet is refused. What comes behind it is ahead from now on. The NAK says where the
 * peer goes on, so a gap that was to be reported is not: rxe would count that as one more retry, and
 * ignore the next report.
 */
static void refuse_expected(struct qp *qp, uint8_t syndrome)
{
	struct responder *r = &qp->resp;

	if (!gap_is_open(r))
		r->ahead_psn = r->expected_psn;
	r->nak_at = TIME_NEVER;
	owe_nak(qp, syndrome, r->expected_psn, r->msn);
}

/*
 * A kept packet finds no receive request, but the peer is about to send it again: that one is answered, taken or
 * refused. Two answers let rxe lose count of its PSNs: it sends on behind an RNR NAK, and the end of its wait takes it
 * back once more, even if an ACK came meanwhile.
 */
static bool comes_again(const struct qp *qp, bool kept)
{
	return kept && qp->resp.goes_back && !qp->selective && qp->path != NULL;
}

static void await_again(struct qp *qp, nanotime now)
{
	qp->resp.nak = 0;
	qp->resp.reported = true;
	qp->resp.nak_at = now + patience(qp);
}

static void judge(const struct arrival *a, enum reason why, bool kept)
{
	struct qp *qp = a->qp;
	const struct verdict *v = verdict_of(why);

	assert(why != REASON_NONE);
	span_list_clear(&a->out->place);
	if (v->fatal) {
		fail_receive(a, why, v->receive_status);
		respond_failed(qp, why, qp->resp.expected_psn, qp->resp.msn);
	} else if (v->reply == VERDICT_NAK) {
		refuse_expected(qp, v->syndrome);
	} else if (v->reply == VERDICT_RNR && comes_again(qp, kept)) {
		await_again(qp, a->now);
	} else if (v->reply == VERDICT_RNR) {
		refuse_expected(qp, SYNDROME_RNR | qp->min_rnr_timer);
	} else if (v->reply == VERDICT_AGAIN) {
		owe_again(a);
	}
}

enum reason respond_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			     const struct key_table *keys, nanotime now, struct outcome *out)
{
	struct arrival a = { .qp = qp,
			     .p = p,
			     .op = &opcode_table[p->opcode],
			     .offer = offer,
			     .keys = keys,
			     .out = out,
			     .now = now };
	enum reason why;
	bool kept;

	assert(!qp_type_unreliable(qp->type) && qp->type != QP_TYPE_XRC_SEND);
	span_list_clear(&out->place); /* of what expected_received looked at */
	if (psn_after(p->psn, qp->resp.expected_psn))
		return came_ahead(qp, p->psn, now, out);
	why = respond_check(&a);
	if (why == REASON_NONE) {
		take(&a);
		return why;
	}
	/* The caller no longer keeps it, so the peer must send it again. */
	kept = p->psn == qp->resp.expected_psn && behind_has(&qp->resp, p->psn);
	if (kept)
		behind_remove(&qp->resp, p->psn);
	judge(&a, why, kept);
	return why;
}

bool qp_wants_receive(const struct qp *qp, const struct packet *p)
{
	if (qp->type == QP_TYPE_RAW_PACKET)
		return true;
	if (opcode_table[p->opcode].service != qp->service || qp->type == QP_TYPE_XRC_SEND)
		return false;
	if (qp->type == QP_TYPE_UC)
		return unreliable_wants_receive(qp, p);
	return opcode_is(p->opcode, OP_CONSUMES) &&
	       (qp->type == QP_TYPE_UD || p->psn == qp->resp.expected_psn);
}
