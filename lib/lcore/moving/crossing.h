/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that arrived at one lcore and belong to another (hand_over). Frames that do not fit into
 * the other lcore's inbox wait here, and meanwhile the port is not polled:
 *
 *	port ---> lcore 0 ---> inbox of lcore 1, full
 *	   stops     |
 *	             +-- waits here, in its order, and goes first
 *
 * So a slow lcore slows down the others, as a slow port does, and its frames are not lost. An lcore
 * always reads its own inbox, so two lcores that wait for each other go on.
 *
 * Waiting has two bounds. Frames beyond LIMIT_CROSSING are dropped: copies for groups and frames
 * that cross twice can exceed it. An lcore whose inbox takes nothing for LIMIT_STUCK_MS is stuck,
 * for example because an embedding program does not poll it. Frames for a stuck lcore are dropped
 * until its inbox takes one. Both drops count as `hand_over_full`.
 */
#ifndef LCORE_CROSSING_H
#define LCORE_CROSSING_H

#include "lcore/inside.h"

static_assert((LIMIT_CROSSING & (LIMIT_CROSSING - 1)) == 0, "a ring is masked");
static_assert(LIMIT_CROSSING >= 2 * LIMIT_BURST * LIMIT_LCORES,
	      "a burst of the port and one of the inbox, for groups with members everywhere");

struct crossing {
	struct {
		struct rte_mbuf *mbuf;
		struct lcore *to;
	} frame[LIMIT_CROSSING]; /* frame[tail .. head), free-running */
	uint32_t head, tail;
	uint32_t stuck; /* one bit for each lcore that is stuck */
	nanotime since; /* no frame has crossed since then; 0: none waited at the last look */
};

struct crossing *crossing_create(void);
/* Also frees the frames. */
void crossing_destroy(struct crossing *c);

/* Frames wait: the lcore may not sleep, and does not poll the port. */
static inline bool crossing_waits(const struct lcore *l)
{
	return l->crossing->head != l->crossing->tail;
}

/*
 * A frame from the port. True: it is for a queue pair of another lcore, and was sent there
 * undecoded.
 */
bool crossing_takes(struct lcore *l, struct rte_mbuf *m);

/* Tries the waiting frames again. Returns how many crossed. */
uint32_t crossing_flush(struct lcore *l, nanotime now);

#endif
