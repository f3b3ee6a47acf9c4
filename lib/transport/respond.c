/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder. A request passes the checks in the specification's order (IBTA 9.7.4.1, 9.7.5)
 *
 *	PSN -> opcode sequence -> operation allowed -> resources -> length -> key and range
 *
 * and only then has any effect; what a failed check means is the verdict table's business.
 */
#include "base/bits.h"
#include "transport/events.h"
#include "transport/kind.h"
#include "transport/reply.h"
#include "transport/respond.h"
#include "transport/unreliable.h"
#include "transport/verdict.h"

static enum reason check_psn(const struct arrival *a)
{
	const struct responder *r = &a->qp->resp;
	int32_t ahead = psn_distance(a->p->psn, r->expected_psn);

	if (ahead == 0)
		return REASON_NONE;
	if (ahead < 0)
		return REASON_DUPLICATE;
	return r->reported ? REASON_PSN_AHEAD_AGAIN : REASON_PSN_AHEAD;
}

/*
 * Inside a message only its continuation, outside only a beginning (IBTA 9.7.4.1.2); and all of it
 * is for the SRQ that it began with.
 */
static enum reason check_sequence(const struct arrival *a)
{
	const struct responder *r = &a->qp->resp;
	bool begins = a->op->flags & OP_FIRST;

	if (r->open == KIND_UNDEFINED)
		return begins ? REASON_NONE : REASON_OPCODE_SEQUENCE;
	return !begins && a->op->kind == r->open && a->qp->srq == r->srq ? REASON_NONE
									 : REASON_OPCODE_SEQUENCE;
}

/* The rights that the placement types of a FETH need; reserved types need none and are refused. */
static uint32_t flush_access(uint32_t feth)
{
	return (feth & FLUSH_GLOBAL ? ACCESS_FLUSH_GLOBAL : 0) |
	       (feth & FLUSH_PERSISTENT ? ACCESS_FLUSH_PERSISTENT : 0);
}

static bool flush_defined(uint32_t feth)
{
	uint32_t type = FETH_TYPE(feth);

	return type != 0 && (type & ~(FLUSH_GLOBAL | FLUSH_PERSISTENT)) == 0 &&
	       FETH_LEVEL(feth) <= FLUSH_REGION;
}

enum reason respond_check_access(const struct arrival *a)
{
	static const struct {
		bool supported;
		uint32_t needs; /* enum access_flag of the queue pair */
	} operation[] = {
		[KIND_SEND] = { true, 0 },
		[KIND_WRITE] = { true, ACCESS_REMOTE_WRITE },
		[KIND_READ_REQUEST] = { true, ACCESS_REMOTE_READ },
		[KIND_CMP_SWAP] = { true, ACCESS_REMOTE_ATOMIC },
		[KIND_FETCH_ADD] = { true, ACCESS_REMOTE_ATOMIC },
		[KIND_FLUSH] = { true, 0 }, /* and what its type needs */
		[KIND_ATOMIC_WRITE] = { true, ACCESS_REMOTE_WRITE },
	};
	uint8_t kind = a->op->kind;
	uint32_t needs;

	if (kind >= ARRAY_SIZE(operation) || !operation[kind].supported)
		return REASON_OPCODE_UNSUPPORTED;
	needs = operation[kind].needs | (kind == KIND_FLUSH ? flush_access(a->p->feth) : 0);
	return (needs & ~a->qp->resp.access) == 0 ? REASON_NONE : REASON_ACCESS_FLAGS;
}

/* XRC: receive requests, protection domain and rights are those of an SRQ (protocol-map 170). */
static enum reason check_target(const struct arrival *a)
{
	return (a->op->flags & OP_XRCETH) && a->qp->srq == 0 ? REASON_SRQ_UNKNOWN : REASON_NONE;
}

/* The record that a new one replaces. */
static struct record *record_oldest(const struct qp *qp)
{
	const struct responder *r = &qp->resp;

	return record_at(r, r->record_head - qp->max_dest_rd_atomic);
}

/*
 * It must be answered before it makes room: a peer that keeps to max_dest_rd_atomic has seen its
 * answer, and only a packet that was delayed on the way asks for it again.
 */
static bool record_free(const struct qp *qp)
{
	const struct record *oldest;

	if (qp->max_dest_rd_atomic == 0)
		return false;
	oldest = record_oldest(qp);
	return !oldest->owed || oldest->repeated;
}

static enum reason check_resources(struct arrival *a)
{
	if (kind_is_fetching(a->op->kind) && !record_free(a->qp))
		return REASON_RD_ATOMIC_LIMIT;
	if (!(a->op->flags & OP_CONSUMES))
		return REASON_NONE;
	return check_offer(a->qp, a->offer);
}

uint64_t receive_length(const struct recv_work *w)
{
	const struct work_sge *sge = recv_work_sge(w);
	uint64_t length = 0;

	for (uint32_t i = 0; i < w->num_sge; i++)
		length += sge[i].length;
	return MIN_OF(length, LIMIT_MESSAGE);
}

static enum reason check_payload(const struct arrival *a)
{
	uint32_t n = a->p->payload_length, mtu = a->qp->mtu;

	if (a->p->pad != (-n & 3))
		return REASON_LENGTH_PAYLOAD;
	if (!(a->op->flags & OP_PAYLOAD))
		return n == 0 ? REASON_NONE : REASON_LENGTH_PAYLOAD;
	if (!(a->op->flags & OP_LAST)) /* FIRST and MIDDLE are full */
		return n == mtu ? REASON_NONE : REASON_LENGTH_PAYLOAD;
	if (n == 0 && !(a->op->flags & OP_FIRST)) /* a LAST brings something */
		return REASON_LENGTH_PAYLOAD;
	return n <= mtu ? REASON_NONE : REASON_LENGTH_PAYLOAD;
}

/* WRITE: the payloads' sum is the RETH's length, no more and no less (IBTA 9.7.4.1.6). */
static enum reason check_write_length(const struct arrival *a)
{
	const struct responder *r = &a->qp->resp;
	uint32_t n = a->p->payload_length;
	uint32_t rest = a->op->flags & OP_FIRST ? a->p->dma_length : r->length - r->offset;
	bool fits = a->op->flags & OP_LAST ? n == rest : n < rest;

	return fits ? REASON_NONE : REASON_LENGTH_RETH;
}

/* Octets of this packet that go into memory. */
static uint32_t stored_length(const struct arrival *a)
{
	uint32_t n = a->p->payload_length;

	if (a->op->kind != KIND_SEND || !(a->op->flags & OP_FIRST))
		return n;
	return n - MIN_OF(n, a->offer->strip);
}

static enum reason check_send_length(const struct arrival *a)
{
	const struct responder *r = &a->qp->resp;
	uint64_t n = stored_length(a);

	if (a->op->flags & OP_FIRST)
		return n <= receive_length(a->offer) ? REASON_NONE : REASON_LENGTH_RECEIVE;
	return n <= r->length - r->offset ? REASON_NONE : REASON_LENGTH_RECEIVE;
}

enum reason respond_check_length(const struct arrival *a)
{
	enum reason why = check_payload(a);

	if (why != REASON_NONE)
		return why;
	if ((a->op->flags & OP_RETH) && a->p->dma_length > LIMIT_MESSAGE)
		return REASON_LENGTH_MESSAGE;
	if (a->op->kind == KIND_ATOMIC_WRITE &&
	    (a->p->dma_length != 8 || a->p->payload_length != 8))
		return REASON_LENGTH_RETH;
	if (((a->op->flags & OP_ATOMIC_ETH) || a->op->kind == KIND_ATOMIC_WRITE) &&
	    (a->p->va & 7) != 0)
		return REASON_ATOMIC_ALIGNMENT;
	if (a->op->kind == KIND_FLUSH && !flush_defined(a->p->feth))
		return REASON_FLUSH_TYPE;
	if (a->op->kind == KIND_WRITE)
		return check_write_length(a);
	return a->op->kind == KIND_SEND ? check_send_length(a) : REASON_NONE;
}

/* The whole range at the first packet, what is touched at every packet (protocol-map 151, 152). */
static enum reason check_write_key(const struct arrival *a)
{
	const struct responder *r = &a->qp->resp;
	const struct packet *p = a->p;
	const struct region *region;
	enum reason why;

	if (p->payload_length == 0) /* no octet, no key (C9-88) */
		return REASON_NONE;
	if (!(a->op->flags & OP_FIRST))
		return key_spans(a->keys, r->rkey, a->qp->user, ACCESS_REMOTE_WRITE,
				 r->va + r->offset, p->payload_length, &a->out->place);
	if (p->dma_length > p->payload_length) {
		why = key_check(a->keys, p->rkey, a->qp->user, ACCESS_REMOTE_WRITE, p->va,
				p->dma_length, &region);
		if (why != REASON_NONE)
			return why;
	}
	return key_spans(a->keys, p->rkey, a->qp->user, ACCESS_REMOTE_WRITE, p->va,
			 p->payload_length, &a->out->place);
}

static enum reason check_send_key(const struct arrival *a)
{
	const struct responder *r = &a->qp->resp;
	bool first = a->op->flags & OP_FIRST;
	const struct recv_work *w = first ? a->offer : r->held;
	enum reason why = key_spans_of_list(a->keys, recv_work_sge(w), w->num_sge, a->qp->receiver,
					    ACCESS_LOCAL_WRITE, first ? 0 : r->offset,
					    stored_length(a), &a->out->place);

	if (why != REASON_NONE)
		return REASON_RECEIVE_MEMORY;
	if ((a->op->flags & OP_IETH) &&
	    key_check_invalidate(a->keys, a->p->invalidate_rkey, a->qp->user) != REASON_NONE)
		return REASON_INVALIDATE_KEY;
	return REASON_NONE;
}

static enum reason check_atomic_key(const struct arrival *a)
{
	struct span_list *place = &a->out->place;
	enum reason why = key_spans(a->keys, a->p->rkey, a->qp->user, ACCESS_REMOTE_ATOMIC,
				    a->p->va, 8, place);

	if (why != REASON_NONE)
		return why;
	if (place->count != 1) /* eight octets that lie apart are not one memory access */
		return REASON_MEMORY_FAULT;
	a->out->atomic.target = place->span[0];
	span_list_clear(place);
	return REASON_NONE;
}

static enum reason check_read_key(const struct arrival *a)
{
	const struct region *region;

	if (a->p->dma_length == 0)
		return REASON_NONE;
	return key_check(a->keys, a->p->rkey, a->qp->user, ACCESS_REMOTE_READ, a->p->va,
			 a->p->dma_length, &region);
}

/* Eight octets that the caller stores at once: not where a store would be cut in two. */
static enum reason check_atomic_write_key(const struct arrival *a)
{
	struct span_list *place = &a->out->place;
	enum reason why = key_spans(a->keys, a->p->rkey, a->qp->user, ACCESS_REMOTE_WRITE, a->p->va,
				    8, place);
	uint64_t at;

	if (why != REASON_NONE)
		return why;
	at = place->span[0].direct != NULL ? (uintptr_t)place->span[0].direct
					   : place->span[0].peer_address;
	return place->count == 1 && (at & 7) == 0 ? REASON_NONE : REASON_MEMORY_FAULT;
}

/* The key counts even where no octet is named (IBTA A19). */
static enum reason check_flush_key(const struct arrival *a)
{
	const struct packet *p = a->p;
	const struct region *region = key_find(a->keys, p->rkey);
	bool whole = FETH_LEVEL(p->feth) == FLUSH_REGION;

	if (region == NULL)
		return REASON_KEY_UNKNOWN;
	return key_check(a->keys, p->rkey, a->qp->user, flush_access(p->feth),
			 whole ? region->iova : p->va, whole ? region->length : p->dma_length,
			 &region);
}

enum reason respond_check_key(const struct arrival *a)
{
	switch (a->op->kind) {
	case KIND_WRITE:
		return check_write_key(a);
	case KIND_SEND:
		return check_send_key(a);
	case KIND_READ_REQUEST:
		return check_read_key(a);
	case KIND_ATOMIC_WRITE:
		return check_atomic_write_key(a);
	case KIND_FLUSH:
		return check_flush_key(a);
	default:
		return check_atomic_key(a);
	}
}

/* The message's cursor past this packet. */
static void message_advance(const struct arrival *a)
{
	struct responder *r = &a->qp->resp;

	if (a->op->flags & OP_FIRST) {
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
static void take_fetching(const struct arrival *a)
{
	struct qp *qp = a->qp;
	struct responder *r = &qp->resp;
	const struct packet *p = a->p;
	uint32_t index = r->record_head;
	struct record *rec = record_at(r, index);
	bool read = a->op->kind == KIND_READ_REQUEST;

	record_oldest(qp)->owed = false;
	reply_forget_answered(&qp->resp);
	r->record_head++;

	if (kind_is_atomic(a->op->kind)) {
		a->out->flags |= OUTCOME_ATOMIC;
		a->out->atomic.compare_swap = a->op->kind == KIND_CMP_SWAP;
		a->out->atomic.swap_add = p->swap_add;
		a->out->atomic.compare = p->compare;
		a->out->ticket = ticket_issue(&qp->tickets, TICKET_ATOMIC, p->psn, r->msn, index);
	} else if (a->op->kind == KIND_ATOMIC_WRITE) {
		a->out->flags |= OUTCOME_PLACE;
		a->out->source = p->payload;
		a->out->ticket = ticket_issue(&qp->tickets, TICKET_WRITE, p->psn, r->msn, 0);
	}
	r->msn = psn_add(r->msn, 1); /* a READ counts when it starts (C9-148) */
	*rec = (struct record){
		.kind = a->op->kind,
		.psn = p->psn,
		.packets = read ? packets_of(qp, p->dma_length) : 1,
		.va = p->va,
		.length = read ? p->dma_length : 0,
		.rkey = p->rkey,
		.pd = qp->user.pd,
		.msn = r->msn,
		.ticket = qp->tickets.issued,
		.reply_psn = p->psn,
		.reply_va = p->va,
		.reply_length = read ? p->dma_length : 0,
		.owed = true,
	};
	r->expected_psn = psn_add(p->psn, rec->packets);
}

static void owe_nak(struct qp *qp, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	struct responder *r = &qp->resp;

	r->nak = syndrome;
	r->nak_psn = psn;
	r->nak_msn = msn;
	r->nak_ticket = qp->tickets.issued;
	r->reported = true;
	r->ack_due = false; /* it acknowledges everything before */
}

/*
 * Executes a request that passed, in one step. A packet behind it may have come before it in this
 * burst and was dropped: then that one is missing now, and the NAK that has not left says so.
 */
static void take(const struct arrival *a)
{
	struct responder *r = &a->qp->resp;
	bool dropped = r->nak == SYNDROME_NAK_SEQUENCE;

	r->reported = false; /* the expected PSN came: gaps are reported again */
	r->nak = 0;
	if (kind_is_fetching(a->op->kind))
		take_fetching(a);
	else
		respond_take_data(a);
	if (dropped && !psn_after(r->expected_psn, r->ahead_psn))
		owe_nak(a->qp, SYNDROME_NAK_SEQUENCE, r->expected_psn, r->msn);
}

void respond_failed(struct qp *qp, enum reason why, uint32_t psn, uint32_t msn)
{
	const struct verdict *v = verdict_of(why);

	enter_error(qp);
	reply_forget(&qp->resp, psn);
	owe_nak(qp, v->syndrome, psn, msn);
	qp->events |= v->event;
}

/* The receive request that the failing message holds, or was about to take, tells its program. */
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

static void judge(const struct arrival *a, enum reason why)
{
	struct qp *qp = a->qp;
	const struct verdict *v = verdict_of(why);

	span_list_clear(&a->out->place);
	if (why == REASON_PSN_AHEAD ||
	    (why == REASON_PSN_AHEAD_AGAIN && psn_after(a->p->psn, qp->resp.ahead_psn)))
		qp->resp.ahead_psn = a->p->psn;
	if (v->fatal) {
		fail_receive(a, why, v->receive_status);
		respond_failed(qp, why, qp->resp.expected_psn, qp->resp.msn);
	} else if (v->reply == VERDICT_NAK) {
		owe_nak(qp, v->syndrome, qp->resp.expected_psn, qp->resp.msn);
	} else if (v->reply == VERDICT_RNR) {
		owe_nak(qp, SYNDROME_RNR | qp->min_rnr_timer, qp->resp.expected_psn, qp->resp.msn);
	} else if (v->reply == VERDICT_ACK_AGAIN) {
		qp->resp.ack_due = true;
		qp->resp.ack_due_psn = psn_add(qp->resp.expected_psn, PSN_MASK);
	}
}

static enum reason check(struct arrival *a)
{
	enum reason why = check_psn(a);

	if (why == REASON_NONE)
		why = check_sequence(a);
	if (why == REASON_NONE)
		why = respond_check_access(a);
	if (why == REASON_NONE)
		why = check_target(a);
	if (why == REASON_NONE)
		why = check_resources(a);
	if (why == REASON_NONE)
		why = respond_check_length(a);
	if (why == REASON_NONE)
		why = respond_check_key(a);
	return why;
}

enum reason respond_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			     const struct key_table *keys, struct outcome *out)
{
	struct arrival a = { .qp = qp,
			     .p = p,
			     .op = &opcode_table[p->opcode],
			     .offer = offer,
			     .keys = keys,
			     .out = out };
	enum reason why;

	if (qp->state == QP_STATE_RTR && !qp->established) {
		qp->established = true;
		qp->events |= QP_EVENT_COMM_EST; /* IBTA 11.6.3.1 */
	}
	why = check(&a);
	if (why == REASON_DUPLICATE && kind_is_fetching(a.op->kind))
		why = duplicate_received(qp, p);
	else if (why == REASON_NONE)
		take(&a);
	else
		judge(&a, why);
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
