/* SPDX-License-Identifier: BSD-3-Clause */
/* When each queue pair of an lcore is due: a wheel of slots of 8 us (wheel.c). */
#ifndef LCORE_WHEEL_H
#define LCORE_WHEEL_H

#include "lcore/queue_pair.h"

#define WHEEL_SLOTS	 4096u
#define WHEEL_TICK_SHIFT 13 /* a slot is 8.192 us, a turn of the wheel 33.6 ms */

struct wheel {
	uint64_t tick; /* next slot to look at, not masked */
	uint32_t entries;
	uint64_t occupied[WHEEL_SLOTS / 64];
	struct wheel_slot slot[WHEEL_SLOTS];
};

void wheel_init(struct wheel *w, nanotime now);
/* Puts the queue pair into the slot of this deadline, and takes it out of any other. */
void wheel_move(struct wheel *w, struct engine_qp *q, nanotime at);
void wheel_remove(struct wheel *w, struct engine_qp *q);
uint32_t wheel_turn(struct lcore *l, nanotime now);

/* Nearly every packet sets a deadline, but few change anything: an earlier slot is kept. */
static inline void wheel_set(struct wheel *w, struct engine_qp *q, nanotime at)
{
	if (at == TIME_NEVER || (q->in_wheel && q->wheel_at <= at))
		return;
	wheel_move(w, q, at);
}

/* Whether a slot is due that was not looked at. If not, wheel_turn has nothing to do. */
static inline bool wheel_is_due(const struct wheel *w, nanotime now)
{
	return now >> WHEEL_TICK_SHIFT >= w->tick;
}

/* When the next slot with entries begins: TIME_NEVER or an instant, maybe early, never late. */
nanotime wheel_next(const struct wheel *w);

#endif
