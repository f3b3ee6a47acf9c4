/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small messages are nearly all alike, and cost what is asked about each of them. So the questions are put
 * here once, in the order in which one of them is likely to have another answer. What is done is what
 * request.c does for such a packet.
 */
#include <assert.h>

#include "base/bits.h"
#include "memory/one_span.h"
#include "memory/spans.h"
#include "transport/qp.h"
#include "transport/requester/flight.h"
#include "transport/requester/kind.h"
#include "transport/requester/plain.h"
#include "transport/requester/request.h"
#include "transport/requester/request_check.h"
#include "transport/requester/retry.h"
#include "transport/requester/sample.h"
#include "wire/opcode.h"

/* The path was not given up meanwhile (flight_follow). */
static inline bool path_stands(const struct qp *qp)
{
	return qp->path == NULL || qp->path->given_up == qp->req.given_up;
}

/* A new message is next, and nothing stands before it. */
static inline bool is_undisturbed(const struct qp *qp)
{
	const struct requester *r = &qp->req;

	return r->nxt == r->begun && r->nxt != r->tail && qp->state == QP_STATE_RTS &&
	       r->board.clean && r->board.probes == 0 && !r->held && !r->alone &&
	       r->operating != OPERATING && r->rnr_until == TIME_NEVER && r->rate.limit == 0 &&
	       r->paced_until == TIME_NEVER && in_flight(r) < LIMIT_WINDOW && path_stands(qp);
}

/* After this packet another one may follow at once, as far as the queue pair goes. */
static inline bool is_followed(const struct qp *qp)
{
	const struct requester *r = &qp->req;
	const struct message *m;

	if (r->nxt == r->tail)
		return false;
	m = message_at(r, r->nxt);
	if (m->plain && m->kind != KIND_READ_REQUEST)
		return in_flight(r) < LIMIT_WINDOW;
	return request_ready(qp);
}

static inline bool asks(const struct qp *qp, nanotime now)
{
	return !is_followed(qp) || flight_should_ask(qp) || !flight_may_follow(qp, now);
}

/* A READ, of one packet's data: it takes one of the peer's records. False: it has none left. */
static inline bool fill_read(const struct qp *qp, struct message *m)
{
	if (qp->req.rd_atomic >= qp->attr.max_rd_atomic)
		return false;
	m->asked_from = 0;
	m->asked_to = 1;
	m->asked_again = false;
	m->ticket = (uint32_t)qp->tickets.settled;
	return true;
}

/* The octets of a SEND or WRITE. False: its memory is not there. */
static inline bool fill_data(const struct qp *qp, const struct send_work *w, uint32_t n,
			     const struct key_table *keys, struct packet *p,
			     struct span_list *gather)
{
	p->payload_length = n;
	p->pad = (uint8_t)(-n & 3);
	if (w->flags & WORK_INLINE) {
		p->payload = send_work_inline(w);
		return true;
	}
	return key_one_span_of_list(keys, send_work_sge(w), w->num_sge, qp->user, 0, n, gather) ||
	       key_spans_of_list(keys, send_work_sge(w), w->num_sge, qp->user, 0, 0, n, gather) ==
		       REASON_NONE;
}

static inline void fill_headers(const struct qp *qp, const struct send_work *w,
				const struct message *m, struct packet *p)
{
	const struct work_kind *kind = &work_kinds[w->opcode];

	p->opcode = OPCODE(qp->service, kind->only);
	p->solicited = (w->flags & WORK_SOLICITED) &&
		       (kind->ending != ENDING_PLAIN || m->kind == KIND_SEND);
	p->imm = w->imm;
	p->invalidate_rkey = w->imm;
	p->srqn = send_work_srqn(w);
	p->va = w->remote_addr;
	p->rkey = w->rkey;
	p->dma_length = m->length;
}

/* Whether it asks for an acknowledgement. The response of a READ is one, for all before it, too. */
static inline bool count_unasked(struct qp *qp, const struct message *m, nanotime now)
{
	struct requester *r = &qp->req;
	bool asked;

	if (m->kind == KIND_READ_REQUEST) {
		r->rd_atomic++;
		r->unasked = 0;
		return false;
	}
	r->unasked++;
	asked = asks(qp, now);
	if (asked)
		r->unasked = 0;
	return asked;
}

/* The cursors pass it, and what is counted of packets counts it. */
static inline void made(struct qp *qp, struct message *m, nanotime now, struct packet *p)
{
	struct requester *r = &qp->req;

	m->first_psn = r->nxt_psn;
	m->packets = 1;
	p->psn = r->nxt_psn;
	r->nxt_psn = r->top_psn = r->new_psn = psn_add(p->psn, 1);
	r->nxt = ++r->begun;
	flight_sent(qp, 1, flight_octets(1, m->length), false, now);
	p->ack_req = count_unasked(qp, m, now);
	sample_made(qp, p, r->unasked == 0, now);
	if (r->retry_at == TIME_NEVER || r->board.probe_at == TIME_NEVER)
		retry_started(qp, now);
}

/* request.c finds *p as it was, where it matters. */
static void undo(struct packet *p, struct span_list *gather)
{
	span_list_clear(gather);
	p->payload = NULL;
	p->payload_length = 0;
	p->pad = 0;
	p->solicited = false;
}

bool plain_next(struct qp *qp, const struct key_table *keys, nanotime now, struct packet *p,
		struct span_list *gather)
{
	struct requester *r = &qp->req;
	struct message *m = message_at(r, r->nxt);
	const struct send_work *w;

	if (!m->plain || m->length > qp->mtu || !is_undisturbed(qp))
		return false;
	if (qp->path != NULL && !flight_may_send(qp, flight_octets(1, m->length), now))
		return false;
	assert(r->nxt_psn == r->top_psn && r->top_psn == r->new_psn &&
	       "all that has begun was sent");
	w = request_at(r, r->nxt);
	fill_headers(qp, w, m, p);
	if (m->kind == KIND_READ_REQUEST ? !fill_read(qp, m)
					 : !fill_data(qp, w, m->length, keys, p, gather)) {
		undo(p, gather);
		return false;
	}
	made(qp, m, now, p);
	return true;
}
