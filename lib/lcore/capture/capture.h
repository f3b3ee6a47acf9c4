/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies frames for `uroce capture`, and keeps the frames of a traced queue pair. While neither
 * runs, a burst costs the test of one pointer.
 *
 * Atomics: engine.capture, snap and trace. Acquire: an lcore that sees one of them sees its rings.
 * The control path frees the rings a grace period after it clears the pointer.
 */
#ifndef LCORE_CAPTURE_H
#define LCORE_CAPTURE_H

#include <rte_branch_prediction.h>

#include "lcore/lcore.h"
#include "queue/capture_ring.h"

struct trace;

struct capture {
	uint32_t snap; /* octets kept of a frame; 0: there is no capture */
	struct capture_ring ring[LIMIT_LCORES]; /* an lcore's own */
	struct trace *trace; /* NULL: there is none */
};

void capture_copy(struct capture *c, struct lcore *l, struct rte_mbuf *const *m, uint32_t n,
		  enum capture_way way);

/* These n frames pass now. Called on their lcore. */
static inline void capture_frames(struct lcore *l, struct rte_mbuf *const *m, uint32_t n,
				  enum capture_way way)
{
	struct capture *c = __atomic_load_n(&l->engine->capture, __ATOMIC_ACQUIRE);

	if (unlikely(c != NULL))
		capture_copy(c, l, m, n, way);
}

#endif
