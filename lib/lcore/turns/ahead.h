/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prefetches what an lcore will touch next. With thousands of queue pairs, each has left the cache
 * before its next turn. So one queue pair's turn prefetches data of those that come next:
 *
 *	in its turn		its requests
 *	the next one		the core
 *	the one behind it	struct engine_qp
 *
 * The memory of a few queue pairs stays in the cache, so prefetching would gain nothing.
 */
#ifndef LCORE_AHEAD_H
#define LCORE_AHEAD_H

#include "lcore/lcore.h"

/* Whether this lcore has more queue pairs than stay in the cache. */
static inline bool ahead_helps(const struct lcore *l)
{
	return __atomic_load_n(&l->qps, __ATOMIC_RELAXED) > LIMIT_QPS_NEAR;
}

/*
 * Prefetches the queue pairs of at most LIMIT_BURST received frames. The headers of the frames are
 * cached or being fetched.
 */
void ahead_of_frames(struct lcore *l, struct rte_mbuf *const *m, uint32_t n);
/* Called for the queue pair that has its turn now (turns_next). */
void ahead_of_turn(const struct engine_qp *q);
/* Called before the first queue pair that a path holds back is resumed. */
void ahead_of_parked(const struct engine_qp *q);
/* Called while the handle with index `at` of a doorbell ring's n handles is handled. */
void ahead_of_bell(const struct client *c, const uint32_t *handle, uint32_t at, uint32_t n);

#endif
