/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair as an object: its memory, its way into the error state, its ends to the caller. */
#include <assert.h>

#include "base/bits.h"
#include "transport/answer.h"
#include "transport/copied.h"
#include "transport/datagram.h"
#include "transport/frame.h"
#include "transport/kind.h"
#include "transport/operation.h"
#include "transport/qp.h"
#include "transport/reply.h"
#include "transport/request.h"
#include "transport/request_check.h"
#include "transport/respond.h"
#include "transport/retry.h"
#include "transport/transport.h"
#include "transport/unreliable.h"

/* The parts of a queue pair's memory, in this order, each aligned to a cache line. */
struct layout {
	size_t message, record, ticket, held, window, total;
};

static size_t aligned(size_t octets)
{
	return (octets + 63) & ~(size_t)63;
}

static size_t tickets_size(uint32_t tickets)
{
	return aligned(tickets * (sizeof(struct receive_done) + sizeof(struct ticket)));
}

static uint32_t tickets_of(const struct qp_caps *caps)
{
	return caps->tickets != 0 ? caps->tickets : LIMIT_TICKETS;
}

static struct layout layout_of(const struct qp_caps *caps)
{
	uint32_t slots = power_of_two_above(caps->max_send_wr + caps->own_wr);
	uint32_t records = caps->records_later ? 0 : power_of_two_above(caps->max_rd_atomic);
	struct layout l;

	l.message = aligned(sizeof(struct qp));
	l.record = l.message + aligned(slots * sizeof(struct message));
	l.ticket = l.record + aligned(records * sizeof(struct record));
	l.held = l.ticket + tickets_size(tickets_of(caps));
	l.window = l.held + recv_work_stride(caps->max_recv_sge);
	l.total = l.window + (size_t)slots * send_work_stride(caps->max_send_sge, caps->max_inline);
	return l;
}

size_t qp_memory_size(const struct qp_caps *caps)
{
	return layout_of(caps).total;
}

static uint8_t service_of(uint32_t type)
{
	static const uint8_t service[] = {
		[QP_TYPE_RC] = SERVICE_RC,	  [QP_TYPE_UC] = SERVICE_UC,
		[QP_TYPE_UD] = SERVICE_UD,	  [QP_TYPE_XRC_SEND] = SERVICE_XRC,
		[QP_TYPE_XRC_RECV] = SERVICE_XRC,
	};

	return type < ARRAY_SIZE(service) ? service[type] : 0;
}

/* Rings for tickets and receive completions, in this memory. */
static void lay_tickets(struct qp *qp, void *memory, uint32_t tickets)
{
	qp->receives.ring = memory;
	qp->tickets.ring = (struct ticket *)(void *)(qp->receives.ring + tickets);
	qp->receives.mask = qp->tickets.mask = tickets - 1;
}

struct qp *qp_init(void *memory, const struct qp_caps *caps)
{
	struct layout l = layout_of(caps);
	struct qp *qp = memory;
	uint8_t *base = memory;

	assert(((uintptr_t)memory & 63) == 0 && "the caller aligns to a cache line");
	assert((tickets_of(caps) & (tickets_of(caps) - 1)) == 0 && "rings are masked");
	assert((caps->qpn & ~PSN_MASK) == 0 && "24 bits");
	assert(tickets_of(caps) >= LIMIT_TICKETS_NEW && "qp_can_receive keeps some of them free");
	assert(caps->max_rd_atomic <= LIMIT_RD_ATOMIC && caps->max_send_sge <= LIMIT_SGE &&
	       caps->max_recv_sge <= LIMIT_SGE && caps->max_inline <= LIMIT_INLINE &&
	       "the control path bounds what it grants");
	memset(memory, 0, l.window);
	qp->state = QP_STATE_RESET;
	qp->type = (uint8_t)caps->type;
	qp->service = service_of(caps->type);
	qp->srq = caps->srq;
	qp->qpn = caps->qpn;
	qp->user = (struct key_user){ .pd = caps->pd, .qpn = caps->qpn };
	qp->receiver = qp->user;
	if (caps->srq_pd != 0)
		qp->receiver.pd = caps->srq_pd;
	qp->sig_all = caps->sq_sig_all;
	qp->caps = *caps;
	qp->req.message = (void *)(base + l.message);
	qp->req.request = base + l.window;
	qp->req.slot_mask = power_of_two_above(caps->max_send_wr + caps->own_wr) - 1;
	qp->req.stride = send_work_stride(caps->max_send_sge, caps->max_inline);
	qp->req.capacity = caps->max_send_wr;
	if (!caps->records_later) {
		qp->resp.record = (void *)(base + l.record);
		qp->resp.records = power_of_two_above(caps->max_rd_atomic);
		qp->resp.record_mask = qp->resp.records - 1;
	}
	lay_tickets(qp, base + l.ticket, tickets_of(caps));
	qp->resp.held = (void *)(base + l.held);
	qp->req.flush_reason = REASON_FLUSHED;
	retry_reset(qp);
	return qp;
}

uint32_t qp_records(const struct qp *qp)
{
	return qp->resp.records;
}

size_t qp_records_size(uint32_t max_dest_rd_atomic)
{
	assert(max_dest_rd_atomic <= LIMIT_RD_ATOMIC);
	return aligned(power_of_two_above(max_dest_rd_atomic) * sizeof(struct record));
}

void *qp_give_records(struct qp *qp, void *memory, uint32_t max_dest_rd_atomic)
{
	struct responder *r = &qp->resp;
	uint32_t records = power_of_two_above(max_dest_rd_atomic);
	struct record *old = r->record, *given = memory;

	assert(records >= r->records && "what is remembered has room");
	assert(r->remembered <= r->records);
	memset(given, 0, records * sizeof(*given));
	for (uint32_t i = 1; i <= r->records; i++) {
		uint32_t index = r->record_head - i;

		given[index & (records - 1)] = old[index & r->record_mask];
	}
	r->record = given;
	r->records = records;
	r->record_mask = records - 1;
	return old;
}

uint32_t qp_tickets(const struct qp *qp)
{
	return qp->tickets.mask + 1;
}

size_t qp_tickets_size(void)
{
	return tickets_size(LIMIT_TICKETS);
}

void qp_give_tickets(struct qp *qp, void *memory)
{
	const struct qp old = *qp;

	assert(qp_tickets(qp) < LIMIT_TICKETS && "once");
	memset(memory, 0, qp_tickets_size());
	lay_tickets(qp, memory, LIMIT_TICKETS);
	for (uint32_t i = 0; i <= old.tickets.mask; i++) {
		uint64_t number = qp->tickets.issued - i;
		uint32_t index = qp->receives.done - 1 - i;

		*ticket_at(&qp->tickets, number) = *ticket_at(&old.tickets, number);
		*receive_at(&qp->receives, index) = *receive_at(&old.receives, index);
	}
}

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
	qp->req.rnr_until = TIME_NEVER;
	operation_abandon(qp);
	qp->req.paced_until = TIME_NEVER;
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
	request_check(qp, qp->req.tail);
	message_at(&qp->req, qp->req.tail)->own = own;
	qp->req.tail++;
	request_fail_in_turn(qp);
}

void qp_posted(struct qp *qp)
{
	assert(qp_window_slot(qp) != NULL && "qp_window_slot gave a slot");
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
static bool service_matches(const struct qp *qp, const struct packet *p)
{
	const struct opcode_info *op = &opcode_table[p->opcode];

	if (p->dest_qpn == QPN_MULTICAST && qp->type != QP_TYPE_UD)
		return false;
	if (op->kind == KIND_CNP)
		return !qp_type_unreliable(qp->type);
	return op->header_length != 0 && op->service == qp->service;
}

/* Half of an XRC connection sends, the other receives (IBTA A14). */
static bool direction_fits(const struct qp *qp, const struct opcode_info *op)
{
	bool response = op->flags & OP_RESPONSE;

	return op->kind == KIND_CNP || qp->service != SERVICE_XRC ||
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
	if (!gid_equal(&p->src_gid, &qp->peer) || !gid_equal(&p->dst_gid, &qp->local))
		return REASON_ADDRESS_MISMATCH;
	/* What it was sent to is this queue pair: the two mean each other. */
	return p->sender == 0 || p->sender == qp->dest_qpn ? REASON_NONE : REASON_SENDER_FOREIGN;
}

/* Is this packet one that the queue pair looks at at all? */
static enum reason check_arrival(const struct qp *qp, const struct packet *p)
{
	const uint32_t sending = 1u << QP_STATE_RTS | 1u << QP_STATE_SQD;
	const uint32_t receiving = sending | 1u << QP_STATE_RTR | 1u << QP_STATE_SQE;
	enum reason why;

	if (!service_matches(qp, p) || !direction_fits(qp, &opcode_table[p->opcode]))
		return REASON_SERVICE_MISMATCH;
	if (!((opcode_is(p->opcode, OP_RESPONSE) ? sending : receiving) & 1u << qp->state))
		return REASON_QP_STATE;
	if (!pkey_matches(p->pkey))
		return REASON_PKEY;
	why = qp_check_origin(qp, p);
	if (why != REASON_NONE)
		return why;
	return qp_can_receive(qp) ? REASON_NONE : REASON_BUSY;
}

/* The machine that a packet is for. */
static enum reason dispatch(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			    const struct key_table *keys, nanotime now, struct outcome *out)
{
	enum reason why;

	if (qp->type == QP_TYPE_RAW_PACKET)
		return frame_received(qp, p, offer, keys, out);
	why = check_arrival(qp, p);
	if (why != REASON_NONE)
		return why;
	if (qp->type == QP_TYPE_UD)
		return datagram_received(qp, p, offer, keys, out);
	if (qp->type == QP_TYPE_UC)
		return unreliable_received(qp, p, offer, keys, out);
	if (opcode_table[p->opcode].kind == KIND_CNP) {
		window_lost(&qp->req.window);
		request_ask(qp);
		return REASON_CNP_RECEIVED;
	}
	return opcode_is(p->opcode, OP_RESPONSE) ? answer_received(qp, p, keys, now, out)
						 : respond_received(qp, p, offer, keys, out);
}

void qp_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
		 const struct key_table *keys, nanotime now, struct outcome *out)
{
	out->flags = 0;
	out->ticket = 0;
	span_list_clear(&out->place);
	out->reason = dispatch(qp, p, offer, keys, now, out);
	assert((out->reason == REASON_NONE || (out->flags & ~OUTCOME_RECEIVE_USED) == 0) &&
	       "what is refused has no effect on memory");
	assert(!(out->flags & OUTCOME_PLACE) == (out->place.length == 0) &&
	       "octets that have a place are copied there");
	assert((!(out->flags & OUTCOME_RECEIVE_USED) || offer != NULL) && "what was offered");
}

bool qp_has_packet(const struct qp *qp)
{
	return reply_ready(qp) || (qp->req.paced_until == TIME_NEVER && request_ready(qp));
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
	p->checksum = false;
	p->mss = 0;
	p->mig_req = true; /* path migration state is Migrated */
	p->pkey = 0xffff;
	p->dest_qpn = qp->dest_qpn;
	p->sender = 0;
	p->payload = NULL;
	p->payload_length = 0;
	p->pad = 0;
	next = reply_next(qp, keys, p, gather) ? NEXT_PACKET
					       : request_next(qp, keys, now, p, gather, not_before);
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
