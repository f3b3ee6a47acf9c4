/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Resizing a CQ (ibv_resize_cq(3)) while lcores complete into it. The CQ gets a second ring. The
 * engine copies nothing, and no lcore stops:
 *
 *	control thread           lcores                        program (holds the CQ's lock)
 *	                                                       asks; polls nothing meanwhile
 *	formats the other ring
 *	cq_rings_switch          complete into the new ring
 *	                         from their next push on
 *	grace period             no lcore writes the old ring;
 *	                         all that was pushed is shown
 *	answers: nothing more comes in the old ring            takes over what the old ring holds,
 *	                                                       polls the new one
 *	frees the old ring                                     says that it has left it
 *
 * Completions before the switch are in the old ring, those after it in the new one. A queue pair
 * has one lcore, so its completions stay in order. Both rings share one page, so an arming survives
 * the resize. A thread that was woken by a completion in the new ring never looks into the old one,
 * because the program holds the CQ's lock throughout.
 */
#ifndef QUEUE_CQ_RESIZE_H
#define QUEUE_CQ_RESIZE_H

#include "queue/cq_ring.h"

struct cq_rings {
	struct cq_ring half[2];
	struct cq_ring *now; /* atomic */
};

/* For an lcore, once for each completion: the ring to push to and to take the arming from. */
static inline struct cq_ring *cq_rings_now(const struct cq_rings *r)
{
	/* pairs with cq_rings_switch: we see the new ring formatted */
	return __atomic_load_n(&r->now, __ATOMIC_ACQUIRE);
}

/* For the control thread: the half that no lcore uses. */
static inline struct cq_ring *cq_rings_spare(struct cq_rings *r)
{
	return r->now == &r->half[0] ? &r->half[1] : &r->half[0];
}

/* For the control thread: makes lcores complete into the spare half. A grace period must follow. */
static inline void cq_rings_switch(struct cq_rings *r)
{
	__atomic_store_n(&r->now, cq_rings_spare(r), __ATOMIC_RELEASE);
}

/* Completions that a program took over from the rings of earlier sizes, oldest first. */
struct cq_backlog {
	struct completion *held;
	uint32_t first, count;
};

struct rte_ring;

/* How many completions the program can poll from the ring. */
uint32_t cq_ring_unpolled(const struct rte_ring *ring);
/*
 * Appends all that the old ring holds to the backlog. `memory` has room for `slots` completions, at
 * least b->count and cq_ring_unpolled(old) together; the backlog takes it over. Returns the memory
 * that the backlog had before, for the caller to free.
 */
struct completion *cq_backlog_take_over(struct cq_backlog *b, struct rte_ring *old,
					struct completion *memory, uint32_t slots);
/*
 * For the program, under the CQ's lock: marks all unpolled completions of this queue pair with the
 * handle CQ_FORGOTTEN; polling must skip them. (Handle 0 is already taken: it stands for a queue
 * pair of another process, an XRC target.)
 */
#define CQ_FORGOTTEN UINT32_MAX

void cq_forget(struct cq_backlog *b, struct rte_ring *ring, uint32_t qp_handle);
/*
 * For the program, under the CQ's lock: whether there is a completion to poll. With `solicited`:
 * one that satisfies an arming for solicited completions.
 */
bool cq_holds(const struct cq_backlog *b, const struct rte_ring *ring, bool solicited);
/* Removes the oldest completion; b->count is not 0. The owner frees b->held once the count is 0. */
static inline void cq_backlog_pop(struct cq_backlog *b, struct completion *c)
{
	*c = b->held[b->first++];
	b->count--;
}

#endif
