/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client's side of the rings: rte_ring's inline functions on the memory that the engine
 * formatted. Nothing of DPDK is linked. Callers hold the lock of the queue (one producer of a
 * send or receive queue, one consumer of a CQ at a time); the doorbell ring takes many producers.
 */
#ifndef QUEUE_RING_CLIENT_H
#define QUEUE_RING_CLIENT_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* Acquire and release where they are needed, instead of volatile words and a strong machine. */
#ifndef RTE_USE_C11_MEM_MODEL
#define RTE_USE_C11_MEM_MODEL
#endif
#include <rte_ring.h>

#include "queue/fence.h"

/*
 * Where the next request is written; NULL: the ring is full. A reservation that is not published
 * is forgotten by the next one, which returns the same slot.
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

/* Shows the request that was written to the reserved slot. */
static inline void ring_client_publish(struct rte_ring *r)
{
	rte_ring_enqueue_zc_elem_finish(r, 1);
}

/*
 * The oldest completion, or NULL; it stays in place until ring_client_release. Peeking again
 * without a release returns the same one.
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

/* Gives back the n oldest completions; all of them have been there to be peeked. */
static inline void ring_client_release(struct rte_ring *r, uint32_t n)
{
	struct rte_ring_zc_data slot;
	uint32_t taken = r->cons.head - r->cons.tail;

	if (taken < n)
		rte_ring_dequeue_zc_bulk_elem_start(r, sizeof(uint32_t), n - taken, &slot, NULL);
	rte_ring_dequeue_zc_elem_finish(r, n);
}

/* Wakes the lcore that waits on this eventfd. */
void doorbell_wake(int wake_fd);

/*
 * Enters one handle into a doorbell ring, which has many producers and is never full. As
 * rte_ring_mp_enqueue, but that DPDK 22.11 waits for the producer before it with a relaxed load:
 * the tail that it then publishes does not carry what the other one wrote (the thread sanitizer
 * says so, and a weakly ordered machine might do so).
 */
static inline void bell_enqueue(struct rte_ring *r, uint32_t handle)
{
	uint32_t *slot = (uint32_t *)(r + 1);
	uint32_t head = __atomic_fetch_add(&r->prod.head, 1, __ATOMIC_RELAXED);

	__atomic_store_n(&slot[head & r->mask], handle, __ATOMIC_RELAXED);
	/* Acquire: takes over the slots of the producers before; release: passes all on to the lcore. */
	for (uint32_t spins = 1; __atomic_load_n(&r->prod.tail, __ATOMIC_ACQUIRE) != head;
	     spins++) {
		rte_pause();
		if (spins % 256 == 0)
			sched_yield(); /* that one may have lost its core */
	}
	__atomic_store_n(&r->prod.tail, head + 1, __ATOMIC_RELEASE);
}

/*
 * Marks the queue pair, enters it into the doorbell ring if it was not marked, and wakes the lcore
 * if it sleeps. The order of the steps is drawn in doorbell.h.
 */
static inline void doorbell_ring(struct rte_ring *bell, uint32_t *mark, uint32_t handle,
				 const uint32_t *sleeping, int wake_fd)
{
	if (__atomic_exchange_n(mark, 1, __ATOMIC_SEQ_CST) != 0)
		return; /* it stands there, and whoever entered it looks at `sleeping` afterwards */
	bell_enqueue(bell, handle);
	queue_fence(); /* pairs with the lcore's between sleeping = 1 and its last look */
	if (__atomic_load_n(sleeping, __ATOMIC_RELAXED))
		doorbell_wake(wake_fd);
}

#endif
