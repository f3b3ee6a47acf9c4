/* SPDX-License-Identifier: BSD-3-Clause */
/* For `uroce stat --cm`: the ids of all programs, as many as fit one message at a time. */
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "control/cm/cm_manager.h"
#include "control/network/peers.h"

/* The names that `rdma resource show cm_id` uses. For a connection: its state machine's state. */
static const char *state_name(const struct cm_id *id)
{
	static const char *const names[] = {
		[CM_ID_FRESH] = "IDLE",
		[CM_ID_BOUND] = "ADDR_BOUND",
		[CM_ID_RESOLVING] = "ADDR_QUERY",
		[CM_ID_RESOLVED] = "ADDR_RESOLVED",
		[CM_ID_ROUTED] = "ROUTE_RESOLVED",
		[CM_ID_LISTENING] = "LISTEN",
		[CM_ID_CONNECTED] = "DISCONNECT",
	};

	if (id->connection != NULL)
		return cm_state_name(cm_state(&id->connection->core));
	return id->state < ARRAY_SIZE(names) ? names[id->state] : "?";
}

/*
 * Hidden from other users: knowing a queue pair's number helps to forge its packets (hostile H-54).
 */
static uint32_t shown_qpn(const struct call *call, const struct cm_id *id)
{
	if (id->connection == NULL || !call_sees(call, id->client))
		return 0;
	return id->connection->core.local_qpn;
}

static void describe(const struct call *call, const struct cm_id *id, struct cm_listed *to)
{
	const struct client_objects *o = id->client->objects;

	to->source = id->source;
	to->destination = id->destination;
	to->qpn = shown_qpn(call, id);
	if (id->connection != NULL) {
		to->sent = id->connection->sent;
		to->received = id->connection->received;
		to->timeouts = id->connection->timeouts;
	}
	to->pid = (uint32_t)o->pid;
	to->port_space = id->space;
	to->qp_type = id->qp_type;
	snprintf(to->state, sizeof(to->state), "%s", state_name(id));
	memcpy(to->program, o->program, sizeof(to->program));
}

/* Lists a client's ids from this handle on. Returns the first handle that found no room, or 0. */
static uint32_t list_client(const struct call *call, const struct client *c, uint32_t handle,
			    struct reply_cm_list *reply)
{
	const struct handle_table *t = &c->objects->table[OBJECT_CM_ID];

	for (handle = MAX_OF(handle, 1u); handle <= t->used; handle++) {
		if (t->slot[handle] == NULL)
			continue;
		if (reply->count == CM_LISTED_MAX)
			return handle;
		describe(call, t->slot[handle], &reply->id[reply->count++]);
	}
	return 0;
}

/* A position in the list is a client's index and a handle. */
int cmd_cm_list(struct call *call)
{
	const struct request_cm_list *r = (const struct request_cm_list *)call->request;
	struct reply_cm_list *reply = (struct reply_cm_list *)&call->reply;
	uint32_t handle = (uint32_t)r->from;

	for (uint64_t i = r->from >> 32; i < LIMIT_CLIENTS; i++, handle = 0) {
		const struct client *c = call->engine->client[i];

		if (c == NULL)
			continue;
		handle = list_client(call, c, handle, reply);
		if (handle == 0)
			continue;
		reply->next = i << 32 | handle;
		return 0;
	}
	return 0;
}
