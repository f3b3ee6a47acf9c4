/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "client/log.h"
#include "verbs/carries.h"
#include "verbs/queues/cq.h"
#include "verbs/memory/domain.h"
#include "verbs/private_node.h"
#include "verbs/events.h"
#include "verbs/queues/qp.h"
#include "verbs/queues/raw.h"
#include "verbs/queues/srq.h"
#include "verbs/queues/xrc.h"

/*
 * Receives that have left their ring but have not completed, because their messages are still
 * arriving.
 */
#define RECEIVES_UNDER_WAY LIMIT_TICKETS

/* An XRC initiator receives nothing. */
static bool has_receives(const struct ibv_qp_init_attr *init)
{
	return init->qp_type != IBV_QPT_XRC_SEND;
}

/*
 * The inline data that a slot has room for anyway, because it has room for the elements. Some
 * programs ask for no inline data and still use it, because other devices grant it anyway
 * (rdma_xclient).
 */
static uint32_t inline_for_free(const struct ibv_qp_cap *cap)
{
	uint32_t room = MIN_OF(cap->max_send_sge, LIMIT_SGE) * (uint32_t)sizeof(struct work_sge);

	return MAX_OF(cap->max_inline_data, MIN_OF(room, LIMIT_INLINE));
}

static int create_in_engine(struct context *c, struct qp *qp, struct reply_create_qp *reply)
{
	struct ibv_qp_init_attr *init = &qp->init;
	/* a work queue has only one CQ */
	struct ibv_cq *send_cq = qp->raw_flags & RAW_WQ ? init->recv_cq : init->send_cq;
	struct request_create_qp request = {
		.pd = qp->ibv.qp_base.pd->handle,
		.type = init->qp_type,
		.send_cq = send_cq->handle,
		.recv_cq = has_receives(init) ? init->recv_cq->handle : 0,
		.srq = init->srq != NULL ? init->srq->handle : 0,
		.sq_sig_all = init->sq_sig_all != 0,
		.max_send_wr = init->cap.max_send_wr,
		.max_recv_wr = init->cap.max_recv_wr,
		.max_send_sge = init->cap.max_send_sge,
		.max_recv_sge = init->cap.max_recv_sge,
		.max_inline = inline_for_free(&init->cap),
		.raw_flags = qp->raw_flags,
		.max_tso_header = qp->max_tso_header,
		.cm_id = qp->cm_id,
		.cookie = qp->object.id,
	};

	return attachment_command(c->attachment, COMMAND_CREATE_QP, &request.h, sizeof(request),
				  &reply->h, sizeof(*reply), NULL, NULL);
}

static void *ring_at(struct context *c, uint64_t offset, uint32_t size)
{
	return size != 0 ? attachment_at(c->attachment, offset) : NULL;
}

void qp_ring_at(struct qp *qp, uint32_t lcore)
{
	struct carrier *carrier = qp->attachment->carrier;

	qp->bell = carrier->bell[lcore];
	qp->sleeping = &carrier->page->lcore[lcore].sleeping;
	qp->wake_fd = carrier->wake_fd[lcore];
	qp->lcore = lcore;
}

static int take_reply(struct context *c, struct qp *qp, const struct reply_create_qp *reply)
{
	struct carrier *carrier = c->attachment->carrier;
	struct ibv_qp_cap *cap = &qp->init.cap;
	int error;

	if (reply->lcore >= carrier->lcores)
		return EPROTO;
	qp->handle = reply->handle;
	qp->ibv.qp_base.handle = reply->handle;
	qp->ibv.qp_base.qp_num = reply->qpn;
	qp->ibv.qp_base.state = reply->state;
	qp->page = attachment_at(c->attachment, reply->page_offset);
	qp_ring_at(qp, reply->lcore);
	qp->mtu = reply->mtu;
	qp->max_inline = reply->max_inline;
	cap->max_send_wr = reply->max_send_wr;
	cap->max_recv_wr = reply->max_recv_wr;
	cap->max_send_sge = reply->max_send_sge;
	cap->max_recv_sge = reply->max_recv_sge;
	cap->max_inline_data = reply->max_inline;
	error = work_queue_init(&qp->sq, ring_at(c, reply->sq_offset, reply->sq_size),
				reply->sq_stride, reply->max_send_wr, reply->max_send_sge,
				reply->max_send_wr);
	if (error == 0)
		error = work_queue_init(&qp->rq, ring_at(c, reply->rq_offset, reply->rq_size),
					reply->rq_stride, reply->max_recv_wr, reply->max_recv_sge,
					reply->max_recv_wr + RECEIVES_UNDER_WAY);
	return error;
}

int qp_destroy_in_engine(struct context *c, uint32_t handle, uint32_t *sent)
{
	struct request_handle request = { .handle = handle };
	struct reply_destroy reply;
	int error;

	*sent = UINT32_MAX;
	if (c->closed)
		return 0;
	error = attachment_command(c->attachment, COMMAND_DESTROY_QP, &request.h, sizeof(request),
				   &reply.h, sizeof(reply), NULL, NULL);
	if (error == 0)
		*sent = reply.events;
	return destroy_error(c, error);
}

/*
 * Usually there were no events, and to look for them would cost two system calls. The engine reads
 * the count of an XRC target before the last event may be sent.
 */
void qp_withdraw_events(struct context *c, const struct qp *qp, uint32_t sent)
{
	if (sent != qp->object.async_delivered || qp->xrcd != NULL)
		events_withdraw(c);
}

/* Visits the objects that a queue pair refers to. An XRC target refers only to its XRC domain. */
static void each_used(struct qp *qp, void (*visit)(struct verbs_object *o))
{
	if (qp->xrcd != NULL) {
		visit(&qp->xrcd->object);
		return;
	}
	visit(&pd_of(qp->ibv.qp_base.pd)->object);
	if (qp->init.send_cq != NULL)
		visit(&cq_of(qp->init.send_cq)->object);
	if (qp->init.recv_cq != NULL)
		visit(&cq_of(qp->init.recv_cq)->object);
	if (qp->init.srq != NULL)
		visit(&srq_of(qp->init.srq)->object);
}

/*
 * Called before the queue pair leaves the domain. The domain may have allocated the memory, and may
 * be freed then.
 */
static void free_memory(struct qp *qp)
{
	work_queue_free(&qp->sq);
	work_queue_free(&qp->rq);
	if (qp->xrcd == NULL)
		domain_free(qp->ibv.qp_base.pd, &qp->batch_memory, DOMAIN_QP);
}

void qp_leave(struct qp *qp)
{
	if (qp->init.send_cq != NULL)
		cq_remove_qp(cq_of(qp->init.send_cq), qp);
	if (qp->init.recv_cq != NULL && qp->init.recv_cq != qp->init.send_cq)
		cq_remove_qp(cq_of(qp->init.recv_cq), qp);
	free_memory(qp);
	each_used(qp, verbs_object_unuse);
}

int qp_bring_up(struct context *c, struct qp *qp)
{
	struct reply_create_qp reply;
	uint32_t sent;
	int error = verbs_object_enter(&qp->object, VERBS_OBJECT_QP);

	if (error != 0)
		return error;
	error = create_in_engine(c, qp, &reply);
	if (error != 0)
		return error;
	each_used(qp, verbs_object_use);
	error = take_reply(c, qp, &reply);
	if (error == 0 && qp->init.send_cq != NULL)
		error = cq_add_qp(cq_of(qp->init.send_cq), qp);
	if (error == 0 && qp->init.recv_cq != NULL && qp->init.recv_cq != qp->init.send_cq)
		error = cq_add_qp(cq_of(qp->init.recv_cq), qp);
	if (error != 0) {
		qp_leave(qp);
		qp_destroy_in_engine(c, reply.handle, &sent);
	}
	return error;
}

static int check_init(const struct ibv_qp_init_attr *init)
{
	if (init->qp_type == IBV_QPT_XRC_RECV)
		return EINVAL; /* it needs an XRC domain: ibv_create_qp_ex */
	if (init->qp_type != IBV_QPT_RC && init->qp_type != IBV_QPT_UC &&
	    init->qp_type != IBV_QPT_UD && init->qp_type != IBV_QPT_XRC_SEND &&
	    init->qp_type != IBV_QPT_RAW_PACKET)
		return EOPNOTSUPP;
	if (init->qp_type == IBV_QPT_RAW_PACKET && init->srq != NULL)
		return EINVAL;
	if (init->send_cq == NULL || (has_receives(init) && init->recv_cq == NULL))
		return EINVAL;
	return 0;
}

static void fill_public(struct ibv_qp *ibv, struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
	ibv->context = pd->context;
	ibv->qp_context = init->qp_context;
	ibv->pd = pd;
	ibv->send_cq = init->send_cq;
	ibv->recv_cq = init->recv_cq;
	ibv->srq = init->srq;
	ibv->state = IBV_QPS_RESET;
	ibv->qp_type = init->qp_type;
	pthread_mutex_init(&ibv->mutex, NULL);
	pthread_cond_init(&ibv->cond, NULL);
}

void qp_free_parts(struct qp *qp)
{
	verbs_object_leave(&qp->object);
	free_memory(qp);
}

static void free_qp(struct qp *qp)
{
	qp_free_parts(qp);
	free(qp);
}

void qp_fill(struct qp *qp, struct ibv_pd *pd, const struct ibv_qp_init_attr *init)
{
	struct context *c = context_of(pd->context);

	qp->init = *init;
	if (!has_receives(init)) {
		qp->init.recv_cq = NULL;
		qp->init.srq = NULL;
	}
	qp->send_page = init->send_cq != NULL ? cq_of(init->send_cq)->page : NULL;
	qp->recv_page = qp->init.recv_cq != NULL ? cq_of(qp->init.recv_cq)->page : NULL;
	qp->opcodes = transport_opcodes(init->qp_type);
	qp->send_flags = transport_send_flags(init->qp_type);
	qp->sig_all = init->sq_sig_all != 0;
	qp->attachment = c->attachment;
	qp->sq.domain = qp->rq.domain = pd;
	qp->sq.loses = init->send_cq != NULL && cq_of(init->send_cq)->loses;
	fill_public(&qp->ibv.qp_base, pd, &qp->init);
}

static struct qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init,
			    const struct raw_init *raw, uint32_t cm_id)
{
	struct context *c = context_of(pd->context);
	int error = check_init(init);
	struct qp *qp;

	if (error != 0) {
		client_info("create_qp of type %d%s: %s", (int)init->qp_type,
			    init->srq != NULL ? " with an SRQ" : "", strerror(error));
		return fail_with(error);
	}
	qp = calloc(1, sizeof(*qp));
	if (qp == NULL)
		return fail_with(ENOMEM);
	qp_fill(qp, pd, init);
	qp->raw_flags = raw->flags;
	qp->max_tso_header = raw->max_tso_header;
	qp->cm_id = cm_id;
	error = qp_bring_up(c, qp);
	if (error != 0) {
		free_qp(qp);
		return fail_with(error);
	}
	init->cap = qp->init.cap;
	context_hold(c);
	return qp;
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	const struct raw_init nothing = { 0 };

	if (pd == NULL || init == NULL)
		return fail_with(EINVAL);
	return (struct ibv_qp *)create_qp(pd, init, &nothing, 0);
}

#define INIT_KNOWN \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)

#define INIT_TSO IBV_QP_INIT_ATTR_MAX_TSO_HEADER

EXPORT struct ibv_qp *uroce_create_qp_of(struct ibv_context *context,
					 struct ibv_qp_init_attr_ex *init, uint32_t cm_id)
{
	bool is_raw = init->qp_type == IBV_QPT_RAW_PACKET;
	bool has_tso = is_raw || init->qp_type == IBV_QPT_UD;
	struct raw_init raw = { 0 };
	struct qp *qp;
	int error;

	if (init->qp_type == IBV_QPT_XRC_RECV)
		return target_create(context, init);
	if (init->comp_mask & (IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH))
		return raw_create_rss_qp(context, init);
	if (init->comp_mask & ~(uint32_t)(INIT_KNOWN | (has_tso ? INIT_TSO : 0)))
		return fail_with(EOPNOTSUPP);
	if (!is_raw && (init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && init->create_flags != 0)
		return fail_with(EOPNOTSUPP);
	error = has_tso ? raw_read_init(init, &raw) : 0;
	if (error != 0)
		return fail_with(error);
	if ((init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
	    (init->send_ops_flags & ~transport_send_ops(init->qp_type)))
		return fail_with(EOPNOTSUPP);
	if (!(init->comp_mask & IBV_QP_INIT_ATTR_PD) || init->pd == NULL)
		return fail_with(EINVAL);
	/* Both structs begin with the same members. verbs.h relies on it, too. */
	qp = create_qp(init->pd, (struct ibv_qp_init_attr *)init, &raw, cm_id);
	if (qp != NULL && (init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) {
		if (qp_ex_fill(&qp->ibv) != 0) {
			ibv_destroy_qp(&qp->ibv.qp_base);
			return fail_with(ENOMEM);
		}
		qp->extended = true;
	}
	return (struct ibv_qp *)qp;
}

struct ibv_qp *verbs_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
	return uroce_create_qp_of(context, init, 0);
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibv)
{
	struct qp *qp = qp_of(ibv);

	return qp->extended ? &qp->ibv : NULL;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct context *c = context_of(ibv->context);
	struct qp *qp = qp_of(ibv);
	uint32_t sent;
	int error;

	if (qp->rss != 0)
		return raw_destroy_rss_qp(qp);
	error = qp_destroy_in_engine(c, qp->handle, &sent);
	if (error != 0)
		return error;
	verbs_object_leave(&qp->object);
	if (!qp->stale) {
		qp_withdraw_events(c, qp, sent);
		events_wait(&ibv->mutex, &ibv->cond, &ibv->events_completed,
			    qp->object.async_delivered);
	}
	qp_leave(qp);
	free_qp(qp);
	context_drop(c);
	return 0;
}
