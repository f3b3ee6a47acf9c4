/* SPDX-License-Identifier: BSD-3-Clause */
/* Verbs of objects that the engine does not have: they say so, and programs do without. */
#include <errno.h>

#include "verbs/types.h"

EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return EOPNOTSUPP;
}

EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return EOPNOTSUPP;
}
