/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deadlines of queue pairs: a hashed wheel of slots of 8.192 us. Setting a deadline is lazy: a
 * queue pair that already stands in an earlier slot stays there, because nearly every packet moves
 * its acknowledgement timer. When the slot's turn comes, the queue pair is asked again for its
 * deadline. A deadline beyond one turn of the wheel goes into the last slot of the turn.
 */
#include <string.h>

#include "lcore/inside.h"

void wheel_init(struct wheel *w, nanotime now)
{
	memset(w, 0, sizeof(*w));
	w->tick = now >> WHEEL_TICK_SHIFT;
}

static void slot_insert(struct wheel *w, struct engine_qp *q, uint64_t tick)
{
	uint32_t slot = (uint32_t)tick & (WHEEL_SLOTS - 1);

	LIST_INSERT_HEAD(&w->slot[slot], q, wheel_link);
	w->occupied[slot / 64] |= UINT64_C(1) << (slot % 64);
	w->entries++;
	q->wheel_slot = slot;
	q->wheel_at = tick << WHEEL_TICK_SHIFT;
	q->in_wheel = true;
}

void wheel_move(struct wheel *w, struct engine_qp *q, nanotime at)
{
	uint64_t tick;

	wheel_remove(w, q);
	/* Rounded up: never early. The retry timer may be late by a slot (IBTA allows 4 T). */
	tick = (at >> WHEEL_TICK_SHIFT) + 1;
	if (tick < w->tick)
		tick = w->tick;
	if (tick >= w->tick + WHEEL_SLOTS)
		tick = w->tick + WHEEL_SLOTS - 1;
	slot_insert(w, q, tick);
}

void wheel_remove(struct wheel *w, struct engine_qp *q)
{
	if (!q->in_wheel)
		return;
	LIST_REMOVE(q, wheel_link);
	q->in_wheel = false;
	w->entries--;
	if (LIST_EMPTY(&w->slot[q->wheel_slot]))
		w->occupied[q->wheel_slot / 64] &= ~(UINT64_C(1) << (q->wheel_slot % 64));
}

static uint32_t slot_expire(struct lcore *l, uint32_t slot, nanotime now)
{
	struct wheel *w = &l->wheel;
	struct wheel_slot due;
	struct engine_qp *q;
	uint32_t work = 0, timeouts;

	/* The whole slot is detached first: an expiry may put its queue pair back into it. */
	LIST_INIT(&due);
	while ((q = LIST_FIRST(&w->slot[slot])) != NULL) {
		wheel_remove(w, q);
		LIST_INSERT_HEAD(&due, q, wheel_link);
	}
	while ((q = LIST_FIRST(&due)) != NULL) {
		LIST_REMOVE(q, wheel_link);
		work++;
		/* Its packets have not left: the deadline is set when they do. */
		if (q->gather_pending || q->waiting > 0)
			continue;
		timeouts = qp_timeouts(q->core);
		qp_expired(q->core, now);
		l->stats.timeouts += qp_timeouts(q->core) - timeouts;
		qp_settled(l, q, now);
	}
	return work;
}

uint32_t wheel_turn(struct lcore *l, nanotime now)
{
	struct wheel *w = &l->wheel;
	uint64_t end = now >> WHEEL_TICK_SHIFT;
	uint32_t work = 0;

	if (!wheel_is_due(w, now))
		return 0;
	/* After a long sleep one turn of the wheel is enough. */
	if (end - w->tick >= WHEEL_SLOTS)
		w->tick = end - WHEEL_SLOTS + 1;
	while (w->tick <= end && w->entries > 0) {
		uint32_t slot = (uint32_t)w->tick & (WHEEL_SLOTS - 1);

		w->tick++;
		if (w->occupied[slot / 64] & UINT64_C(1) << (slot % 64))
			work += slot_expire(l, slot, now);
	}
	w->tick = end + 1;
	return work;
}

nanotime wheel_next(const struct wheel *w)
{
	if (w->entries == 0)
		return TIME_NEVER;
	for (uint32_t i = 0; i < WHEEL_SLOTS; i++) {
		uint64_t tick = w->tick + i;
		uint32_t slot = (uint32_t)tick & (WHEEL_SLOTS - 1);

		if (w->occupied[slot / 64] & UINT64_C(1) << (slot % 64))
			return tick << WHEEL_TICK_SHIFT;
	}
	return TIME_NEVER;
}
