/* SPDX-License-Identifier: BSD-3-Clause */
/* Deadlines of connections: a heap, timer[0] the earliest, the children of i at 2i + 1 and 2i + 2. */
#include <errno.h>
#include <stdlib.h>

#include "control/cm/cm_manager.h"

static void put(struct cm_manager *m, struct cm_link *l, uint32_t place)
{
	m->timer[place] = l;
	l->timer = place + 1;
}

static void rise(struct cm_manager *m, struct cm_link *l, uint32_t place)
{
	while (place > 0 && m->timer[(place - 1) / 2]->due > l->due) {
		put(m, m->timer[(place - 1) / 2], place);
		place = (place - 1) / 2;
	}
	put(m, l, place);
}

static void sink(struct cm_manager *m, struct cm_link *l, uint32_t place)
{
	for (;;) {
		uint32_t child = 2 * place + 1;

		if (child + 1 < m->timers && m->timer[child + 1]->due < m->timer[child]->due)
			child++;
		if (child >= m->timers || m->timer[child]->due >= l->due)
			break;
		put(m, m->timer[child], place);
		place = child;
	}
	put(m, l, place);
}

static void leave(struct cm_manager *m, struct cm_link *l)
{
	uint32_t place = l->timer - 1;
	struct cm_link *last = m->timer[--m->timers];

	l->timer = 0;
	if (last == l)
		return;
	rise(m, last, place);
	sink(m, last, last->timer - 1);
}

int cm_timer_reserve(struct engine *e, uint32_t links)
{
	struct cm_manager *m = e->control->cm;
	uint32_t room = m->timer_room == 0 ? 64 : 2 * m->timer_room;
	struct cm_link **more;

	if (links <= m->timer_room)
		return 0;
	more = realloc(m->timer, room * sizeof(*more));
	if (more == NULL)
		return ENOMEM;
	m->timer = more;
	m->timer_room = room;
	return 0;
}

void cm_timer_set(struct engine *e, struct cm_link *l, nanotime at)
{
	struct cm_manager *m = e->control->cm;

	if (l->timer != 0 && l->due == at)
		return;
	if (l->timer != 0)
		leave(m, l);
	if (at == TIME_NEVER)
		return;
	l->due = at;
	rise(m, l, m->timers++);
}

nanotime cm_timers_tick(struct engine *e, nanotime now)
{
	struct cm_manager *m = e->control->cm;

	for (uint32_t i = 0; i < LIMIT_CM_AT_ONCE && m->timers > 0 && m->timer[0]->due <= now;
	     i++) {
		struct cm_link *l = m->timer[0];

		leave(m, l);
		cm_expired(&l->core, now);
		cm_link_settle(e, l, now);
	}
	return m->timers > 0 ? m->timer[0]->due : TIME_NEVER;
}
