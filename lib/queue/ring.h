/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring between an application thread and an lcore: the memory of an rte_ring (rte_ring_elem.h),
 * used in two ways.
 *
 *	octet 0     128        256        384
 *	| name...  | producer | consumer | slots: size * stride |
 *
 * Clients and embedded programs use its mask and its tails directly (lib/queue/ring_client.h). The
 * engine does not, because a client can rewrite everything in the shared memory at any time. Its
 * side (struct ring_side) keeps size, stride and its own cursor in private memory. It reads one
 * shared word, the other side's tail, with acquire order, and publishes its own tail with release
 * order. A tail that is further away than the ring is long means a broken client: the functions
 * return RING_BROKEN, and the caller puts the queue pair in error. The engine copies a slot out
 * once, before it looks at anything in the slot.
 */
#ifndef QUEUE_RING_H
#define QUEUE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_BROKEN UINT32_MAX

/* Octets of a ring of `size` slots (a power of two; one stays free) of `stride` octets each. */
size_t ring_bytes(uint32_t size, uint32_t stride);

/* Writes the rte_ring header (one consumer; one producer or many) into zeroed shared memory. */
void ring_format(void *memory, uint32_t size, bool many_producers);

/* The engine's view of one ring, in engine-private memory. */
struct ring_side {
	uint8_t *shared; /* the ring's memory in this address space */
	uint8_t *slots;
	uint32_t size; /* slots, a power of two */
	uint32_t stride; /* octets */
	uint32_t cursor; /* our next slot, modulo 2^32 */
};

void ring_side_init(struct ring_side *s, void *memory, uint32_t size, uint32_t stride);

/* Where rte_ring keeps the two tails (asserted in ring.c). */
#define RING_PRODUCER_TAIL 132u
#define RING_CONSUMER_TAIL 260u
#define RING_SLOTS	   384u

static inline uint32_t *ring_shared_word(const struct ring_side *s, uint32_t offset)
{
	return (uint32_t *)(void *)(s->shared + offset);
}

/* The i-th slot from our cursor. No word that the client can write is involved. */
static inline void *ring_slot(const struct ring_side *s, uint32_t i)
{
	return s->slots + (size_t)((s->cursor + i) & (s->size - 1)) * s->stride;
}

/*
 * Consumer side (the client produces). How many slots can be read, at most size - 1, or
 * RING_BROKEN.
 */
static inline uint32_t ring_readable(const struct ring_side *s)
{
	/* pairs with the release store of the producer's tail: the slots before it are written */
	uint32_t tail = __atomic_load_n(ring_shared_word(s, RING_PRODUCER_TAIL), __ATOMIC_ACQUIRE);
	uint32_t ready = tail - s->cursor;

	return ready < s->size ? ready : RING_BROKEN;
}

/*
 * The i-th readable slot, i < ring_readable(). The caller copies the slot out before looking at it.
 */
static inline const void *ring_read_slot(const struct ring_side *s, uint32_t i)
{
	return ring_slot(s, i);
}

/* Gives n slots back to the producer. */
static inline void ring_consume(struct ring_side *s, uint32_t n)
{
	s->cursor += n;
	/* pairs with the producer's acquire load: we have read the slots */
	__atomic_store_n(ring_shared_word(s, RING_CONSUMER_TAIL), s->cursor, __ATOMIC_RELEASE);
}

/*
 * Producer side (the client consumes). How many slots are free, at most size - 1, or RING_BROKEN.
 */
static inline uint32_t ring_writable(const struct ring_side *s)
{
	/* pairs with the release store of the consumer's tail: it has read those slots */
	uint32_t tail = __atomic_load_n(ring_shared_word(s, RING_CONSUMER_TAIL), __ATOMIC_ACQUIRE);
	uint32_t used = s->cursor - tail;

	return used < s->size ? s->size - 1 - used : RING_BROKEN;
}

static inline void *ring_write_slot(const struct ring_side *s, uint32_t i)
{
	return ring_slot(s, i);
}

/* Shows n written slots to the consumer. */
static inline void ring_publish(struct ring_side *s, uint32_t n)
{
	s->cursor += n;
	/* pairs with the consumer's acquire load: the slots are written */
	__atomic_store_n(ring_shared_word(s, RING_PRODUCER_TAIL), s->cursor, __ATOMIC_RELEASE);
}

#endif
