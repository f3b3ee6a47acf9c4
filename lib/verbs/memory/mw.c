/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows. A bind is a request of the send queue, and the engine checks the bind when it
 * executes the request. The library refuses only what the manual pages refuse at once.
 */
#include "verbs/memory/mw.h"

#include <errno.h>
#include <stdlib.h>

#include "verbs/memory/domain.h"
#include "verbs/memory/mr.h"
#include "verbs/queues/flush.h"
#include "verbs/queues/qp.h"

struct mw {
	struct ibv_mw ibv;
};

static int alloc_in_engine(struct mw *mw)
{
	struct request_alloc_mw request = { .pd = mw->ibv.pd->handle, .type = mw->ibv.type };
	struct reply_alloc_mw reply;
	int error = attachment_command(attachment_of(mw->ibv.context), COMMAND_ALLOC_MW, &request.h,
				       sizeof(request), &reply.h, sizeof(reply), NULL, NULL);

	if (error != 0)
		return error;
	mw->ibv.handle = reply.handle;
	mw->ibv.rkey = reply.rkey;
	return 0;
}

struct ibv_mw *verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct mw *mw;
	int error;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return fail_with(EINVAL);
	mw = calloc(1, sizeof(*mw));
	if (mw == NULL)
		return fail_with(ENOMEM);
	mw->ibv.context = pd->context;
	mw->ibv.pd = pd;
	mw->ibv.type = type;
	error = alloc_in_engine(mw);
	if (error != 0) {
		free(mw);
		return fail_with(error);
	}
	verbs_object_use(&pd_of(pd)->object);
	context_hold(context_of(pd->context));
	return &mw->ibv;
}

int verbs_dealloc_mw(struct ibv_mw *ibv)
{
	struct context *c = context_of(ibv->context);
	int error = context_destroy(c, COMMAND_DEALLOC_MW, ibv->handle);
	if (error != 0)
		return error;
	verbs_object_unuse(&pd_of(ibv->pd)->object);
	free((struct mw *)ibv);
	context_drop(c);
	return 0;
}

int mw_write_bind(struct send_work *w, const struct ibv_mw *mw, uint32_t rkey,
		  const struct ibv_mw_bind_info *info)
{
	if (((rkey ^ mw->rkey) >> 8) != 0)
		return EINVAL; /* the consumer chooses only the low eight bits (IBTA 10.6.7.2.6) */
	if (info->mr == NULL ? info->length != 0 : mr_of(info->mr)->kind == MR_NULL)
		return EINVAL;
	if (info->mr != NULL && !is_same_domain(info->mr->pd, mw->pd))
		return EPERM;
	w->rkey = mw->rkey;
	w->imm = rkey;
	w->remote_addr = info->addr;
	w->bind_length = info->length;
	w->bind_lkey = info->mr != NULL ? info->mr->lkey : 0;
	w->bind_access = info->mw_access_flags;
	return 0;
}

int mw_write(struct send_work *w, const struct ibv_send_wr *wr)
{
	w->flags &= (uint8_t)~WORK_INLINE;
	if (wr->opcode == IBV_WR_LOCAL_INV) {
		w->imm = wr->invalidate_rkey;
		return 0;
	}
	if (wr->bind_mw.mw == NULL || wr->bind_mw.mw->type != IBV_MW_TYPE_2)
		return EINVAL; /* type 1 has a verb of its own */
	return mw_write_bind(w, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
}

/* Every bind gets a new key, which is never 0. */
static uint32_t next_key(uint32_t rkey)
{
	rkey = ibv_inc_rkey(rkey);
	return rkey != 0 ? rkey : ibv_inc_rkey(rkey);
}

/* The caller holds sq.lock. */
static int post_bind(struct qp *qp, struct ibv_mw *mw, const struct ibv_mw_bind *bind)
{
	uint32_t rkey = next_key(mw->rkey);
	struct send_work *w;
	int error = send_admit(qp);

	if (error != 0)
		return error;
	w = send_reserve(qp);
	if (w == NULL)
		return ENOMEM;
	memset(w, 0, sizeof(*w));
	w->wr_id = bind->wr_id;
	w->opcode = WORK_BIND_MW;
	w->flags = (uint8_t)bind->send_flags;
	error = mw_write_bind(w, mw, rkey, &bind->bind_info);
	if (error == 0 && !qp_carries(qp, IBV_WR_BIND_MW))
		error = EINVAL;
	if (error != 0)
		return error;
	send_commit(qp, w);
	qp_ring_doorbell(qp);
	mw->rkey = rkey;
	return 0;
}

int verbs_bind_mw(struct ibv_qp *ibv, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct qp *qp = qp_of(ibv);
	struct cq *wakes = NULL;
	int error;

	if (ibv == NULL ||
	    (bind->send_flags & ~(unsigned int)(IBV_SEND_FENCE | IBV_SEND_SIGNALED)) != 0)
		return EINVAL;
	/* IBTA o10-36.2.2: a window of type 1 is not zero-based */
	if (bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED)
		return EINVAL;
	queue_lock(&qp->sq.lock);
	error = post_bind(qp, mw, bind);
	if (error == 0)
		wakes = flush_posted(qp, qp->send_page, qp->init.send_cq);
	queue_unlock(&qp->sq.lock);
	if (wakes != NULL)
		flush_armed(wakes);
	return error;
}
