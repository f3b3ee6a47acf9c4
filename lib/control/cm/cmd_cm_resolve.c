/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of the connection manager: resolution of a destination, and options. */
#include <errno.h>
#include <string.h>

#include "control/cm/cm_manager.h"

/* The unspecified address and loopback addresses stand for this host. */
static int set_destination(struct call *call, struct cm_id *id, const struct cm_address *wanted)
{
	static const struct cm_address loopback[2] = {
		{ .family = 4, .ip = { { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } } },
		{ .family = 6, .ip = { { [15] = 1 } } },
	};
	struct cm_address to = *wanted;
	bool is_loopback;
	uint8_t index;

	if (cm_address_is_any(&to))
		to.ip = loopback[to.family == 6].ip;
	if (!cm_address_own(call->engine, &to, &index, &is_loopback) && cm_address_is_any(wanted))
		return call_fail(call, ENODEV, "no device has an address of this family");
	id->destination = to;
	return 0;
}

/* As Linux: the address that the kernel sends from, if it knows one. Otherwise the nearest one. */
static int choose_towards(struct call *call, struct cm_id *id, const struct cm_address *to)
{
	struct cm_address from = { .family = to->family };
	bool is_near = cm_address_towards(call->engine, &to->ip, &id->gid_index), is_loopback;
	int error;

	if (is_near)
		from.ip = call->engine->gid[id->gid_index].gid;
	error = neighbour_agent_source(call->engine, &to->ip, &from.ip);
	if (error != 0)
		return call_fail(call, error, "the kernel has no route from %s to the destination",
				 call->engine->port->name);
	if (!cm_address_own(call->engine, &from, &id->gid_index, &is_loopback) && !is_near)
		return call_fail(call, ENODEV, "no device has an address of this family");
	return 0;
}

/* Chooses the destination itself if it is an own address. */
static int choose_source(struct call *call, struct cm_id *id)
{
	struct cm_address to = id->destination;
	bool is_loopback;
	int error = 0;

	if (id->is_bound)
		return 0;
	if (!cm_address_own(call->engine, &to, &id->gid_index, &is_loopback))
		error = choose_towards(call, id, &to);
	if (error != 0)
		return error;
	id->source.ip = call->engine->gid[id->gid_index].gid;
	id->source.family = to.family;
	id->source.scope = to.scope; /* as Linux: a later bind keeps the link */
	id->is_bound = true;
	return 0;
}

static int check_resolve(struct call *call, const struct cm_id *id,
			 const struct request_cm_resolve *r)
{
	uint8_t family = id->state != CM_ID_FRESH ? id->source.family : r->source.family;
	int error = cm_address_check(call, &r->destination);

	if (error != 0)
		return error;
	if (id->state != CM_ID_FRESH && id->state != CM_ID_BOUND)
		return call_fail(call, EINVAL, "the id already has a destination");
	if (family != 0 && family != r->destination.family)
		return call_fail(call, EINVAL,
				 "source and destination have different address families");
	if (cm_reports_full(id))
		return call_fail(call, ENOMEM,
				 "too many events are waiting: %u of the id, %u of the program",
				 id->waiting, id->client->objects->cm_events);
	return 0;
}

int cmd_cm_resolve_addr(struct call *call)
{
	const struct request_cm_resolve *r = (const struct request_cm_resolve *)call->request;
	struct cm_address source = r->source;
	struct cm_id *id = cm_id_of_call(call, r->id);
	int error;

	if (id == NULL)
		return EINVAL;
	error = check_resolve(call, id, r);
	if (error != 0)
		return error;
	if (source.family == 0) {
		memset(&source, 0, sizeof(source));
		source.family = r->destination.family;
	}
	if (id->state == CM_ID_FRESH)
		error = cm_id_bind(call, id, &source);
	if (error == 0)
		error = set_destination(call, id, &r->destination);
	if (error == 0)
		error = choose_source(call, id);
	if (error != 0)
		return error;
	cm_resolve_begin(call->engine, id, clock_now() + r->timeout * TIME_MS);
	cm_id_describe(call->engine, id, &((struct reply_cm_query *)&call->reply)->route);
	return 0;
}

/* The path is known with the next hop, since Ethernet has no subnet administrator to ask. */
static void tell_route(struct cm_id *id)
{
	struct cm_report *r = cm_report_new(id, CM_TYPE_ROUTE_RESOLVED, 0);

	if (r == NULL)
		return;
	cm_id_describe(id->client->engine, id, &r->what.route);
	cm_report_post(r);
}

int cmd_cm_resolve_route(struct call *call)
{
	const struct request_cm_timeout *r = (const struct request_cm_timeout *)call->request;
	struct cm_id *id = cm_id_of_call(call, r->id);

	if (id == NULL)
		return EINVAL;
	if (id->state != CM_ID_RESOLVED)
		return call_fail(call, EINVAL, "the id's destination is not resolved");
	/* An id gets here once, so its event is not counted with those that may be too many. */
	if (cm_address_is_lost(call->engine, id)) {
		cm_tell(id, CM_TYPE_ROUTE_ERROR, -ENODEV);
		return 0;
	}
	id->path_mtu = call->engine->active_mtu;
	id->state = CM_ID_ROUTED;
	tell_route(id);
	return 0;
}

/* rdma_cma.h */
enum {
	OPTION_LEVEL_ID = 0,
	OPTION_TOS = 0,
	OPTION_REUSEADDR = 1,
	OPTION_AFONLY = 2,
	OPTION_ACK_TIMEOUT = 3,
};

static int wrong_state(struct call *call)
{
	return call_fail(call, EINVAL, "this option cannot change in the id's state");
}

static int set_octet(struct call *call, struct cm_id *id, uint32_t name, uint8_t value)
{
	if (name == OPTION_TOS) {
		id->tos = value;
		return 0;
	}
	if (value > 31 || id->qp_type == QP_TYPE_UD || id->qp_type == QP_TYPE_UC)
		return call_fail(call, EINVAL,
				 "invalid acknowledgement timeout %u, or not an RC or XRC id",
				 value);
	id->ack_timeout = value;
	return 0;
}

static int set_flag(struct call *call, struct cm_id *id, uint32_t name, bool on)
{
	if (name == OPTION_REUSEADDR) {
		if (id->state != CM_ID_FRESH && (!on || id->state == CM_ID_LISTENING))
			return wrong_state(call);
		id->reuse_address = on;
		return 0;
	}
	if (id->state != CM_ID_FRESH && id->state != CM_ID_BOUND)
		return wrong_state(call);
	id->family_only = on;
	return 0;
}

int cmd_cm_set_option(struct call *call)
{
	const struct request_cm_option *r = (const struct request_cm_option *)call->request;
	bool is_flag = r->name == OPTION_REUSEADDR || r->name == OPTION_AFONLY;
	struct cm_id *id = cm_id_of_call(call, r->id);
	int32_t flag;

	if (id == NULL)
		return EINVAL;
	if (r->level != OPTION_LEVEL_ID || r->name > OPTION_ACK_TIMEOUT)
		return call_fail(call, ENOSYS, "unknown option %u of level %u", r->name, r->level);
	if (r->length != (is_flag ? sizeof(flag) : 1))
		return call_fail(call, EINVAL, "an option of %u octets has the wrong length",
				 r->length);
	memcpy(&flag, r->value, sizeof(flag));
	return is_flag ? set_flag(call, id, r->name, flag != 0)
		       : set_octet(call, id, r->name, r->value[0]);
}
