/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets of a request: SENDs and WRITEs are cut at the path MTU, a READ is asked for in parts
 * (parts.h), everything else is one packet.
 */
#include <assert.h>

#include "base/bits.h"
#include "memory/spans.h"
#include "transport/datagram.h"
#include "transport/frame.h"
#include "transport/requester/flight.h"
#include "transport/requester/kind.h"
#include "transport/qp.h"
#include "transport/requester/parts.h"
#include "transport/requester/request_check.h"
#include "transport/requester/request_packet.h"
#include "transport/requester/segment.h"
#include "wire/envelope.h"

/*
 * The part of the path's window that a new part of a READ takes. Four fill it, as four packets of it ask for
 * an acknowledgement (flight.h). A bad cable has no queue to share, but loses requests, and the peer
 * executes nothing behind a lost one: there they are fewer, and longer.
 */
static uint32_t part_of_window(const struct qp *qp, uint32_t most)
{
	uint32_t way = flight_way(qp);

	if (qp->path != NULL && path_losses_are_lone(qp->path))
		return MAX_OF(way / 4, MIN_OF(way, most / 2));
	return way / 4;
}

/*
 * The size of a new part. None is longer than LIMIT_READ_PART, but those that the peer has room for must
 * fill the window.
 */
static uint8_t wanted_part(const struct qp *qp)
{
	uint32_t window = MIN_OF(flight_window(qp), flight_way(qp)),
		 few = window / MAX_OF(qp->attr.max_rd_atomic, 1u),
		 most = MIN_OF(LIMIT_READ_PART >> qp->mtu_shift, window);

	return log2_of(MAX_OF(MAX_OF(MIN_OF(part_of_window(qp, most), most), few), 1));
}

/* The size of the part that begins behind the first `done` packets. */
static uint8_t next_part(const struct qp *qp, const struct message *m, uint32_t done)
{
	return done == 0 || parts_may_change(&qp->req, m) ? wanted_part(qp) : m->part;
}

uint32_t request_read_part(const struct qp *qp, const struct message *m, uint32_t done)
{
	const struct requester *r = &qp->req;
	uint32_t all = packets_of(qp, m->length), rest;

	if (r->nxt == r->begun || done >= m->asked_to)
		return MIN_OF(all - done, 1u << next_part(qp, m, done));
	/* It did not leave, or is asked for again: some peers may not accept a part that ends
	 * early.
	 */
	rest = part_of(m, done).end - done;
	if (!qp->selective || r->nxt_psn == r->top_psn || !part_answered(r, m, done))
		return rest;
	return psn_set_gap(board_set(&r->board, BOARD_LOST), psn_add(m->first_psn, done), rest);
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

static void part_begins(struct qp *qp, struct message *m, uint32_t done)
{
	uint8_t part = next_part(qp, m, done);

	if (done > 0)
		qp->req.more_parts++;
	if (done > 0 && part == m->part)
		return;
	m->part_before = m->part;
	m->part = part;
	m->base = done;
}

/* A repetition begins at the first response that is missing (protocol-map 110). */
static uint32_t read_packet(struct qp *qp, const struct send_work *w, struct message *m,
			    uint32_t done, struct packet *p)
{
	uint32_t part = request_read_part(qp, m, done), offset = done << qp->mtu_shift;

	assert(part > 0 && done + part <= m->packets && "a part of what is missing");
	if (done < m->asked_to) {
		m->asked_again = true;
	} else {
		part_begins(qp, m, done);
		m->asked_to = done + part;
	}
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

enum reason request_packet(struct qp *qp, uint32_t done, const struct key_table *keys,
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

uint32_t request_octets_on_wire(const struct qp *qp, const struct packet *p)
{
	const uint32_t envelope = 14 + 20 + 8;

	if (qp->type == QP_TYPE_RAW_PACKET)
		return p->payload_length;
	return envelope + opcode_table[p->opcode].header_length + p->payload_length + p->pad +
	       ICRC_LENGTH;
}
