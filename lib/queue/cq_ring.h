/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's side of a CQ: several lcores complete into one ring. An lcore reserves a position in
 * a private head and writes the slot. The lcore that finishes last advances the shared tail, as in
 * rte_ring's RTS mode. An lcore that is preempted between reserving and writing delays what becomes
 * visible, but no other lcore waits for it.
 *
 *	shared consumer tail      tail (visible)       head (reserved)
 *	|-- the program's to read --|-- being written ---|-- free ...
 */
#ifndef QUEUE_CQ_RING_H
#define QUEUE_CQ_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/work.h"
#include "queue/arena.h"
#include "queue/fence.h"

struct cq_ring {
	uint8_t *shared;
	struct cq_page *page;
	uint32_t size; /* slots, a power of two */
	uint32_t capacity; /* entries announced to the program, < size */
	/*
	 * Only one lcore completes into this ring, because the engine has only one, or all queue
	 * pairs of the CQ live on it. Then no locked instruction is needed. The caller sets this
	 * after cq_ring_init and before the first push.
	 */
	bool one_lcore;
	uint32_t taken; /* one_lcore: how far the program had polled when a push looked last */
	uint64_t head; /* private: next position (low half), pushes begun (high half) */
	uint64_t tail; /* private: position shown (low half), pushes finished (high half) */
	uint64_t solicited; /* private: see cq_ring.c */
};

/*
 * The caller has formatted the memory with ring_format for one producer, because the engine counts
 * as one.
 */
void cq_ring_init(struct cq_ring *c, void *memory, struct cq_page *page, uint32_t size,
		  uint32_t capacity);

/* False: the ring is full (overrun), and nothing was written. Any lcore. */
bool cq_ring_push(struct cq_ring *c, const struct completion *completion);

/*
 * Every lcore calls this after one or more pushes. `solicited`: one of them was solicited. True:
 * the program has armed a notification that they satisfy. It is disarmed now, and the caller sends
 * the event. Contains the fence that pairs with cq_ring_arm.
 */
bool cq_ring_take_arming(struct cq_ring *c, bool solicited);

/* For the client: arms the CQ. The fence orders this before the poll that follows. */
static inline void cq_ring_arm(struct cq_page *page, enum cq_armed how)
{
	uint32_t armed = __atomic_load_n(&page->armed, __ATOMIC_RELAXED);

	/* Of two requests the stronger one stays (ibv_req_notify_cq(3)). */
	while (armed < (uint32_t)how &&
	       !__atomic_compare_exchange_n(&page->armed, &armed, (uint32_t)how, true,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	queue_fence();
}

/* True for exactly one caller, which sends the event. */
static inline bool cq_page_disarm(struct cq_page *page)
{
	return __atomic_exchange_n(&page->armed, CQ_NOT_ARMED, __ATOMIC_SEQ_CST) != CQ_NOT_ARMED;
}

#endif
