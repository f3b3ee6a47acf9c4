/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_SRQ_H
#define VERBS_SRQ_H

#include "verbs/types.h"

struct xrcd;

/*
 * A shared receive queue. The library counts posted requests, and the engine counts those that
 * messages took, in srq_page.used. The difference is how many are in the queue.
 */
struct srq {
	struct ibv_srq ibv;
	struct queue_lock lock; /* held for posting and resizing */
	struct rte_ring *ring;
	struct srq_page *page;
	uint32_t stride; /* octets of a slot */
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t posted; /* modulo 2^32 */
	uint32_t number; /* XRC: the number by which peers name it */
	enum ibv_srq_type type;
	bool stale; /* the SRQ is the parent's, and this process the child of a fork */
	struct attachment *attachment;
	struct cq *cq; /* XRC, tag matching */
	struct xrcd *xrcd; /* XRC */
	struct verbs_object object;
	/* tag matching: operations on the list; `lock` guards them */
	struct rte_ring *ops;
	uint32_t ops_stride;
	uint32_t max_tags;
	uint32_t tags_added; /* modulo 2^32; also the handle of the newest entry */
	struct rte_ring *bell;
	const uint32_t *sleeping;
	int wake_fd;
};

static inline struct srq *srq_of(struct ibv_srq *srq)
{
	return (struct srq *)srq;
}

int verbs_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int verbs_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op);
int verbs_get_srq_num(struct ibv_srq *srq, uint32_t *number);
struct ibv_srq *verbs_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init);

#endif
