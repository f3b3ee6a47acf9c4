/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that are not for a RoCE queue pair (elsewhere.c), as rx.c finds them. */
#ifndef LCORE_ELSEWHERE_H
#define LCORE_ELSEWHERE_H

#include "lcore/lcore.h"

/* The handler of each kind of frame (enum frame_kind). */
struct frame_way {
	bool trusted; /* it was checked, or never left the engine */
	/* It is not RoCE: the mbuf goes there. NULL: it is decoded. */
	void (*whole)(struct lcore *l, struct rte_mbuf *m, nanotime now);
};
extern const struct frame_way frame_way[];

/* Queue pair numbers that are not a program's. `input` takes the mbuf. NULL ends the table. */
struct elsewhere {
	uint32_t qpn;
	void (*input)(struct lcore *l, struct packet *p, struct rte_mbuf *m, uint32_t kind,
		      nanotime now);
};
extern const struct elsewhere elsewhere[];

/*
 * Steering rules or the kernel may want RoCE packets of the port. If so, call frame_taken. Relaxed:
 * this only looks whether there are rules; frame_taken loads the table again, with acquire.
 */
static inline bool frame_is_watched(const struct engine *e)
{
	return __atomic_load_n(&e->flows, __ATOMIC_RELAXED) != NULL || e->exception != NULL;
}

/* A packet from the port. True: the kernel gets it, and the mbuf with it. */
bool frame_taken(struct lcore *l, const struct packet *p, struct rte_mbuf *m, nanotime now);
/* Finds the receiver of a frame that is not a RoCE packet. Takes the mbuf. */
void frame_refused(struct lcore *l, struct rte_mbuf *m, enum reason why, nanotime now);
/* After a burst that collected frames for the kernel (l->exceptions > 0). */
void elsewhere_flush(struct lcore *l);

#endif
