/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes receive requests in the engine's layout: for queue pairs, SRQs and tag lists. */
#ifndef VERBS_RECV_H
#define VERBS_RECV_H

#include <infiniband/verbs.h>

#include "base/work.h"

/* Writes elements into a slot that has room for them. */
static inline void recv_write_elements(struct work_sge *to, const struct ibv_sge *sge, int count)
{
	for (int i = 0; i < count; i++) {
		to[i].addr = sge[i].addr;
		to[i].length = sge[i].length;
		to[i].lkey = sge[i].lkey;
	}
}

static inline void recv_write(struct recv_work *w, const struct ibv_recv_wr *wr)
{
	w->wr_id = wr->wr_id;
	w->num_sge = (uint32_t)wr->num_sge;
	w->mark = w->strip = 0;
	recv_write_elements(recv_work_sge(w), wr->sg_list, wr->num_sge);
}

#endif
