/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections. The state machine (lib/cm) decides, and this file executes its decisions. A
 * connection whose id is gone continues until it is CM_IDLE: the peer still gets its messages, and
 * its numbers stay in TIMEWAIT. So it is charged to the user, not to the program.
 */
#include <errno.h>
#include <stdlib.h>

#include "control/cm/cm_manager.h"
#include "drivers/log.h"

struct cm_link *cm_link_new(struct engine *e, struct cm_id *id, const struct qp_path *path)
{
	struct account *a = &id->client->objects->account;
	struct cm_manager *m = e->control->cm;
	struct cm_link *l;

	errno = ENOMEM;
	if (cm_timer_reserve(e, m->link_count + 1) != 0)
		return NULL;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return NULL;
	if (!account_take_for_user(a, RESOURCE_CM_LINKS, 1)) {
		free(l);
		errno = EDQUOT;
		return NULL;
	}
	l->user = user_hold(a->user);
	l->id = id;
	l->path = *path;
	l->own_psn = arc4random() & 0xffffff;
	l->datagram = id->qp_type == QP_TYPE_UD;
	id->connection = l;
	m->link_count++;
	LIST_INSERT_HEAD(&m->links, l, all_link);
	return l;
}

uint32_t cm_link_count(const struct engine *e)
{
	return e->control->cm != NULL ? e->control->cm->link_count : 0;
}

void cm_link_free(struct engine *e, struct cm_link *l)
{
	cm_timer_set(e, l, TIME_NEVER);
	cm_tables_remove(l);
	if (l->id != NULL)
		l->id->connection = NULL;
	LIST_REMOVE(l, all_link);
	e->control->cm->link_count--;
	if (l->from_afar)
		--*cm_source_count(e, &l->path.dgid);
	user_give(&e->control->users, l->user, RESOURCE_CM_LINKS, 1);
	user_drop(l->user);
	free(l);
}

static void send_owed(struct engine *e, struct cm_link *l)
{
	struct cm_message m;

	while (cm_take_message(&l->core, &m))
		cm_send(e, l, &m);
}

/*
 * The peer has accepted. The queue pair goes to RTS before the RTU leaves, after which the peer may
 * send.
 */
static void start(struct engine *e, struct cm_link *l, nanotime now)
{
	const struct cm_rejection no = { .reason = CM_REJECT_CONSUMER };
	struct call call = { .engine = e, .client = l->id->client };
	uint32_t state;

	l->start_error = cm_move_qp(&call, l->id, l->qp, l->steps, NULL, &state);
	if (l->start_error == 0)
		l->start_error = cm_ready(&l->core, NULL, 0, now);
	if (l->start_error != 0) {
		LOG(INFO, "process %d (%s): no connection: %s", l->id->client->objects->pid,
		    l->id->client->objects->program, call.reply.why);
		cm_move_qp(&call, l->id, l->qp, CM_QP_ERR, NULL, &state);
		cm_reject(&l->core, &no, now);
	}
	send_owed(e, l);
}

void cm_link_settle(struct engine *e, struct cm_link *l, nanotime now)
{
	uint32_t events;

	send_owed(e, l);
	cm_tables_update(e, l);
	events = cm_take_events(&l->core);
	if (l->id != NULL && (events & CM_EVENT_REPLY) != 0 && l->steps != 0)
		start(e, l, now);
	if (l->id != NULL && events != 0)
		cm_report_events(e, l, events);
	cm_timer_set(e, l, cm_deadline(&l->core));
	if (cm_state(&l->core) != CM_IDLE)
		return;
	cm_tables_remove(l);
	if (l->id == NULL)
		cm_link_free(e, l);
}

void cm_link_abandon(struct engine *e, struct cm_link *l, nanotime now)
{
	l->id->connection = NULL;
	l->id = NULL;
	cm_abandon(&l->core, now);
	cm_link_settle(e, l, now);
}
