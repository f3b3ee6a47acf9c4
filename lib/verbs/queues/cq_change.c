/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes to a CQ in use: ibv_resize_cq(3) and ibv_modify_cq(3) (moderation). */
#include <errno.h>
#include <stdlib.h>

#include "client/log.h"
#include "verbs/queues/cq.h"
#include "verbs/queues/qp.h"

static int resize_in_engine(struct cq *cq, uint32_t cqe, struct reply_create_cq *reply)
{
	struct request_resize_cq request = { .cq = cq->ibv.handle, .cqe = cqe };

	return attachment_command(cq->attachment, COMMAND_RESIZE_CQ, &request.h, sizeof(request),
				  &reply->h, sizeof(*reply), NULL, NULL);
}

/*
 * Switches to another ring. `memory` has room for all unpolled completions, of this ring and of
 * earlier ones.
 */
static void switch_ring(struct cq *cq, struct rte_ring *ring, struct completion *memory,
			uint32_t slots)
{
	free(cq_backlog_take_over(&cq->backlog, cq->ring, memory, slots));
	if (cq->backlog.count == 0) {
		free(cq->backlog.held);
		cq->backlog.held = NULL;
	}
	cq->ring = ring;
	/* If this fails, the engine is gone and so is the old ring. */
	attachment_command_handle(cq->attachment, COMMAND_CQ_RING_LEFT, cq->ibv.handle);
}

/*
 * How many unpolled completions there may be of the send requests posted so far, made already or
 * not. They must fit.
 */
static uint32_t owed_by_sends(const struct cq *cq)
{
	uint32_t n = 0;

	if (cq->loses) /* what has no room is lost, and polling counts nothing (poll.c) */
		return 0;
	for (uint32_t i = 0; i < cq->qps.slots; i++) {
		const struct qp *qp = cq->qps.slot[i].object;
		int32_t owed;

		if (cq->qps.slot[i].handle == 0 || cq_of(qp->init.send_cq) != cq)
			continue;
		/* Relaxed: a request that is posted meanwhile counts as posted after the resize. */
		owed = (int32_t)(__atomic_load_n(&qp->sq.signaled_posted, __ATOMIC_RELAXED) -
				 __atomic_load_n(&qp->sq.signaled_polled, __ATOMIC_RELAXED));
		n += owed > 0 ? (uint32_t)owed : 0;
	}
	return n;
}

/*
 * The caller holds the CQ's lock throughout. Otherwise a thread that was woken by a completion in
 * the new ring could find the old one empty and go to sleep (queue/cq_resize.h).
 */
static int resize_locked(struct cq *cq, uint32_t cqe)
{
	uint32_t slots = cq->backlog.count + (uint32_t)cq->ibv.cqe;
	struct reply_create_cq reply;
	struct completion *memory;
	struct rte_ring *ring;
	int error;

	if (cq->backlog.count + cq_ring_unpolled(cq->ring) > cqe || owed_by_sends(cq) > cqe)
		return EINVAL;
	memory = malloc(slots * sizeof(*memory));
	if (memory == NULL)
		return ENOMEM;
	error = resize_in_engine(cq, cqe, &reply);
	if (error != 0) {
		free(memory);
		return error;
	}
	ring = attachment_at(cq->attachment, reply.ring_offset);
	if (ring != cq->ring)
		switch_ring(cq, ring, memory, slots);
	else
		free(memory);
	cq->ibv.cqe = (int)reply.cqe;
	return 0;
}

EXPORT int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct cq *cq = cq_of(ibv);
	int error;

	if (cqe < 1 || cqe > (int)LIMIT_CQE || cq->stale) {
		client_info("resize_cq to %d entries: Invalid argument", cqe);
		return EINVAL;
	}
	queue_lock(&cq->lock);
	error = resize_locked(cq, (uint32_t)cqe);
	queue_unlock(&cq->lock);
	return error;
}

int verbs_modify_cq(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr)
{
	struct request_modify_cq request = { .cq = cq_of(ibv)->ibv.handle };
	struct reply_empty reply;

	if (attr == NULL || attr->attr_mask == 0)
		return EINVAL;
	if (attr->attr_mask >= IBV_CQ_ATTR_RESERVED)
		return EOPNOTSUPP;
	request.count = attr->moderate.cq_count;
	request.period = attr->moderate.cq_period;
	return attachment_command(cq_of(ibv)->attachment, COMMAND_MODIFY_CQ, &request.h,
				  sizeof(request), &reply.h, sizeof(reply), NULL, NULL);
}
