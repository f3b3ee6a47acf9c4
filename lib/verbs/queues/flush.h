/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When an engine ends, everything that was posted and not completed completes as flushed. The
 * engine can no longer write those completions. So the library makes them, in the program's own
 * calls, from what it remembers of each queue (struct work_queue).
 */
#ifndef VERBS_FLUSH_H
#define VERBS_FLUSH_H

#include "verbs/types.h"

/*
 * Makes the next flush completion. False: there is none. Called with cq->lock held, when the engine
 * is gone and the ring is empty.
 */
bool flush_next(struct cq *cq, struct completion *c);

/*
 * A CQ of this channel with completions for which its program was not woken. The event is counted
 * as delivered. NULL: there is none.
 */
struct cq *flush_wake_one(struct channel *ch);

/*
 * Called when the program has armed a CQ of a dead engine, or posted to a queue of an armed one.
 * Wakes the program, once for each arming, if there is something to poll.
 */
void flush_armed(struct cq *cq);

/*
 * Called after requests were posted and the doorbell was rung, with the CQ of their queue, its page
 * (both may be NULL) and the queue's lock. The CQ, if it is armed and the engine gone:
 * flush_armed is to be called when the lock is given back. Threads that poll write to struct cq,
 * so it is not looked at before. The doorbell's fence, or that of ring_if_flushing, pairs with
 * the one of cq_ring_arm: either we see the arming, or the thread that arms sees the requests.
 * Acquire: who sees the arming also sees the engine's end, if the thread that armed did.
 */
static inline struct cq *flush_posted(const struct qp *qp, const struct cq_page *page,
				      struct ibv_cq *cq)
{
	if (page == NULL || __atomic_load_n(&page->armed, __ATOMIC_ACQUIRE) == CQ_NOT_ARMED ||
	    __builtin_expect(!attachment_gone(qp->attachment), 1))
		return NULL;
	return cq_of(cq);
}

#endif
