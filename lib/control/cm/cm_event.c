/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events wait in their channel until the program takes them. An octet on the channel's
 * descriptor announces each. The socket holds only some hundred octets; the others are owed and
 * sent when the program has taken one.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "control/cm/cm_manager.h"

void cm_channel_pay(struct cm_channel *ch)
{
	static const uint8_t octet = 0;

	while (ch->owed > 0 && send(ch->fd, &octet, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		ch->owed--;
}

/* Discards an event that was not taken. */
static void octet_left(struct cm_channel *ch)
{
	if (ch->owed > 0)
		ch->owed--;
	else
		ch->stale++;
}

uint32_t cm_channel_stale(struct cm_channel *ch)
{
	uint32_t octets = ch->stale;

	ch->stale = 0;
	return octets;
}

bool cm_reports_full(const struct cm_id *id)
{
	return id->waiting >= LIMIT_CM_REPORTS ||
	       id->client->objects->cm_events >= LIMIT_CLIENT_CM_EVENTS;
}

struct cm_report *cm_report_new(struct cm_id *of, uint32_t event, int32_t status)
{
	struct cm_report *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->of = of;
	r->what.event = event;
	r->what.status = status;
	r->what.id = of->handle;
	return r;
}

void cm_report_post(struct cm_report *r)
{
	struct cm_channel *ch = r->of->channel;

	cm_ring_add(ch, r);
	TAILQ_INSERT_TAIL(&r->of->reports, r, of_link);
	r->of->waiting++;
	if (r->made == NULL)
		r->of->client->objects->cm_events++;
	ch->owed++;
	cm_ring_collect(ch);
	cm_channel_pay(ch); /* the record is there before its octet */
}

void cm_tell(struct cm_id *of, uint32_t event, int32_t status)
{
	struct cm_report *r = cm_report_new(of, event, status);

	if (r != NULL)
		cm_report_post(r);
}

static void report_take(struct cm_report *r)
{
	cm_ring_remove(r->of->channel, r);
	TAILQ_REMOVE(&r->of->reports, r, of_link);
	r->of->waiting--;
	if (r->made == NULL) {
		r->of->client->objects->cm_events--;
		return;
	}
	r->made->request = NULL;
	r->of->backlog++;
}

void cm_report_taken(struct cm_report *r)
{
	r->of->handed++;
	report_take(r);
	free(r);
}

static void report_drop(struct cm_report *r)
{
	octet_left(r->of->channel);
	report_take(r);
	free(r);
}

void cm_reports_drop(struct cm_id *of)
{
	struct cm_id_list orphans = LIST_HEAD_INITIALIZER(orphans);
	struct cm_report *r;
	struct cm_id *id;

	if (of->request != NULL)
		report_drop(of->request);
	while ((r = TAILQ_FIRST(&of->reports)) != NULL) {
		if (r->made != NULL)
			LIST_INSERT_HEAD(&orphans, r->made, port_link);
		report_drop(r);
	}
	/* They share their listener's port and are in no list of ports. */
	while ((id = LIST_FIRST(&orphans)) != NULL) {
		LIST_REMOVE(id, port_link);
		cm_id_free(id);
	}
}

void cm_reports_drop_join(struct cm_id *of, uint32_t join)
{
	struct cm_report *r, *next;

	for (r = TAILQ_FIRST(&of->reports); r != NULL; r = next) {
		next = TAILQ_NEXT(r, of_link);
		if (r->what.join != join)
			continue;
		report_drop(r);
	}
}

void cm_reports_move(struct cm_id *of, struct cm_channel *to)
{
	struct cm_report *r;

	TAILQ_FOREACH(r, &of->reports, of_link)
	{
		octet_left(of->channel);
		cm_ring_remove(of->channel, r);
		cm_ring_add(to, r);
		to->owed++;
	}
}

int cmd_cm_get_event(struct call *call)
{
	const struct request_handle *q = (const struct request_handle *)call->request;
	struct reply_cm_event *reply = (struct reply_cm_event *)&call->reply;
	struct cm_channel *ch = object_find(call->client, OBJECT_CM_CHANNEL, q->handle);
	struct command_reply header;
	struct cm_report *r;

	if (ch == NULL)
		return call_fail(call, EINVAL, "no such event channel");
	cm_ring_collect(ch);
	cm_channel_pay(ch);
	r = TAILQ_FIRST(&ch->reports);
	if (r == NULL)
		return EAGAIN;
	header = reply->h;
	*reply = r->what;
	reply->h = header;
	reply->events = r->of->handed + 1;
	cm_report_taken(r);
	return 0;
}
