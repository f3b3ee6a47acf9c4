/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids whose next hop is being resolved, until it answers or their time is over. */
#include <errno.h>

#include "control/cm/cm_manager.h"

/* Whether there is an answer, positive or negative. The program gets its event. */
static bool has_answer(struct engine *e, struct cm_id *id, nanotime now)
{
	struct mac mac;

	switch (flow_resolve(e, &id->source.ip, &id->destination.ip, &mac)) {
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
	TAILQ_INSERT_TAIL(&e->control->cm->resolving, id, resolving_link);
	cm_done(e);
}

void cm_resolve_end(struct cm_id *id)
{
	if (id->state != CM_ID_RESOLVING)
		return;
	TAILQ_REMOVE(&id->client->engine->control->cm->resolving, id, resolving_link);
	id->state = CM_ID_BOUND;
}

/* Examines some of them: each may cost two requests to the kernel, and commands wait meanwhile. */
static void look(struct engine *e, nanotime now)
{
	struct cm_manager *m = e->control->cm;
	struct cm_id *last = TAILQ_LAST(&m->resolving, cm_resolving), *id = NULL;

	for (uint32_t i = 0; i < LIMIT_CM_AT_ONCE && id != last; i++) {
		id = TAILQ_FIRST(&m->resolving);
		TAILQ_REMOVE(&m->resolving, id, resolving_link);
		if (!has_answer(e, id, now))
			TAILQ_INSERT_TAIL(&m->resolving, id, resolving_link);
	}
}

nanotime cm_resolve_tick(struct engine *e, nanotime now)
{
	struct cm_manager *m = e->control->cm;
	uint32_t news = neighbour_agent_news(e);

	if (TAILQ_EMPTY(&m->resolving))
		return TIME_NEVER;
	if (now >= m->resolve_at || news != m->resolve_news) {
		look(e, now);
		m->resolve_news = news;
		m->resolve_at = now + LIMIT_CM_RESOLVE_LOOK;
	}
	return TAILQ_EMPTY(&m->resolving) ? TIME_NEVER : m->resolve_at;
}
