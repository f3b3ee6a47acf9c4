/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A take claims a slot (claim.h). Once all slots before a position are read, that position is shown
 * in the shared consumer tail, and the program may post to those slots again.
 */
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
	uint32_t n =
		behind_producer(r, claim_position(__atomic_load_n(&r->head, __ATOMIC_ACQUIRE)));

	return n < r->size ? n : RING_BROKEN;
}

static const void *slot_at(const struct srq_ring *r, uint32_t position)
{
	return r->shared + RING_SLOTS + (size_t)(position & (r->size - 1)) * r->stride;
}

static enum srq_ring_take take_alone(struct srq_ring *r, const void **slot)
{
	uint32_t position = claim_position(r->head), n = behind_producer(r, position);

	if (n == 0)
		return SRQ_RING_EMPTY;
	if (n >= r->size)
		return SRQ_RING_ILL;
	*slot = slot_at(r, position);
	__atomic_store_n(&r->head, claim_word(position + 1, 0), __ATOMIC_RELAXED);
	return SRQ_RING_TAKEN;
}

/*
 * Lock-free: a try fails only if another lcore's succeeds. The producer's tail is read after the
 * head, so it is never before the head unless the program moved it back. If head and tail do not
 * belong together, the exchange fails.
 */
enum srq_ring_take srq_ring_take(struct srq_ring *r, const void **slot)
{
	uint64_t head;

	if (r->one_lcore)
		return take_alone(r, slot);
	head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
	for (;;) {
		uint32_t n = behind_producer(r, claim_position(head));

		if (n == 0)
			return SRQ_RING_EMPTY;
		if (n >= r->size) {
			uint64_t again = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);

			/*
			 * If they differ, lcores took requests meanwhile, and the program posted
			 * more.
			 */
			if (again == head)
				return SRQ_RING_ILL;
			head = again;
			continue;
		}
		*slot = slot_at(r, claim_position(head));
		if (claim_begin(&r->head, &head))
			return SRQ_RING_TAKEN;
	}
}

void srq_ring_finish(struct srq_ring *r)
{
	uint32_t *shared = shared_word(r, RING_CONSUMER_TAIL), read;

	if (r->one_lcore)
		__atomic_store_n(shared, claim_position(r->head), __ATOMIC_RELEASE);
	else if (claim_finish(&r->head, &r->tail, &read))
		claim_show(shared, read);
}
