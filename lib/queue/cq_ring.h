/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's side of a CQ: several lcores complete into one ring. Positions are reserved by an
 * atomic add on an engine-private head, slots are written, and the shared tail is moved by
 * whoever finishes last (as rte_ring's RTS mode does): an lcore that is preempted between
 * reserving and writing delays what is visible, but makes nobody spin.
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
	 * One lcore alone completes into this ring (the engine has one, or all queue pairs of the CQ
	 * live there): no locked instruction is needed. Set after cq_ring_init, before the first push.
	 */
	bool one_lcore;
	uint64_t head; /* private: position (low half) and pushes begun (high half) */
	uint64_t tail; /* private: position shown (low half) and pushes finished (high half) */
	uint64_t solicited; /* private: see cq_ring.c */
};

/* The memory is formatted by ring_format (one producer; the engine is all of it). */
void cq_ring_init(struct cq_ring *c, void *memory, struct cq_page *page, uint32_t size,
		  uint32_t capacity);

/* False: the program left no room (overrun), nothing was written. Any lcore. */
bool cq_ring_push(struct cq_ring *c, const struct completion *completion);

/*
 * After a push, or after several, with whether one of them was solicited: whether the program
 * armed a notification that this satisfies; if so the arming is taken back and the caller sends
 * the event. Contains the fence that pairs with cq_ring_arm. Every lcore that pushed calls it.
 */
bool cq_ring_take_arming(struct cq_ring *c, bool solicited);

/* Client: arms. The fence orders it before the poll that follows. */
static inline void cq_ring_arm(struct cq_page *page, enum cq_armed how)
{
	uint32_t armed = __atomic_load_n(&page->armed, __ATOMIC_RELAXED);

	/* the stronger of two requests stands (ibv_req_notify_cq(3)) */
	while (armed < (uint32_t)how &&
	       !__atomic_compare_exchange_n(&page->armed, &armed, (uint32_t)how, true,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	queue_fence();
}

/* Whoever gets true sends the event that was waited for, and nobody else does. */
static inline bool cq_page_disarm(struct cq_page *page)
{
	return __atomic_exchange_n(&page->armed, CQ_NOT_ARMED, __ATOMIC_SEQ_CST) != CQ_NOT_ARMED;
}

#endif
