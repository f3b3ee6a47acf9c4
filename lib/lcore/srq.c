/* SPDX-License-Identifier: BSD-3-Clause */
/* The lcores' side of shared receive queues, see srq.h. */
#include "lcore/srq.h"
#include "lcore/inside.h"

#include <string.h>

#include "base/bits.h"

struct engine_srq *srq_find(const struct engine *e, uint32_t number)
{
	struct engine_srq *s;

	if (number >> 24 != 0)
		return NULL;
	/* Acquire: the control path published the SRQ before its number. */
	s = __atomic_load_n(&e->srq[number & 0xffff], __ATOMIC_ACQUIRE);
	return s != NULL && s->number == number ? s : NULL;
}

uint32_t srq_waiting(const struct engine_srq *s)
{
	struct srq_ring *r = __atomic_load_n(&s->ring, __ATOMIC_ACQUIRE);
	uint32_t n = __atomic_load_n(&s->in_back, __ATOMIC_RELAXED);

	for (; r != NULL; r = __atomic_load_n(&r->next, __ATOMIC_ACQUIRE)) {
		uint32_t waiting = srq_ring_waiting(r);

		if (waiting == RING_BROKEN)
			return UINT32_MAX;
		n += waiting;
	}
	return n;
}

void srq_break(struct lcore *l, struct engine_srq *s)
{
	if (__atomic_exchange_n(&s->broken, 1, __ATOMIC_RELAXED) != 0)
		return;
	count_reason(l, REASON_WORK_MALFORMED);
	srq_raise(s, EVENT_SRQ_ERR);
}

/* Reads the header once. It decides how much of the slot is copied. */
static void copy_receive(const struct engine_srq *s, struct recv_work *to, const void *slot)
{
	memcpy(to, slot, sizeof(*to));
	to->mark = to->strip = 0;
	if (to->num_sge > s->max_sge) {
		to->num_sge =
			UINT32_MAX; /* the core refuses it, whatever the queue pair's limit is */
		return;
	}
	memcpy(recv_work_sge(to), (const uint8_t *)slot + sizeof(*to),
	       to->num_sge * sizeof(struct work_sge));
}

/* Takes a request that an lcore put back. */
static bool take_back(struct engine_srq *s, uint32_t slots, struct recv_work *to)
{
	for (uint32_t i = 0; i < slots; i++) {
		struct back_slot *b = &s->back[i];
		uint32_t full = BACK_FULL;

		/* Acquire: pairs with the release in srq_put_back, so the request is there. */
		if (__atomic_load_n(&b->state, __ATOMIC_RELAXED) != BACK_FULL ||
		    !__atomic_compare_exchange_n(&b->state, &full, BACK_BUSY, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		memcpy(to, b->work, s->stride);
		__atomic_fetch_sub(&s->in_back, 1, __ATOMIC_RELAXED);
		/* Release: an lcore that writes there again does so after our reads. */
		__atomic_store_n(&b->state, BACK_EMPTY, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

/* Takes the oldest request of a ring. An lcore that others overtake tries again. */
static enum srq_ring_look take_oldest(const struct engine_srq *s, struct srq_ring *r,
				      struct recv_work *to)
{
	struct srq_ring_found f;
	enum srq_ring_look look;

	do {
		look = srq_ring_find(r, &f);
		if (look != SRQ_RING_FOUND)
			return look;
		copy_receive(s, to, f.slot);
	} while (!srq_ring_take(r, &f));
	return look;
}

/*
 * Takes from the oldest ring until it is empty, then from the next. A ring that gets its successor
 * while we look is looked at again: others may have emptied it, and the program posts into the
 * successor, so the SRQ was never empty.
 */
static bool take_posted(struct lcore *l, struct engine_srq *s, struct recv_work *to)
{
	struct srq_ring *r = __atomic_load_n(&s->ring, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < 2 * LIMIT_SRQ_RINGS; i++) {
		/* Read before the ring: nothing is posted into a ring that has a successor. */
		struct srq_ring *next = __atomic_load_n(&r->next, __ATOMIC_ACQUIRE);
		struct srq_ring *seen = r;

		switch (take_oldest(s, r, to)) {
		case SRQ_RING_FOUND:
			return true;
		case SRQ_RING_ILL:
			srq_break(l, s);
			return false;
		case SRQ_RING_EMPTY:
			break;
		}
		if (next != NULL) {
			__atomic_compare_exchange_n(&s->ring, &seen, next, false, __ATOMIC_ACQ_REL,
						    __ATOMIC_ACQUIRE);
			r = next;
		} else if (__atomic_load_n(&r->next, __ATOMIC_ACQUIRE) == NULL) {
			return false;
		}
	}
	return false;
}

const struct recv_work *srq_take(struct lcore *l, struct engine_srq *s)
{
	struct recv_work *to = (struct recv_work *)(void *)l->srq_receive;

	if (srq_is_broken(s))
		return NULL;
	if (__atomic_load_n(&s->in_back, __ATOMIC_RELAXED) != 0 &&
	    take_back(s, 2 * l->engine->lcores, to))
		return to;
	return take_posted(l, s, to) ? to : NULL;
}

/* The event comes once when fewer requests wait than the armed limit says (IBTA 10.2.9.3). */
void srq_look_at_limit(struct engine_srq *s)
{
	uint32_t limit = __atomic_load_n(&s->limit, __ATOMIC_RELAXED);

	if (limit == 0 || srq_waiting(s) >= limit)
		return;
	if (__atomic_compare_exchange_n(&s->limit, &limit, 0, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		srq_raise(s, EVENT_SRQ_LIMIT_REACHED);
}

void srq_used(struct lcore *l, struct engine_srq *s)
{
	/* Release: a program that sees the slot free sees everything before. */
	__atomic_fetch_add(&s->page->used, 1, __ATOMIC_RELEASE);
	srq_look_at_limit(s);
}

/*
 * There are twice as many slots as lcores. An lcore holds one request at a time, and takes one from
 * a ring only if it found no full slot. So at most as many slots as lcores are full, and at most as
 * many are being written or read. One is empty at any time.
 */
void srq_put_back(struct lcore *l, struct engine_srq *s, const struct recv_work *work)
{
	uint32_t slots = 2 * l->engine->lcores;

	for (uint32_t i = 2 * l->index;; i++) {
		struct back_slot *b = &s->back[i % slots];
		uint32_t empty = BACK_EMPTY;

		/* Acquire: pairs with the release in take_back, so the old request was read. */
		if (!__atomic_compare_exchange_n(&b->state, &empty, BACK_BUSY, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		memcpy(b->work, work, s->stride);
		__atomic_fetch_add(&s->in_back, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&b->state, BACK_FULL, __ATOMIC_RELEASE);
		return;
	}
}
