/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two ways out of an lcore: the port, and the rings inside the engine (its own and those of the
 * other lcores). Frames that an outlet does not take stay here, finished. They go first, in order,
 * as soon as it takes frames again. No packet is made twice because a ring is full.
 *
 * - A queue pair with frames here has no turn, and none of its timers run, because its packets have
 *   not left. It is settled again with its last frame.
 * - While frames wait, queue pairs of that outlet have no turn either. They stand in `blocked`, in
 *   order, and come before all others when the outlet is open again.
 * - Frames of a queue pair stay in order even if their outlets differ (UD): while one of its frames
 *   waits, the next ones wait in the same place.
 * - An outlet that takes nothing for LIMIT_STUCK_MS is stuck. Its frames are dropped with
 *   REASON_PORT_STUCK (or HAND_OVER_FULL), and so are later frames that it does not take, until it
 *   takes one. Only then do the retries of queue pairs count down.
 */
#ifndef LCORE_OUTLET_H
#define LCORE_OUTLET_H

#include "lcore/inside.h"

enum outlet_name {
	OUTLET_PORT,
	OUTLET_LOOP,
	OUTLETS,
};

struct outlet {
	struct staged_frame *frame; /* LIMIT_WAITING: frame[tail .. head), free-running */
	uint32_t head, tail;
	bool stuck;
	nanotime since; /* it has taken nothing since then, while frames wait */
	nanotime again_at; /* it is not tried before then */
	struct ready_list blocked; /* queue pairs that would have a turn if it were open */
};

struct outlets {
	struct outlet outlet[OUTLETS];
};

struct outlets *outlets_create(void);
/* Also frees the frames. */
void outlets_destroy(struct outlets *o);

static inline enum outlet_name outlet_of(const struct engine_qp *q)
{
	return q->flow_state == FLOW_LOOP ? OUTLET_LOOP : OUTLET_PORT;
}

static inline enum outlet_name outlet_of_frame(const struct staged_frame *s)
{
	return s->loop && !s->raw ? OUTLET_LOOP : OUTLET_PORT;
}

static inline uint32_t outlet_waiting(const struct outlet *o)
{
	return o->head - o->tail;
}

/* Frames wait in an outlet, so the lcore may not sleep. */
static inline bool outlets_wait(const struct lcore *l)
{
	const struct outlet *o = l->outlets->outlet;

	return outlet_waiting(&o[OUTLET_PORT]) > 0 || outlet_waiting(&o[OUTLET_LOOP]) > 0;
}

/* Neither frames nor queue pairs wait: outlets_flush has nothing to do. */
static inline bool outlets_rest(const struct lcore *l)
{
	const struct outlet *o = l->outlets->outlet;

	return TAILQ_EMPTY(&o[OUTLET_PORT].blocked) && TAILQ_EMPTY(&o[OUTLET_LOOP].blocked) &&
	       !outlets_wait(l);
}

/* Movers bring back up to a turn with each job, whether or not there is room. */
#define OUTLET_FROM_MOVERS (LIMIT_JOBS * LIMIT_TURN)

/* Whether there is room for one more round's frames, and for all that movers may bring back. */
static inline bool outlets_have_room(const struct lcore *l)
{
	const uint32_t most = LIMIT_WAITING - LIMIT_STAGE - OUTLET_FROM_MOVERS;
	const struct outlet *o = l->outlets->outlet;

	return outlet_waiting(&o[OUTLET_PORT]) <= most && outlet_waiting(&o[OUTLET_LOOP]) <= most;
}

/* Whether queue pairs of this outlet get turns. */
static inline bool outlet_is_open(const struct lcore *l, enum outlet_name name)
{
	/*
	 * Frames for this lcore are received first: they are in the cache and bring
	 * acknowledgements.
	 */
	if (name == OUTLET_LOOP && l->loop_head - l->loop_tail >= LIMIT_LOOP_BACKLOG)
		return false;
	return outlet_waiting(&l->outlets->outlet[name]) == 0;
}

/* A ready queue pair gets no turn until its outlet is open. */
void outlet_block(struct lcore *l, struct engine_qp *q);
/*
 * Keeps a frame that the outlet did not take, behind others of its queue pair. False: the outlet is
 * stuck, and the frame was dropped.
 */
bool outlet_keep(struct lcore *l, const struct staged_frame *s, nanotime now);
/* Sends the waiting frames. Returns how many left. */
uint32_t outlets_flush(struct lcore *l, nanotime now);
/* Drops the frames of a queue pair that is destroyed or reset. */
void outlets_forget(struct lcore *l, struct engine_qp *q);

#endif
