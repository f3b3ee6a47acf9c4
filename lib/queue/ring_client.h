/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client's side of the rings, in the memory of an rte_ring that the engine formatted. Nothing
 * of DPDK is linked. The caller holds the lock of the queue, so that a send or receive queue has
 * one producer and a CQ one consumer at a time. This side keeps only its own tail. The heads of
 * rte_ring are not used, because they are for several producers or consumers. rte_ring's own
 * functions would look twice in each request at how many there are. Only the doorbell ring takes
 * many producers.
 */
#ifndef QUEUE_RING_CLIENT_H
#define QUEUE_RING_CLIENT_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_ring.h>

#include "queue/fence.h"

/* The slot at this position. */
static inline void *ring_client_slot(struct rte_ring *r, uint32_t position, uint32_t stride)
{
	return (uint8_t *)(r + 1) + (size_t)(position & r->mask) * stride;
}

/*
 * The slot for the next request. NULL: the ring is full. A reservation that is not published is
 * forgotten: the next call returns the same slot.
 *
 * *read is the caller's, 0 in the beginning: how far the engine had read when this looked last. The
 * engine's core writes its tail all the time, so this looks again only if *read leaves no room.
 */
static inline void *ring_client_reserve_seen(struct rte_ring *r, uint32_t stride, uint32_t *read)
{
	uint32_t position = r->prod.tail;

	if (position - *read >= r->capacity) {
		/* pairs with the release store of the consumer's tail: it has read the slot */
		*read = __atomic_load_n(&r->cons.tail, __ATOMIC_ACQUIRE);
		if (position - *read >= r->capacity)
			return NULL;
	}
	return ring_client_slot(r, position, stride);
}

/* The same for a caller that keeps no *read. */
static inline void *ring_client_reserve(struct rte_ring *r, uint32_t stride)
{
	uint32_t read = r->prod.tail - r->capacity;

	return ring_client_reserve_seen(r, stride, &read);
}

/* Shows the engine the request in the reserved slot. */
static inline void ring_client_publish(struct rte_ring *r)
{
	/* pairs with the consumer's acquire load: the slot is written */
	__atomic_store_n(&r->prod.tail, r->prod.tail + 1, __ATOMIC_RELEASE);
}

/*
 * The oldest completion, or NULL. It stays in its slot until ring_client_release, and further calls
 * return the same one.
 */
static inline const void *ring_client_peek(struct rte_ring *r, uint32_t stride)
{
	uint32_t position = r->cons.tail;
	/* pairs with the release store of the producer's tail: the slots before it are written */
	uint32_t written = __atomic_load_n(&r->prod.tail, __ATOMIC_ACQUIRE);

	return position != written ? ring_client_slot(r, position, stride) : NULL;
}

/* Gives the slots of the n oldest completions back to the engine. The ring must hold at least n. */
static inline void ring_client_release(struct rte_ring *r, uint32_t n)
{
	/* pairs with the producer's acquire load: we have read the slots */
	__atomic_store_n(&r->cons.tail, r->cons.tail + n, __ATOMIC_RELEASE);
}

/* Wakes the lcore that waits on this eventfd. Keeps errno; not a cancellation point. */
void doorbell_wake(int wake_fd);

/*
 * Enters one handle into a doorbell ring, which has many producers and is never full. This is
 * rte_ring_mp_enqueue with one difference: DPDK 22.11 waits for the previous producer with a
 * relaxed load, so the tail that it publishes next does not pass on what that producer wrote. The
 * thread sanitizer reports it, and a weakly ordered machine might lose the handle.
 */
static inline void bell_enqueue(struct rte_ring *r, uint32_t handle)
{
	uint32_t *slot = (uint32_t *)(r + 1);
	uint32_t head = __atomic_fetch_add(&r->prod.head, 1, __ATOMIC_RELAXED);

	__atomic_store_n(&slot[head & r->mask], handle, __ATOMIC_RELAXED);
	/*
	 * Acquire: we see the slots of earlier producers. The release below passes all of them on
	 * to the lcore.
	 */
	for (uint32_t spins = 1; __atomic_load_n(&r->prod.tail, __ATOMIC_ACQUIRE) != head;
	     spins++) {
		rte_pause();
		if (spins % 256 == 0)
			sched_yield(); /* the previous producer may have lost its core */
	}
	__atomic_store_n(&r->prod.tail, head + 1, __ATOMIC_RELEASE);
}

/*
 * Marks the queue pair, enters it into the doorbell ring if it was not marked, and wakes the lcore
 * if it sleeps. The drawing in doorbell.h shows the order of the steps. Any thread.
 */
static inline void doorbell_ring(struct rte_ring *bell, uint32_t *mark, uint32_t handle,
				 const uint32_t *sleeping, int wake_fd)
{
	if (__atomic_exchange_n(mark, 1, __ATOMIC_SEQ_CST) != 0)
		/*
		 * it is in the ring already, and the thread that entered it checks `sleeping` next
		 */
		return;
	bell_enqueue(bell, handle);
	/* Pairs with the lcore's fence, between sleeping = 1 and its last look at the ring. */
	queue_fence();
	if (__atomic_load_n(sleeping, __ATOMIC_RELAXED))
		doorbell_wake(wake_fd);
}

#endif
