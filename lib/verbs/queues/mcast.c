/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_attach_mcast(3). RoCE has no LIDs, so the port joins the IP multicast group of the same
 * address.
 */
#include <errno.h>

#include "verbs/types.h"

static int change(struct ibv_qp *qp, const union ibv_gid *gid, enum command what)
{
	struct request_mcast request = { .qp = qp->handle };
	struct reply_empty reply;

	if (gid == NULL)
		return EINVAL;
	memcpy(&request.group, gid, sizeof(request.group));
	return attachment_command(attachment_of(qp->context), what, &request.h, sizeof(request),
				  &reply.h, sizeof(reply), NULL, NULL);
}

EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return change(qp, gid, COMMAND_ATTACH_MCAST);
}

EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return change(qp, gid, COMMAND_DETACH_MCAST);
}
