/* SPDX-License-Identifier: BSD-3-Clause */
/* Raw queue pairs: the parts that others do not have, and handles of the objects around them. */
#include <errno.h>

#include "base/bits.h"
#include "control/commands/raw_control.h"

int raw_check_create_qp(struct call *call, const struct request_create_qp *r)
{
	bool wq = (r->raw_flags & RAW_WQ) != 0;
	int error;

	if (r->max_tso_header != 0 && r->type != QP_TYPE_RAW_PACKET && r->type != QP_TYPE_UD)
		return call_fail(call, EINVAL, "queue pairs of type %u do not support TSO",
				 r->type);
	if (r->max_tso_header > LIMIT_TSO_HEADER)
		return call_fail(call, EINVAL, "max_tso_header %u exceeds %u", r->max_tso_header,
				 LIMIT_TSO_HEADER);
	if (r->type != QP_TYPE_RAW_PACKET && r->raw_flags != 0)
		return call_fail(call, EINVAL, "raw flags are for raw queue pairs only");
	if (r->type != QP_TYPE_RAW_PACKET)
		return 0;
	if (r->raw_flags & ~(uint32_t)RAW_FLAGS)
		return call_fail(call, EINVAL, "unknown raw flags %#x", r->raw_flags);
	if (wq && (r->max_send_wr != 0 || r->send_cq != r->recv_cq))
		return call_fail(call, EINVAL, "a work queue cannot have send requests");
	if (wq && r->max_recv_wr == 0)
		return call_fail(call, EINVAL, "max_wr is 0");
	if (r->srq != 0)
		return call_fail(call, EINVAL, "raw queue pairs cannot use a shared receive queue");
	error = raw_check_privilege(call);
	return error;
}

uint32_t raw_slot_octets(const struct request_create_qp *r)
{
	uint32_t tso = r->max_send_sge * (uint32_t)sizeof(struct work_sge) + r->max_tso_header;

	return r->max_tso_header != 0 ? MAX_OF(r->max_inline, tso) : r->max_inline;
}

void raw_setup_qp(struct engine_qp *q, const struct request_create_qp *r)
{
	q->raw = r->type == QP_TYPE_RAW_PACKET;
	q->raw_flags = (uint8_t)r->raw_flags;
	/* Each frame has its own destination address, so a raw queue pair never waits for one. */
	if (q->raw)
		q->flow_state = q->client->engine->port != NULL ? FLOW_PORT : FLOW_UNREACHABLE;
}

int raw_object_enter(struct call *call, enum object_kind kind, struct raw_object *o,
		     uint32_t context)
{
	struct handle_table *t = &call->client->objects->table[kind];

	o->context = context;
	o->handle = handle_reserve(t);
	if (o->handle == 0)
		return call_no_handle(call, kind);
	handle_publish(t, o->handle, o);
	return 0;
}

void raw_object_leave(struct client *c, enum object_kind kind, struct raw_object *o)
{
	struct handle_table *t = &c->objects->table[kind];

	handle_withdraw(t, o->handle);
	handle_free(t, o->handle);
}

static bool belongs(const struct raw_object *o, uint32_t context)
{
	return o != NULL && (context == 0 || o->context == context);
}

#define FOR_EACH(type, object, kind)                                                   \
	for (uint32_t handle_ = 1; handle_ <= c->objects->table[kind].used; handle_++) \
		for (type *object = c->objects->table[kind].slot[handle_];             \
		     object != NULL && belongs(&object->o, context); object = NULL)

/* Frees referrers before what they refer to. */
void raw_reclaim(struct client *c, uint32_t context)
{
	bool any = false;

	FOR_EACH(struct engine_flow, f, OBJECT_FLOW)
	{
		LIST_REMOVE(f, link);
		c->engine->flow_count--;
		any = true;
	}
	/* Publishes the reduced table. If there is no memory for it, no rule matches. */
	if (any)
		flows_publish(c->engine);
	FOR_EACH(struct engine_flow, f, OBJECT_FLOW)
	flow_free(c, f);
	FOR_EACH(struct rss, r, OBJECT_RSS)
	rss_free(c, r);
	FOR_EACH(struct rwq_table, t, OBJECT_RWQ_TABLE)
	rwq_table_free(c, t);
	FOR_EACH(struct engine_counters, k, OBJECT_COUNTERS)
	counters_free(c, k);
}
