/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of an engine, as its programs see it: everything that was posted and not completed
 * completes as flushed. The dead engine cannot say so, so the library does, in the program's own
 * calls, from what it remembers of each queue (struct work_queue).
 */
#ifndef VERBS_FLUSH_H
#define VERBS_FLUSH_H

#include "verbs/types.h"

/* With cq->lock held, its ring empty, the engine gone: the next completion, if there is one. */
bool flush_next(struct cq *cq, struct completion *c);

/*
 * A CQ of this channel that has completions which its program was not woken for; it is counted
 * as delivered. NULL: none.
 */
struct cq *flush_wake_one(struct channel *ch);

/* The program armed a CQ of a dead engine: wakes it if there is something to poll. */
void flush_armed(struct cq *cq);

#endif
