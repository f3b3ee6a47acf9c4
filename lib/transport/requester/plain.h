/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nearly all packets are alike: all of a small message, or the middle of a large one. Questions are
 * what a packet costs, so they are asked here once, the ones most likely to fail first. The effects
 * are those of request.c for such a packet. Inline, as its one caller asks for each packet.
 */
#ifndef TRANSPORT_PLAIN_H
#define TRANSPORT_PLAIN_H

#include <assert.h>

#include "base/bits.h"
#include "memory/spans.h"
#include "transport/qp.h"
#include "transport/requester/flight.h"
#include "transport/requester/kind.h"
#include "transport/requester/parts.h"
#include "transport/requester/request.h"
#include "transport/requester/request_check.h"
#include "transport/requester/retry.h"
#include "transport/requester/sample.h"
#include "wire/opcode.h"

/* The path was not given up meanwhile (flight_follow). */
static inline bool plain_path_stands(const struct qp *qp)
{
	return qp->path == NULL || qp->path->given_up == qp->req.given_up;
}

/* A message is next, and nothing comes before it. */
static inline bool plain_is_undisturbed(const struct qp *qp)
{
	const struct requester *r = &qp->req;

	return r->nxt != r->tail && r->nxt_psn == r->top_psn && qp->state == QP_STATE_RTS &&
	       r->board.probes == 0 && !r->held && !r->alone && r->operating != OPERATING &&
	       r->rnr_until == TIME_NEVER && r->rate.limit == 0 && r->paced_until == TIME_NEVER &&
	       flight_has_window(qp, in_flight(r) + 1) && plain_path_stands(qp);
}

/* As far as the queue pair knows, another packet may follow this one at once. */
static inline bool plain_is_followed(const struct qp *qp)
{
	const struct requester *r = &qp->req;
	const struct message *m;

	if (r->nxt == r->tail)
		return false;
	m = message_at(r, r->nxt);
	if (m->plain && m->kind != KIND_READ_REQUEST)
		return flight_has_window(qp, in_flight(r) + 1);
	return request_ready(qp);
}

static inline bool plain_asks(const struct qp *qp, nanotime now)
{
	return !plain_is_followed(qp) || flight_should_ask(qp) || !flight_may_follow(qp, now);
}

/* A READ of one packet's data: it takes one of the peer's records. False: none is left. */
static inline bool plain_fill_read(const struct qp *qp, struct message *m)
{
	if (!parts_leave_room(qp))
		return false;
	m->base = 0;
	m->asked_to = 1;
	m->asked_again = false;
	m->ticket = (uint32_t)qp->tickets.settled;
	return true;
}

/* The octets of a SEND or WRITE. False: the memory is not there. */
static inline bool plain_fill_data(const struct qp *qp, const struct send_work *w, uint32_t offset,
				   uint32_t n, const struct key_table *keys, struct packet *p,
				   struct span_list *gather)
{
	const struct work_sge *sge = send_work_sge(w);

	p->payload_length = n;
	p->pad = (uint8_t)(-n & 3);
	if (w->flags & WORK_INLINE) {
		p->payload = send_work_inline(w) + offset;
		return true;
	}
	return key_one_span_of_list(keys, sge, w->num_sge, qp->user, 0, offset, n, gather) ||
	       key_spans_of_list(keys, sge, w->num_sge, qp->user, 0, offset, n, gather) ==
		       REASON_NONE;
}

static inline void plain_fill_headers(const struct qp *qp, const struct send_work *w,
				      const struct message *m, struct packet *p)
{
	const struct work_kind *kind = &work_kinds[w->opcode];

	p->opcode = OPCODE(qp->service, kind->only);
	p->solicited = (w->flags & WORK_SOLICITED) &&
		       (kind->ending != ENDING_PLAIN || m->kind == KIND_SEND);
	if (kind->ending != ENDING_PLAIN)
		p->imm = p->invalidate_rkey = w->imm;
	if (qp->service == SERVICE_XRC)
		p->srqn = send_work_srqn(w);
	p->va = w->remote_addr;
	p->rkey = w->rkey;
	p->dma_length = m->length;
}

/* Whether it asks for an acknowledgement. A READ's response is one, also for all before it. */
static inline bool plain_count_unasked(struct qp *qp, const struct message *m, nanotime now)
{
	struct requester *r = &qp->req;
	bool asked;

	if (m->kind == KIND_READ_REQUEST) {
		r->rd_atomic++;
		r->unasked = 0;
		return false;
	}
	r->unasked++;
	asked = plain_asks(qp, now);
	if (asked)
		r->unasked = 0;
	return asked;
}

/* The cursor passes the packet, and the counters count it. */
static inline void plain_made(struct qp *qp, const struct message *m, uint32_t octets, nanotime now,
			      struct packet *p)
{
	struct requester *r = &qp->req;

	p->psn = r->nxt_psn;
	r->nxt_psn = r->top_psn = psn_add(p->psn, 1);
	flight_sent(qp, 1, flight_octets(1, octets), 0, now);
	p->ack_req = plain_count_unasked(qp, m, now);
	sample_made(qp, p, r->unasked == 0, now);
	if (r->retry_at == TIME_NEVER || r->board.probe_at == TIME_NEVER)
		retry_started(qp, now);
}

/* request.c finds the fields of *p that matter unchanged. */
static inline void plain_undo(struct packet *p, struct span_list *gather)
{
	span_list_clear(gather);
	p->payload = NULL;
	p->payload_length = 0;
	p->pad = 0;
	p->solicited = false;
}

static inline bool plain_may_leave(const struct qp *qp, uint32_t octets, nanotime now)
{
	return qp->path == NULL || flight_may_send(qp, flight_octets(1, octets), now);
}

/* A new message, of one packet. */
static inline bool plain_whole_next(struct qp *qp, struct message *m, const struct key_table *keys,
				    nanotime now, struct packet *p, struct span_list *gather)
{
	struct requester *r = &qp->req;
	const struct send_work *w = request_at(r, r->nxt);

	if (m->length > qp->mtu || !plain_may_leave(qp, m->length, now))
		return false;
	assert(r->top_psn == r->new_psn && "all that has begun was sent");
	plain_fill_headers(qp, w, m, p);
	if (m->kind == KIND_READ_REQUEST ? !plain_fill_read(qp, m)
					 : !plain_fill_data(qp, w, 0, m->length, keys, p, gather)) {
		plain_undo(p, gather);
		return false;
	}
	m->first_psn = r->nxt_psn;
	m->packets = 1;
	r->new_psn = psn_add(r->nxt_psn, 1);
	r->nxt = ++r->begun;
	plain_made(qp, m, m->length, now, p);
	return true;
}

/* Between the first packet and the last one of a message: most of a large one. */
static inline bool plain_middle_next(struct qp *qp, const struct message *m,
				     const struct key_table *keys, nanotime now, struct packet *p,
				     struct span_list *gather)
{
	struct requester *r = &qp->req;
	const struct send_work *w = request_at(r, r->nxt);
	uint32_t done = (r->nxt_psn - m->first_psn) & PSN_MASK;

	if (m->kind == KIND_READ_REQUEST || done == 0 || done + 1 >= m->packets ||
	    !plain_may_leave(qp, qp->mtu, now))
		return false;
	p->opcode = OPCODE(qp->service, work_kinds[w->opcode].base + 1);
	p->srqn = send_work_srqn(w);
	if (!plain_fill_data(qp, w, done << qp->mtu_shift, qp->mtu, keys, p, gather)) {
		plain_undo(p, gather);
		return false;
	}
	plain_made(qp, m, qp->mtu, now, p);
	return true;
}

/*
 * The next request packet, if it is all of a SEND, a WRITE or a READ of one packet, or in the
 * middle of a longer SEND or WRITE, and nothing holds the queue pair back, limits its rate or is to
 * be sent again. False: another case, or it may not be sent; only *p and *gather have changed then,
 * and request.c finds out what to do.
 */
static inline bool plain_next(struct qp *qp, const struct key_table *keys, nanotime now,
			      struct packet *p, struct span_list *gather)
{
	const struct requester *r = &qp->req;
	struct message *m = message_at(r, r->nxt);

	if (!m->plain || !plain_is_undisturbed(qp))
		return false;
	return r->nxt == r->begun ? plain_whole_next(qp, m, keys, now, p, gather)
				  : plain_middle_next(qp, m, keys, now, p, gather);
}

#endif
