/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "client/log.h"
#include "verbs/cq.h"
#include "verbs/events.h"

/* What a completion can tell; the others are refused. */
#define WC_FLAGS_KNOWN IBV_WC_STANDARD_FLAGS
#define CQ_FLAGS_KNOWN IBV_CREATE_CQ_ATTR_SINGLE_THREADED

int cq_add_qp(struct cq *cq, struct qp *qp)
{
	struct handle_slot *more = NULL;
	uint32_t have = 0;

	queue_lock(&cq->lock);
	for (;;) {
		uint32_t wanted = handle_map_wanted(&cq->qps);

		if (wanted == cq->qps.slots || wanted == have)
			break;
		/* memory is fetched without the lock; meanwhile the map may have changed again */
		queue_unlock(&cq->lock);
		free(more);
		more = handle_map_prepare(wanted);
		if (more == NULL)
			return ENOMEM;
		have = wanted;
		queue_lock(&cq->lock);
	}
	if (handle_map_wanted(&cq->qps) != cq->qps.slots)
		more = handle_map_grow(&cq->qps, more, have);
	handle_map_put(&cq->qps, qp->handle, qp);
	queue_unlock(&cq->lock);
	free(more);
	return 0;
}

void cq_remove_qp(struct cq *cq, struct qp *qp)
{
	queue_lock(&cq->lock);
	handle_map_remove(&cq->qps, qp->handle);
	cq->last = NULL;
	cq->last_handle = 0;
	queue_unlock(&cq->lock);
}

static int create_in_engine(struct context *c, struct cq *cq, uint32_t cqe, uint32_t vector)
{
	struct request_create_cq request = {
		.context = c->handle,
		.channel = cq->channel != NULL ? cq->channel->handle : 0,
		.cqe = cqe,
		.comp_vector = vector % LIMIT_COMP_VECTORS,
		.cookie = cq->object.id,
	};
	struct reply_create_cq reply;
	int error = client_command(c->client, COMMAND_CREATE_CQ, &request.h, sizeof(request),
				   &reply.h, sizeof(reply), NULL, NULL);

	if (error != 0)
		return error;
	cq->ibv.handle = reply.handle;
	cq->ibv.cqe = (int)reply.cqe;
	cq->ring = client_at(c->client, reply.ring_offset);
	cq->page = client_at(c->client, reply.page_offset);
	return 0;
}

static struct cq *create_cq(struct ibv_context *context, uint32_t cqe, void *cq_context,
			    struct ibv_comp_channel *channel, uint32_t vector)
{
	struct context *c = context_of(context);
	struct cq *cq;
	int error;

	if (cqe == 0 || cqe > LIMIT_CQE || vector >= (uint32_t)context->num_comp_vectors) {
		client_info("create_cq: %u entries, vector %u: Invalid argument", cqe, vector);
		return fail_with(EINVAL);
	}
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL)
		return fail_with(ENOMEM);
	cq->ibv.context = context;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	cq->channel = channel != NULL ? channel_of(channel) : NULL;
	cq->client = c->client;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	error = object_enter(&cq->object, OBJECT_CQ);
	if (error == 0)
		error = create_in_engine(c, cq, cqe, vector);
	if (error != 0) {
		object_leave(&cq->object);
		free(cq);
		return fail_with(error);
	}
	if (cq->channel != NULL) {
		object_use(&cq->channel->object);
		cq->ibv.channel->refcnt++;
	}
	context_hold(c);
	return cq;
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int comp_vector)
{
	struct cq *cq = create_cq(context, cqe > 0 ? (uint32_t)cqe : 0, cq_context, channel,
				  (uint32_t)comp_vector);

	if (cq != NULL)
		cq_ex_fill(&cq->ibv, WC_FLAGS_KNOWN);
	return (struct ibv_cq *)cq;
}

struct ibv_cq_ex *verbs_create_cq_ex(struct ibv_context *context,
				     struct ibv_cq_init_attr_ex *init_attr)
{
	struct cq *cq;

	if (init_attr->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS)
		return fail_with(EOPNOTSUPP);
	if ((init_attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	    (init_attr->flags & ~(uint32_t)CQ_FLAGS_KNOWN))
		return fail_with(EOPNOTSUPP);
	if (init_attr->wc_flags & ~(uint64_t)WC_FLAGS_KNOWN)
		return fail_with(EOPNOTSUPP);
	cq = create_cq(context, init_attr->cqe, init_attr->cq_context, init_attr->channel,
		       init_attr->comp_vector);
	if (cq == NULL)
		return NULL;
	cq_ex_fill(&cq->ibv, init_attr->wc_flags);
	return &cq->ibv;
}

EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	return EOPNOTSUPP;
}

static int destroy_in_engine(struct context *c, struct cq *cq)
{
	struct request_handle request = { .handle = cq->ibv.handle };
	struct reply_destroy reply;
	int error = client_command(c->client, COMMAND_DESTROY_CQ, &request.h, sizeof(request),
				   &reply.h, sizeof(reply), NULL, NULL);

	return destroy_error(c, error);
}

EXPORT int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct context *c = context_of(ibv->context);
	struct cq *cq = cq_of(ibv);
	int error;

	if (object_busy(&cq->object))
		return EBUSY;
	error = destroy_in_engine(c, cq);
	if (error != 0)
		return error;
	object_leave(&cq->object);
	if (!cq->stale) {
		events_wait(&cq->ibv.mutex, &cq->ibv.cond, &cq->ibv.comp_events_completed,
			    cq->object.comp_delivered);
		events_wait(&cq->ibv.mutex, &cq->ibv.cond, &cq->ibv.async_events_completed,
			    cq->object.async_delivered);
	}
	if (cq->channel != NULL) {
		object_unuse(&cq->channel->object);
		cq->ibv.channel->refcnt--;
	}
	free(cq->qps.slot);
	free(cq);
	context_drop(c);
	return 0;
}
