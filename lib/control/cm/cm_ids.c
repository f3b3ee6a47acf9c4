/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids, channels and joins: creation and destruction. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "control/cm/cm_manager.h"

int cm_manager_open(struct engine *e)
{
	struct cm_manager *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return ENOMEM;
	arc4random_buf(&m->secret, sizeof(m->secret));
	TAILQ_INIT(&m->resolving);
	e->control->cm = m;
	return cm_mads_open(e);
}

/* All clients are gone; connections in TIMEWAIT can end, too. */
void cm_manager_close(struct engine *e)
{
	struct cm_manager *m = e->control->cm;

	if (m == NULL)
		return;
	while (!LIST_EMPTY(&m->links))
		cm_link_free(e, LIST_FIRST(&m->links));
	cm_mads_close(e);
	free(m->timers.node);
	free(m);
	e->control->cm = NULL;
}

nanotime cm_manager_tick(struct engine *e, nanotime now)
{
	nanotime next = cm_mads_tick(e, now);

	next = time_earlier(next, cm_timers_tick(e, now));
	next = time_earlier(next, cm_resolve_tick(e, now));
	cm_flush(e);
	/* messages that the timers and resolutions sent to this engine */
	return e->control->cm->queued > 0 ? now : next;
}

struct cm_id *cm_id_new(struct client *c, struct cm_channel *ch, uint16_t space, uint8_t qp_type)
{
	struct handle_table *t = &c->objects->table[OBJECT_CM_ID];
	struct cm_id *id = c->dying ? NULL : calloc(1, sizeof(*id));

	errno = ENOMEM;
	if (id == NULL)
		return NULL;
	id->handle = handle_reserve(t);
	if (id->handle == 0) {
		free(id);
		errno = EDQUOT;
		return NULL;
	}
	id->client = c;
	id->space = space;
	id->qp_type = qp_type;
	id->channel = ch;
	TAILQ_INIT(&id->reports);
	ch->ids++;
	handle_publish(t, id->handle, id);
	return id;
}

static void move(struct cm_id *id, struct cm_channel *ch)
{
	cm_reports_move(id, ch);
	id->channel->ids--;
	ch->ids++;
	id->channel = ch;
}

/* Ids of connection requests that are not taken yet follow the listener to its channel. */
void cm_id_set_channel(struct cm_id *id, struct cm_channel *ch)
{
	struct cm_report *r;

	if (ch == id->channel)
		return;
	move(id, ch);
	/* reports about the new ids come behind */
	TAILQ_FOREACH(r, &id->reports, of_link)
	if (r->made != NULL)
		move(r->made, ch);
	/* Last: the program may take what is shown at once, and a report that was taken is freed. */
	cm_ring_collect(ch);
	cm_channel_pay(ch);
}

void cm_join_free(struct cm_join *j)
{
	struct handle_table *t = &j->id->client->objects->table[OBJECT_CM_JOIN];

	if (j->reported) {
		neighbour_agent_leave(j->id->client->engine, &j->group);
		account_give(&j->id->client->objects->account, RESOURCE_GROUPS, 1);
	}
	LIST_REMOVE(j, link);
	j->id->joins--;
	j->id->client->objects->reported_joins -= j->reported;
	handle_withdraw(t, j->handle);
	handle_free(t, j->handle);
	free(j);
}

void cm_id_free(struct cm_id *id)
{
	struct handle_table *t = &id->client->objects->table[OBJECT_CM_ID];
	struct engine *e = id->client->engine;
	struct cm_join *j;

	cm_reports_drop(id);
	if (id->connection != NULL)
		cm_link_abandon(e, id->connection, clock_now());
	while ((j = LIST_FIRST(&id->groups)) != NULL)
		cm_join_free(j);
	cm_resolve_end(id);
	cm_port_release(id);
	id->channel->ids--;
	handle_withdraw(t, id->handle);
	handle_free(t, id->handle);
	free(id);
}

void cm_channel_free(struct cm_channel *ch)
{
	struct handle_table *t = &ch->client->objects->table[OBJECT_CM_CHANNEL];

	handle_withdraw(t, ch->handle);
	handle_free(t, ch->handle);
	channel_close(ch->client, ch->fd);
	cm_ring_close(ch);
	free(ch);
}

struct cm_id *cm_id_of_call(struct call *call, uint32_t handle)
{
	struct cm_id *id = object_find(call->client, OBJECT_CM_ID, handle);

	if (id == NULL)
		call_fail(call, EINVAL, "no such id");
	else
		cm_ring_collect(id->channel);
	return id;
}
