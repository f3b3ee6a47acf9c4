/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of the connection manager: multicast groups. */
#include <errno.h>
#include <stdlib.h>

#include "control/cm/cm_manager.h"

#define JOIN_FULL      1u /* RDMA_MC_JOIN_FLAG_FULLMEMBER */
#define JOIN_SEND_ONLY 2u

static int check_join(struct call *call, const struct cm_id *id, const struct request_cm_join *r)
{
	int error = cm_address_check(call, &r->group);

	if (error != 0)
		return error;
	if (id->qp_type != QP_TYPE_UD)
		return call_fail(call, EINVAL, "only ids for UD queue pairs can join groups");
	if (!id->is_bound)
		return call_fail(call, EINVAL, "the id is not bound to a device");
	if (r->join_flags != JOIN_FULL && r->join_flags != JOIN_SEND_ONLY)
		return call_fail(call, EINVAL, "unknown or no join_flags 0x%x", r->join_flags);
	if (!gid_is_multicast(&r->group.ip))
		return call_fail(call, EINVAL, "not a multicast address");
	if (r->group.family != id->source.family)
		return call_fail(call, EINVAL,
				 "the group and the id have different address families");
	if (id->joins >= LIMIT_CM_JOINS)
		return call_fail(call, ENOMEM, "an id may join at most %u groups", LIMIT_CM_JOINS);
	if (r->join_flags == JOIN_FULL && id->client->objects->reported_joins >= LIMIT_MCAST_GROUPS)
		return call_fail(call, ENOMEM, "a program may join at most %u groups",
				 LIMIT_MCAST_GROUPS);
	if (cm_reports_full(id))
		return call_fail(call, ENOMEM, "too many events are waiting to be read");
	return 0;
}

static int report(struct client *c, const struct gid *group)
{
	struct account *a = &c->objects->account;
	int error;

	if (!account_take(a, RESOURCE_GROUPS, 1))
		return ENOMEM;
	error = neighbour_agent_join(c->engine, group);
	if (error != 0)
		account_give(a, RESOURCE_GROUPS, 1);
	return error;
}

/*
 * Reports the group on the link for full members, so that its frames arrive even before a queue
 * pair is attached.
 */
static int join_new(struct cm_id *id, const struct request_cm_join *r, struct cm_join **out)
{
	struct handle_table *t = &id->client->objects->table[OBJECT_CM_JOIN];
	struct cm_join *j = calloc(1, sizeof(*j));
	int error = ENOMEM;

	if (j == NULL)
		return ENOMEM;
	j->handle = handle_reserve(t);
	j->group = r->group.ip;
	j->reported = r->join_flags == JOIN_FULL;
	if (j->handle != 0)
		error = j->reported ? report(id->client, &j->group) : 0;
	if (error != 0) {
		if (j->handle != 0)
			handle_free(t, j->handle);
		free(j);
		return error;
	}
	j->id = id;
	id->joins++;
	id->client->objects->reported_joins += j->reported;
	LIST_INSERT_HEAD(&id->groups, j, link);
	handle_publish(t, j->handle, j);
	*out = j;
	return 0;
}

int cmd_cm_join(struct call *call)
{
	const struct request_cm_join *r = (const struct request_cm_join *)call->request;
	struct reply_handle *reply = (struct reply_handle *)&call->reply;
	struct cm_id *id = cm_id_of_call(call, r->id);
	struct cm_report *report;
	struct cm_join *j = NULL;
	int error;

	if (id == NULL)
		return EINVAL;
	error = check_join(call, id, r);
	if (error != 0)
		return error;
	report = cm_report_new(id, CM_TYPE_MULTICAST_JOIN, 0);
	error = report != NULL ? join_new(id, r, &j) : ENOMEM;
	if (error != 0) {
		free(report);
		return call_fail(call, error, "cannot join the multicast group");
	}
	report->what.join = j->handle;
	report->what.cookie = r->cookie;
	report->what.parameters.qpn = QPN_MULTICAST;
	report->what.parameters.qkey = CM_UDP_QKEY;
	report->what.path = cm_path_make(call->engine, id, &r->group.ip);
	cm_report_post(report);
	reply->handle = j->handle;
	return 0;
}

int cmd_cm_leave(struct call *call)
{
	const struct request_cm_leave *r = (const struct request_cm_leave *)call->request;
	struct reply_cm_gone *reply = (struct reply_cm_gone *)&call->reply;
	struct cm_id *id = cm_id_of_call(call, r->id);
	struct cm_join *j = object_find(call->client, OBJECT_CM_JOIN, r->join);

	if (id == NULL)
		return EINVAL;
	if (j == NULL || j->id != id)
		return call_fail(call, EADDRNOTAVAIL, "the id has not joined that group");
	cm_reports_drop_join(id, j->handle);
	cm_join_free(j);
	reply->events = id->handed;
	reply->octets = cm_channel_stale(id->channel);
	return 0;
}
