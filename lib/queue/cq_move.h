/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A CQ changes its ring (ibv_resize_cq) while lcores complete into it. Nothing is copied on the
 * engine's side and nobody stops:
 *
 *	control path             lcores                        program (holds the CQ's lock)
 *	                                                       asks, and takes nothing meanwhile
 *	formats the other ring
 *	cq_rings_switch          complete into it from their
 *	                         next look on
 *	grace period             nobody writes the old ring,
 *	                         all that was pushed is shown
 *	answers: the old ring's last element is its last       takes over what the old ring holds,
 *	                                                       goes on with the new one
 *	frees the old ring                                     says that it left it
 *
 * What completes before the switch stands in the old ring, what completes after it in the new one,
 * and a queue pair has one lcore: its completions stay in order. Both rings share one page, so an
 * arming survives the move; the program's lock sees to it that nobody who was woken by a
 * completion in the new ring looks into the old one.
 */
#ifndef QUEUE_CQ_MOVE_H
#define QUEUE_CQ_MOVE_H

#include "queue/cq_ring.h"

struct cq_rings {
	struct cq_ring half[2];
	struct cq_ring *now; /* atomic */
};

/* An lcore, once for each completion: the ring to push to and to take the arming from. */
static inline struct cq_ring *cq_rings_now(const struct cq_rings *r)
{
	/* pairs with cq_rings_switch: who sees the new ring sees it formatted */
	return __atomic_load_n(&r->now, __ATOMIC_ACQUIRE);
}

/* The control path: the half that no lcore knows. */
static inline struct cq_ring *cq_rings_spare(struct cq_rings *r)
{
	return r->now == &r->half[0] ? &r->half[1] : &r->half[0];
}

/* The control path: lcores complete into the spare half from now on. A grace period follows. */
static inline void cq_rings_switch(struct cq_rings *r)
{
	__atomic_store_n(&r->now, cq_rings_spare(r), __ATOMIC_RELEASE);
}

/* Completions that a program took over from a ring it left, oldest first. */
struct cq_backlog {
	struct completion *held;
	uint32_t first, count;
};

struct rte_ring;

/* How many completions the ring shows that were not taken. */
uint32_t cq_ring_unpolled(const struct rte_ring *ring);
/*
 * Appends all that the old ring holds. `room` (of `slots` completions: at least backlog->count and
 * cq_ring_unpolled together) becomes the backlog's; returns the memory that it had before.
 */
struct completion *cq_backlog_take_over(struct cq_backlog *b, struct rte_ring *old,
					struct completion *room, uint32_t slots);
/*
 * The program, under the CQ's lock: completions of this queue pair that were not taken name
 * CQ_FORGOTTEN from now on, and are to be passed over. (0 is the handle of another process's: an
 * XRC target's.)
 */
#define CQ_FORGOTTEN UINT32_MAX

void cq_forget(struct cq_backlog *b, struct rte_ring *ring, uint32_t qp_handle);
/*
 * The program, under the CQ's lock: whether anything is there to be taken, or with `solicited`,
 * anything that satisfies an arming for solicited completions.
 */
bool cq_holds(const struct cq_backlog *b, const struct rte_ring *ring, bool solicited);
/*
 * The oldest of them, removed; call only if b->count is not 0. The memory stays until the next
 * cq_backlog_take_over or until its owner frees it.
 */
static inline void cq_backlog_pop(struct cq_backlog *b, struct completion *c)
{
	*c = b->held[b->first++];
	b->count--;
}

#endif
