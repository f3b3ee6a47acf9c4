/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of the connection manager: event channels, ids and their addresses. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/cm/cm_manager.h"

int cmd_cm_create_channel(struct call *call)
{
	struct handle_table *t = &call->client->objects->table[OBJECT_CM_CHANNEL];
	struct reply_cm_channel *reply = (struct reply_cm_channel *)&call->reply;
	struct cm_channel *ch = calloc(1, sizeof(*ch));
	int error;

	if (ch == NULL)
		return ENOMEM;
	ch->client = call->client;
	TAILQ_INIT(&ch->reports);
	error = cm_ring_open(call, ch);
	if (error == 0)
		error = channel_open(call, OBJECT_CM_CHANNEL, &ch->handle, &ch->fd);
	if (error != 0) {
		cm_ring_close(ch);
		free(ch);
		return error;
	}
	handle_publish(t, ch->handle, ch);
	reply->handle = ch->handle;
	reply->ring_offset = ch->ring_offset;
	return 0;
}

int cmd_cm_destroy_channel(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct cm_channel *ch = object_find(call->client, OBJECT_CM_CHANNEL, r->handle);

	if (ch == NULL)
		return call_fail(call, EINVAL, "no such event channel");
	if (ch->ids != 0)
		return call_fail(call, EBUSY, "%u ids use the event channel", ch->ids);
	cm_channel_free(ch);
	return 0;
}

/* The queue pair type of ids in this port space; 0: none. */
static uint8_t type_of_space(uint32_t space, uint32_t qp_type)
{
	switch (space) {
	case CM_SPACE_TCP:
		return QP_TYPE_RC;
	case CM_SPACE_UDP:
	case CM_SPACE_IPOIB:
		return QP_TYPE_UD;
	case CM_SPACE_IB:
		if (qp_type == QP_TYPE_RC || qp_type == QP_TYPE_UC || qp_type == QP_TYPE_UD ||
		    qp_type == QP_TYPE_XRC_SEND || qp_type == QP_TYPE_XRC_RECV)
			return (uint8_t)qp_type;
		return 0;
	default:
		return 0;
	}
}

int cmd_cm_create_id(struct call *call)
{
	const struct request_cm_create_id *r = (const struct request_cm_create_id *)call->request;
	struct reply_handle *reply = (struct reply_handle *)&call->reply;
	struct cm_channel *ch = object_find(call->client, OBJECT_CM_CHANNEL, r->channel);
	uint8_t type = type_of_space(r->port_space, r->qp_type);
	struct cm_id *id;

	if (ch == NULL)
		return call_fail(call, EINVAL, "no such event channel");
	if (type == 0)
		return call_fail(call, EINVAL, "port space 0x%x has no queue pairs of type %u",
				 r->port_space, r->qp_type);
	id = cm_id_new(call->client, ch, (uint16_t)r->port_space, type);
	if (id == NULL && errno != EDQUOT)
		return call_fail(call, ENOMEM, "the engine has no memory for the id");
	if (id == NULL)
		return call_no_handle(call, OBJECT_CM_ID);
	reply->handle = id->handle;
	return 0;
}

int cmd_cm_destroy_id(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct reply_cm_gone *reply = (struct reply_cm_gone *)&call->reply;
	struct cm_id *id = cm_id_of_call(call, r->handle);
	struct cm_channel *ch;

	if (id == NULL)
		return EINVAL;
	ch = id->channel;
	reply->events = id->handed;
	cm_id_free(id);
	reply->octets = cm_channel_stale(ch);
	cm_done(call->engine);
	return 0;
}

/* Waiting events move with the id. */
int cmd_cm_migrate(struct call *call)
{
	const struct request_cm_migrate *r = (const struct request_cm_migrate *)call->request;
	struct reply_cm_gone *reply = (struct reply_cm_gone *)&call->reply;
	struct cm_channel *old, *ch = object_find(call->client, OBJECT_CM_CHANNEL, r->channel);
	struct cm_id *id = cm_id_of_call(call, r->id);

	if (id == NULL)
		return EINVAL;
	if (ch == NULL)
		return call_fail(call, EINVAL, "no such event channel");
	old = id->channel;
	cm_id_set_channel(id, ch);
	reply->events = id->handed;
	reply->octets = cm_channel_stale(old);
	return 0;
}

void cm_id_describe(const struct engine *e, const struct cm_id *id, struct cm_route *q)
{
	q->source = id->source;
	q->destination = id->destination;
	q->bound = id->is_bound;
	q->gid_index = id->gid_index;
	q->pkey = CM_PKEY;
	q->path_mtu = id->path_mtu;
	q->traffic_class = id->tos;
	q->hop_limit = CM_HOP_LIMIT;
	q->sl = id->tos >> 5;
	q->ack_timeout = cm_ack_timeout(id);
	if (id->is_bound)
		q->sgid = e->gid[id->gid_index].gid;
	if (id->destination.family != 0)
		q->dgid = id->destination.ip;
}

int cm_id_bind(struct call *call, struct cm_id *id, const struct cm_address *address)
{
	struct cm_id before = *id;
	int error = cm_address_check(call, address);

	if (error != 0)
		return error;
	id->source = *address;
	if (!cm_address_is_any(address)) {
		id->is_bound =
			cm_address_own(call->engine, &id->source, &id->gid_index, &id->local_only);
		if (!id->is_bound)
			error = call_fail(call, ENODEV, "no device has this address");
	}
	if (error == 0) {
		error = cm_port_take(call->engine, id);
		if (error != 0)
			call_fail(call, error, "cannot bind port %u", address->port);
	}
	if (error == 0) {
		id->state = CM_ID_BOUND;
		return 0;
	}
	id->source = before.source;
	id->gid_index = before.gid_index;
	id->is_bound = before.is_bound;
	id->local_only = before.local_only;
	return error;
}

int cmd_cm_bind(struct call *call)
{
	const struct request_cm_bind *r = (const struct request_cm_bind *)call->request;
	struct cm_id *id = cm_id_of_call(call, r->id);
	int error;

	if (id == NULL)
		return EINVAL;
	if (id->state != CM_ID_FRESH)
		return call_fail(call, EINVAL, "the id is already bound");
	error = cm_id_bind(call, id, &r->address);
	if (error == 0)
		cm_id_describe(call->engine, id, &((struct reply_cm_query *)&call->reply)->route);
	return error;
}

int cmd_cm_query(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct cm_id *id = cm_id_of_call(call, r->handle);

	if (id == NULL)
		return EINVAL;
	cm_id_describe(call->engine, id, &((struct reply_cm_query *)&call->reply)->route);
	return 0;
}

int cmd_cm_listen(struct call *call)
{
	static const struct cm_address anywhere = { .family = 4 };
	const struct request_cm_listen *r = (const struct request_cm_listen *)call->request;
	struct cm_id *id = cm_id_of_call(call, r->id);
	int error = 0;

	if (id == NULL)
		return EINVAL;
	if (id->state == CM_ID_FRESH)
		error = cm_id_bind(call, id, &anywhere);
	if (error != 0)
		return error;
	if (id->state != CM_ID_BOUND)
		return call_fail(call, EINVAL, "the id cannot listen in its state");
	error = cm_port_check_listen(call->engine, id);
	if (error != 0)
		return call_fail(call, error, "another id already listens on port %u",
				 id->source.port);
	id->backlog = r->backlog > 0 && r->backlog < (int32_t)LIMIT_CM_BACKLOG
			      ? (uint32_t)r->backlog
			      : LIMIT_CM_BACKLOG;
	id->state = CM_ID_LISTENING;
	return 0;
}
