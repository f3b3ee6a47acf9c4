/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair at its edge: events come in here and go to the machine that they concern. */
#include <assert.h>

#include "base/bits.h"
#include "transport/requester/answer.h"
#include "transport/copied.h"
#include "transport/datagram.h"
#include "transport/frame.h"
#include "transport/requester/flight.h"
#include "transport/requester/kind.h"
#include "transport/requester/operation.h"
#include "transport/requester/plain.h"
#include "transport/requester/plain_answer.h"
#include "transport/requester/recovery.h"
#include "transport/qp.h"
#include "transport/responder/expected.h"
#include "transport/responder/mark.h"
#include "transport/responder/reply.h"
#include "transport/requester/request.h"
#include "transport/requester/request_check.h"
#include "transport/responder/respond.h"
#include "transport/transport.h"
#include "transport/unreliable.h"

enum qp_state qp_state(const struct qp *qp)
{
	return qp->state;
}

const struct qp_caps *qp_capabilities(const struct qp *qp)
{
	return &qp->caps;
}

/* The receive request of a message that will not be finished. */
static void held_flush(struct qp *qp)
{
	struct responder *r = &qp->resp;

	assert(!(r->open == KIND_SEND && r->kept) && "there is one request to hold");
	if (r->open == KIND_SEND || r->kept) {
		struct receive_done d = { .wr_id = r->held->wr_id,
					  .mark = r->held->mark,
					  .srq = r->srq,
					  .ticket = (uint32_t)qp->tickets.issued,
					  .status = STATUS_WR_FLUSH_ERR,
					  .reason = REASON_FLUSHED };

		receive_push(&qp->receives, &d);
	}
	r->open = KIND_UNDEFINED;
	r->kept = false;
}

void enter_error(struct qp *qp)
{
	if (qp->state == QP_STATE_ERR)
		return;
	assert(qp->state != QP_STATE_RESET && "nothing can fail there");
	qp->state = QP_STATE_ERR;
	qp->events |= QP_EVENT_ENTERED_ERR;
	qp->last_wqe_due = qp->caps.has_srq;
	qp->req.retry_at = TIME_NEVER;
	recovery_stop(qp);
	qp->resp.nak_at = TIME_NEVER;
	qp->req.rnr_until = TIME_NEVER;
	operation_abandon(qp);
	qp->req.paced_until = TIME_NEVER;
	flight_release(qp);
	flight_over(qp);
	held_flush(qp);
}

void qp_fail(struct qp *qp, enum reason why)
{
	if (qp->state == QP_STATE_RESET || qp->state == QP_STATE_ERR)
		return;
	qp->req.flush_reason = (uint8_t)why;
	tickets_abandon(qp);
	enter_error(qp);
	reply_abandon(&qp->resp);
	qp->events |= QP_EVENT_FATAL;
}

struct send_work *qp_window_slot(struct qp *qp)
{
	struct requester *r = &qp->req;
	uint32_t own = r->own_posted - r->own_retired;

	assert(r->tail - r->retired - own <= r->capacity && "no more than there is room for");
	return r->tail - r->retired - own < r->capacity ? request_at(r, r->tail) : NULL;
}

static void posted(struct qp *qp, bool own)
{
	struct message *m;

	request_check(qp, qp->req.tail);
	m = message_at(&qp->req, qp->req.tail);
	m->own = own;
	qp->req.tail++;
	/* No other one fails before it is sent. */
	if (m->fault != REASON_NONE || (kind_is_fetching(m->kind) && qp->attr.max_rd_atomic == 0))
		request_fail_in_turn(qp);
}

void qp_posted(struct qp *qp)
{
	assert(qp->req.tail - qp->req.retired <= qp->req.slot_mask && "qp_window_slot gave a slot");
	posted(qp, false);
}

struct send_work *qp_own_slot(struct qp *qp)
{
	struct requester *r = &qp->req;

	assert(r->own_posted - r->own_retired <= qp->caps.own_wr);
	return r->own_posted - r->own_retired < qp->caps.own_wr ? request_at(r, r->tail) : NULL;
}

void qp_own_posted(struct qp *qp)
{
	assert(qp_own_slot(qp) != NULL && "qp_own_slot gave a slot");
	qp->req.own_posted++;
	posted(qp, true);
}

uint32_t qp_retired(const struct qp *qp)
{
	return retired_of_program(&qp->req);
}

uint32_t qp_taken(const struct qp *qp)
{
	return qp->req.tail - qp->req.own_posted;
}

uint32_t qp_take_events(struct qp *qp)
{
	uint32_t events = qp->events;

	/*
	 * Receive requests complete in their order: those that were taken first, when their copies
	 * are settled, and only then the caller flushes the rest.
	 */
	if (receives_waiting(&qp->receives))
		events &= ~(uint32_t)QP_EVENT_ENTERED_ERR;
	qp->events &= ~events;
	/* IBTA 11.6.3.2: it follows the last completion of what was taken from the SRQ. */
	if (qp->last_wqe_due && !receives_waiting(&qp->receives)) {
		qp->last_wqe_due = false;
		events |= QP_EVENT_LAST_WQE_REACHED;
	}
	return events;
}

/* IBTA 10.9.3: P_Keys match in 15 bits, one of the two a full member; ours is 0xFFFF. */
static bool pkey_matches(uint16_t pkey)
{
	return (pkey & 0x7fff) == 0x7fff;
}

/* The opcode's service is the queue pair's; only datagrams have many receivers. */
static inline bool service_matches(const struct qp *qp, const struct packet *p,
				   const struct opcode_info *op)
{
	if (op->service == qp->service && op->header_length != 0)
		return p->dest_qpn != QPN_MULTICAST || qp->type == QP_TYPE_UD;
	return (op->kind == KIND_CNP || op->kind == KIND_SELECTIVE_ACK) &&
	       p->dest_qpn != QPN_MULTICAST && !qp_type_unreliable(qp->type);
}

/* Half of an XRC connection sends, the other receives (IBTA A14). */
static inline bool direction_fits(const struct qp *qp, const struct opcode_info *op)
{
	bool response = op->flags & OP_RESPONSE;

	return qp->service != SERVICE_XRC || op->kind == KIND_CNP ||
	       response == (qp->type == QP_TYPE_XRC_SEND);
}

void qp_target(struct qp *qp, uint32_t pd, uint32_t srq)
{
	assert(qp->type == QP_TYPE_XRC_RECV && "others have a domain of their own");
	qp->user.pd = pd;
	qp->receiver.pd = pd;
	qp->srq = srq;
}

enum reason qp_check_origin(const struct qp *qp, const struct packet *p)
{
	if (qp->type == QP_TYPE_UD || qp->type == QP_TYPE_RAW_PACKET)
		return REASON_NONE;
	if (!gid_equal(&p->src_gid, &qp->attr.path.dgid) ||
	    !gid_equal(&p->dst_gid, &qp->attr.path.sgid))
		return REASON_ADDRESS_MISMATCH;
	/* What it was sent to is this queue pair: the two mean each other. */
	return p->sender == 0 || p->sender == qp->dest_qpn ? REASON_NONE : REASON_SENDER_FOREIGN;
}

/* Is this packet one that the queue pair looks at at all? */
static inline enum reason check_arrival(const struct qp *qp, const struct packet *p,
					const struct opcode_info *op)
{
	const uint32_t sending = 1u << QP_STATE_RTS | 1u << QP_STATE_SQD;
	const uint32_t receiving = sending | 1u << QP_STATE_RTR | 1u << QP_STATE_SQE;
	enum reason why;

	if (!service_matches(qp, p, op) || !direction_fits(qp, op))
		return REASON_SERVICE_MISMATCH;
	if (!((op->flags & OP_RESPONSE ? sending : receiving) & 1u << qp->state))
		return REASON_QP_STATE;
	if (!pkey_matches(p->pkey))
		return REASON_PKEY;
	why = qp_check_origin(qp, p);
	if (why != REASON_NONE)
		return why;
	return copies_have_room(qp) ? REASON_NONE : REASON_BUSY;
}

/* The machine that a packet is for. */
static enum reason dispatch(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			    const struct key_table *keys, nanotime now, struct outcome *out)
{
	const struct opcode_info *op = &opcode_table[p->opcode];
	enum reason why;

	if (qp->type == QP_TYPE_RAW_PACKET)
		return frame_received(qp, p, offer, keys, out);
	why = check_arrival(qp, p, op);
	if (why != REASON_NONE)
		return why;
	if (qp->type == QP_TYPE_UD)
		return datagram_received(qp, p, offer, keys, out);
	if (qp->type == QP_TYPE_UC)
		return unreliable_received(qp, p, offer, keys, out);
	if (op->kind == KIND_CNP) {
		path_count(qp->path, PATH_CNP_RECEIVED);
		if (qp->path != NULL)
			path_cnp(qp->path, now);
		return REASON_CNP_RECEIVED;
	}
	if (p->ecn == ECN_CE)
		mark_seen(qp, p, now);
	if (op->flags & OP_RESPONSE)
		return plain_answer_received(qp, p, op, keys, now, out)
			       ? REASON_NONE
			       : answer_received(qp, p, keys, now, out);
	return expected_received(qp, p, op, offer, keys, out)
		       ? REASON_NONE
		       : respond_received(qp, p, offer, keys, now, out);
}

static void note_extension(struct qp *qp, const struct packet *p)
{
	qp->selective = true;
	path_peer_says(qp->path, p->late);
}

void qp_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
		 const struct key_table *keys, nanotime now, struct outcome *out)
{
	out->flags = 0;
	out->ticket = 0;
	span_list_clear(&out->place);
	out->reason = dispatch(qp, p, offer, keys, now, out);
	/* A peer that passed every check says so: until RESET. */
	if (p->selective && out->reason == REASON_NONE && !qp_type_unreliable(qp->type))
		note_extension(qp, p);
	assert((out->reason == REASON_NONE ||
		(out->flags & ~(uint32_t)(OUTCOME_RECEIVE_USED | OUTCOME_HOLD)) == 0) &&
	       "what is refused has no effect on memory");
	assert(!(out->flags & OUTCOME_PLACE) == (out->place.length == 0) &&
	       "octets that have a place are copied there");
	assert((!(out->flags & OUTCOME_RECEIVE_USED) || offer != NULL) && "what was offered");
}

void qp_held(struct qp *qp, const struct packet *p, nanotime now)
{
	if (qp->state == QP_STATE_ERR)
		return;
	assert(qp_waits(qp, p) && "as OUTCOME_HOLD said");
	if (opcode_is(p->opcode, OP_RESPONSE))
		recovery_response_held(qp, p->psn, now);
	else
		respond_held(qp, p->psn);
}

bool qp_waits(const struct qp *qp, const struct packet *p)
{
	return opcode_is(p->opcode, OP_RESPONSE) ? answer_waits(qp, p)
						 : psn_after(p->psn, qp->resp.expected_psn);
}

bool qp_has_packet(const struct qp *qp)
{
	return reply_ready(qp) ||
	       (qp->req.paced_until == TIME_NEVER && !flight_waits(&qp->req) && request_ready(qp));
}

enum next_packet qp_next_packet(struct qp *qp, const struct key_table *keys, nanotime now,
				struct packet *p, struct span_list *gather, nanotime *not_before)
{
	enum next_packet next;

	span_list_clear(gather);
	p->solicited = false;
	p->ack_req = false;
	p->fecn = false;
	p->becn = false;
	p->again = false;
	p->selective = !qp_type_unreliable(qp->type);
	p->late = path_late_step(qp->path);
	p->checksum = false;
	p->mss = 0;
	p->mig_req = true; /* path migration state is Migrated */
	p->pkey = 0xffff;
	p->dest_qpn = qp->dest_qpn;
	p->sender = 0;
	p->payload = NULL;
	p->payload_length = 0;
	p->pad = 0;
	if (reply_is_owed(&qp->resp) && reply_next(qp, keys, p, gather))
		next = NEXT_PACKET;
	else if (plain_next(qp, keys, now, p, gather))
		next = NEXT_PACKET;
	else
		next = request_next(qp, keys, now, p, gather, not_before);
	assert((next != NEXT_PACKET || p->payload != NULL || gather->length == p->payload_length) &&
	       "the payload is somewhere");
	return next;
}

void qp_unsent(struct qp *qp, const struct packet *p, nanotime now)
{
	if (opcode_is(p->opcode, OP_RESPONSE))
		reply_unsent(qp, p);
	else
		request_unsent(qp, p, now);
}

void qp_gather_failed(struct qp *qp, const struct packet *p)
{
	if (opcode_is(p->opcode, OP_RESPONSE))
		reply_fault(qp, p);
	else
		request_fault(qp, p->psn, REASON_MEMORY_FAULT);
}
