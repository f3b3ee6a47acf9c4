/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Head and tail are a position and a count of takes in one 64-bit word, as those of a CQ
 * (cq_ring.c), with the roles of the two sides exchanged: the take that makes the counts equal is
 * the last one under way, and moves the shared consumer tail to head's position. That word is only
 * ever moved forward, in a bounded number of tries; a program that writes it harms only itself.
 */
#include "queue/srq_ring.h"

#include <string.h>

#include "config/limits.h"

static uint64_t word_of(uint32_t position, uint32_t count)
{
	return (uint64_t)count << 32 | position;
}

static uint32_t position_of(uint64_t word)
{
	return (uint32_t)word;
}

static uint32_t count_of(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

static bool is_behind(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

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

/* How many requests stand between this position and the producer's. */
static uint32_t behind_producer(const struct srq_ring *r, uint32_t position)
{
	/* pairs with the release store of the producer's tail: the slots before it are written */
	uint32_t tail = __atomic_load_n(shared_word(r, RING_PRODUCER_TAIL), __ATOMIC_ACQUIRE);

	return tail - position;
}

uint32_t srq_ring_waiting(const struct srq_ring *r)
{
	uint32_t n = behind_producer(r, position_of(__atomic_load_n(&r->head, __ATOMIC_ACQUIRE)));

	return n < r->size ? n : RING_BROKEN;
}

static const void *slot_at(const struct srq_ring *r, uint32_t position)
{
	return r->shared + RING_SLOTS + (size_t)(position & (r->size - 1)) * r->stride;
}

static enum srq_ring_take take_alone(struct srq_ring *r, const void **slot)
{
	uint32_t position = position_of(r->head), n = behind_producer(r, position);

	if (n == 0)
		return SRQ_RING_EMPTY;
	if (n >= r->size)
		return SRQ_RING_ILL;
	*slot = slot_at(r, position);
	__atomic_store_n(&r->head, word_of(position + 1, 0), __ATOMIC_RELAXED);
	return SRQ_RING_TAKEN;
}

/*
 * Lock-free: a failed try is another lcore's success. The producer's tail is read after the head,
 * so it is never behind it unless the program moved it back; and a stale pair fails the exchange.
 */
enum srq_ring_take srq_ring_take(struct srq_ring *r, const void **slot)
{
	uint64_t head;

	if (r->one_lcore)
		return take_alone(r, slot);
	head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
	for (;;) {
		uint32_t n = behind_producer(r, position_of(head));

		if (n == 0)
			return SRQ_RING_EMPTY;
		if (n >= r->size) {
			uint64_t again = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);

			/* others took meanwhile, and the program posted in their place */
			if (again == head)
				return SRQ_RING_ILL;
			head = again;
			continue;
		}
		*slot = slot_at(r, position_of(head));
		if (__atomic_compare_exchange_n(&r->head, &head,
						word_of(position_of(head) + 1, count_of(head) + 1),
						true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return SRQ_RING_TAKEN;
	}
}

/* Pairs with the program's acquire load: our reads of the slots before it are done. */
static void give_back(struct srq_ring *r, uint32_t position)
{
	uint32_t *tail = shared_word(r, RING_CONSUMER_TAIL);
	uint32_t given = __atomic_load_n(tail, __ATOMIC_RELAXED);

	for (uint32_t tries = 0; tries <= LIMIT_LCORES && is_behind(given, position); tries++) {
		if (__atomic_compare_exchange_n(tail, &given, position, false, __ATOMIC_RELEASE,
						__ATOMIC_RELAXED))
			return;
	}
}

void srq_ring_finish(struct srq_ring *r)
{
	uint64_t tail, next, head;

	if (r->one_lcore) {
		__atomic_store_n(shared_word(r, RING_CONSUMER_TAIL), position_of(r->head),
				 __ATOMIC_RELEASE);
		return;
	}
	tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
	/* release: our slot is read; acquire: so are those of the takes that finished before */
	do {
		head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
		next = word_of(position_of(tail), count_of(tail) + 1);
		if (count_of(next) == count_of(head))
			next = head;
	} while (!__atomic_compare_exchange_n(&r->tail, &tail, next, true, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	if (position_of(next) != position_of(tail))
		give_back(r, position_of(next));
}
