/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/srq_ring.h"

#include <string.h>

#include "queue/claim.h"

void srq_ring_init(struct srq_ring *r, void *memory, uint32_t size, uint32_t stride)
{
	memset(r, 0, sizeof(*r));
	r->shared = memory;
	r->size = size;
	r->stride = stride;
}

static uint32_t *shared_word(const struct srq_ring *r, uint32_t offset)
{
	return (uint32_t *)(void *)(r->shared + offset);
}

/* How many requests lie between this position and the producer's. */
static uint32_t behind_producer(const struct srq_ring *r, uint32_t position)
{
	/* pairs with the release store of the producer's tail: the slots before it are written */
	uint32_t tail = __atomic_load_n(shared_word(r, RING_PRODUCER_TAIL), __ATOMIC_ACQUIRE);

	return tail - position;
}

uint32_t srq_ring_waiting(const struct srq_ring *r)
{
	uint32_t n = behind_producer(r, (uint32_t)__atomic_load_n(&r->head, __ATOMIC_ACQUIRE));

	return n < r->size ? n : RING_BROKEN;
}

static const void *slot_at(const struct srq_ring *r, uint32_t position)
{
	return r->shared + RING_SLOTS + (size_t)(position & (r->size - 1)) * r->stride;
}

/*
 * The producer's tail is read after the head, so it is never before the head unless the program
 * moved it back, or lcores took requests between the two reads and the program posted more. Then
 * the head has moved.
 */
enum srq_ring_look srq_ring_find(const struct srq_ring *r, struct srq_ring_found *f)
{
	uint64_t head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE), again;

	for (;;) {
		uint32_t n = behind_producer(r, (uint32_t)head);

		if (n == 0)
			return SRQ_RING_EMPTY;
		if (n < r->size)
			break;
		again = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
		if (again == head)
			return SRQ_RING_ILL;
		head = again;
	}
	*f = (struct srq_ring_found){ slot_at(r, (uint32_t)head), head };
	return SRQ_RING_FOUND;
}

/*
 * Lock-free: a take fails only if another lcore's succeeds. Release: the slot has been read. The
 * head has 64 bits and does not wrap, so it is f->at only if nobody has taken this request. Then
 * the shared tail has not passed the slot either, and the program has not written there again.
 */
bool srq_ring_take(struct srq_ring *r, const struct srq_ring_found *f)
{
	uint32_t *shared = shared_word(r, RING_CONSUMER_TAIL);
	uint64_t head = f->at;

	if (r->one_lcore) {
		__atomic_store_n(&r->head, head + 1, __ATOMIC_RELAXED);
		__atomic_store_n(shared, (uint32_t)(head + 1), __ATOMIC_RELEASE);
		return true;
	}
	if (!__atomic_compare_exchange_n(&r->head, &head, head + 1, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return false;
	claim_show(shared, (uint32_t)(head + 1));
	return true;
}
