/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups: which queue pairs get a copy of the datagrams to a group. */
#include <errno.h>

#include "control/control.h"

static int find_member(struct call *call, struct engine_qp **q)
{
	const struct request_mcast *r = (const struct request_mcast *)call->request;

	*q = object_find(call->client, OBJECT_QP, r->qp);
	if (*q == NULL)
		return call_fail(call, EINVAL, "no such queue pair");
	if ((*q)->type != QP_TYPE_UD)
		return call_fail(call, EINVAL, "only UD queue pairs can join multicast groups");
	if (!gid_is_multicast(&r->group))
		return call_fail(call, EINVAL, "the GID is not a multicast group");
	return 0;
}

int cmd_attach_mcast(struct call *call)
{
	const struct request_mcast *r = (const struct request_mcast *)call->request;
	struct engine_qp *q;
	int error = find_member(call, &q);

	if (error != 0)
		return error;
	error = mcast_attach(call->engine, &r->group, q);
	if (error == EUSERS) {
		user_explain(&call->engine->control->users, q->client->objects->account.user,
			     RESOURCE_GROUPS, call->reply.why, sizeof(call->reply.why));
		return ENOMEM;
	}
	if (error == ENOMEM)
		return call_fail(call, error, "at most %u groups, with at most %u queue pairs each",
				 LIMIT_MCAST_GROUPS, LIMIT_MCAST_QPS);
	return error == 0 ? 0 : call_fail(call, error, "cannot join the multicast group");
}

int cmd_detach_mcast(struct call *call)
{
	const struct request_mcast *r = (const struct request_mcast *)call->request;
	struct engine_qp *q;
	int error = find_member(call, &q);

	if (error != 0)
		return error;
	error = mcast_detach(call->engine, &r->group, q);
	return error == 0 ? 0
			  : call_fail(call, error, "the queue pair is not a member of the group");
}
