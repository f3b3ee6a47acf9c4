/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_MW_H
#define VERBS_MW_H

#include "verbs/types.h"

struct ibv_mw *verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int verbs_dealloc_mw(struct ibv_mw *mw);
int verbs_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* Requests that name windows, IBV_WR_BIND_MW and IBV_WR_LOCAL_INV: the rest of the slot. */
static inline bool mw_opcode(unsigned int opcode)
{
	return opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV;
}

/* 0, EINVAL or EPERM, as ibv_post_send(3). */
int mw_write(const struct qp *qp, struct send_work *w, const struct ibv_send_wr *wr);
int mw_write_bind(const struct qp *qp, struct send_work *w, const struct ibv_mw *mw, uint32_t rkey,
		  const struct ibv_mw_bind_info *info);
/* Windows know only these: 0 or EINVAL. */
int mw_check_qp(const struct qp *qp);

#endif
