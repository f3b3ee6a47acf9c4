/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_XRC_H
#define VERBS_XRC_H

#include "verbs/types.h"

struct xrcd {
	struct ibv_xrcd ibv;
	struct verbs_object object; /* users: SRQs and target queue pairs */
	uint32_t handle;
};

static inline struct xrcd *xrcd_of(struct ibv_xrcd *xrcd)
{
	return (struct xrcd *)xrcd;
}

struct ibv_xrcd *verbs_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *init);
int verbs_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_qp *verbs_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);

/* ibv_create_qp_ex(3) for type IBV_QPT_XRC_RECV. NULL with errno. */
struct ibv_qp *target_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *init);

#endif
