/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester's sending half: what the next request packet is.
 *
 * A message begins when its predecessors have begun, its fence is satisfied and, for a READ or
 * atomic, fewer than max_rd_atomic are outstanding; then it gets its PSNs. A request that cannot
 * be sent (malformed, or its memory is not there) fails in its turn: when all before it are
 * acknowledged, so that these complete as they should. Nothing behind it is sent.
 *
 * AckReq stands on the last packet of a longer message, on every LIMIT_ACK_EVERY-th packet, and on
 * the last packet that can be sent now: whatever waits for an acknowledgement has asked for it.
 *
 * A READ counts in the window with the packets of its response. A long one is asked for in parts
 * (parts.h).
 */
#include <assert.h>

#include "base/bits.h"
#include "transport/requester/flight.h"
#include "transport/requester/kind.h"
#include "transport/requester/operation.h"
#include "transport/qp.h"
#include "transport/responder/reply.h"
#include "transport/requester/parts.h"
#include "transport/requester/recovery.h"
#include "transport/requester/request.h"
#include "transport/requester/request_check.h"
#include "transport/requester/request_packet.h"
#include "transport/requester/retry.h"
#include "transport/requester/sample.h"
#include "transport/requester/segment.h"
#include "transport/unreliable.h"

/* Whether message nxt, the first without PSNs, may begin. */
static bool may_begin(const struct qp *qp, const struct message *m)
{
	const struct requester *r = &qp->req;

	assert(r->nxt == r->begun && r->begun != r->tail);
	if (qp->state != QP_STATE_RTS)
		return false;
	if (kind_is_local(m->kind))
		return operation_may_begin(qp);
	/* IBTA 10.8.3.3: a fence waits for READs and atomics, until their data is in memory. */
	if ((request_at(r, r->nxt)->flags & WORK_FENCE) &&
	    (r->rd_atomic > 0 || qp->tickets.settled < r->landing))
		return false;
	return !kind_is_fetching(m->kind) || parts_leave_room(qp);
}

bool request_ready(const struct qp *qp)
{
	const struct requester *r = &qp->req;
	const struct message *m;
	uint32_t flight, done = 0;

	if (r->nxt == r->tail || (qp->state != QP_STATE_RTS && qp->state != QP_STATE_SQD) ||
	    r->rnr_until != TIME_NEVER)
		return false;
	m = message_at(r, r->nxt);
	if (m->fault != REASON_NONE || r->operating == OPERATING ||
	    (r->alone && r->nxt_psn != r->una_psn) || (r->nxt == r->begun && !may_begin(qp, m)))
		return false;
	flight = in_flight(r);
	if (flight == 0 || m->kind != KIND_READ_REQUEST)
		return flight_has_window(qp, flight + 1);
	if (r->nxt != r->begun)
		done = (r->nxt_psn - m->first_psn) & PSN_MASK;
	if (done > 0 && done >= m->asked_to && !parts_leave_room(qp))
		return false;
	return flight_has_window(qp, flight + request_read_part(qp, m, done));
}

static uint32_t message_packets(const struct qp *qp, const struct message *m)
{
	if (kind_is_local(m->kind))
		return 0;
	return qp_type_datagram(qp->type) ? segments_of(qp, request_at(&qp->req, qp->req.begun), m)
					  : packets_of(qp, m->length);
}

static void message_begin(struct qp *qp)
{
	struct requester *r = &qp->req;
	struct message *m = message_at(r, r->begun);

	assert(r->begun != r->tail && m->fault == REASON_NONE);
	m->first_psn = r->new_psn;
	m->packets = message_packets(qp, m);
	assert(m->packets <= 1u << 23 && "PSNs are compared in half the circle");
	m->base = 0;
	m->asked_to = 0;
	m->asked_again = false;
	m->ticket = (uint32_t)qp->tickets.settled;
	r->new_psn = message_end(m);
	r->rd_atomic += kind_is_fetching(m->kind);
	r->begun++;
}

/* Moves the cursor to a PSN of [una_psn, top_psn]. */
static void cursor_to(struct qp *qp, uint32_t psn)
{
	struct requester *r = &qp->req;
	bool onward = (int32_t)(r->nxt - r->una) >= 0 && !psn_after(r->nxt_psn, psn);

	assert(psn_within(psn, r->una_psn, ((r->new_psn - r->una_psn) & PSN_MASK) + 1) &&
	       "from the oldest that is unacknowledged to the end of what has begun");
	if (!onward || psn_after(r->una_psn, r->nxt_psn))
		r->nxt = r->una;
	r->nxt_psn = psn;
	while (r->nxt != r->begun) {
		const struct message *m = message_at(r, r->nxt);

		if (psn_within(psn, m->first_psn, m->packets))
			return;
		r->nxt++;
	}
}

/* The octets that a READ asks for next: a part of it, or the missing piece. */
static uint32_t to_ask(const struct qp *qp, const struct message *m, uint32_t done)
{
	return (uint32_t)MIN_OF((uint64_t)request_read_part(qp, m, done) << qp->mtu_shift,
				m->length - (done << qp->mtu_shift));
}

/*
 * Octets that the path must have room for before the next packet; 0: none, as it stays at home or
 * goes alone.
 */
static inline uint32_t octets_wanted(const struct qp *qp, const struct message *m)
{
	const struct requester *r = &qp->req;
	uint32_t done = r->nxt != r->begun ? (r->nxt_psn - m->first_psn) & PSN_MASK : 0;

	if (qp->path == NULL || kind_is_local(m->kind) || flight_is_alone(r))
		return 0;
	if (m->kind == KIND_READ_REQUEST)
		return flight_read_octets(qp, to_ask(qp, m, done));
	return flight_octets(1, MIN_OF(m->length - (done << qp->mtu_shift), qp->mtu));
}

void request_resume(struct qp *qp)
{
	struct requester *r = &qp->req;
	uint32_t flight = (r->top_psn - r->una_psn) & PSN_MASK, n = flight;

	if (!r->board.clean)
		n = psn_set_first(board_set(&r->board, BOARD_LOST), r->una_psn, flight);
	cursor_to(qp, psn_add(r->una_psn, n));
	if (r->held && r->nxt != r->tail) /* it waits for what is next now */
		r->wanted = octets_wanted(qp, message_at(r, r->nxt));
}

/* A packet was sent again: goes on to the next lost one, or to the new ones. */
static void cursor_past_held(struct qp *qp)
{
	struct requester *r = &qp->req;
	struct psn_set lost = board_set(&r->board, BOARD_LOST);
	uint32_t left = (r->top_psn - r->nxt_psn) & PSN_MASK;

	cursor_to(qp, psn_add(r->nxt_psn, psn_set_first(lost, r->nxt_psn, left)));
}

/* Whether it asks for an acknowledgement: among others, the last of a run of lost packets does. */
static bool asks(const struct qp *qp, const struct packet *p, nanotime now)
{
	const struct requester *r = &qp->req;

	return flight_should_ask(qp) || p->ack_req || !request_ready(qp) ||
	       (p->again && r->nxt_psn != psn_add(p->psn, 1)) ||
	       rate_ready_at(&r->rate, now) > now || !flight_may_follow(qp, now);
}

/*
 * A part of a READ that leaves alone while another may follow at once. Its first response is ahead of all that
 * this READ puts into a queue, so its round trip would only show what others do.
 */
static bool is_early_part(const struct qp *qp, const struct message *m, const struct packet *p,
			  nanotime now)
{
	const struct requester *r = &qp->req;

	return m->kind == KIND_READ_REQUEST && p->psn == r->una_psn &&
	       r->nxt_psn != message_end(m) && flight_may_follow(qp, now) && request_ready(qp);
}

/* Octets of the frame, and of those that answer a READ. */
static uint32_t packet_octets(const struct packet *p, uint32_t psns)
{
	bool read = opcode_table[p->opcode].kind == KIND_READ_REQUEST;

	return flight_octets(psns, read ? p->dma_length : p->payload_length);
}

/*
 * Octets of packets that were lost, as this one is sent again. If no response to a READ has come,
 * its request was lost, and not as many packets as it has responses.
 */
static uint32_t octets_lost(const struct qp *qp, const struct message *m, const struct packet *p,
			    uint32_t octets)
{
	uint32_t done = (p->psn - m->first_psn) & PSN_MASK;

	if (!p->again)
		return 0;
	if (m->kind != KIND_READ_REQUEST || part_answered(&qp->req, m, done))
		return octets;
	return MIN_OF(octets, flight_octets(1, qp->mtu));
}

/* The packet at nxt_psn was made: the cursors pass its `psns`. */
static void packet_made(struct qp *qp, const struct message *m, uint32_t psns, nanotime now,
			struct packet *p)
{
	struct requester *r = &qp->req;
	uint32_t octets = packet_octets(p, psns);

	p->psn = r->nxt_psn;
	p->again = r->nxt_psn != r->top_psn;
	r->nxt_psn = psn_add(r->nxt_psn, psns);
	if (psn_after(r->nxt_psn, r->top_psn))
		r->top_psn = r->nxt_psn;
	assert(!psn_after(r->nxt_psn, r->new_psn) && !psn_after(r->top_psn, r->new_psn) &&
	       "only what has begun is sent");
	if (r->nxt_psn == message_end(m))
		r->nxt++;
	if (p->again) {
		path_count(qp->path, PATH_AGAIN);
		recovery_sent(qp, p->psn, psns);
		cursor_past_held(qp);
	}
	flight_sent(qp, psns, octets, octets_lost(qp, m, p, octets), now);
	if (r->alone)
		flight_sent_alone(qp, octets, p->again, now);
	rate_used(&r->rate, request_octets_on_wire(qp, p), now);
	if (qp_type_unreliable(qp->type))
		return; /* there are no acknowledgements */
	if (kind_is_fetching(m->kind)) {
		r->unasked = 0; /* the response acknowledges all before it */
	} else {
		r->unasked++;
		p->ack_req = asks(qp, p, now);
		if (p->ack_req)
			r->unasked = 0;
	}
	sample_made(qp, p, r->unasked == 0 && !is_early_part(qp, m, p, now), now);
}

enum next_packet request_next(struct qp *qp, const struct key_table *keys, nanotime now,
			      struct packet *p, struct span_list *gather, nanotime *not_before)
{
	struct requester *r = &qp->req;
	struct message *m;
	uint32_t psns = 1, wanted;
	enum reason why;

	r->paced_until = TIME_NEVER;
	flight_follow(qp);
	if (flight_waits(r) || !request_ready(qp))
		return NEXT_NOTHING;
	m = message_at(r, r->nxt);
	*not_before = rate_ready_at(&r->rate, now);
	if (*not_before > now && !kind_is_local(m->kind)) {
		r->paced_until = *not_before;
		return NEXT_NOT_BEFORE;
	}
	wanted = octets_wanted(qp, m);
	if (wanted > 0 && !flight_may_send(qp, wanted, now)) {
		flight_hold(qp, wanted, now);
		*not_before = qp_resumes_at(qp, now);
		return NEXT_HELD;
	}
	if (r->nxt == r->begun)
		message_begin(qp);
	if (kind_is_local(m->kind))
		return operation_next(qp, keys);
	why = request_packet(qp, (r->nxt_psn - m->first_psn) & PSN_MASK, keys, &psns, p, gather);
	if (why != REASON_NONE) {
		span_list_clear(gather);
		p->payload_length = 0;
		p->pad = 0;
		p->ack_req = false;
		p->solicited = false;
		request_fault(qp, r->nxt_psn, why);
		/* Runs once more at most: nothing at or behind the fault is sent. */
		return request_next(qp, keys, now, p, gather, not_before);
	}
	packet_made(qp, m, psns, now, p);
	retry_started(qp, now);
	return NEXT_PACKET;
}

void request_ask(struct qp *qp)
{
	const struct requester *r = &qp->req;
	uint32_t psn = r->nxt_psn;

	if (r->unasked == 0 || r->una_psn == psn || psn != r->top_psn || request_ready(qp))
		return;
	cursor_to(qp, psn_add(psn, PSN_MASK));
	if (!kind_is_fetching(message_at(r, r->nxt)->kind)) /* its response is on the way */
		recovery_lost(qp, psn_add(psn, PSN_MASK), 1);
	request_resume(qp);
}

/* The cursor went back to a packet that did not leave. A packet behind it may be the one that
 * asked.
 */
static void count_unasked(struct qp *qp)
{
	if (!qp_type_unreliable(qp->type))
		qp->req.unasked = in_flight(&qp->req);
}

/* The PSNs that a packet of ours takes. */
static uint32_t request_psns(const struct qp *qp, const struct packet *p)
{
	return opcode_table[p->opcode].kind == KIND_READ_REQUEST ? packets_of(qp, p->dma_length)
								 : 1;
}

void request_unsent(struct qp *qp, const struct packet *p, nanotime now)
{
	struct requester *r = &qp->req;

	rate_unused(&r->rate, request_octets_on_wire(qp, p));
	if (qp->state == QP_STATE_ERR ||
	    !psn_within(p->psn, r->una_psn, (r->top_psn - r->una_psn) & PSN_MASK))
		return; /* acknowledged meanwhile, or taken back with one before it */
	if (p->again) {
		recovery_lost(qp, p->psn, request_psns(qp, p));
	} else { /* Nothing behind it was sent either: a packet that is new stays new. */
		recovery_unsent_from(qp, p->psn);
		r->top_psn = p->psn;
	}
	request_resume(qp);
	flight_trim(qp, false);
	count_unasked(qp);
	retry_held_back(qp, now);
}

void request_refuse(struct qp *qp, uint32_t psn, enum work_status status, enum reason why)
{
	struct requester *r = &qp->req;
	uint32_t was = r->nxt_psn, flight = (r->top_psn - r->una_psn) & PSN_MASK;
	bool made = psn != was; /* it was already, and what is behind it */

	if (qp->state == QP_STATE_ERR || qp->state == QP_STATE_SQE ||
	    !psn_within(psn, r->una_psn, flight + 1))
		return;
	cursor_to(qp, psn);
	if (r->nxt == r->begun) {
		cursor_to(qp, was);
		return;
	}
	request_set_fault(message_at(r, r->nxt), status, why);
	/* The cursor stops here: packets before it may have to be sent again. */
	if (psn != r->top_psn && !qp_type_unreliable(qp->type)) {
		recovery_lost(qp, psn, 1);
		request_resume(qp);
	}
	if (made)
		count_unasked(qp);
	request_fail_in_turn(qp);
	/* No packet in flight asked for an acknowledgement; the last one will now. */
	if (qp->state != QP_STATE_ERR && r->unasked > 0)
		retry_go_back(qp);
}

void request_fault(struct qp *qp, uint32_t psn, enum reason why)
{
	request_refuse(qp, psn, STATUS_LOC_PROT_ERR, why);
}

void request_fail_in_turn(struct qp *qp)
{
	const struct requester *r = &qp->req;
	const struct message *m;

	if (r->una == r->tail ||
	    !(qp->state == QP_STATE_RTS || (qp->state == QP_STATE_SQD && r->una != r->begun)))
		return;
	m = message_at(r, r->una);
	if (m->fault != REASON_NONE)
		request_failed(qp, r->una, m->fault_status, m->fault);
	else if (r->una == r->begun && kind_is_fetching(m->kind) && qp->attr.max_rd_atomic == 0)
		request_failed(qp, r->una, STATUS_LOC_QP_OP_ERR, REASON_RD_ATOMIC_LIMIT);
}

/* The first error wins: what was accepted behind it is forgotten, and will be flushed. */
void request_failed(struct qp *qp, uint32_t index, enum work_status status, enum reason why)
{
	struct requester *r = &qp->req;

	if (qp->state == QP_STATE_ERR || qp->state == QP_STATE_SQE)
		return;
	assert(index - r->retired < r->tail - r->retired && "a request that is in the window");
	assert(status != STATUS_SUCCESS && why != REASON_NONE);
	r->una = r->nxt = index;
	r->failed = true;
	r->failed_status = (uint8_t)status;
	r->failed_reason = (uint8_t)why;
	if (qp_type_unreliable(qp->type)) {
		enter_sq_error(qp);
		return;
	}
	enter_error(qp);
	reply_abandon(&qp->resp);
}

bool qp_drained(const struct qp *qp)
{
	return qp->req.una == qp->req.begun && qp->tickets.settled >= qp->req.landing;
}

void request_drained(struct qp *qp)
{
	if (qp->state != QP_STATE_SQD || !qp->req.drain_notify || !qp_drained(qp))
		return;
	qp->req.drain_notify = false;
	qp->events |= QP_EVENT_SQ_DRAINED;
}
