/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids whose next hop is being asked for: until it answers, or their time is over. */
#include <errno.h>

#include "engine/cm_manager.h"

#define LOOK_EVERY (2 * TIME_MS)

/* Whether there is an answer, good or bad; the program hears of it. */
static bool has_answer(struct engine *e, struct cm_id *id, nanotime now)
{
	struct mac mac;

	switch (flow_resolve(e, &id->destination.ip, &mac)) {
	case FLOW_PORT:
	case FLOW_LOOP:
		id->state = CM_ID_RESOLVED;
		cm_tell(id, CM_TYPE_ADDR_RESOLVED, 0);
		return true;
	case FLOW_UNREACHABLE:
		id->state = CM_ID_BOUND;
		cm_tell(id, CM_TYPE_ADDR_ERROR, -EHOSTUNREACH);
		return true;
	default:
		if (now < id->deadline)
			return false;
		id->state = CM_ID_BOUND;
		cm_tell(id, CM_TYPE_ADDR_ERROR, -ETIMEDOUT);
		return true;
	}
}

void cm_resolve_begin(struct engine *e, struct cm_id *id, nanotime deadline)
{
	id->deadline = deadline;
	if (has_answer(e, id, clock_now()))
		return;
	id->state = CM_ID_RESOLVING;
	LIST_INSERT_HEAD(&e->control->cm->resolving, id, resolving_link);
	cm_done(e);
}

void cm_resolve_end(struct cm_id *id)
{
	if (id->state != CM_ID_RESOLVING)
		return;
	LIST_REMOVE(id, resolving_link);
	id->state = CM_ID_BOUND;
}

nanotime cm_resolve_tick(struct engine *e, nanotime now)
{
	struct cm_id *id, *next;

	for (id = LIST_FIRST(&e->control->cm->resolving); id != NULL; id = next) {
		next = LIST_NEXT(id, resolving_link);
		if (has_answer(e, id, now))
			LIST_REMOVE(id, resolving_link);
	}
	return LIST_EMPTY(&e->control->cm->resolving) ? TIME_NEVER : now + LOOK_EVERY;
}
