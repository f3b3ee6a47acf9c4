/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client's side of the rings: rte_ring's inline functions on memory that the engine formatted.
 * Nothing of DPDK is linked. The caller holds the lock of the queue, so that a send or receive
 * queue has one producer and a CQ one consumer at a time. Only the doorbell ring takes many
 * producers.
 */
#ifndef QUEUE_RING_CLIENT_H
#define QUEUE_RING_CLIENT_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * rte_ring with acquire and release order, not with volatile words on a strongly ordered machine.
 */
#ifndef RTE_USE_C11_MEM_MODEL
#define RTE_USE_C11_MEM_MODEL
#endif
#include <rte_ring.h>

#include "queue/fence.h"

/*
 * The slot to write the next request to; NULL: the ring is full. A reservation that is not
 * published is forgotten: the next one returns the same slot.
 */
static inline void *ring_client_reserve(struct rte_ring *r, uint32_t stride)
{
	struct rte_ring_zc_data slot;

	if (r->prod.head != r->prod.tail)
		rte_ring_enqueue_zc_elem_finish(r, 0);
	if (rte_ring_enqueue_zc_bulk_elem_start(r, stride, 1, &slot, NULL) == 0)
		return NULL;
	return slot.ptr1;
}

/* Shows the engine the request in the reserved slot. */
static inline void ring_client_publish(struct rte_ring *r)
{
	rte_ring_enqueue_zc_elem_finish(r, 1);
}

/*
 * The oldest completion, or NULL. It stays in its slot until ring_client_release; until then
 * peeking returns the same one.
 */
static inline const void *ring_client_peek(struct rte_ring *r, uint32_t stride)
{
	struct rte_ring_zc_data slot;

	if (r->cons.head != r->cons.tail)
		rte_ring_dequeue_zc_elem_finish(r, 0);
	if (rte_ring_dequeue_zc_bulk_elem_start(r, stride, 1, &slot, NULL) == 0)
		return NULL;
	return slot.ptr1;
}

/* Gives the slots of the n oldest completions back to the engine. The ring shows at least n. */
static inline void ring_client_release(struct rte_ring *r, uint32_t n)
{
	struct rte_ring_zc_data slot;
	uint32_t taken = r->cons.head - r->cons.tail;

	if (taken < n)
		rte_ring_dequeue_zc_bulk_elem_start(r, sizeof(uint32_t), n - taken, &slot, NULL);
	rte_ring_dequeue_zc_elem_finish(r, n);
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
	/* acquire: the slots of earlier producers; the release below passes all on to the lcore */
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
 * if it sleeps. doorbell.h draws the order of the steps. Any thread.
 */
static inline void doorbell_ring(struct rte_ring *bell, uint32_t *mark, uint32_t handle,
				 const uint32_t *sleeping, int wake_fd)
{
	if (__atomic_exchange_n(mark, 1, __ATOMIC_SEQ_CST) != 0)
		/* it is in the ring already, and whoever entered it checks `sleeping` next */
		return;
	bell_enqueue(bell, handle);
	/* pairs with the lcore's, between sleeping = 1 and its last look at the ring */
	queue_fence();
	if (__atomic_load_n(sleeping, __ATOMIC_RELAXED))
		doorbell_wake(wake_fd);
}

#endif
