/* SPDX-License-Identifier: BSD-3-Clause */
/* Verbs of objects that the engine does not have: they say so, and programs do without. */
#include <errno.h>

#include "verbs/types.h"

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init_attr)
{
	return fail_with(EOPNOTSUPP);
}

EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask)
{
	return EOPNOTSUPP;
}

EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	return EOPNOTSUPP;
}

EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
	return EOPNOTSUPP;
}

EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return EOPNOTSUPP;
}

EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return EOPNOTSUPP;
}
