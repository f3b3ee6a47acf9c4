/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies frames for `uroce capture`, and keeps the frames of a traced queue pair. While neither
 * runs, a burst costs the test of one pointer.
 *
 * Atomics: engine.capture, snap and trace. The lcore loads them with acquire, so an lcore that sees
 * one of them also sees its rings. The control path clears the pointer, waits for a grace period,
 * and only then frees the rings.
 */
#ifndef LCORE_CAPTURE_H
#define LCORE_CAPTURE_H

#include <rte_branch_prediction.h>

#include "lcore/lcore.h"
#include "queue/capture_ring.h"

struct trace;

struct capture {
	uint32_t snap; /* octets kept of a frame; 0: there is no capture */
	struct capture_ring ring[LIMIT_LCORES]; /* one for each lcore */
	struct trace *trace; /* NULL: there is none */
};

void capture_copy(struct capture *c, struct lcore *l, struct rte_mbuf *const *m, uint32_t n,
		  enum capture_way way);

/* Whether a capture or a trace sees frames. */
static inline bool capture_is_on(const struct lcore *l)
{
	return unlikely(__atomic_load_n(&l->engine->capture, __ATOMIC_RELAXED) != NULL);
}

/*
 * Shows these n frames to the capture and the trace, if there are any. Called on the frames' lcore.
 */
static inline void capture_frames(struct lcore *l, struct rte_mbuf *const *m, uint32_t n,
				  enum capture_way way)
{
	struct capture *c = __atomic_load_n(&l->engine->capture, __ATOMIC_ACQUIRE);

	if (unlikely(c != NULL))
		capture_copy(c, l, m, n, way);
}

#endif
