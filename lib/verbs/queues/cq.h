/* SPDX-License-Identifier: BSD-3-Clause */
/* A CQ and the queue pairs that complete into it. */
#ifndef VERBS_CQ_H
#define VERBS_CQ_H

#include "verbs/types.h"

/* The CQ learns of a queue pair. 0 or ENOMEM. */
int cq_add_qp(struct cq *cq, struct qp *qp);
void cq_remove_qp(struct cq *cq, struct qp *qp);

/*
 * With cq->lock held: takes the oldest completion. False: there is none.
 */
bool cq_take(struct cq *cq, struct completion *c);
/*
 * After polls that found nothing: lets others run, and sees whether the engine is gone; then the
 * flush completions come.
 */
bool cq_take_when_empty(struct cq *cq, struct completion *c);

/* With cq->lock held: the program looks for completions; see wake_who_polled in poll.c. */
static inline void cq_note_polled(struct cq *cq)
{
	if (!__atomic_load_n(&cq->polled, __ATOMIC_RELAXED))
		__atomic_store_n(&cq->polled, true, __ATOMIC_RELAXED);
}

/* A queue pair was reset: what completed before and was not polled does not come any more. */
void cq_forget_qp(struct cq *cq, const struct qp *qp);

/* clock.c: what added to the engine's clock is CLOCK_REALTIME, as of now. */
uint64_t clock_to_wall(const struct attachment *c);

/* The functions of ibv_cq_ex. */
void cq_ex_fill(struct ibv_cq_ex *cq, uint64_t wc_flags);

#endif
