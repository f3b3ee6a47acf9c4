/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_modify_qp(3) and ibv_query_qp(3): convert the attributes. The engine checks them. */
#include <errno.h>

#include "client/log.h"
#include "verbs/queues/cq.h"
#include "verbs/private_node.h"
#include "verbs/queues/qp.h"

void path_to_engine(struct qp_path *p, const struct ibv_ah_attr *a)
{
	memcpy(&p->dgid, &a->grh.dgid, sizeof(p->dgid));
	p->flow_label = a->grh.flow_label;
	p->sgid_index = a->grh.sgid_index;
	p->hop_limit = a->grh.hop_limit;
	p->traffic_class = a->grh.traffic_class;
	p->sl = a->sl;
	p->port_num = a->port_num;
	p->is_global = a->is_global;
	p->dlid = a->dlid;
	p->src_path_bits = a->src_path_bits;
	p->static_rate = a->static_rate;
}

EXPORT void uroce_path_from_engine(struct ibv_ah_attr *a, const struct qp_path *p)
{
	memcpy(&a->grh.dgid, &p->dgid, sizeof(a->grh.dgid));
	a->grh.flow_label = p->flow_label;
	a->grh.sgid_index = p->sgid_index;
	a->grh.hop_limit = p->hop_limit;
	a->grh.traffic_class = p->traffic_class;
	a->sl = p->sl;
	a->port_num = p->port_num;
	a->is_global = p->is_global;
	a->dlid = p->dlid;
	a->src_path_bits = p->src_path_bits;
	a->static_rate = p->static_rate;
}

/*
 * Reads only the members that the mask names, because the program may not have written the others.
 */
static void attributes_to_engine(struct qp_attributes *to, const struct ibv_qp_attr *a, int mask)
{
#define TAKE(bit, ours, theirs)            \
	do {                               \
		if (mask & (bit))          \
			to->ours = theirs; \
	} while (0)
	memset(to, 0, sizeof(*to));
	TAKE(IBV_QP_STATE, state, a->qp_state);
	TAKE(IBV_QP_CUR_STATE, cur_state, a->cur_qp_state);
	TAKE(IBV_QP_PATH_MTU, path_mtu, a->path_mtu);
	TAKE(IBV_QP_PATH_MIG_STATE, path_mig_state, a->path_mig_state);
	TAKE(IBV_QP_QKEY, qkey, a->qkey);
	TAKE(IBV_QP_RQ_PSN, rq_psn, a->rq_psn);
	TAKE(IBV_QP_SQ_PSN, sq_psn, a->sq_psn);
	TAKE(IBV_QP_DEST_QPN, dest_qpn, a->dest_qp_num);
	TAKE(IBV_QP_ACCESS_FLAGS, access_flags, a->qp_access_flags);
	TAKE(IBV_QP_RATE_LIMIT, rate_limit, a->rate_limit);
	TAKE(IBV_QP_PKEY_INDEX, pkey_index, a->pkey_index);
	TAKE(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify, a->en_sqd_async_notify);
	TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, a->max_rd_atomic);
	TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, a->max_dest_rd_atomic);
	TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer, a->min_rnr_timer);
	TAKE(IBV_QP_PORT, port_num, a->port_num);
	TAKE(IBV_QP_TIMEOUT, timeout, a->timeout);
	TAKE(IBV_QP_RETRY_CNT, retry_cnt, a->retry_cnt);
	TAKE(IBV_QP_RNR_RETRY, rnr_retry, a->rnr_retry);
#undef TAKE
	if (mask & IBV_QP_AV)
		path_to_engine(&to->path, &a->ah_attr);
}

EXPORT void uroce_attributes_from_engine(struct ibv_qp_attr *a, const struct qp_attributes *from)
{
	memset(a, 0, sizeof(*a));
	a->qp_state = from->state;
	a->cur_qp_state = from->state;
	a->path_mtu = from->path_mtu;
	a->path_mig_state = from->path_mig_state;
	a->qkey = from->qkey;
	a->rq_psn = from->rq_psn;
	a->sq_psn = from->sq_psn;
	a->dest_qp_num = from->dest_qpn;
	a->qp_access_flags = from->access_flags;
	a->pkey_index = from->pkey_index;
	a->en_sqd_async_notify = from->en_sqd_async_notify;
	a->sq_draining = from->sq_draining;
	a->max_rd_atomic = from->max_rd_atomic;
	a->max_dest_rd_atomic = from->max_dest_rd_atomic;
	a->min_rnr_timer = from->min_rnr_timer;
	a->port_num = from->port_num;
	a->timeout = from->timeout;
	a->retry_cnt = from->retry_cnt;
	a->rnr_retry = from->rnr_retry;
	a->rate_limit = from->rate_limit;
	uroce_path_from_engine(&a->ah_attr, &from->path);
}

/*
 * Polling counts under the CQ's lock and posting under the queue's lock. So this takes both, in the
 * order that types.h gives.
 */
static void forget_queue(struct work_queue *q, struct ibv_cq *cq, const uint32_t *posted)
{
	bool locked = cq != NULL && cq_lock(cq_of(cq));

	queue_lock(&q->lock);
	__atomic_store_n(&q->posted, __atomic_load_n(posted, __ATOMIC_ACQUIRE), __ATOMIC_RELAXED);
	__atomic_store_n(&q->done, q->posted, __ATOMIC_RELAXED);
	__atomic_store_n(&q->signaled_polled, q->signaled_posted, __ATOMIC_RELAXED);
	queue_unlock(&q->lock);
	if (cq != NULL)
		cq_unlock(cq_of(cq), locked);
}

static void count_resets(struct work_queue *q, uint32_t more)
{
	queue_lock(&q->lock);
	q->resets += more;
	queue_unlock(&q->lock);
}

void qp_begin_reset(struct qp *qp)
{
	count_resets(&qp->sq, 1);
	count_resets(&qp->rq, 1);
}

void qp_end_reset(struct qp *qp)
{
	count_resets(&qp->sq, UINT32_MAX);
	count_resets(&qp->rq, UINT32_MAX);
}

void qp_forget_work(struct qp *qp)
{
	if (qp->init.send_cq != NULL)
		cq_forget_qp(cq_of(qp->init.send_cq), qp);
	if (qp->init.recv_cq != NULL && qp->init.recv_cq != qp->init.send_cq)
		cq_forget_qp(cq_of(qp->init.recv_cq), qp);
	forget_queue(&qp->sq, qp->init.send_cq, &qp->page->retired);
	forget_queue(&qp->rq, qp->init.recv_cq, &qp->rq.posted);
}

/* Queues cannot be resized, and there is no alternate path to arm or migrate to. */
static int check_supported(const struct ibv_qp_attr *attr, int mask)
{
	if (mask & (IBV_QP_CAP | IBV_QP_ALT_PATH))
		return EOPNOTSUPP;
	if ((mask & IBV_QP_PATH_MIG_STATE) &&
	    (attr->path_mig_state == IBV_MIG_REARM || attr->path_mig_state == IBV_MIG_ARMED))
		return EOPNOTSUPP;
	return 0;
}

/*
 * An XRC queue pair has only one half of an RC connection. Programs set the attributes of both
 * halves. Those of the other half are ignored, as Linux does.
 */
static int without_other_half(const struct ibv_qp *qp, int mask)
{
	if (qp->qp_type == IBV_QPT_XRC_SEND)
		return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (qp->qp_type == IBV_QPT_XRC_RECV)
		return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	return mask;
}

static int modify(struct qp *qp, struct request_modify_qp *request)
{
	bool resets = (request->mask & IBV_QP_STATE) && request->attributes.state == QP_STATE_RESET;
	struct reply_modify_qp reply;
	int error;

	if (resets)
		qp_begin_reset(qp);
	error = attachment_command(qp->attachment, COMMAND_MODIFY_QP, &request->h, sizeof(*request),
				   &reply.h, sizeof(reply), NULL, NULL);
	if (error == 0 && resets)
		qp_forget_work(qp);
	if (error == 0) {
		/* The port's may have changed. Relaxed: another thread may post; it takes either. */
		__atomic_store_n(&qp->mtu, reply.mtu, __ATOMIC_RELAXED);
		qp_show_state(&qp->ibv.qp_base, reply.state);
	}
	if (resets)
		qp_end_reset(qp);
	return error;
}

EXPORT int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask)
{
	struct qp *qp = qp_of(ibv);
	struct request_modify_qp request = { .qp = qp->handle };
	int error = attr == NULL   ? EINVAL
		    : qp->rss != 0 ? EOPNOTSUPP
				   : check_supported(attr, attr_mask);

	if (error != 0) {
		client_info("modify_qp with mask %#x: %s", (unsigned)attr_mask, strerror(error));
		return error;
	}
	attr_mask = without_other_half(ibv, attr_mask);
	request.mask = (uint32_t)attr_mask;
	attributes_to_engine(&request.attributes, attr, attr_mask);
	return modify(qp, &request);
}

EXPORT int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask,
			struct ibv_qp_init_attr *init_attr)
{
	struct qp *qp = qp_of(ibv);
	struct request_handle request = { .handle = qp->handle };
	struct reply_query_qp reply;
	int error;

	if (attr == NULL || init_attr == NULL)
		return EINVAL;
	if (qp->rss != 0)
		return EOPNOTSUPP;
	error = attachment_command(qp->attachment, COMMAND_QUERY_QP, &request.h, sizeof(request),
				   &reply.h, sizeof(reply), NULL, NULL);
	if (error != 0)
		return error;
	uroce_attributes_from_engine(attr, &reply.attributes);
	attr->cap = qp->init.cap;
	*init_attr = qp->init;
	qp_show_state(ibv, reply.attributes.state);
	return 0;
}
