/* SPDX-License-Identifier: BSD-3-Clause */
/* Deadlines of connections. */
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "control/cm/cm_manager.h"

int cm_timer_reserve(struct engine *e, uint32_t links)
{
	struct heap *h = &e->control->cm->timers;
	uint32_t room = h->room == 0 ? 64 : 2 * h->room;
	struct heap_node **more;

	if (links <= h->room)
		return 0;
	more = realloc(h->node, room * sizeof(*more));
	if (more == NULL)
		return ENOMEM;
	h->node = more;
	h->room = room;
	return 0;
}

void cm_timer_set(struct engine *e, struct cm_link *l, nanotime at)
{
	struct heap *h = &e->control->cm->timers;

	if (heap_holds(&l->timer) && l->timer.at == at)
		return;
	if (heap_holds(&l->timer))
		heap_remove(h, &l->timer);
	if (at != TIME_NEVER)
		heap_put(h, &l->timer, at);
}

nanotime cm_timers_tick(struct engine *e, nanotime now)
{
	struct heap *h = &e->control->cm->timers;

	for (uint32_t i = 0; i < LIMIT_CM_AT_ONCE && heap_next(h) <= now; i++) {
		struct cm_link *l = container_of_type(heap_first(h), struct cm_link, timer);

		heap_remove(h, &l->timer);
		l->timeouts += cm_awaits(&l->core);
		cm_expired(&l->core, now);
		cm_link_settle(e, l, now);
	}
	return heap_next(h);
}
