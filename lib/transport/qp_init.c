/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a queue pair: how much, what lies where, and what may grow later. */
#include <assert.h>

#include "base/bits.h"
#include "config/limits.h"
#include "transport/psn.h"
#include "transport/qp.h"
#include "transport/requester/retry.h"
#include "transport/responder/behind.h"
#include "transport/transport.h"
#include "wire/opcode.h"

/*
 * The parts of a queue pair's memory, in this order. Parts that are read in strides of a cache line
 * (held and what follows) begin on a cache line. The others only need the alignment of their
 * fields, because most queue pairs have few of them.
 */
struct layout {
	size_t message, record, ticket, held, board, window, total;
};

static size_t aligned(size_t octets)
{
	return (octets + 63) & ~(size_t)63;
}

static size_t packed(size_t octets)
{
	return (octets + 7) & ~(size_t)7;
}

static size_t tickets_size(uint32_t tickets)
{
	return tickets * (sizeof(struct receive_done) + sizeof(struct ticket));
}

static uint32_t tickets_of(const struct qp_caps *caps)
{
	return caps->tickets != 0 ? caps->tickets : LIMIT_TICKETS;
}

/* What a queue of many requests may have in flight on a long way. */
static uint32_t window_of(const struct qp_caps *caps, uint32_t slots)
{
	if (caps->type != QP_TYPE_RC && caps->type != QP_TYPE_XRC_SEND)
		return LIMIT_WINDOW;
	return MIN_OF(MAX_OF(LIMIT_WINDOW_SLOT * slots, LIMIT_WINDOW), LIMIT_WINDOW_MOST);
}

static size_t board_size(uint32_t window)
{
	if (window == LIMIT_WINDOW)
		return 0;
	return aligned(LIMIT_SAMPLES * sizeof(struct sample) + BOARD_SETS * window / 8);
}

static struct layout layout_of(const struct qp_caps *caps)
{
	uint32_t slots = power_of_two_above(caps->max_send_wr + caps->own_wr);
	uint32_t records = caps->records_later ? 0 : power_of_two_above(caps->max_rd_atomic);
	struct layout l;

	l.message = sizeof(struct qp);
	l.record = packed(l.message + slots * sizeof(struct message));
	l.ticket = packed(l.record + records * sizeof(struct record));
	l.held = aligned(l.ticket + tickets_size(tickets_of(caps)));
	l.board = l.held + recv_work_stride(caps->max_recv_sge);
	l.window = l.board + board_size(window_of(caps, slots));
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

/* Sets for long ways, or its own. */
static void lay_board(struct requester *r, void *memory, uint32_t window)
{
	bool ordinary = window == LIMIT_WINDOW;

	r->sample = ordinary ? &r->own_sample : memory;
	r->samples = ordinary ? 1 : LIMIT_SAMPLES;
	if (!ordinary)
		r->board.more = (uint64_t *)(void *)(r->sample + r->samples);
	r->board.words = (uint8_t)(window / 64);
}

struct qp *qp_init(void *memory, const struct qp_caps *caps)
{
	struct layout l = layout_of(caps);
	struct qp *qp = memory;
	uint8_t *base = memory;
	uint32_t slots = power_of_two_above(caps->max_send_wr + caps->own_wr);

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
	qp->reliable = !qp_type_unreliable(qp->type);
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
	lay_board(&qp->req, base + l.board, window_of(caps, slots));
	qp->req.slot_mask = slots - 1;
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
	qp->resp.nak_at = TIME_NEVER;
	behind_reset(&qp->resp);
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
	return aligned(tickets_size(LIMIT_TICKETS));
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
