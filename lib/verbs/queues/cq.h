/* SPDX-License-Identifier: BSD-3-Clause */
/* CQs and the queue pairs that complete into them. */
#ifndef VERBS_CQ_H
#define VERBS_CQ_H

#include "verbs/types.h"

/*
 * Take and give back cq->lock in calls that a thread may make between ibv_start_poll and
 * ibv_end_poll: creating, resetting and destroying queue pairs. cq_lock returns false if this thread
 * has held the lock since ibv_start_poll. Its result is for cq_unlock.
 */
bool cq_lock(struct cq *cq);
void cq_unlock(struct cq *cq, bool locked);

/* Adds a queue pair that completes into the CQ. Returns 0 or ENOMEM. Takes cq->lock. */
int cq_add_qp(struct cq *cq, struct qp *qp);
/* Removes the queue pair and forgets its unpolled completions. Takes cq->lock. */
void cq_remove_qp(struct cq *cq, struct qp *qp);

/* Takes the oldest completion. False: there is none. The caller holds cq->lock. */
bool cq_take(struct cq *cq, struct completion *c);
/*
 * Called after a poll that found nothing. Lets other threads run, and checks whether the engine is
 * gone. If so, takes a flush completion. False: there is no completion. The caller holds cq->lock.
 */
bool cq_take_when_empty(struct cq *cq, struct completion *c);

/* Notes that the program has polled (wake_after_poll in poll.c). The caller holds cq->lock. */
static inline void cq_note_polled(struct cq *cq)
{
	if (!__atomic_load_n(&cq->polled, __ATOMIC_RELAXED))
		__atomic_store_n(&cq->polled, true, __ATOMIC_RELAXED);
}

/* Forgets the unpolled completions of a queue pair that was reset. Takes cq->lock. */
void cq_forget_qp(struct cq *cq, const struct qp *qp);

/* clock.c: CLOCK_REALTIME minus the engine's clock, in ns, at this moment. */
uint64_t clock_to_wall(const struct attachment *c);

/* Sets the functions of ibv_cq_ex (ibv_create_cq_ex(3)) that `wc_flags` asks for. */
void cq_ex_fill(struct ibv_cq_ex *cq, uint64_t wc_flags);

#endif
