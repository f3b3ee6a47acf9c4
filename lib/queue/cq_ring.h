/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's side of a CQ: several lcores complete into one ring. Positions are reserved by an
 * atomic add on an engine-private head, slots are written, and the shared tail is moved by
 * whoever finishes last (as rte_ring's RTS mode does): an lcore that is preempted between
 * reserving and writing delays what is visible, but makes nobody spin.
 */
#ifndef QUEUE_CQ_RING_H
#define QUEUE_CQ_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/work.h"
#include "queue/arena.h"

struct cq_ring {
	uint8_t *shared;
	struct cq_page *page;
	uint32_t size; /* slots, a power of two */
	uint32_t capacity; /* entries announced to the program, < size */
	uint64_t head; /* private: free-running positions and counters, see cq_ring.c */
	uint64_t tail;
};

void cq_ring_init(struct cq_ring *c, void *memory, struct cq_page *page, uint32_t size,
		  uint32_t capacity);

/* False: the program left no room (overrun), nothing was written. Any lcore. */
bool cq_ring_push(struct cq_ring *c, const struct completion *completion);

/*
 * After a push that is visible: whether the program armed a notification that this completion
 * satisfies; if so the arming is taken back and the caller sends the event. Contains the fence
 * that pairs with cq_ring_arm.
 */
bool cq_ring_take_arming(struct cq_ring *c, bool solicited);

/* Client: arms. The fence orders it before the poll that follows. */
void cq_ring_arm(struct cq_page *page, enum cq_armed how);

#endif
