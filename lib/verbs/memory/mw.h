/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_MW_H
#define VERBS_MW_H

#include "verbs/types.h"

struct ibv_mw *verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int verbs_dealloc_mw(struct ibv_mw *mw);
int verbs_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/*
 * Writes the rest of a request that names a window: IBV_WR_BIND_MW or IBV_WR_LOCAL_INV. Returns 0,
 * EINVAL or EPERM, as ibv_post_send(3) does.
 */
int mw_write(struct send_work *w, const struct ibv_send_wr *wr);
/* The same for a bind of a window of either type; `rkey`: the window's new key. */
int mw_write_bind(struct send_work *w, const struct ibv_mw *mw, uint32_t rkey,
		  const struct ibv_mw_bind_info *info);

#endif
