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
 * Called when the program arms a CQ of a dead engine. Wakes the program if there is something to
 * poll.
 */
void flush_armed(struct cq *cq);

#endif
