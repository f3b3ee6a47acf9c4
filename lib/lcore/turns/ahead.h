/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an lcore will touch next, on its way into the cache. Of thousands of queue pairs each has left the cache until its turn
 * comes. So while one has its turn, the lines of the next one are asked for, and the pointers to those of the one behind:
 *
 *	in its turn		its requests
 *	the next one		the core
 *	the one behind it	struct engine_qp
 *
 * The memory of few queue pairs stays in the cache: there it would be work for nothing.
 */
#ifndef LCORE_AHEAD_H
#define LCORE_AHEAD_H

#include "lcore/lcore.h"

/* Whether the queue pairs of this lcore are more than stay in the cache. */
static inline bool ahead_helps(const struct lcore *l)
{
	return __atomic_load_n(&l->qps, __ATOMIC_RELAXED) > LIMIT_QPS_NEAR;
}

/* Received frames, whose headers are in the cache or on their way: their queue pairs. At most LIMIT_BURST. */
void ahead_of_frames(struct lcore *l, struct rte_mbuf *const *m, uint32_t n);
/* This one has its turn now (turns_next). */
void ahead_of_turn(const struct engine_qp *q);
/* It is the first of those that its path holds back, and is to be resumed. */
void ahead_of_parked(const struct engine_qp *q);
/* Handles of a doorbell ring, of which the one with this index is looked at now. */
void ahead_of_bell(const struct client *c, const uint32_t *handle, uint32_t at, uint32_t n);

#endif
