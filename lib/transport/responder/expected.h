/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nearly all packets are alike: all of a small message or the middle of a large one, in order,
 * without extras. The checks are those of respond_check.c, the effects those of respond.c for such
 * a packet. Inline, too (plain.h).
 */
#ifndef TRANSPORT_EXPECTED_H
#define TRANSPORT_EXPECTED_H

#include <assert.h>

#include "base/bits.h"
#include "memory/spans.h"
#include "transport/outcomes.h"
#include "transport/qp.h"
#include "transport/responder/respond_check.h"
#include "wire/opcode.h"

/* The properties of a one-packet message that differ between opcodes. */
#define EXPECTED_SHAPE                                                                            \
	(OP_FIRST | OP_LAST | OP_PAYLOAD | OP_RETH | OP_CONSUMES | OP_IMM | OP_IETH | OP_XRCETH | \
	 OP_ATOMIC_ETH)
#define EXPECTED_WHOLE_WRITE  (OP_FIRST | OP_LAST | OP_PAYLOAD | OP_RETH)
#define EXPECTED_READ_REQUEST (OP_FIRST | OP_LAST | OP_RETH)
#define EXPECTED_WHOLE_SEND   (OP_FIRST | OP_LAST | OP_PAYLOAD | OP_CONSUMES)

/*
 * In order, in a message of that kind (KIND_UNDEFINED: between messages), and no NAK waits for it. The first
 * packet in RTR raises an event (qp.c); programs that only serve WRITEs and READs stay in RTR.
 */
static inline bool expected_in_turn(const struct qp *qp, const struct packet *p, uint8_t open)
{
	const struct responder *r = &qp->resp;

	return p->psn == r->expected_psn && r->open == open && !r->reported && r->nak == 0 &&
	       (qp->state != QP_STATE_RTR || qp->established);
}

/* Between 1 octet and a path MTU, padded correctly. */
static inline bool expected_payload_fits(const struct qp *qp, const struct packet *p)
{
	return p->payload_length - 1 < qp->mtu && p->pad == (-p->payload_length & 3);
}

static inline bool expected_write_passes(const struct qp *qp, const struct packet *p,
					 const struct key_table *keys, struct span_list *place)
{
	const uint32_t access = ACCESS_REMOTE_WRITE, n = p->payload_length;

	if (p->dma_length != n || !(qp->resp.access & access))
		return false;
	return key_one_span(keys, p->rkey, qp->user, access, p->va, n, place) ||
	       key_spans(keys, p->rkey, qp->user, access, p->va, n, place) == REASON_NONE;
}

static inline bool expected_send_passes(const struct qp *qp, const struct packet *p,
					const struct recv_work *offer, const struct key_table *keys,
					struct span_list *place)
{
	const uint32_t access = ACCESS_LOCAL_WRITE, n = p->payload_length;
	const struct work_sge *sge;

	if (check_offer(qp, offer) != REASON_NONE || offer->strip != 0)
		return false;
	sge = recv_work_sge(offer);
	if (key_one_span_of_list(keys, sge, offer->num_sge, qp->receiver, access, 0, n, place))
		return true;
	return n <= receive_length(offer) &&
	       key_spans_of_list(keys, sge, offer->num_sge, qp->receiver, access, 0, n, place) ==
		       REASON_NONE;
}

static inline void expected_take(struct qp *qp, const struct packet *p, enum ticket_kind kind,
				 struct outcome *out)
{
	struct responder *r = &qp->resp;

	assert(out->place.length == p->payload_length && "the key's check found where it goes");
	out->flags = OUTCOME_PLACE;
	out->source = p->payload;
	out->ticket = ticket_issue(&qp->tickets, kind, p->psn, r->msn, 0);
	if (p->ack_req) {
		r->ack_due = true;
		r->ack_due_psn = p->psn;
	}
	r->expected_psn = psn_add(p->psn, 1);
}

static inline void expected_receive_complete(struct qp *qp, const struct packet *p,
					     const struct recv_work *w, const struct outcome *out)
{
	struct receive_done d = { .wr_id = w->wr_id,
				  .mark = w->mark,
				  .ticket = (uint32_t)out->ticket,
				  .byte_len = p->payload_length,
				  .srq = qp->srq,
				  .status = STATUS_SUCCESS,
				  .reason = REASON_NONE,
				  .flags = p->solicited ? RECEIVE_SOLICITED : 0u };

	receive_push(&qp->receives, &d);
}

static inline bool expected_read_passes(const struct qp *qp, const struct packet *p,
					const struct key_table *keys)
{
	const uint32_t access = ACCESS_REMOTE_READ, n = p->dma_length;
	const struct region *region;

	return p->payload_length == 0 && p->pad == 0 && n - 1 < LIMIT_MESSAGE &&
	       (qp->resp.access & access) && record_free(&qp->resp) &&
	       key_check_here(keys, p->rkey, qp->user, access, p->va, n, &region) == REASON_NONE;
}

/* Where a packet in the middle of a message goes. False: the key does not, or no longer, allow it.
 */
static inline bool expected_middle_passes(const struct qp *qp, uint32_t n,
					  const struct key_table *keys, struct span_list *place)
{
	const struct responder *r = &qp->resp;
	const struct recv_work *w = r->held;

	if (r->open == KIND_SEND)
		return n <= r->length - r->offset &&
		       key_one_span_of_list(keys, recv_work_sge(w), w->num_sge, qp->receiver,
					    ACCESS_LOCAL_WRITE, r->offset, n, place);
	return n < r->length - r->offset && (r->access & ACCESS_REMOTE_WRITE) &&
	       key_one_span(keys, r->rkey, qp->user, ACCESS_REMOTE_WRITE, r->va + r->offset, n,
			    place);
}

static inline bool expected_take_middle(struct qp *qp, const struct packet *p, uint8_t kind,
					const struct key_table *keys, struct outcome *out)
{
	if ((kind != KIND_SEND && kind != KIND_WRITE) || !expected_in_turn(qp, p, kind) ||
	    qp->srq != qp->resp.srq || p->payload_length != qp->mtu || p->pad != 0 ||
	    !expected_middle_passes(qp, qp->mtu, keys, &out->place))
		return false;
	expected_take(qp, p, kind == KIND_SEND ? TICKET_RECEIVE : TICKET_WRITE, out);
	qp->resp.offset += p->payload_length;
	return true;
}

/*
 * Takes the packet if it is the expected one and well formed (all of a WRITE or SEND, the middle of
 * a longer one, or a READ), and no NAK waits for it. The caller looks for other gaps then
 * (respond_passed). False: another case; only out->place has changed, and respond.c finds out what
 * to do. The packet was checked as far as it can be without the responder (check_arrival).
 */
static inline bool expected_received(struct qp *qp, const struct packet *p,
				     const struct opcode_info *op, const struct recv_work *offer,
				     const struct key_table *keys, struct outcome *out)
{
	uint32_t shape = op->flags & EXPECTED_SHAPE;

	if (shape == EXPECTED_WHOLE_WRITE && op->kind == KIND_WRITE) {
		if (!expected_in_turn(qp, p, KIND_UNDEFINED) || !expected_payload_fits(qp, p) ||
		    !expected_write_passes(qp, p, keys, &out->place))
			return false;
		expected_take(qp, p, TICKET_WRITE, out);
		qp->resp.msn = psn_add(qp->resp.msn, 1);
		return true;
	}
	if (shape == OP_PAYLOAD)
		return expected_take_middle(qp, p, op->kind, keys, out);
	if (op->kind == KIND_READ_REQUEST) {
		if (shape != EXPECTED_READ_REQUEST || !expected_in_turn(qp, p, KIND_UNDEFINED) ||
		    !expected_read_passes(qp, p, keys))
			return false;
		respond_record(qp, p, KIND_READ_REQUEST, p->dma_length);
		return true;
	}
	if (shape != EXPECTED_WHOLE_SEND || !expected_in_turn(qp, p, KIND_UNDEFINED) ||
	    !expected_payload_fits(qp, p) || !expected_send_passes(qp, p, offer, keys, &out->place))
		return false;
	expected_take(qp, p, TICKET_RECEIVE, out);
	qp->resp.msn = psn_add(qp->resp.msn, 1);
	out->flags |= OUTCOME_RECEIVE_USED;
	expected_receive_complete(qp, p, offer, out);
	return true;
}

#endif
