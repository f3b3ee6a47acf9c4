/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One packet for one queue pair. It may have to wait for others. Then the core says what it means,
 * and the lcore does at once what the core asks for: receives, copies, completions, events, the
 * deadline.
 */
#include <rte_branch_prediction.h>

#include "base/bits.h"
#include "lcore/inside.h"
#include "lcore/moving/behind.h"
#include "lcore/moving/hold.h"
#include "lcore/moving/moving.h"
#include "lcore/srq.h"
#include "lcore/tag/tag.h"
#include "lcore/turns/ahead.h"
#include "lcore/window.h"
#include "wire/opcode.h"

/*
 * The CQ in which a receive completes. The completion of an SRQ's request names the SRQ by its
 * handle, which is its program's. NULL: the SRQ is gone, and so is the program of the completion.
 */
static struct engine_cq *receive_cq(struct lcore *l, struct engine_qp *q, struct completion *c,
				    nanotime now)
{
	struct engine_srq *s = q->srq;

	if (s == NULL && c->from_srq)
		s = srq_find(l->engine, c->work_index);
	if (s == NULL)
		return q->recv_cq;
	c->from_srq = 1;
	if (s->tags != NULL)
		tags_received(q, c, now);
	c->work_index = s->handle;
	return s->cq != NULL ? s->cq : q->recv_cq;
}

static void report(struct lcore *l, struct engine_qp *q, struct completion *c, bool from_receive,
		   nanotime now)
{
	struct engine_cq *cq = q->send_cq;

	if (from_receive) {
		l->stats.receives += c->status == STATUS_SUCCESS;
		cq = receive_cq(l, q, c, now);
	} else if (c->from_srq == COMPLETION_OWN) {
		if (!tags_own_done(q, c))
			return;
		cq = q->srq->cq;
	}
	if (cq != NULL)
		cq_complete(l, q, cq, c, now);
}

/*
 * Once a request has failed, the program has a completion to poll for each one behind it, signaled
 * or not. Their slots stay taken until it polls, as on other devices. Otherwise a program that posts
 * until the queue is full would never find it full, and would overrun its CQ.
 */
static bool keeps_slots(struct engine_qp *q, const struct completion *send)
{
	enum qp_state state;

	if (send != NULL && send->status != STATUS_SUCCESS && send->from_srq != COMPLETION_OWN)
		q->keeps_slots = q->send_cq != NULL && !q->send_cq->ignores_overrun;
	if (likely(!q->keeps_slots))
		return false;
	state = qp_state(q->core);
	q->keeps_slots = state == QP_STATE_ERR || state == QP_STATE_SQE;
	return q->keeps_slots;
}

/*
 * A slot is given back before the completion that reports it can be seen, because a program that
 * polls the completion may post at once. Requests without a completion give theirs back, too.
 */
static void take_completions(struct lcore *l, struct engine_qp *q, nanotime now)
{
	struct completion c;
	bool taken, from_receive;

	do {
		uint32_t retired;

		taken = qp_take_completion(q->core, &c, &from_receive);
		retired = qp_retired(q->core);
		if (retired != q->published_retired &&
		    !keeps_slots(q, taken && !from_receive ? &c : NULL)) {
			q->published_retired = retired;
			/* Release: a client that sees the slot free sees everything before. */
			__atomic_store_n(&q->page->retired, retired, __ATOMIC_RELEASE);
		}
		if (taken)
			report(l, q, &c, from_receive, now);
	} while (taken);
}

/*
 * Posted receives are flushed after the event, not as soon as the state is ERR. Receives that were
 * taken before may still wait for their copies, and complete first. A queue pair that waits for
 * its turn in lcore.drains flushes then.
 */
static void settle_error(struct lcore *l, struct engine_qp *q, uint32_t events, nanotime now)
{
	__atomic_store_n(&q->page->state, QP_STATE_ERR, __ATOMIC_RELEASE);
	q->flushing |= (events & QP_EVENT_ENTERED_ERR) != 0;
	if (behind_any(q))
		behind_forget(l, q);
	if (q->flushing && q->drains == NULL)
		receives_flush(l, q, now);
}

/*
 * In ERR a completion gives memory back. So it waits for all copies of the queue pair that are
 * under way, whatever the core has done with their tickets (protocol-map 137).
 */
static bool holds_memory(const struct engine_qp *q)
{
	return (q->last_ticket != 0 || q->gather_pending) && qp_state(q->core) == QP_STATE_ERR;
}

static void settle(struct lcore *l, struct engine_qp *q, nanotime now)
{
	uint32_t events;

	if (q->operation_owed)
		operation_settle(q, now);
	if (!holds_memory(q))
		take_completions(l, q, now);
	events = qp_take_events(q->core);
	if (events != 0) {
		l->stats.access_refused += (events & QP_EVENT_REFUSED_ACCESS) != 0;
		qp_raise(l, q, events);
	}
	if (qp_state(q->core) == QP_STATE_ERR)
		settle_error(l, q, events, now);
	if (q->more_work && !holds_memory(q) && qp_window_slot(q->core) != NULL) {
		qp_drain_rings(l, q, now);
		take_completions(l, q, now);
	}
	wheel_set(&l->wheel, q, qp_deadline(q->core));
	if (!q->is_ready && !q->gather_pending && q->waiting == 0 && q->flow_state != FLOW_NONE &&
	    qp_has_packet(q->core))
		ready_add(l, q);
}

void qp_settled(struct lcore *l, struct engine_qp *q, nanotime now)
{
	enum stage before;

	if (likely(l->stages == NULL)) {
		settle(l, q, now);
		return;
	}
	before = stage_enter(l->stages, STAGE_COMPLETE);
	settle(l, q, now);
	stage_enter(l->stages, before);
}

void qps_settle(struct lcore *l, nanotime now)
{
	for (uint32_t i = 0; i < l->unsettled_count; i++) {
		l->unsettled[i]->unsettled = false;
		qp_settled(l, l->unsettled[i], now);
	}
	l->unsettled_count = 0;
}

void qp_settle_later(struct lcore *l, struct engine_qp *q, nanotime now)
{
	if (q->unsettled)
		return;
	if (l->unsettled_count == LIMIT_BURST)
		qps_settle(l, now);
	q->unsettled = true;
	l->unsettled[l->unsettled_count++] = q;
}

/* XRC: finds whose receives, memory and rights this packet uses (protocol-map 170). */
static void find_srq(struct lcore *l, struct engine_qp *q, const struct packet *p)
{
	struct engine_srq *s = NULL;

	if (opcode_is(p->opcode, OP_XRCETH))
		s = srq_find(l->engine, p->srqn);
	if (s != NULL && s->xrcd != q->xrcd)
		s = NULL; /* of another domain, or an ordinary one: not for this queue pair */
	qp_target(q->core, s != NULL ? s->pd_number : 0, s != NULL ? s->number : 0);
	l->srq = s;
}

/*
 * The core had no room for a packet. Packets of this burst that are not settled yet, or copies of the
 * lcore, may be what takes it. A queue pair that receives more in one burst than it has room for asks
 * for more, unless the lcore has so many that their memory is not near (ahead.h). True: now there is
 * room.
 */
static __attribute__((noinline)) bool room_made(struct lcore *l, struct engine_qp *q, nanotime now)
{
	bool burst = q->unsettled;

	if (burst)
		qp_settled(l, q, now);
	if (qp_can_receive(q->core)) {
		if (burst && !ahead_helps(l))
			qp_crowded(l, q);
		return true;
	}
	qp_crowded(l, q);
	if (q->mover != NULL)
		return false;
	place_flush(l, now);
	return qp_can_receive(q->core);
}

static inline bool take(struct lcore *l, struct engine_qp *q, const struct packet *p,
			struct rte_mbuf *m, nanotime now)
{
	const struct opcode_info *op = &opcode_table[p->opcode]; /* a raw frame: as a SEND */
	struct outcome *o = &l->outcome;
	const struct recv_work *offer = NULL;
	bool tagged = q->srq != NULL && q->srq->tags != NULL, kept = false;

	l->srq = q->srq;
	if (q->type == QP_TYPE_XRC_RECV)
		find_srq(l, q, p);
	if ((q->raw || (op->flags & OP_CONSUMES)) && qp_wants_receive(q->core, p)) {
		/*
		 * Requests that this burst has acknowledged complete first. A program that sees the
		 * receive may post at once, but the core reports receives before requests.
		 */
		if (q->unsettled && qp_has_done(q->core))
			qp_settled(l, q, now);
		offer = tagged ? tags_offer(l, q, p, now) : receive_peek(l, q, now);
	}
	qp_received(q->core, p, offer, &l->keys, now, o);
	if (offer != NULL && (o->flags & OUTCOME_RECEIVE_USED) == 0)
		tagged ? tags_kept(l, q, offer) : receive_kept(l, offer);
	if (unlikely(o->reason == REASON_BUSY) && room_made(l, q, now))
		return packet_take(l, q, p, m, now);
	if (o->reason != REASON_NONE) {
		count_reason(l, o->reason);
		l->stats.rnr_naks += o->reason == REASON_NAK_RNR;
	} else if (op->flags & OP_FIRST) {
		l->stats.begun[op->kind]++;
	}
	if (o->flags == OUTCOME_PLACE) {
		kept = place_outcome(l, q, o, p, m, now);
	} else if (o->flags & OUTCOME_HOLD) {
		kept = behind_keep(l, q, p, m, now);
	} else if (o->flags != 0) {
		if (o->flags & OUTCOME_RECEIVE_USED)
			tagged ? tags_taken(l, q, offer) : receive_taken(l, q);
		if (o->flags & (OUTCOME_PLACE | OUTCOME_ATOMIC))
			kept = place_outcome(l, q, o, p, m, now);
		if (o->flags & OUTCOME_INVALIDATE) {
			window_invalidate(l->engine, o->invalidate);
			place_nothing(l, q, o->invalidate_ticket, now);
		}
	}
	if (tagged) /* the receive of the next message depends on it */
		qp_settled(l, q, now);
	else
		qp_settle_later(l, q, now);
	return kept;
}

bool packet_take(struct lcore *l, struct engine_qp *q, const struct packet *p, struct rte_mbuf *m,
		 nanotime now)
{
	return take(l, q, p, m, now);
}

/*
 * The queue pair's copies go through this mover (NULL: the lcore) once those under way are over.
 * False: they are not.
 */
static bool mover_changes(struct lcore *l, struct engine_qp *q, struct mover *mover, nanotime now)
{
	if (q->last_ticket != 0 && q->mover == NULL)
		place_flush(l, now);
	if (q->last_ticket != 0)
		return false;
	q->mover = mover;
	return true;
}

static uint8_t kind_of(const struct engine_qp *q, const struct packet *p)
{
	return q->raw ? KIND_SEND : opcode_table[p->opcode].kind;
}

/* Packets that cause no copy. */
static bool is_answer(uint8_t kind)
{
	return kind == KIND_ACK || kind == KIND_CNP || kind == KIND_SELECTIVE_ACK;
}

/*
 * Whether the lcore may execute it now: nothing must come before it, and an atomic has room to
 * wait.
 */
static bool lcore_takes(const struct lcore *l, const struct engine_qp *q, const struct packet *p)
{
	if (q->atomic_waits)
		return is_answer(kind_of(q, p));
	/* a raw frame: as a SEND */
	return !opcode_is(p->opcode, OP_ATOMIC_ETH) || moving_can_try(l, q->client);
}

/* A mover's packet is held while the core has no room for it, and needs room for its copies, too. */
static bool mover_takes(struct lcore *l, struct engine_qp *q, const struct packet *p, nanotime now)
{
	if (!qp_can_receive(q->core) && !room_made(l, q, now))
		return false;
	return is_answer(kind_of(q, p)) || moving_open(l, q->client, now) != NULL;
}

static inline bool fits(struct lcore *l, struct engine_qp *q, const struct packet *p, nanotime now)
{
	/* The control thread may give a slow program a mover at any time. */
	struct mover *mover = client_mover(q->client);

	if (unlikely(mover != q->mover) && !mover_changes(l, q, mover, now))
		return false;
	return likely(mover == NULL) ? lcore_takes(l, q, p) : mover_takes(l, q, p, now);
}

bool packet_fits(struct lcore *l, struct engine_qp *q, const struct packet *p, nanotime now)
{
	return fits(l, q, p, now);
}

bool packet_input(struct lcore *l, struct engine_qp *q, const struct packet *p, struct rte_mbuf *m,
		  nanotime now)
{
	enum reason why;
	bool kept;

	if ((STAILQ_EMPTY(&q->held) || hold_release_of(l, q, now)) && fits(l, q, p, now)) {
		kept = take(l, q, p, m, now);
		if (behind_any(q)) /* it may be what they waited for */
			behind_release(l, q, now);
		return kept;
	}
	/* Only a packet of the peer may be held. */
	why = qp_check_origin(q->core, p);
	if (why == REASON_NONE && hold_packet(l, q, p, m))
		return true;
	count_reason(l, why != REASON_NONE ? why : REASON_BUSY);
	return false;
}
