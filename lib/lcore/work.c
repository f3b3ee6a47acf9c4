/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that programs posted. Doorbells name queue pairs. Each request is copied once, out of
 * the shared ring into the queue pair's private window, where the core checks the copy.
 */
#include <string.h>

#include "base/bits.h"
#include "lcore/inside.h"
#include "lcore/moving/behind.h"
#include "lcore/moving/hold.h"
#include "lcore/srq.h"
#include "lcore/tag/tag.h"
#include "lcore/turns/ahead.h"
#include "queue/doorbell.h"
#include "queue/fence.h"

/* The largest elements or inline octets that a request may claim, whatever its client wrote. */
static uint32_t request_octets(const struct send_work *w, uint32_t stride)
{
	uint32_t octets = sizeof(*w);

	if (w->flags & WORK_INLINE)
		octets += MIN_OF(w->inline_length, stride);
	else
		octets += w->num_sge * (uint32_t)sizeof(struct work_sge);
	if (w->opcode == WORK_TSO)
		octets += w->tso_header;
	return MIN_OF(octets, stride);
}

/* Reads the header once. It says how much of the slot to copy: nearly always one line. */
static void copy_request(struct send_work *to, const void *slot, uint32_t stride)
{
	uint32_t octets;

	memcpy(to, slot, 64);
	if (to->num_sge <= 1 && !(to->flags & WORK_INLINE) && to->opcode != WORK_TSO)
		return;
	octets = request_octets(to, stride);
	if (octets > 64)
		memcpy((uint8_t *)to + 64, (const uint8_t *)slot + 64, octets - 64);
}

static void qp_break(struct lcore *l, struct engine_qp *q, nanotime now)
{
	if (q->broken)
		return;
	q->broken = true;
	count_reason(l, REASON_WORK_MALFORMED);
	qp_fail(q->core, REASON_WORK_MALFORMED);
}

static bool is_send(uint8_t opcode)
{
	return opcode == WORK_SEND || opcode == WORK_SEND_WITH_IMM || opcode == WORK_SEND_WITH_INV;
}

/*
 * Takes at most LIMIT_DRAIN requests at once. If the ring holds more, the queue pair stands in
 * lcore.drains. If the window is full, the ring is looked at again when there is room (qp_settled).
 */
static uint32_t drain_sends(struct lcore *l, struct engine_qp *q, nanotime now)
{
	uint32_t n = ring_readable(&q->sq), most;
	struct send_work *slot = qp_window_slot(q->core);
	uint32_t i, sends = 0;

	q->more_work = false;
	if (n == RING_BROKEN) {
		qp_break(l, q, now);
		return 0;
	}
	most = MIN_OF(n, LIMIT_DRAIN);
	for (i = 0; i < most; i++) {
		if (slot == NULL) {
			q->more_work = true;
			break;
		}
		copy_request(slot, ring_read_slot(&q->sq, i), q->sq.stride);
		sends += is_send(slot->opcode);
		slot = qp_posted(q->core);
	}
	l->stats.sends += sends;
	if (i > 0)
		ring_consume(&q->sq, i);
	if (i < n && !q->more_work)
		drains_add(&l->drains, q);
	return i;
}

static_assert(SRQ_RECEIVE_OCTETS >= sizeof(struct recv_work) + LIMIT_SGE * sizeof(struct work_sge),
	      "the largest request of an SRQ");

static const struct recv_work *peek_srq(struct lcore *l, struct engine_qp *q, nanotime now)
{
	const struct recv_work *w = srq_take(l, l->srq);

	if (w == NULL && srq_is_broken(l->srq))
		qp_break(l, q, now);
	return w;
}

const struct recv_work *receive_peek(struct lcore *l, struct engine_qp *q, nanotime now)
{
	uint32_t n;

	if (l->srq != NULL)
		return peek_srq(l, q, now);
	if (q->receive_valid)
		return q->receive;
	if (q->rq.size == 0)
		return NULL;
	n = ring_readable(&q->rq);
	if (n == RING_BROKEN) {
		qp_break(l, q, now);
		return NULL;
	}
	if (n == 0)
		return NULL;
	if (q->rq.stride == 64) /* as nearly all are: a constant length needs no call */
		memcpy(q->receive, ring_read_slot(&q->rq, 0), 64);
	else
		memcpy(q->receive, ring_read_slot(&q->rq, 0), q->rq.stride);
	q->receive->mark = q->receive->strip = 0;
	q->receive_valid = true;
	return q->receive;
}

void receive_kept(struct lcore *l, const struct recv_work *offer)
{
	if (l->srq != NULL)
		srq_put_back(l, l->srq, offer);
}

void receive_taken(struct lcore *l, struct engine_qp *q)
{
	if (l->srq != NULL) {
		srq_used(l, l->srq);
		return;
	}
	q->receive_valid = false;
	ring_consume(&q->rq, 1);
}

void receives_flush(struct lcore *l, struct engine_qp *q, nanotime now)
{
	const struct recv_work *w;
	struct completion c;
	uint32_t n = 0;

	/*
	 * The flag first, then the ring: a program that posts after this look finds the flag and
	 * rings the doorbell. Pairs with the fence in ibv_post_recv.
	 */
	if (q->rq.size == 0)
		return;
	l->srq = NULL;
	__atomic_store_n(&q->page->flush_receives, 1, __ATOMIC_RELAXED);
	queue_fence();
	while ((w = receive_peek(l, q, now)) != NULL) {
		if (n++ == LIMIT_DRAIN) {
			drains_add(&l->drains, q);
			return;
		}
		qp_flush_receive(q->core, w, &c);
		receive_taken(l, q);
		cq_complete(l, q, q->recv_cq, &c, now);
		l->flushed++;
	}
}

static void ring_discard(struct ring_side *s)
{
	uint32_t n = s->size == 0 ? 0 : ring_readable(s);

	if (n != 0 && n != RING_BROKEN)
		ring_consume(s, n);
}

/* ERR or anything to RESET: posted work is forgotten without completions. */
static void rings_reset(struct lcore *l, struct engine_qp *q)
{
	hold_forget(l, q);
	behind_forget(l, q);
	ring_discard(&q->sq);
	ring_discard(&q->rq);
	q->receive_valid = false;
	q->more_work = false;
	drains_remove(&l->drains, q);
	q->flushing = false;
	if (q->srq != NULL && q->srq->tags != NULL)
		tags_forget(q);
	__atomic_store_n(&q->page->flush_receives, 0, __ATOMIC_RELAXED);
}

/* Returns how many requests came into the window. */
static uint32_t drain_rings(struct lcore *l, struct engine_qp *q, nanotime now)
{
	if (qp_state(q->core) == QP_STATE_RESET) {
		rings_reset(l, q);
		return 0;
	}
	return q->sq.size != 0 ? drain_sends(l, q, now) : 0;
}

void qp_drain_rings(struct lcore *l, struct engine_qp *q, nanotime now)
{
	drain_rings(l, q, now);
}

/* If this poll has taken all that it may, the queue pair keeps its turn for the next one. */
static void drain(struct lcore *l, struct engine_qp *q, uint32_t *taken, nanotime now)
{
	uint32_t flushed;

	if (*taken >= LIMIT_DRAINED) {
		drains_add(&l->drains, q);
		return;
	}
	flushed = l->flushed;
	*taken += drain_rings(l, q, now);
	qp_settled(l, q, now);
	*taken += l->flushed - flushed;
}

static uint32_t client_bell(struct lcore *l, struct client *c, uint32_t *taken, nanotime now)
{
	uint32_t handle[LIMIT_BURST];
	uint32_t n = doorbell_take(&c->bell[l->index], handle, LIMIT_BURST);

	for (uint32_t i = 0; i < n; i++) {
		struct engine_qp *q;

		if (ahead_helps(l))
			ahead_of_bell(c, handle, i, n);
		if (handle[i] & DOORBELL_SRQ) {
			tags_bell(l, c, handle[i] & ~DOORBELL_SRQ, now);
			continue;
		}
		if (handle[i] > LIMIT_QPS)
			continue;
		/* Acquire: the control path published the queue pair before its handle. */
		q = __atomic_load_n(&c->qp[handle[i]], __ATOMIC_ACQUIRE);
		if (q == NULL || qp_lcore(q) != l)
			continue;
		doorbell_clear(&q->page->doorbell);
		drain(l, q, taken, now);
	}
	return n;
}

/* Queue pairs whose rings held more. A program with few of them may have a second turn. */
static uint32_t drains_poll(struct lcore *l, uint32_t *taken, nanotime now)
{
	uint32_t work = 0, most = l->drains.count;
	struct engine_qp *q;

	for (; work < most && *taken < LIMIT_DRAINED; work++) {
		q = drains_take(&l->drains);
		if (q == NULL)
			break;
		drain(l, q, taken, now);
	}
	return work;
}

uint32_t doorbells_poll(struct lcore *l, nanotime now)
{
	uint32_t taken = 0, work = drains_poll(l, &taken, now);

	for (uint32_t i = 0; i < l->clients; i++)
		work += client_bell(l, l->client[i], &taken, now);
	return drains_none(&l->drains) ? work : MAX_OF(work, LIMIT_BURST);
}
