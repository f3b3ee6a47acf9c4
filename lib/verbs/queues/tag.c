/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_post_srq_ops(3): operations on the list of a tag matching SRQ. */
#include <errno.h>

#include "queue/doorbell.h"
#include "queue/ring_client.h"
#include "verbs/queues/recv.h"
#include "verbs/queues/srq.h"

#define FLAGS_KNOWN (IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC)

static int check(const struct srq *srq, const struct ibv_ops_wr *wr)
{
	if (srq->type != IBV_SRQT_TM || srq->stale || (wr->flags & ~FLAGS_KNOWN) != 0)
		return EINVAL;
	if (wr->opcode == IBV_WR_TAG_DEL || wr->opcode == IBV_WR_TAG_SYNC)
		return 0;
	if (wr->opcode != IBV_WR_TAG_ADD || wr->tm.add.num_sge < 0 ||
	    wr->tm.add.num_sge > (int)LIMIT_TAG_SGE)
		return EINVAL;
	/* Acquire: the engine is done with the entry before we add another one. */
	return srq->tags_added - __atomic_load_n(&srq->page->tags_gone, __ATOMIC_ACQUIRE) >=
			       srq->max_tags
		       ? ENOMEM
		       : 0;
}

static void fill_entry(struct tag_work *w, const struct ibv_ops_wr *wr)
{
	w->recv_wr_id = wr->tm.add.recv_wr_id;
	w->tag = wr->tm.add.tag;
	w->mask = wr->tm.add.mask;
	w->num_sge = (uint8_t)wr->tm.add.num_sge;
	recv_write_elements(tag_work_sge(w), wr->tm.add.sg_list, wr->tm.add.num_sge);
}

static int post_one(struct srq *srq, struct ibv_ops_wr *wr)
{
	int error = check(srq, wr);
	struct tag_work *w;

	if (error != 0)
		return error;
	w = ring_client_reserve(srq->ops, srq->ops_stride);
	if (w == NULL)
		return ENOMEM;
	*w = (struct tag_work){
		.wr_id = wr->wr_id,
		.unexpected = wr->tm.unexpected_cnt,
		.handle = wr->tm.handle,
		.opcode = (uint8_t)wr->opcode,
		.flags = (uint8_t)wr->flags,
	};
	if (wr->opcode == IBV_WR_TAG_SYNC) /* the only purpose of this operation is the count */
		w->flags |= TAG_COUNTED;
	if (wr->opcode == IBV_WR_TAG_ADD) {
		fill_entry(w, wr);
		w->handle = wr->tm.handle = ++srq->tags_added;
	}
	ring_client_publish(srq->ops);
	return 0;
}

int verbs_post_srq_ops(struct ibv_srq *ibv, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad_wr)
{
	struct srq *srq = srq_of(ibv);
	bool posted = false;
	int error = 0;

	queue_lock(&srq->lock);
	for (; wr != NULL; wr = wr->next) {
		error = post_one(srq, wr);
		if (error != 0) {
			*bad_wr = wr;
			break;
		}
		posted = true;
	}
	if (posted)
		doorbell_ring(srq->bell, &srq->page->doorbell, DOORBELL_SRQ | srq->number,
			      srq->sleeping, srq->wake_fd);
	queue_unlock(&srq->lock);
	return error;
}
