/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moderated CQs (ibv_modify_cq(3)). An event waits for `count` completions, or until `period` after
 * the first of them, whichever comes first. 0 is no limit; if both are 0, the CQ is not moderated.
 * The completion that satisfies the program's arming takes it, as always. From then on an event is
 * owed:
 *
 *	waiting: 0 --(arming taken)--> 1 --(a completion)--> 2 ... --(count, period)--> 0, event
 *
 * A CQ that owes an event and has a period stands in the list of one lcore, which looks at it after
 * each poll. Any lcore may complete into the CQ and send its event. Only the lcore in whose list it
 * stands takes it out.
 */
#ifndef LCORE_MODERATE_H
#define LCORE_MODERATE_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/time.h"

struct engine_cq;
struct lcore;

struct moderation {
	uint32_t count; /* atomic: (control) writes */
	uint32_t period; /* us; atomic: (control) writes */
	uint32_t waiting; /* atomic: completions that the owed event is about; 0: none is owed */
	uint32_t is_listed; /* atomic: stands in the list of `lcore` */
	struct lcore *lcore; /* NULL: it never stood in a list */
	nanotime due; /* atomic: when the owed event goes out */
	TAILQ_ENTRY(engine_cq) link;
};

TAILQ_HEAD(moderated_list, engine_cq);

/* After a completion, with whether it took the program's arming: sends the event, or keeps it. */
void moderate_completion(struct lcore *l, struct engine_cq *cq, bool taken, nanotime now);
/* Sends the due events of this lcore's list. Returns how many. */
uint32_t moderate_poll(struct lcore *l, nanotime now);
/* When the next of this lcore's list is due: TIME_NEVER or an instant, maybe early, never late. */
nanotime moderate_next(const struct lcore *l);

/* (control) New limits; an event that was owed under the old ones is sent. */
void moderate_set(struct engine_cq *cq, uint32_t count, uint32_t period);
/*
 * (control) No lcore completes into the CQ any more: takes it out of its list. After that no lcore
 * looks at it.
 */
void moderate_forget(struct engine_cq *cq);

static inline bool is_moderated(const struct moderation *m)
{
	return (__atomic_load_n(&m->count, __ATOMIC_RELAXED) |
		__atomic_load_n(&m->period, __ATOMIC_RELAXED) |
		__atomic_load_n(&m->waiting, __ATOMIC_RELAXED)) != 0;
}

#endif
