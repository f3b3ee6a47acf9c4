/* SPDX-License-Identifier: BSD-3-Clause */
/* Work queues, indirection tables, and queue pairs that spread frames over such a table (RSS). */
#include <errno.h>
#include <stdlib.h>

#include "client/log.h"
#include "verbs/queues/cq.h"
#include "verbs/events.h"
#include "verbs/queues/qp.h"
#include "verbs/queues/raw.h"

#define HASH_KEY_LENGTH 40u

/* ---- work queues ---- */

static int post_recv(struct ibv_wq *wq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return verbs_post_recv(&wq_of(wq)->qp.ibv.qp_base, wr, bad_wr);
}

static int check_wq(const struct ibv_context *context, const struct ibv_wq_init_attr *attr)
{
	uint32_t flags = attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS ? attr->create_flags : 0;

	if (attr->pd == NULL || attr->cq == NULL || attr->pd->context != context ||
	    attr->cq->context != context || attr->wq_type != IBV_WQT_RQ || attr->max_wr == 0)
		return EINVAL;
	if ((attr->comp_mask & ~(uint32_t)IBV_WQ_INIT_ATTR_FLAGS) ||
	    (flags & ~(uint32_t)IBV_WQ_FLAGS_CVLAN_STRIPPING))
		return EOPNOTSUPP;
	return 0;
}

static void fill_wq(struct wq *wq, struct ibv_context *context, const struct ibv_wq_init_attr *attr)
{
	uint32_t flags = attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS ? attr->create_flags : 0;
	struct ibv_qp_init_attr init = {
		.recv_cq = attr->cq,
		.qp_type = IBV_QPT_RAW_PACKET,
		.cap.max_recv_wr = attr->max_wr,
		.cap.max_recv_sge = attr->max_sge,
	};

	qp_fill(&wq->qp, attr->pd, &init);
	wq->qp.raw_flags =
		(uint16_t)(RAW_WQ | (flags & IBV_WQ_FLAGS_CVLAN_STRIPPING ? RAW_STRIP_VLAN : 0));
	wq->ibv.context = context;
	wq->ibv.pd = attr->pd;
	wq->ibv.cq = attr->cq;
	wq->ibv.wq_type = attr->wq_type;
	wq->ibv.state = IBV_WQS_RESET;
	wq->ibv.post_recv = post_recv;
}

static struct ibv_wq *create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
	struct context *c = context_of(context);
	int error = attr != NULL ? check_wq(context, attr) : EINVAL;
	struct wq *wq;

	if (error != 0) {
		client_info("create_wq: %s", strerror(error));
		return fail_with(error);
	}
	wq = calloc(1, sizeof(*wq));
	if (wq == NULL)
		return fail_with(ENOMEM);
	fill_wq(wq, context, attr);
	error = qp_bring_up(c, &wq->qp);
	if (error != 0) {
		qp_free_parts(&wq->qp);
		free(wq);
		return fail_with(error);
	}
	wq->ibv.handle = wq->qp.handle;
	wq->ibv.wq_num = wq->qp.ibv.qp_base.qp_num;
	attr->max_wr = wq->qp.init.cap.max_recv_wr;
	attr->max_sge = wq->qp.init.cap.max_recv_sge;
	context_hold(c);
	return &wq->ibv;
}

static enum ibv_qp_state qp_state_of(enum ibv_wq_state state)
{
	return state == IBV_WQS_RDY   ? IBV_QPS_RTR
	       : state == IBV_WQS_ERR ? IBV_QPS_ERR
				      : IBV_QPS_RESET;
}

static int modify_in_engine(struct wq *wq, struct request_modify_wq *request, bool resets)
{
	struct reply_modify_qp reply;
	int error = attachment_command(wq->qp.attachment, COMMAND_MODIFY_WQ, &request->h,
				       sizeof(*request), &reply.h, sizeof(reply), NULL, NULL);

	if (error != 0)
		return error;
	if (resets)
		qp_forget_work(&wq->qp);
	/*
	 * Atomic, because several threads may change the state, and programs read it at any time.
	 */
	__atomic_store_n(&wq->ibv.state, (enum ibv_wq_state)reply.state, __ATOMIC_RELAXED);
	qp_show_state(&wq->qp.ibv.qp_base, qp_state_of(reply.state));
	return 0;
}

static int modify_wq(struct ibv_wq *ibv, struct ibv_wq_attr *attr)
{
	struct wq *wq = wq_of(ibv);
	struct request_modify_wq request = { .wq = wq->qp.handle };
	bool resets;
	int error;

	if (attr == NULL)
		return EINVAL;
	request.mask = attr->attr_mask;
	request.state = attr->attr_mask & IBV_WQ_ATTR_STATE ? attr->wq_state : 0;
	request.current_state = attr->attr_mask & IBV_WQ_ATTR_CURR_STATE ? attr->curr_wq_state : 0;
	request.flags = attr->attr_mask & IBV_WQ_ATTR_FLAGS ? attr->flags : 0;
	request.flags_mask = attr->attr_mask & IBV_WQ_ATTR_FLAGS ? attr->flags_mask : 0;
	resets = (attr->attr_mask & IBV_WQ_ATTR_STATE) && attr->wq_state == IBV_WQS_RESET;
	if (resets)
		qp_begin_reset(&wq->qp);
	error = modify_in_engine(wq, &request, resets);
	if (resets)
		qp_end_reset(&wq->qp);
	return error;
}

static int destroy_wq(struct ibv_wq *ibv)
{
	struct context *c = context_of(ibv->context);
	struct wq *wq = wq_of(ibv);
	uint32_t sent;
	int error = qp_destroy_in_engine(c, wq->qp.handle, &sent);

	if (error != 0)
		return error;
	verbs_object_leave(&wq->qp.object);
	if (!wq->qp.stale) {
		qp_withdraw_events(c, &wq->qp, sent);
		events_wait(&ibv->mutex, &ibv->cond, &ibv->events_completed,
			    wq->qp.object.async_delivered);
	}
	qp_leave(&wq->qp);
	qp_free_parts(&wq->qp);
	free(wq);
	context_drop(c);
	return 0;
}

/* ---- tables ---- */

static struct ibv_rwq_ind_table *create_table(struct ibv_context *context,
					      struct ibv_rwq_ind_table_init_attr *init)
{
	struct context *c = context_of(context);
	struct request_create_rwq_table request = { .context = c->handle };
	struct reply_handle reply;
	struct rwq_table *t;
	uint32_t entries;
	int error;

	if (init == NULL || init->ind_tbl == NULL || init->log_ind_tbl_size > 31 ||
	    1u << init->log_ind_tbl_size > LIMIT_RWQ_TABLE)
		return fail_with(EINVAL);
	if (init->comp_mask != 0)
		return fail_with(EOPNOTSUPP);
	entries = 1u << init->log_ind_tbl_size;
	request.log_size = init->log_ind_tbl_size;
	for (uint32_t i = 0; i < entries; i++) {
		if (init->ind_tbl[i] == NULL || init->ind_tbl[i]->context != context)
			return fail_with(EINVAL);
		request.wq[i] = wq_of(init->ind_tbl[i])->qp.handle;
	}
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return fail_with(ENOMEM);
	error = attachment_command(c->attachment, COMMAND_CREATE_RWQ_TABLE, &request.h,
				   sizeof(request), &reply.h, sizeof(reply), NULL, NULL);
	if (error != 0) {
		free(t);
		return fail_with(error);
	}
	t->ibv.context = context;
	t->ibv.ind_tbl_handle = (int)reply.handle;
	t->ibv.ind_tbl_num = (int)reply.handle;
	context_hold(c);
	return &t->ibv;
}

static int destroy_table(struct ibv_rwq_ind_table *ibv)
{
	struct context *c = context_of(ibv->context);
	int error = context_destroy(c, COMMAND_DESTROY_RWQ_TABLE, (uint32_t)ibv->ind_tbl_handle);

	if (error != 0)
		return error;
	free(ibv);
	context_drop(c);
	return 0;
}

/* ---- queue pairs on a table ---- */

static int check_rss(const struct ibv_context *context, const struct ibv_qp_init_attr_ex *init)
{
	const struct ibv_rx_hash_conf *h = &init->rx_hash_conf;
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
			       IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;

	if (init->comp_mask & ~known)
		return EOPNOTSUPP;
	/* the table and the hash need each other */
	if (!(init->comp_mask & IBV_QP_INIT_ATTR_PD) || init->pd == NULL ||
	    !(init->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE) || init->rwq_ind_tbl == NULL ||
	    !(init->comp_mask & IBV_QP_INIT_ATTR_RX_HASH))
		return EINVAL;
	if (init->qp_type != IBV_QPT_RAW_PACKET || init->pd->context != context ||
	    init->rwq_ind_tbl->context != context || init->send_cq != NULL ||
	    init->recv_cq != NULL || init->srq != NULL || init->cap.max_send_wr != 0 ||
	    init->cap.max_recv_wr != 0)
		return EINVAL;
	if ((init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && init->create_flags != 0)
		return EOPNOTSUPP;
	if (h->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ)
		return EOPNOTSUPP;
	if (h->rx_hash_key_len != HASH_KEY_LENGTH || h->rx_hash_key == NULL)
		return EINVAL;
	return h->rx_hash_fields_mask > UINT32_MAX ? EOPNOTSUPP : 0;
}

static int create_rss_in_engine(struct context *c, struct qp *qp,
				const struct ibv_qp_init_attr_ex *init)
{
	struct request_create_rss request = {
		.pd = init->pd->handle,
		.table = (uint32_t)init->rwq_ind_tbl->ind_tbl_handle,
		.fields = (uint32_t)init->rx_hash_conf.rx_hash_fields_mask,
	};
	struct reply_handle reply;
	int error;

	memcpy(request.key, init->rx_hash_conf.rx_hash_key, sizeof(request.key));
	error = attachment_command(c->attachment, COMMAND_CREATE_RSS, &request.h, sizeof(request),
				   &reply.h, sizeof(reply), NULL, NULL);
	if (error == 0)
		qp->rss = reply.handle;
	return error;
}

struct ibv_qp *raw_create_rss_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
	/* The queue pair has no queues. Posting reads the state here, and refuses. */
	static struct qp_page no_queues;
	struct context *c = context_of(context);
	struct ibv_qp_init_attr plain = { .qp_context = init->qp_context,
					  .qp_type = init->qp_type };
	int error = check_rss(context, init);
	struct qp *qp;

	if (error != 0) {
		client_info("create_qp_ex with an indirection table: %s", strerror(error));
		return fail_with(error);
	}
	qp = calloc(1, sizeof(*qp));
	if (qp == NULL)
		return fail_with(ENOMEM);
	qp_fill(qp, init->pd, &plain);
	qp->page = &no_queues;
	error = verbs_object_enter(&qp->object, VERBS_OBJECT_QP);
	if (error == 0)
		error = create_rss_in_engine(c, qp, init);
	if (error != 0) {
		verbs_object_leave(&qp->object);
		free(qp);
		return fail_with(error);
	}
	verbs_object_use(&pd_of(init->pd)->object);
	context_hold(c);
	return &qp->ibv.qp_base;
}

int raw_destroy_rss_qp(struct qp *qp)
{
	struct context *c = context_of(qp->ibv.qp_base.context);
	int error = context_destroy(c, COMMAND_DESTROY_RSS, qp->rss);

	if (error != 0)
		return error;
	verbs_object_leave(&qp->object);
	verbs_object_unuse(&pd_of(qp->ibv.qp_base.pd)->object);
	free(qp);
	context_drop(c);
	return 0;
}

void raw_fill_operations(struct verbs_context *v)
{
	v->create_wq = create_wq;
	v->modify_wq = modify_wq;
	v->destroy_wq = destroy_wq;
	v->create_rwq_ind_table = create_table;
	v->destroy_rwq_ind_table = destroy_table;
	raw_fill_flow_operations(v);
}
