/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Received frames: from the port, from other lcores, and from ourselves. Each is decoded, finds
 * its queue pair, and is passed to the core; what the core asks for is done at once.
 */
#include <rte_prefetch.h>

#include "base/bits.h"
#include "lcore/datagram.h"
#include "lcore/inside.h"
#include "lcore/exception/exception.h"
#include "lcore/moving/hold.h"
#include "lcore/moving/moving.h"
#include "lcore/raw/raw.h"
#include "lcore/srq.h"
#include "lcore/tag/tag.h"
#include "lcore/window.h"
#include "queue/fence.h"
#include "wire/decode.h"
#include "wire/opcode.h"

#define LOOP_BURST 128u /* more than a tx round makes */

/* Kinds of frames in rings inside the engine (frame_mark), beside those of raw.h and datagram.h. */
#define FRAME_RECEIVED 0u /* as from a wire */
/* Its ICRC was checked by another lcore, or it never left the engine unsummed. */
#define FRAME_TRUSTED  1u

static void settle_ring(struct lcore *l, struct engine_qp *q)
{
	uint32_t retired = qp_retired(q->core);

	if (retired != q->published_retired) {
		q->published_retired = retired;
		/* Release: a client that sees the slot free sees everything before. */
		__atomic_store_n(&q->page->retired, retired, __ATOMIC_RELEASE);
	}
}

/*
 * Where a receive completes. One of an SRQ says which request of it was used by the SRQ's handle,
 * which is its program's; NULL: the SRQ is gone, and with it whom the completion was for.
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

/*
 * A slot is given back before the completion that says so can be seen: a program that polls it
 * may post at once.
 */
static void take_completions(struct lcore *l, struct engine_qp *q, nanotime now)
{
	struct completion c;
	bool from_receive;

	while (qp_take_completion(q->core, &c, &from_receive)) {
		struct engine_cq *cq = q->send_cq;

		if (from_receive)
			cq = receive_cq(l, q, &c, now);
		else if (c.from_srq == COMPLETION_OWN && !tags_own_done(q, &c))
			continue;
		else if (c.from_srq != 0)
			cq = q->srq->cq;
		settle_ring(l, q);
		if (cq != NULL)
			cq_complete(l, q, cq, &c, now);
	}
	settle_ring(l, q);
}

/*
 * Posted receives are flushed from the event on, not from the state: receives that were taken
 * before may still wait for their copies, and complete first.
 */
static void settle_error(struct lcore *l, struct engine_qp *q, uint32_t events, nanotime now)
{
	__atomic_store_n(&q->page->state, QP_STATE_ERR, __ATOMIC_RELEASE);
	q->flushing |= (events & QP_EVENT_ENTERED_ERR) != 0;
	if (q->flushing)
		receives_flush(l, q, now);
}

/*
 * In ERR a completion gives memory back, so it waits for copies of the queue pair that are under way,
 * whatever the core has made of them (protocol-map 137).
 */
static bool holds_memory(const struct engine_qp *q)
{
	return (q->last_ticket != 0 || q->gather_pending) && qp_state(q->core) == QP_STATE_ERR;
}

void qp_settled(struct lcore *l, struct engine_qp *q, nanotime now)
{
	uint32_t events;

	operation_settle(q, now);
	if (!holds_memory(q))
		take_completions(l, q, now);
	events = qp_take_events(q->core);
	if (events != 0)
		qp_raise(l, q, events);
	if (qp_state(q->core) == QP_STATE_ERR)
		settle_error(l, q, events, now);
	if (q->more_work && !holds_memory(q) && qp_window_slot(q->core) != NULL) {
		qp_drain_rings(l, q, now);
		take_completions(l, q, now);
	}
	wheel_set(&l->wheel, q, qp_deadline(q->core));
	if (!q->is_ready && !q->gather_pending && q->flow_state != FLOW_NONE &&
	    qp_has_packet(q->core))
		ready_add(l, q);
}

void hand_over(struct lcore *l, struct lcore *to, struct rte_mbuf *m, uint32_t mark)
{
	m->hash.usr = mark;
	for (int tries = 0; tries < 64; tries++) {
		if (rte_ring_enqueue(to->inbox, m) == 0) {
			queue_fence(); /* it is there before we look: pairs with idle.c */
			if (__atomic_load_n(&to->sleeping, __ATOMIC_SEQ_CST))
				lcore_wake(to);
			return;
		}
		rte_pause();
	}
	/* The other lcore may be waiting for us: do not wait for ever. */
	count_reason(l, REASON_HAND_OVER_FULL);
	rte_pktmbuf_free(m);
}

/* XRC: whose receives, memory and rights this packet is about (protocol-map 170). */
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

bool packet_take(struct lcore *l, struct engine_qp *q, const struct packet *p, struct rte_mbuf *m,
		 nanotime now)
{
	struct outcome *o = &l->outcome;
	const struct recv_work *offer = NULL;
	bool tagged = q->srq != NULL && q->srq->tags != NULL, kept = false;

	l->srq = q->srq;
	if (q->type == QP_TYPE_XRC_RECV)
		find_srq(l, q, p);
	if (qp_wants_receive(q->core, p))
		offer = tagged ? tags_offer(l, q, p, now) : receive_peek(l, q, now);
	qp_received(q->core, p, offer, &l->engine->keys, now, o);
	if (o->reason != REASON_NONE)
		count_reason(l, o->reason);
	l->stats.rnr_naks += o->reason == REASON_NAK_RNR;
	if (offer != NULL && (o->flags & OUTCOME_RECEIVE_USED) == 0)
		tagged ? tags_kept(l, q, offer) : receive_kept(l, offer);
	if (o->flags != 0) {
		if (o->flags & OUTCOME_RECEIVE_USED)
			tagged ? tags_taken(l, q, offer) : receive_taken(l, q);
		if (o->flags & (OUTCOME_PLACE | OUTCOME_ATOMIC))
			kept = place_outcome(l, q, o, p, m, now);
		if (o->flags & OUTCOME_INVALIDATE) {
			window_invalidate(l->engine, o->invalidate);
			place_nothing(l, q, o->invalidate_ticket, now);
		}
	}
	qp_settled(l, q, now);
	return kept;
}

/* Copies of this queue pair go another way from now on, once those under way are over. */
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

/* Nothing is copied for it. */
static bool is_answer(uint8_t kind)
{
	return kind == KIND_ACK || kind == KIND_CNP;
}

/* It comes behind what it must come behind; an atomic finds room to wait if its word is busy. */
static bool lcore_takes(const struct lcore *l, const struct engine_qp *q, const struct packet *p)
{
	uint8_t kind = kind_of(q, p);

	if (q->atomic_waits)
		return is_answer(kind);
	return !(kind == KIND_CMP_SWAP || kind == KIND_FETCH_ADD) || moving_can_try(l, q->client);
}

bool packet_fits(struct lcore *l, struct engine_qp *q, const struct packet *p, nanotime now)
{
	/* The control thread may give a slow client a mover at any time. */
	struct mover *mover = client_mover(q->client);

	if (mover != q->mover && !mover_changes(l, q, mover, now))
		return false;
	if (!qp_can_receive(q->core)) {
		qp_crowded(l, q);
		if (mover != NULL)
			return false;
		place_flush(l, now);
	}
	if (mover == NULL)
		return lcore_takes(l, q, p);
	/* Its copies and tickets find room. */
	return is_answer(kind_of(q, p)) || moving_open(l, q->client, now) != NULL;
}

bool packet_input(struct lcore *l, struct engine_qp *q, const struct packet *p, struct rte_mbuf *m,
		  nanotime now)
{
	enum reason why;

	if ((STAILQ_EMPTY(&q->held) || hold_release_of(l, q, now)) && packet_fits(l, q, p, now))
		return packet_take(l, q, p, m, now);
	/* A stranger's does not take a place from the peer's. */
	why = qp_check_origin(q->core, p);
	if (why == REASON_NONE && hold_packet(l, q, p, m))
		return true;
	count_reason(l, why != REASON_NONE ? why : REASON_BUSY);
	return false;
}

/* Frames that are not RoCE go to the control thread: ARP, neighbour discovery, echo. */
static void stranger(struct lcore *l, struct rte_mbuf *m)
{
	struct engine *e = l->engine;

	if (e->strangers == NULL || rte_ring_enqueue(e->strangers, m) != 0) {
		rte_pktmbuf_free(m);
		return;
	}
	control_tell(e, e->strangers);
}

/*
 * Whether the frame can be none of ours: then steering rules are for it. What went wrong behind
 * the UDP header is a RoCE packet that is dropped, as hardware drops it.
 */
static bool is_stranger(enum reason why)
{
	return why == REASON_NOT_ROCE || why == REASON_VLAN_TAG || why == REASON_FRAME_SHORT ||
	       why == REASON_IP_HEADER || why == REASON_IP_FRAGMENT;
}

/* Not a packet for a queue pair. */
static void frame_refused(struct lcore *l, struct rte_mbuf *m, enum reason why, nanotime now)
{
	const struct exception *x = l->engine->exception;
	bool kernels =
		x != NULL && exception_wants(&x->own, l->engine->vlan, why,
					     rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);

	if (!kernels)
		count_reason(l, why);
	if (raw_steering(l->engine) && raw_input(l, m, !is_stranger(why), now))
		return;
	if (kernels)
		exception_collect(l, m);
	else if (why == REASON_NOT_ROCE)
		stranger(l, m);
	else
		rte_pktmbuf_free(m);
}

/*
 * Who is connected to one of our own addresses has nothing to hear from the port: the addresses
 * would be right, and the sender anybody.
 */
static bool is_forged(const struct engine *e, const struct engine_qp *q, const struct packet *p)
{
	if (p->sender != 0)
		return false;
	return q->type == QP_TYPE_UD ? datagram_is_forged(e, p) : q->flow_state == FLOW_LOOP;
}

static void frame_input(struct lcore *l, struct rte_mbuf *m, uint32_t mark, nanotime now)
{
	uint32_t kind = frame_kind(mark);
	bool trusted = kind == FRAME_TRUSTED || kind == FRAME_FOR_MEMBERS, kept;
	struct decode_options options = { .check_icrc = !trusted, .vlan = l->engine->vlan };
	struct engine_qp *q;
	struct packet p;
	enum reason why;

	if (m->nb_segs > 1 && rte_pktmbuf_linearize(m) != 0) {
		count_reason(l, REASON_RX_TRUNCATED);
		rte_pktmbuf_free(m);
		return;
	}
	why = packet_decode(&p, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, &options);
	if (why != REASON_NONE) {
		frame_refused(l, m, why, now);
		return;
	}
	p.sender = frame_sender(mark);
	if (!trusted && raw_steering(l->engine))
		raw_input(l, m, true, now);
	if (!trusted && l->engine->exception != NULL && !p.multicast &&
	    !exception_is_own(&l->engine->exception->own, &p.dst_gid)) {
		exception_collect(l, m);
		return;
	}
	if (p.dest_qpn == MULTICAST_QPN) {
		mcast_input(l, &p, m, kind == FRAME_FOR_MEMBERS, now);
		return;
	}
	if (p.dest_qpn == QPN_GSI) {
		cm_rx(l, &p, m);
		return;
	}
	q = directory_find(l->engine, p.dest_qpn);
	if (q == NULL || q->raw) {
		count_reason(l, p.dest_qpn == 0 ? REASON_QPN_RESERVED : REASON_QPN_UNKNOWN);
		rte_pktmbuf_free(m);
		return;
	}
	if (q->lcore != l) {
		hand_over(l, q->lcore, m, frame_mark(FRAME_TRUSTED, p.sender));
		return;
	}
	if (is_forged(l->engine, q, &p)) {
		count_reason(l, REASON_SOURCE_OWN);
		rte_pktmbuf_free(m);
		return;
	}
	if (q->type == QP_TYPE_UD)
		kept = datagram_input(l, q, &p, m, now);
	else
		kept = packet_input(l, q, &p, m, now);
	if (!kept)
		rte_pktmbuf_free(m);
}

static uint32_t port_input(struct lcore *l, nanotime now)
{
	struct port *port = l->engine->port;
	struct rte_mbuf *m[LIMIT_BURST];
	uint16_t n;

	if (l->queue == UINT16_MAX)
		return 0;
	n = port->ops->rx_burst(port, l->queue, m, LIMIT_BURST);
	for (uint16_t i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(m[i], void *));
	for (uint16_t i = 0; i < n; i++) {
		l->stats.rx_packets++;
		l->stats.rx_octets += m[i]->pkt_len;
		frame_input(l, m[i], FRAME_RECEIVED, now);
	}
	return n;
}

static uint32_t inbox_input(struct lcore *l, nanotime now)
{
	void *m[LIMIT_BURST];
	uint32_t n;

	if (rte_ring_empty(l->inbox))
		return 0;
	n = rte_ring_dequeue_burst(l->inbox, m, LIMIT_BURST, NULL);
	for (uint32_t i = 0; i < n; i++) {
		struct rte_mbuf *frame = m[i];

		if (frame_kind(frame->hash.usr) == FRAME_RAW_DELIVERED)
			raw_arrived(l, frame, now);
		else
			frame_input(l, frame, frame->hash.usr, now);
	}
	return n;
}

static uint32_t loop_input(struct lcore *l, nanotime now)
{
	uint32_t n = MIN_OF(l->loop_head - l->loop_tail, LOOP_BURST);

	for (uint32_t i = 0; i < n; i++) {
		struct rte_mbuf *m = l->loop[l->loop_tail++ % LOOP_SLOTS];

		if (frame_kind(m->hash.usr) == FRAME_RAW_LOOPED)
			raw_looped(l, m, now);
		else
			frame_input(l, m, m->hash.usr, now);
	}
	return n;
}

/* A frame of ours for one of our own addresses. False: no room, the frame stays the caller's. */
bool loop_output(struct lcore *l, struct rte_mbuf *m, uint32_t sender, uint32_t dest_qpn,
		 bool summed)
{
	struct lcore *to = l;

	if ((dest_qpn & 15) < l->engine->lcores)
		to = &l->engine->lcore[dest_qpn & 15];
	m->hash.usr = frame_mark(summed ? FRAME_RECEIVED : FRAME_TRUSTED, sender);
	if (to == l) {
		if (l->loop_head - l->loop_tail >= LOOP_SLOTS)
			return false;
		l->loop[l->loop_head++ % LOOP_SLOTS] = m;
		return true;
	}
	if (rte_ring_enqueue(to->inbox, m) != 0)
		return false;
	queue_fence(); /* as in hand_over */
	if (__atomic_load_n(&to->sleeping, __ATOMIC_SEQ_CST))
		lcore_wake(to);
	return true;
}

uint32_t rx_poll(struct lcore *l, nanotime now)
{
	uint32_t work = 0;

	if (l->engine->port != NULL)
		work += port_input(l, now);
	work += inbox_input(l, now);
	work += loop_input(l, now);
	if (work > 0)
		place_flush(l, now);
	if (l->exceptions > 0)
		exception_flush(l);
	return work;
}
