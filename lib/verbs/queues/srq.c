/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/queues/srq.h"

#include <errno.h>
#include <stdlib.h>

#include "client/log.h"
#include "queue/ring_client.h"
#include "verbs/memory/domain.h"
#include "verbs/events.h"
#include "verbs/queues/recv.h"
#include "verbs/queues/xrc.h"

/* The arguments of ibv_create_srq(3) and of all types of ibv_create_srq_ex(3). */
struct srq_parts {
	enum ibv_srq_type type;
	void *srq_context;
	struct pd *pd;
	struct cq *cq; /* XRC, tag matching */
	struct xrcd *xrcd; /* XRC */
	const struct ibv_tm_cap *tm_cap; /* tag matching */
	struct ibv_srq_attr *attr; /* granted values are written back */
};

static int create_in_engine(struct context *c, struct srq *srq, const struct srq_parts *parts,
			    struct reply_create_srq *reply)
{
	struct request_create_srq request = {
		.pd = parts->pd->ibv.handle,
		.type = parts->type,
		.cq = parts->cq != NULL ? parts->cq->ibv.handle : 0,
		.xrcd = parts->xrcd != NULL ? parts->xrcd->handle : 0,
		.max_wr = parts->attr->max_wr,
		.max_sge = parts->attr->max_sge,
		.max_tags = parts->tm_cap != NULL ? parts->tm_cap->max_num_tags : 0,
		.max_ops = parts->tm_cap != NULL ? parts->tm_cap->max_ops : 0,
		.cookie = srq->object.id,
	};

	return attachment_command(c->attachment, COMMAND_CREATE_SRQ, &request.h, sizeof(request),
				  &reply->h, sizeof(*reply), NULL, NULL);
}

static int destroy_in_engine(struct context *c, uint32_t handle)
{
	struct request_handle request = { .handle = handle };
	struct reply_destroy reply;

	if (c->closed)
		return 0;
	return destroy_error(c, attachment_command(c->attachment, COMMAND_DESTROY_SRQ, &request.h,
						   sizeof(request), &reply.h, sizeof(reply), NULL,
						   NULL));
}

static void take_reply(struct context *c, struct srq *srq, const struct reply_create_srq *reply)
{
	srq->ibv.handle = reply->handle;
	srq->number = reply->srqn;
	srq->max_wr = reply->max_wr;
	srq->max_sge = reply->max_sge;
	srq->stride = reply->stride;
	srq->ring = attachment_at(c->attachment, reply->ring_offset);
	srq->page = attachment_at(c->attachment, reply->page_offset);
}

static void take_tags(struct context *c, struct srq *srq, const struct srq_parts *parts,
		      const struct reply_create_srq *reply)
{
	struct carrier *carrier = c->attachment->carrier;

	srq->ops = attachment_at(c->attachment, reply->ops_offset);
	srq->ops_stride = reply->ops_stride;
	srq->max_tags = parts->tm_cap->max_num_tags;
	srq->bell = carrier->bell[reply->lcore];
	srq->sleeping = &carrier->page->lcore[reply->lcore].sleeping;
	srq->wake_fd = carrier->wake_fd[reply->lcore];
}

static void fill_public(struct ibv_srq *ibv, struct context *c, const struct srq_parts *parts)
{
	ibv->context = &c->verbs.context;
	ibv->srq_context = parts->srq_context;
	ibv->pd = &parts->pd->ibv;
	pthread_mutex_init(&ibv->mutex, NULL);
	pthread_cond_init(&ibv->cond, NULL);
}

static int bring_up(struct context *c, struct srq *srq, const struct srq_parts *parts)
{
	struct reply_create_srq reply;
	int error = verbs_object_enter(&srq->object, VERBS_OBJECT_SRQ);

	if (error == 0)
		error = create_in_engine(c, srq, parts, &reply);
	if (error != 0)
		return error;
	take_reply(c, srq, &reply);
	if (parts->tm_cap != NULL)
		take_tags(c, srq, parts, &reply);
	return 0;
}

static struct ibv_srq *create_srq(struct context *c, const struct srq_parts *parts)
{
	struct srq *srq = calloc(1, sizeof(*srq));
	int error;

	if (srq == NULL)
		return fail_with(ENOMEM);
	srq->type = parts->type;
	srq->attachment = c->attachment;
	srq->cq = parts->cq;
	srq->xrcd = parts->xrcd;
	queue_lock_init(&srq->lock);
	srq->lock.is_single = domain_is_single_threaded(&parts->pd->ibv);
	fill_public(&srq->ibv, c, parts);
	error = bring_up(c, srq, parts);
	if (error != 0) {
		verbs_object_leave(&srq->object);
		free(srq);
		return fail_with(error);
	}
	verbs_object_use(&parts->pd->object);
	if (srq->cq != NULL)
		verbs_object_use(&srq->cq->object);
	if (srq->xrcd != NULL)
		verbs_object_use(&srq->xrcd->object);
	context_hold(c);
	parts->attr->max_wr = srq->max_wr;
	parts->attr->max_sge = srq->max_sge;
	return &srq->ibv;
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct srq_parts parts = { .type = IBV_SRQT_BASIC };

	if (pd == NULL || init == NULL)
		return fail_with(EINVAL);
	parts.srq_context = init->srq_context;
	parts.pd = pd_of(pd);
	parts.attr = &init->attr;
	return create_srq(context_of(pd->context), &parts);
}

#define INIT_KNOWN                                                                \
	(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | \
	 IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM)

static int take_pd(struct ibv_context *context, const struct ibv_srq_init_attr_ex *init,
		   struct srq_parts *parts)
{
	if (!(init->comp_mask & IBV_SRQ_INIT_ATTR_PD) || init->pd == NULL ||
	    init->pd->context != context)
		return EINVAL;
	parts->pd = pd_of(init->pd);
	return 0;
}

static int take_xrc(struct ibv_context *context, const struct ibv_srq_init_attr_ex *init,
		    struct srq_parts *parts)
{
	if (!(init->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || init->xrcd == NULL ||
	    init->xrcd->context != context)
		return EINVAL;
	parts->xrcd = xrcd_of(init->xrcd);
	return 0;
}

static int take_cq(struct ibv_context *context, const struct ibv_srq_init_attr_ex *init,
		   struct srq_parts *parts)
{
	if (!(init->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || init->cq == NULL ||
	    init->cq->context != context)
		return EINVAL;
	parts->cq = cq_of(init->cq);
	return 0;
}

static int take_tm(const struct ibv_srq_init_attr_ex *init, struct srq_parts *parts)
{
	if (!(init->comp_mask & IBV_SRQ_INIT_ATTR_TM))
		return EINVAL;
	parts->tm_cap = &init->tm_cap;
	return 0;
}

struct ibv_srq *verbs_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init)
{
	struct srq_parts parts = {
		.type = IBV_SRQT_BASIC,
		.srq_context = init->srq_context,
		.attr = &init->attr,
	};
	int error;

	if (init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE)
		parts.type = init->srq_type;
	if ((init->comp_mask & ~(uint32_t)INIT_KNOWN) ||
	    (parts.type != IBV_SRQT_BASIC && parts.type != IBV_SRQT_XRC &&
	     parts.type != IBV_SRQT_TM)) {
		client_info("create_srq_ex of type %d, comp_mask %#x: not supported",
			    (int)parts.type, init->comp_mask);
		return fail_with(EOPNOTSUPP);
	}
	error = take_pd(context, init, &parts);
	if (error == 0 && parts.type == IBV_SRQT_XRC)
		error = take_xrc(context, init, &parts);
	if (error == 0 && parts.type == IBV_SRQT_TM)
		error = take_tm(init, &parts);
	if (error == 0 && parts.type != IBV_SRQT_BASIC)
		error = take_cq(context, init, &parts);
	return error != 0 ? fail_with(error) : create_srq(context_of(context), &parts);
}

/* Holds the lock during the command, so that no thread posts while the engine changes the ring. */
EXPORT int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int attr_mask)
{
	struct srq *srq = srq_of(ibv);
	struct request_modify_srq request = { .srq = ibv->handle, .mask = (uint32_t)attr_mask };
	struct reply_modify_srq reply;
	int error;

	if (attr == NULL)
		return EINVAL;
	request.max_wr = attr_mask & IBV_SRQ_MAX_WR ? attr->max_wr : 0;
	request.limit = attr_mask & IBV_SRQ_LIMIT ? attr->srq_limit : 0;
	queue_lock(&srq->lock);
	error = attachment_command(srq->attachment, COMMAND_MODIFY_SRQ, &request.h, sizeof(request),
				   &reply.h, sizeof(reply), NULL, NULL);
	if (error == 0) {
		srq->max_wr = reply.max_wr;
		if (reply.ring_size != 0)
			srq->ring = attachment_at(srq->attachment, reply.ring_offset);
	}
	queue_unlock(&srq->lock);
	return error;
}

EXPORT int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct srq *srq = srq_of(ibv);
	struct request_handle request = { .handle = ibv->handle };
	struct reply_query_srq reply;
	int error;

	if (attr == NULL)
		return EINVAL;
	error = attachment_command(srq->attachment, COMMAND_QUERY_SRQ, &request.h, sizeof(request),
				   &reply.h, sizeof(reply), NULL, NULL);
	if (error != 0)
		return error;
	attr->max_wr = reply.max_wr;
	attr->max_sge = reply.max_sge;
	attr->srq_limit = reply.limit;
	return 0;
}

EXPORT int ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct context *c = context_of(ibv->context);
	struct srq *srq = srq_of(ibv);
	int error;

	if (verbs_object_busy(&srq->object))
		return EBUSY;
	error = destroy_in_engine(c, ibv->handle);
	if (error != 0)
		return error;
	verbs_object_leave(&srq->object);
	if (!srq->stale) {
		events_withdraw(c);
		events_wait(&ibv->mutex, &ibv->cond, &ibv->events_completed,
			    srq->object.async_delivered);
	}
	verbs_object_unuse(&pd_of(ibv->pd)->object);
	if (srq->cq != NULL)
		verbs_object_unuse(&srq->cq->object);
	if (srq->xrcd != NULL)
		verbs_object_unuse(&srq->xrcd->object);
	free(srq);
	context_drop(c);
	return 0;
}

int verbs_get_srq_num(struct ibv_srq *ibv, uint32_t *number)
{
	struct srq *srq = srq_of(ibv);

	if (number == NULL)
		return EINVAL;
	if (srq->type != IBV_SRQT_XRC)
		return EOPNOTSUPP; /* peers could not name it */
	*number = srq->number;
	return 0;
}

static int post_one(struct srq *srq, const struct ibv_recv_wr *wr)
{
	/* Acquire: the engine has copied the slot before we write it again. */
	uint32_t used = __atomic_load_n(&srq->page->used, __ATOMIC_ACQUIRE);
	struct recv_work *w;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->max_sge)
		return EINVAL;
	if (srq->posted - used >= srq->max_wr)
		return ENOMEM;
	w = ring_client_reserve(srq->ring, srq->stride);
	if (w == NULL)
		return ENOMEM;
	recv_write(w, wr);
	srq->posted++;
	ring_client_publish(srq->ring);
	return 0;
}

/* Rings no doorbell, because an lcore reads the ring when a message needs a request. */
int verbs_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct srq *srq = srq_of(ibv);
	int error = 0;

	queue_lock(&srq->lock);
	for (; wr != NULL; wr = wr->next) {
		error = srq->stale ? EINVAL : post_one(srq, wr);
		if (error != 0) {
			*bad_wr = wr;
			break;
		}
	}
	queue_unlock(&srq->lock);
	return error;
}
