/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The oldest events of a channel are shown to its program in the arena (queue/event_ring.h), so that it
 * takes them without a command. They stay reports of the channel until they are collected.
 */
#include "control/cm/cm_manager.h"

#define RECORD sizeof(struct reply_cm_event)

int cm_ring_open(struct call *call, struct cm_channel *ch)
{
	int error = queues_take(call, event_ring_bytes(RECORD), &ch->ring_offset);

	if (error == 0)
		ch->ring = arena_at(ch->client->arena, ch->ring_offset);
	return error;
}

void cm_ring_close(struct cm_channel *ch)
{
	queues_give(ch->client, ch->ring_offset, event_ring_bytes(RECORD));
}

void cm_ring_add(struct cm_channel *ch, struct cm_report *r)
{
	TAILQ_INSERT_TAIL(&ch->reports, r, link);
	r->is_shown = false;
	if (ch->unshown == NULL)
		ch->unshown = r;
}

void cm_ring_remove(struct cm_channel *ch, struct cm_report *r)
{
	struct reply_cm_event *record = event_ring_at(ch->ring, r->record, RECORD);

	if (ch->unshown == r)
		ch->unshown = TAILQ_NEXT(r, link);
	if (r->is_shown) {
		ch->shown[r->record % LIMIT_CM_SHOWN] = NULL;
		record->event = CM_EVENT_WITHDRAWN;
	}
	TAILQ_REMOVE(&ch->reports, r, link);
}

void cm_ring_show(struct cm_channel *ch)
{
	while (ch->unshown != NULL && ch->posted - ch->taken < LIMIT_CM_SHOWN) {
		struct cm_report *r = ch->unshown;

		*(struct reply_cm_event *)event_ring_at(ch->ring, ch->posted, RECORD) = r->what;
		ch->shown[ch->posted % LIMIT_CM_SHOWN] = r;
		r->is_shown = true;
		r->record = ch->posted++;
		ch->unshown = TAILQ_NEXT(r, link);
	}
	event_ring_post(ch->ring, ch->posted);
}

void cm_ring_collect(struct cm_channel *ch)
{
	uint32_t taken = event_ring_taken(ch->ring, ch->taken, ch->posted);

	while (ch->taken != taken) {
		struct cm_report *r = ch->shown[ch->taken % LIMIT_CM_SHOWN];

		if (r != NULL)
			cm_report_taken(r);
		ch->taken++;
	}
	cm_ring_show(ch);
}
