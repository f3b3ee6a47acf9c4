/* SPDX-License-Identifier: BSD-3-Clause */
/* The edge of a queue pair: events come in here and go to the machine that they concern. */
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
#include "transport/responder/plain_reply.h"
#include "transport/responder/reply.h"
#include "transport/requester/request.h"
#include "transport/requester/request_check.h"
#include "transport/requester/retry.h"
#include "transport/responder/respond.h"
#include "transport/transport.h"
#include "transport/unreliable.h"

/*
 * All that is in headers is inline. Left to itself, the compiler calls the plain cases, and what they share with
 * others.
 */
#define FLATTEN __attribute__((flatten))

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

static inline struct send_work *window_slot(const struct requester *r)
{
	uint32_t own = r->own_posted - r->own_retired;

	assert(r->tail - r->retired - own <= r->capacity && "no more than there is room for");
	return r->tail - r->retired - own < r->capacity ? request_at(r, r->tail) : NULL;
}

struct send_work *qp_window_slot(struct qp *qp)
{
	return window_slot(&qp->req);
}

static inline void posted(struct qp *qp, bool own)
{
	struct requester *r = &qp->req;
	struct message *m = message_at(r, r->tail);

	assert(r->tail - r->retired <= r->slot_mask && "it was written to a free slot");
	request_check(qp, request_at(r, r->tail), m);
	m->own = own;
	r->tail++;
	/* No other request fails before it is sent. */
	if (m->fault != REASON_NONE || (qp->attr.max_rd_atomic == 0 && kind_is_fetching(m->kind)))
		request_fail_in_turn(qp);
}

struct send_work *qp_posted(struct qp *qp)
{
	posted(qp, false);
	return window_slot(&qp->req);
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
	 * Receive requests complete in order. Those that were taken complete when their copies are
	 * settled; only then does the caller flush the rest.
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
static inline bool service_matches(enum service service, uint8_t type, const struct packet *p,
				   const struct opcode_info *op)
{
	if (op->service == service && op->header_length != 0)
		return p->dest_qpn != QPN_MULTICAST || type == QP_TYPE_UD;
	return (op->kind == KIND_CNP || op->kind == KIND_SELECTIVE_ACK) &&
	       p->dest_qpn != QPN_MULTICAST && !qp_type_unreliable(type);
}

/* Half of an XRC connection sends, the other receives (IBTA A14). */
static inline bool direction_fits(enum service service, uint8_t type, const struct opcode_info *op)
{
	bool response = op->flags & OP_RESPONSE;

	return service != SERVICE_XRC || op->kind == KIND_CNP ||
	       response == (type == QP_TYPE_XRC_SEND);
}

void qp_target(struct qp *qp, uint32_t pd, uint32_t srq)
{
	assert(qp->type == QP_TYPE_XRC_RECV && "others have a domain of their own");
	qp->user.pd = pd;
	qp->receiver.pd = pd;
	qp->srq = srq;
}

static inline enum reason check_origin(const struct qp *qp, uint8_t type, const struct packet *p)
{
	if (type == QP_TYPE_UD || type == QP_TYPE_RAW_PACKET)
		return REASON_NONE;
	if (!gid_equal(&p->src_gid, &qp->attr.path.dgid) ||
	    !gid_equal(&p->dst_gid, &qp->attr.path.sgid))
		return REASON_ADDRESS_MISMATCH;
	/* The packet is for this queue pair: the two queue pairs name each other. */
	return p->sender == 0 || p->sender == qp->dest_qpn ? REASON_NONE : REASON_SENDER_FOREIGN;
}

enum reason qp_check_origin(const struct qp *qp, const struct packet *p)
{
	return check_origin(qp, qp->type, p);
}

/*
 * Two more completions than packets: one may fail both its own and an open message's. Two tickets: a SEND with
 * invalidate takes them.
 */
static inline bool has_room(const struct qp *qp)
{
	return qp->tickets.issued - qp->tickets.settled < qp->tickets.mask &&
	       qp->receives.done - qp->receives.taken < qp->receives.mask - 1;
}

bool qp_can_receive(const struct qp *qp)
{
	return has_room(qp);
}

/* Whether the queue pair looks at this packet at all. */
static inline enum reason check_arrival(const struct qp *qp, uint8_t type, enum service service,
					const struct packet *p, const struct opcode_info *op)
{
	const uint32_t sending = 1u << QP_STATE_RTS | 1u << QP_STATE_SQD;
	const uint32_t receiving = sending | 1u << QP_STATE_RTR | 1u << QP_STATE_SQE;
	enum reason why;

	if (!service_matches(service, type, p, op) || !direction_fits(service, type, op))
		return REASON_SERVICE_MISMATCH;
	if (qp->state != QP_STATE_RTS &&
	    !((op->flags & OP_RESPONSE ? sending : receiving) & 1u << qp->state))
		return REASON_QP_STATE;
	if (!pkey_matches(p->pkey))
		return REASON_PKEY;
	why = check_origin(qp, type, p);
	if (why != REASON_NONE)
		return why;
	return has_room(qp) ? REASON_NONE : REASON_BUSY;
}

/* The peer passed every check, so its word counts, until RESET. */
static inline void note_extension(struct qp *qp, const struct packet *p)
{
	qp->selective = true;
	path_peer_says(qp->path, p->late);
}

/* A connection's first packet came before the program knew of the connection (IBTA 11.6.3.1). */
static void note_established(struct qp *qp)
{
	if (qp->state != QP_STATE_RTR || qp->established)
		return;
	qp->established = true;
	qp->events |= QP_EVENT_COMM_EST;
}

/*
 * The machine that a packet is for. RC has a copy of its own, because nearly all packets are RC:
 * that copy does not test the type.
 */
static inline __attribute__((always_inline)) enum reason dispatch(struct qp *qp, uint8_t type,
								  enum service service,
								  const struct packet *p,
								  const struct recv_work *offer,
								  const struct key_table *keys,
								  nanotime now, struct outcome *out)
{
	const struct opcode_info *op = &opcode_table[p->opcode];
	enum reason why;

	if (type == QP_TYPE_RAW_PACKET)
		return frame_received(qp, p, offer, keys, out);
	why = check_arrival(qp, type, service, p, op);
	if (why != REASON_NONE)
		return why;
	if (type == QP_TYPE_UD)
		return datagram_received(qp, p, offer, keys, out);
	if (type == QP_TYPE_UC) {
		note_established(qp);
		return unreliable_received(qp, p, offer, keys, out);
	}
	if (op->kind == KIND_CNP) {
		path_count(qp->path, PATH_CNP_RECEIVED);
		if (qp->path != NULL)
			path_cnp(qp->path, now);
		return REASON_CNP_RECEIVED;
	}
	if (p->ecn == ECN_CE)
		mark_seen(qp, p, now);
	if (op->flags & OP_RESPONSE) {
		if (!plain_answer_received(qp, p, op, keys, now, out))
			why = answer_received(qp, p, keys, now, out);
	} else {
		if (!expected_received(qp, p, op, offer, keys, out)) {
			note_established(qp);
			why = respond_received(qp, p, offer, keys, now, out);
		} else if (qp->resp.holding > 0 || qp->resp.nak_at != TIME_NEVER) {
			respond_passed(qp, p->psn, now);
		}
	}
	if (p->selective && why == REASON_NONE)
		note_extension(qp, p);
	return why;
}

static __attribute__((noinline)) enum reason dispatch_other(struct qp *qp, const struct packet *p,
							    const struct recv_work *offer,
							    const struct key_table *keys,
							    nanotime now, struct outcome *out)
{
	return dispatch(qp, qp->type, qp->service, p, offer, keys, now, out);
}

FLATTEN void qp_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			 const struct key_table *keys, nanotime now, struct outcome *out)
{
	enum reason why;

	out->flags = 0;
	out->ticket = 0;
	span_list_clear(&out->place);
	if (qp->type == QP_TYPE_RC)
		why = dispatch(qp, QP_TYPE_RC, SERVICE_RC, p, offer, keys, now, out);
	else
		why = dispatch_other(qp, p, offer, keys, now, out);
	/* Not asked of *out: one load of both fields would wait until both stores are in the cache. */
	out->reason = why;
	if (why == REASON_NONE && out->flags == OUTCOME_PLACE) {
		assert(out->place.length > 0 && "octets that are copied have a place");
		return;
	}
	assert(!(out->flags & OUTCOME_PLACE) == (out->place.length == 0) &&
	       "octets are copied if they have a place, and only then");
	assert((why == REASON_NONE ||
		(out->flags & ~(uint32_t)(OUTCOME_RECEIVE_USED | OUTCOME_HOLD)) == 0) &&
	       "what is refused has no effect on memory");
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
	const struct requester *r = &qp->req;

	return reply_ready(qp) || (r->nxt != r->tail && r->paced_until == TIME_NEVER &&
				   !flight_waits(r) && request_ready(qp));
}

/* All that was posted was sent; nothing holds the queue pair back or is to be sent again. */
static inline bool is_idle(const struct qp *qp)
{
	const struct requester *r = &qp->req;

	return r->nxt == r->tail && r->paced_until == TIME_NEVER &&
	       (qp->path == NULL || qp->path->given_up == r->given_up);
}

/* The values of most packets; constants come first, so that few stores do. */
static inline void packet_begin(const struct qp *qp, struct packet *p)
{
	bool selective = qp->reliable;
	uint8_t late = path_late_step(qp->path);
	uint32_t dest_qpn = qp->dest_qpn;

	p->opcode = 0;
	p->solicited = false;
	p->mig_req = true; /* path migration state is Migrated */
	p->fecn = false;
	p->becn = false;
	p->ack_req = false;
	p->again = false;
	p->pad = 0;
	p->checksum = false;
	p->tso_last = false;
	p->pkey = 0xffff;
	p->mss = 0;
	p->sender = 0;
	p->payload = NULL;
	p->payload_length = 0;
	p->selective = selective;
	p->late = late;
	p->dest_qpn = dest_qpn;
}

/* Most replies are acknowledgements, and have no record. Only READs and atomics have one. */
static inline bool next_reply(struct qp *qp, const struct key_table *keys, struct packet *p,
			      struct span_list *gather)
{
	if (reply_has_records(&qp->resp) && plain_reply(qp, keys, p, gather))
		return true;
	return reply_is_owed(&qp->resp) && reply_next(qp, keys, p, gather);
}

FLATTEN enum next_packet qp_next_packet(struct qp *qp, const struct key_table *keys, nanotime now,
					struct packet *p, struct span_list *gather,
					nanotime *not_before)
{
	enum next_packet next;

	span_list_clear(gather);
	packet_begin(qp, p);
	if (next_reply(qp, keys, p, gather))
		next = NEXT_PACKET;
	else if (is_idle(qp))
		next = NEXT_NOTHING;
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

/* Of both halves. */
nanotime qp_deadline(const struct qp *qp)
{
	const struct requester *r = &qp->req;
	nanotime recovery = time_earlier(r->board.probe_at, r->board.late_at);

	return time_earlier(time_earlier(time_earlier(recovery, qp->resp.nak_at),
					 time_earlier(r->paced_until, r->unheard_at)),
			    time_earlier(r->retry_at, r->rnr_until));
}

void qp_expired(struct qp *qp, nanotime now)
{
	struct requester *r = &qp->req;

	if (r->rnr_until != TIME_NEVER && now >= r->rnr_until)
		r->rnr_until = TIME_NEVER;
	if (r->paced_until != TIME_NEVER && now >= r->paced_until)
		r->paced_until = TIME_NEVER;
	recovery_expired(qp, now);
	flight_trim(qp, false);
	flight_expired(qp, now);
	respond_expired(qp, now);
	retry_expired(qp, now);
}
