/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains, and target queue pairs, which belong to a domain and have no queues of their own. */
#include "verbs/queues/xrc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "client/log.h"
#include "verbs/queues/qp.h"

/* ---- domains ---- */

static uint32_t engine_flags(int oflags)
{
	return (oflags & O_CREAT ? XRCD_CREATE : 0) | (oflags & O_EXCL ? XRCD_EXCLUSIVE : 0);
}

static int open_in_engine(struct context *c, struct xrcd *x, const struct ibv_xrcd_init_attr *init)
{
	struct request_open_xrcd request = { .context = c->handle,
					     .flags = engine_flags(init->oflags) };
	struct carrier_descriptors in = { .fd = { init->fd }, .count = 1 };
	struct reply_handle reply;
	int error =
		attachment_command(c->attachment, COMMAND_OPEN_XRCD, &request.h, sizeof(request),
				   &reply.h, sizeof(reply), init->fd != -1 ? &in : NULL, NULL);

	if (error == 0)
		x->handle = reply.handle;
	return error;
}

static int check_open(const struct ibv_xrcd_init_attr *init)
{
	const uint32_t wanted = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;

	if (init->comp_mask & ~wanted)
		return EOPNOTSUPP;
	if (init->comp_mask != wanted || (init->oflags & ~(O_CREAT | O_EXCL)))
		return EINVAL;
	if (init->fd != -1 && fcntl(init->fd, F_GETFD) < 0)
		return EBADF;
	return 0;
}

struct ibv_xrcd *verbs_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *init)
{
	struct context *c = context_of(context);
	int error = init != NULL ? check_open(init) : EINVAL;
	struct xrcd *x;

	if (error != 0)
		return fail_with(error);
	x = calloc(1, sizeof(*x));
	if (x == NULL)
		return fail_with(ENOMEM);
	x->ibv.context = context;
	error = open_in_engine(c, x, init);
	if (error != 0) {
		free(x);
		return fail_with(error);
	}
	context_hold(c);
	return &x->ibv;
}

int verbs_close_xrcd(struct ibv_xrcd *ibv)
{
	struct context *c = context_of(ibv->context);
	struct xrcd *x = xrcd_of(ibv);
	int error;

	if (verbs_object_busy(&x->object))
		return EBUSY;
	error = context_destroy(c, COMMAND_CLOSE_XRCD, x->handle);
	if (error != 0)
		return error;
	free(x);
	context_drop(c);
	return 0;
}

/* ---- targets ---- */

/* Takes the place of the page in the arena that other queue pairs have. Nothing ever writes it. */
static struct qp_page no_page;

static struct qp *target_alloc(struct context *c, struct xrcd *x, void *qp_context)
{
	struct qp *qp = calloc(1, sizeof(*qp));
	struct ibv_qp *ibv;

	if (qp == NULL)
		return NULL;
	ibv = &qp->ibv.qp_base;
	qp->attachment = c->attachment;
	qp->page = &no_page;
	qp->xrcd = x;
	qp->init.qp_type = IBV_QPT_XRC_RECV;
	qp->init.qp_context = qp_context;
	ibv->context = &c->verbs.context;
	ibv->qp_context = qp_context;
	ibv->qp_type = IBV_QPT_XRC_RECV;
	ibv->state = IBV_QPS_RESET;
	pthread_mutex_init(&ibv->mutex, NULL);
	pthread_cond_init(&ibv->cond, NULL);
	queue_lock_init(&qp->sq.lock);
	queue_lock_init(&qp->rq.lock);
	return qp;
}

static int create_in_engine(struct context *c, struct qp *qp, struct reply_create_qp *reply)
{
	struct request_create_qp request = {
		.type = IBV_QPT_XRC_RECV,
		.xrcd = qp->xrcd->handle,
		.cookie = qp->object.id,
	};

	return attachment_command(c->attachment, COMMAND_CREATE_QP, &request.h, sizeof(request),
				  &reply->h, sizeof(*reply), NULL, NULL);
}

static int open_qp_in_engine(struct context *c, struct qp *qp, uint32_t qpn,
			     struct reply_create_qp *reply)
{
	struct request_open_qp request = {
		.xrcd = qp->xrcd->handle,
		.qpn = qpn,
		.type = IBV_QPT_XRC_RECV,
		.cookie = qp->object.id,
	};

	return attachment_command(c->attachment, COMMAND_OPEN_QP, &request.h, sizeof(request),
				  &reply->h, sizeof(*reply), NULL, NULL);
}

/* Opens the target `qpn`. Creates one if qpn is 0. */
static struct ibv_qp *target_open(struct context *c, struct xrcd *x, void *qp_context, uint32_t qpn)
{
	struct qp *qp = target_alloc(c, x, qp_context);
	struct reply_create_qp reply;
	int error;

	if (qp == NULL)
		return fail_with(ENOMEM);
	error = verbs_object_enter(&qp->object, VERBS_OBJECT_QP);
	if (error == 0)
		error = qpn == 0 ? create_in_engine(c, qp, &reply)
				 : open_qp_in_engine(c, qp, qpn, &reply);
	if (error != 0) {
		verbs_object_leave(&qp->object);
		free(qp);
		return fail_with(error);
	}
	qp->handle = reply.handle;
	qp->ibv.qp_base.handle = reply.handle;
	qp->ibv.qp_base.qp_num = reply.qpn;
	verbs_object_use(&x->object);
	context_hold(c);
	return &qp->ibv.qp_base;
}

struct ibv_qp *target_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
	if (!(init->comp_mask & IBV_QP_INIT_ATTR_XRCD) || init->xrcd == NULL ||
	    init->xrcd->context != context)
		return fail_with(EINVAL);
	if (init->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_PD))
		return fail_with(EOPNOTSUPP);
	memset(&init->cap, 0, sizeof(init->cap));
	return target_open(context_of(context), xrcd_of(init->xrcd), init->qp_context, 0);
}

struct ibv_qp *verbs_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const uint32_t wanted =
		IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct ibv_qp_attr state;
	struct ibv_qp_init_attr init;
	void *qp_context;
	struct ibv_qp *qp;

	if (attr == NULL)
		return fail_with(EINVAL);
	qp_context = attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL;
	if (attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED)
		return fail_with(EOPNOTSUPP);
	if ((attr->comp_mask & wanted) != wanted || attr->xrcd == NULL ||
	    attr->xrcd->context != context || attr->qp_type != IBV_QPT_XRC_RECV ||
	    attr->qp_num == 0)
		return fail_with(EINVAL);
	qp = target_open(context_of(context), xrcd_of(attr->xrcd), qp_context, attr->qp_num);
	if (qp != NULL)
		ibv_query_qp(qp, &state, IBV_QP_STATE,
			     &init); /* other processes may have changed the target's state */
	return qp;
}
