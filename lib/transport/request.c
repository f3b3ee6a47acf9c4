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
 * the last packet that can be sent now, so that nothing ever waits for an acknowledgement that
 * nobody asked for.
 *
 * A READ counts in the window with the packets of its response. One that is longer than the
 * window is asked for in parts, one part at a time.
 */
#include <assert.h>

#include "base/bits.h"
#include "memory/spans.h"
#include "transport/datagram.h"
#include "transport/frame.h"
#include "transport/kind.h"
#include "transport/operation.h"
#include "transport/qp.h"
#include "transport/reply.h"
#include "transport/request.h"
#include "transport/retry.h"
#include "transport/segment.h"
#include "transport/single.h"
#include "transport/unreliable.h"
#include "wire/envelope.h"

/* What the last packet of a message brings beside its payload. */
enum ending {
	ENDING_PLAIN,
	ENDING_IMM,
	ENDING_INV,
};

/* What a work opcode is on the wire; KIND_UNDEFINED: not carried. */
static const struct {
	uint8_t kind; /* enum packet_kind, enum local_kind */
	uint8_t base; /* enum opcode_base of its FIRST, or of its only packet */
	uint8_t ending; /* enum ending */
} work_kinds[] = {
	[WORK_RDMA_WRITE] = { KIND_WRITE, OPB_WRITE_FIRST, ENDING_PLAIN },
	[WORK_RDMA_WRITE_WITH_IMM] = { KIND_WRITE, OPB_WRITE_FIRST, ENDING_IMM },
	[WORK_SEND] = { KIND_SEND, OPB_SEND_FIRST, ENDING_PLAIN },
	[WORK_SEND_WITH_IMM] = { KIND_SEND, OPB_SEND_FIRST, ENDING_IMM },
	[WORK_SEND_WITH_INV] = { KIND_SEND, OPB_SEND_FIRST, ENDING_INV },
	[WORK_TSO] = { KIND_SEND, OPB_SEND_FIRST, ENDING_PLAIN },
	[WORK_RDMA_READ] = { KIND_READ_REQUEST, OPB_READ_REQUEST, ENDING_PLAIN },
	[WORK_ATOMIC_CMP_AND_SWP] = { KIND_CMP_SWAP, OPB_CMP_SWAP, ENDING_PLAIN },
	[WORK_ATOMIC_FETCH_AND_ADD] = { KIND_FETCH_ADD, OPB_FETCH_ADD, ENDING_PLAIN },
	[WORK_LOCAL_INV] = { KIND_LOCAL_INV, 0, ENDING_PLAIN },
	[WORK_BIND_MW] = { KIND_BIND_MW, 0, ENDING_PLAIN },
	[WORK_FLUSH] = { KIND_FLUSH, OPB_FLUSH, ENDING_PLAIN },
	[WORK_ATOMIC_WRITE] = { KIND_ATOMIC_WRITE, OPB_ATOMIC_WRITE, ENDING_PLAIN },
};

/* The table of ibv_post_send(3): which types of queue pair carry a work opcode. */
#define ON(type)  (1u << QP_TYPE_##type)
#define CONNECTED (ON(UC) | ON(RC) | ON(XRC_SEND))

static const uint16_t carried_by[] = {
	[WORK_SEND] = ON(UD) | CONNECTED | ON(RAW_PACKET),
	[WORK_SEND_WITH_IMM] = ON(UD) | CONNECTED,
	[WORK_RDMA_WRITE] = CONNECTED,
	[WORK_RDMA_WRITE_WITH_IMM] = CONNECTED,
	[WORK_RDMA_READ] = ON(RC) | ON(XRC_SEND),
	[WORK_ATOMIC_CMP_AND_SWP] = ON(RC) | ON(XRC_SEND),
	[WORK_ATOMIC_FETCH_AND_ADD] = ON(RC) | ON(XRC_SEND),
	[WORK_LOCAL_INV] = CONNECTED,
	[WORK_BIND_MW] = CONNECTED,
	[WORK_SEND_WITH_INV] = CONNECTED,
	[WORK_TSO] = ON(UD) | ON(RAW_PACKET),
	[WORK_FLUSH] = ON(RC),
	[WORK_ATOMIC_WRITE] = ON(RC),
};

static_assert(ARRAY_SIZE(carried_by) >= ARRAY_SIZE(work_kinds), "what is sent is carried");

static uint8_t kind_of(const struct qp *qp, uint8_t opcode)
{
	if (opcode >= ARRAY_SIZE(work_kinds) || !(carried_by[opcode] & 1u << qp->type))
		return KIND_UNDEFINED;
	return work_kinds[opcode].kind;
}

/* Data that travels in the request itself, so that it may be inline. */
static bool kind_sends_data(uint8_t kind)
{
	return kind == KIND_SEND || kind == KIND_WRITE || kind == KIND_ATOMIC_WRITE;
}

/* ATOMIC WRITE brings its octets whatever a queue pair was made for: the smallest slot holds them. */
static uint32_t inline_room(const struct qp *qp, uint8_t kind)
{
	return kind == KIND_ATOMIC_WRITE ? MAX_OF(qp->caps.max_inline, 8u) : qp->caps.max_inline;
}

static uint64_t length_of(const struct send_work *w)
{
	const struct work_sge *sge = send_work_sge(w);
	uint64_t length = 0;

	if (w->flags & WORK_INLINE)
		return w->inline_length;
	if (w->opcode == WORK_FLUSH || kind_is_local(work_kinds[w->opcode].kind))
		return 0; /* elements mean nothing */
	for (uint32_t i = 0; i < w->num_sge; i++)
		length += sge[i].length;
	return length;
}

/* What is fixed about the length of some operations (IBTA 9.4.5, A19). */
static bool length_fits(const struct send_work *w, uint8_t kind, uint64_t length)
{
	if (kind_is_atomic(kind) || kind == KIND_ATOMIC_WRITE)
		return length == 8;
	if (kind == KIND_FLUSH && w->flush_level == FLUSH_RANGE)
		return w->flush_length <= LIMIT_MESSAGE;
	return length <= LIMIT_MESSAGE;
}

static bool flush_defined(const struct send_work *w)
{
	return w->flush_type != 0 && (w->flush_type & ~(FLUSH_GLOBAL | FLUSH_PERSISTENT)) == 0 &&
	       w->flush_level <= FLUSH_REGION;
}

static void set_fault(struct message *m, enum work_status status, enum reason why)
{
	assert(status != STATUS_SUCCESS && why != REASON_NONE);
	m->fault = (uint8_t)why;
	m->fault_status = (uint8_t)status;
}

/* The client wrote this request as it pleased: everything that is used later is checked here. */
void request_check(struct qp *qp, uint32_t index)
{
	const struct send_work *w = request_at(&qp->req, index);
	struct message *m = message_at(&qp->req, index);
	uint8_t kind = kind_of(qp, w->opcode);
	uint64_t length;

	assert(index == qp->req.tail && index - qp->req.retired <= qp->req.slot_mask &&
	       "the newest, in a slot that is free");
	m->kind = kind;
	m->fault = REASON_NONE;
	m->length = 0;
	if (kind == KIND_UNDEFINED) {
		set_fault(m, STATUS_LOC_QP_OP_ERR, REASON_WORK_OPCODE);
		return;
	}
	if (w->flags & WORK_INLINE
		    ? w->inline_length > inline_room(qp, kind) || !kind_sends_data(kind)
		    : w->num_sge > qp->caps.max_send_sge ||
			      (kind == KIND_FLUSH && !flush_defined(w))) {
		set_fault(m, STATUS_LOC_QP_OP_ERR, REASON_WORK_MALFORMED);
		return;
	}
	length = length_of(w);
	if (!length_fits(w, kind, length)) {
		set_fault(m, STATUS_LOC_LEN_ERR, REASON_WORK_MALFORMED);
		return;
	}
	if (qp_type_datagram(qp->type)) {
		enum work_status status = single_check(qp, w, length);

		if (status != STATUS_SUCCESS) {
			set_fault(m, status, REASON_WORK_MALFORMED);
			return;
		}
	}
	assert(length <= LIMIT_MESSAGE && "length_fits and single_check");
	m->length = (uint32_t)length;
}

/* May message nxt, the first without PSNs, begin? */
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
	return !kind_is_fetching(m->kind) || r->rd_atomic < qp->attr.max_rd_atomic;
}

/* PSNs that the next READ request of this message, `done` packets into it, asks for. */
static uint32_t read_part(const struct qp *qp, const struct message *m, uint32_t done)
{
	uint32_t all = packets_of(qp, m->length);

	if (qp->req.nxt != qp->req.begun && done < m->asked_to)
		return m->asked_to - done; /* again: what was asked for before */
	return MIN_OF(all - done, qp->req.window.packets);
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
	    (r->nxt == r->begun && !may_begin(qp, m)))
		return false;
	flight = in_flight(r);
	if (flight == 0 || m->kind != KIND_READ_REQUEST)
		return flight < r->window.packets;
	if (r->nxt != r->begun)
		done = (r->nxt_psn - m->first_psn) & PSN_MASK;
	if (done > 0 && done >= m->asked_to)
		return false; /* the next part waits for the one before */
	return flight + read_part(qp, m, done) <= r->window.packets;
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
	m->asked_from = 0;
	m->asked_to = 0;
	m->asked_again = false;
	m->ticket = (uint32_t)qp->tickets.settled;
	r->new_psn = message_end(m);
	r->rd_atomic += kind_is_fetching(m->kind);
	r->begun++;
}

/* Of FIRST, MIDDLE, LAST, LAST+IMM, ONLY, ONLY+IMM, in the order of the opcodes; +INV is apart. */
static uint8_t place_in_message(bool first, bool last, uint8_t ending)
{
	static const uint8_t only[] = { 4, 5, OPB_SEND_ONLY_INV },
			     ends[] = { 2, 3, OPB_SEND_LAST_INV };

	assert(ending <= ENDING_INV);
	if (!last)
		return first ? 0 : 1;
	return first ? only[ending] : ends[ending];
}

static enum reason data_packet(struct qp *qp, const struct send_work *w, const struct message *m,
			       uint32_t done, const struct key_table *keys, struct packet *p,
			       struct span_list *gather)
{
	bool first = done == 0, last = done + 1 == m->packets;
	uint8_t ending = work_kinds[w->opcode].ending;
	uint32_t offset = done << qp->mtu_shift, n = MIN_OF(m->length - offset, qp->mtu);

	assert(done < m->packets && offset <= m->length);
	p->opcode = OPCODE(qp->service, work_kinds[w->opcode].base);
	if (m->kind != KIND_ATOMIC_WRITE)
		p->opcode += place_in_message(first, last, ending);
	p->payload_length = n;
	p->pad = (uint8_t)(-n & 3);
	p->imm = w->imm;
	p->invalidate_rkey = w->imm;
	if (m->kind != KIND_SEND && first) {
		p->va = w->remote_addr;
		p->rkey = w->rkey;
		p->dma_length = m->length;
	}
	if (last) {
		p->solicited = (w->flags & WORK_SOLICITED) &&
			       (ending != ENDING_PLAIN || m->kind == KIND_SEND);
		p->ack_req = !first && !qp_type_unreliable(qp->type);
	}
	if (w->flags & WORK_INLINE) {
		p->payload = send_work_inline(w) + offset;
		return REASON_NONE;
	}
	return key_spans_of_list(keys, send_work_sge(w), w->num_sge, qp->user, 0, offset, n,
				 gather);
}

/* A repetition begins at the first response that is missing (protocol-map 110). */
static uint32_t read_packet(struct qp *qp, const struct send_work *w, struct message *m,
			    uint32_t done, struct packet *p)
{
	uint32_t part = read_part(qp, m, done), offset = done << qp->mtu_shift;

	assert(part > 0 && done + part <= m->packets && "a part of what is missing");
	m->asked_again = done < m->asked_to;
	m->asked_from = done;
	m->asked_to = done + part;
	p->opcode = OPCODE(qp->service, OPB_READ_REQUEST);
	p->va = w->remote_addr + offset;
	p->rkey = w->rkey;
	p->dma_length = (uint32_t)MIN_OF((uint64_t)part << qp->mtu_shift, m->length - offset);
	return part;
}

static void atomic_packet(const struct qp *qp, const struct send_work *w, const struct message *m,
			  struct packet *p)
{
	assert(m->length == 8 && m->packets == 1);
	p->opcode = OPCODE(qp->service, work_kinds[w->opcode].base);
	p->va = w->remote_addr;
	p->rkey = w->rkey;
	/* The verbs API's compare_add is the addend of a FETCH ADD and the comparand of a CMP SWAP. */
	p->swap_add = m->kind == KIND_CMP_SWAP ? w->swap : w->compare_add;
	p->compare = m->kind == KIND_CMP_SWAP ? w->compare_add : 0;
}

static void flush_packet(const struct qp *qp, const struct send_work *w, struct packet *p)
{
	p->opcode = OPCODE(qp->service, OPB_FLUSH);
	p->feth = FETH(w->flush_type, w->flush_level);
	p->va = w->remote_addr;
	p->rkey = w->rkey;
	p->dma_length = w->flush_level == FLUSH_RANGE ? (uint32_t)w->flush_length : 0;
}

/* As over Ethernet and IPv4. */
static uint32_t octets_on_wire(const struct qp *qp, const struct packet *p)
{
	const uint32_t envelope = 14 + 20 + 8;

	if (qp->type == QP_TYPE_RAW_PACKET)
		return p->payload_length;
	return envelope + opcode_table[p->opcode].header_length + p->payload_length + p->pad +
	       ICRC_LENGTH;
}

/* The packet at nxt_psn was made: the cursors pass its `psns`. */
static void packet_made(struct qp *qp, const struct message *m, uint32_t psns, nanotime now,
			struct packet *p)
{
	struct requester *r = &qp->req;

	p->psn = r->nxt_psn;
	p->again = r->nxt_psn != r->top_psn;
	r->nxt_psn = psn_add(r->nxt_psn, psns);
	if (psn_after(r->nxt_psn, r->top_psn))
		r->top_psn = r->nxt_psn;
	assert(!psn_after(r->nxt_psn, r->new_psn) && !psn_after(r->top_psn, r->new_psn) &&
	       "only what has begun is sent");
	if (r->nxt_psn == message_end(m))
		r->nxt++;
	rate_used(&r->rate, octets_on_wire(qp, p), now);
	if (qp_type_unreliable(qp->type))
		return; /* nobody acknowledges */
	if (kind_is_fetching(m->kind))
		r->unasked = 0; /* the response acknowledges all before it */
	else if (++r->unasked >= LIMIT_ACK_EVERY || p->ack_req || !request_ready(qp) ||
		 rate_ready_at(&r->rate, now) > now) {
		p->ack_req = true;
		r->unasked = 0;
	}
}

/* The packet of message nxt that begins `done` packets into it. */
static enum reason make_packet(struct qp *qp, uint32_t done, const struct key_table *keys,
			       uint32_t *psns, struct packet *p, struct span_list *gather)
{
	const struct send_work *w = request_at(&qp->req, qp->req.nxt);
	struct message *m = message_at(&qp->req, qp->req.nxt);

	if (qp->type == QP_TYPE_RAW_PACKET)
		return frame_packet(qp, w, m, keys, p, gather);
	if (qp->type == QP_TYPE_UD)
		datagram_address(qp, w, p);
	if (w->opcode == WORK_TSO)
		return segment_packet(qp, w, m, done, keys, p, gather);
	p->srqn = send_work_srqn(w);
	if (m->kind == KIND_READ_REQUEST)
		*psns = read_packet(qp, w, m, done, p);
	else if (kind_is_atomic(m->kind))
		atomic_packet(qp, w, m, p);
	else if (m->kind == KIND_FLUSH)
		flush_packet(qp, w, p);
	else
		return data_packet(qp, w, m, done, keys, p, gather);
	return REASON_NONE;
}

enum next_packet request_next(struct qp *qp, const struct key_table *keys, nanotime now,
			      struct packet *p, struct span_list *gather, nanotime *not_before)
{
	struct requester *r = &qp->req;
	struct message *m;
	uint32_t psns = 1;
	enum reason why;

	r->paced_until = TIME_NEVER;
	if (!request_ready(qp))
		return NEXT_NOTHING;
	m = message_at(r, r->nxt);
	*not_before = rate_ready_at(&r->rate, now);
	if (*not_before > now && !kind_is_local(m->kind)) {
		r->paced_until = *not_before;
		return NEXT_NOT_BEFORE;
	}
	if (r->nxt == r->begun)
		message_begin(qp);
	if (kind_is_local(m->kind))
		return operation_next(qp, keys);
	why = make_packet(qp, (r->nxt_psn - m->first_psn) & PSN_MASK, keys, &psns, p, gather);
	if (why != REASON_NONE) {
		span_list_clear(gather);
		p->payload_length = 0;
		p->pad = 0;
		p->ack_req = false;
		p->solicited = false;
		request_fault(qp, r->nxt_psn, why);
		/* Once more at most: nothing at or behind the fault is sent. */
		return request_next(qp, keys, now, p, gather, not_before);
	}
	packet_made(qp, m, psns, now, p);
	retry_started(qp, now);
	return NEXT_PACKET;
}

/* The cursor to a PSN of [una_psn, nxt_psn]. */
static void cursor_to(struct qp *qp, uint32_t psn)
{
	struct requester *r = &qp->req;

	assert(psn_within(psn, r->una_psn, ((r->new_psn - r->una_psn) & PSN_MASK) + 1) &&
	       "from the oldest that is unacknowledged to the end of what has begun");
	r->nxt = r->una;
	r->nxt_psn = psn;
	while (r->nxt != r->begun) {
		const struct message *m = message_at(r, r->nxt);

		if (psn_within(psn, m->first_psn, m->packets))
			return;
		r->nxt++;
	}
}

void request_ask(struct qp *qp)
{
	const struct requester *r = &qp->req;
	uint32_t psn = r->nxt_psn;

	if (r->unasked == 0 || r->una_psn == psn || psn != r->top_psn || request_ready(qp))
		return;
	cursor_to(qp, psn_add(psn, PSN_MASK));
	if (kind_is_fetching(message_at(r, r->nxt)->kind))
		cursor_to(qp, psn); /* its response is on the way */
}

/* The cursor went back to a packet that did not leave. One behind it may be the one that asked. */
static void count_unasked(struct qp *qp)
{
	if (!qp_type_unreliable(qp->type))
		qp->req.unasked = in_flight(&qp->req);
}

void request_unsent(struct qp *qp, const struct packet *p, nanotime now)
{
	struct requester *r = &qp->req;

	rate_unused(&r->rate, octets_on_wire(qp, p));
	if (qp->state == QP_STATE_ERR || !psn_within(p->psn, r->una_psn, in_flight(r)))
		return; /* acknowledged meanwhile, or already behind the cursor */
	cursor_to(qp, p->psn);
	/* Nothing behind it was sent either: a packet that is new stays new. */
	if (!p->again)
		r->top_psn = p->psn;
	count_unasked(qp);
	retry_held_back(qp, now);
}

void request_refuse(struct qp *qp, uint32_t psn, enum work_status status, enum reason why)
{
	struct requester *r = &qp->req;
	bool made = psn != r->nxt_psn; /* it was already, and what is behind it */

	if (qp->state == QP_STATE_ERR || qp->state == QP_STATE_SQE ||
	    !psn_within(psn, r->una_psn, in_flight(r) + 1))
		return;
	cursor_to(qp, psn);
	if (r->nxt == r->begun)
		return;
	set_fault(message_at(r, r->nxt), status, why);
	if (made)
		count_unasked(qp);
	request_fail_in_turn(qp);
	/* What is on its way did not ask for an acknowledgement; its last packet will now. */
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
