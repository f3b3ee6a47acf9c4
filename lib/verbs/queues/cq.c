/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "client/log.h"
#include "verbs/queues/cq.h"
#include "verbs/memory/domain.h"
#include "verbs/events.h"

/* The flags of ibv_create_cq_ex(3) that are supported; others are refused. */
#define WC_FLAGS_KNOWN                                                          \
	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |          \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK | IBV_WC_EX_WITH_CVLAN | \
	 IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_TM_INFO)
#define CQ_FLAGS_KNOWN (IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)
#define CQ_MASK_KNOWN  (IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)

static_assert((int)IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN == (int)CQ_FLAG_IGNORE_OVERRUN, "verbs.h");

/* Relaxed: only the thread that wrote itself there finds itself. */
bool cq_lock(struct cq *cq)
{
	if (pthread_equal(__atomic_load_n(&cq->poller, __ATOMIC_RELAXED), pthread_self()))
		return false;
	queue_lock(&cq->lock);
	return true;
}

void cq_unlock(struct cq *cq, bool locked)
{
	if (locked)
		queue_unlock(&cq->lock);
}

/*
 * The queue pair's unpolled completions are forgotten, because another one with its handle may come.
 * The caller holds cq->lock.
 */
static void forget(struct cq *cq, uint32_t handle)
{
	cq_forget(&cq->backlog, cq->ring, handle);
	cq->last = NULL;
	cq->last_handle = 0;
}

/*
 * The engine may use a handle again before the thread that destroyed its last queue pair has removed
 * that one here. The caller holds cq->lock.
 */
static void enter(struct cq *cq, struct qp *qp)
{
	if (handle_map_get(&cq->qps, qp->handle) != NULL)
		forget(cq, qp->handle);
	handle_map_put(&cq->qps, qp->handle, qp);
}

int cq_add_qp(struct cq *cq, struct qp *qp)
{
	struct domain_memory more = { 0 }, old = { 0 };
	bool locked = cq_lock(cq);
	uint32_t have = 0;

	for (;;) {
		uint32_t wanted = handle_map_wanted(&cq->qps);

		if (wanted == cq->qps.slots || wanted == have)
			break;
		/*
		 * Allocates without the lock. The map may have changed when we have the lock again.
		 */
		cq_unlock(cq, locked);
		domain_free(cq->domain, &more, DOMAIN_CQ);
		if (domain_alloc(cq->domain, &more, wanted * sizeof(struct handle_slot),
				 DOMAIN_CQ) != 0)
			return ENOMEM;
		have = wanted;
		locked = cq_lock(cq);
	}
	if (handle_map_wanted(&cq->qps) != cq->qps.slots) {
		handle_map_grow(&cq->qps, more.address, have);
		old = cq->qps_memory;
		cq->qps_memory = more;
	} else {
		old = more;
	}
	enter(cq, qp);
	cq_unlock(cq, locked);
	domain_free(cq->domain, &old, DOMAIN_CQ);
	return 0;
}

void cq_remove_qp(struct cq *cq, struct qp *qp)
{
	bool locked = cq_lock(cq);

	/* Otherwise a successor has the handle, and cq_add_qp has done this. */
	if (handle_map_get(&cq->qps, qp->handle) == qp) {
		forget(cq, qp->handle);
		handle_map_remove(&cq->qps, qp->handle);
	}
	cq_unlock(cq, locked);
}

static uint32_t flags_of(const struct ibv_cq_init_attr_ex *init)
{
	return init->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? init->flags : 0;
}

static struct ibv_pd *domain_of(const struct ibv_cq_init_attr_ex *init)
{
	return init->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? init->parent_domain : NULL;
}

static int create_in_engine(struct context *c, struct cq *cq,
			    const struct ibv_cq_init_attr_ex *init)
{
	struct request_create_cq request = {
		.context = c->handle,
		.channel = cq->channel != NULL ? cq->channel->handle : 0,
		.cqe = init->cqe,
		.comp_vector = init->comp_vector % LIMIT_COMP_VECTORS,
		.cookie = cq->object.id,
		.flags = flags_of(init) & CQ_FLAG_IGNORE_OVERRUN,
	};
	struct reply_create_cq reply;
	int error = attachment_command(c->attachment, COMMAND_CREATE_CQ, &request.h,
				       sizeof(request), &reply.h, sizeof(reply), NULL, NULL);

	if (error != 0)
		return error;
	cq->ibv.handle = reply.handle;
	cq->ibv.cqe = (int)reply.cqe;
	cq->page = attachment_at(c->attachment, reply.page_offset);
	queue_lock(&cq->lock); /* the channel's thread may look at it already (flush.c) */
	cq->ring = attachment_at(c->attachment, reply.ring_offset);
	queue_unlock(&cq->lock);
	return 0;
}

static int check_init(struct ibv_context *context, const struct ibv_cq_init_attr_ex *init)
{
	struct ibv_pd *domain = domain_of(init);

	if (init->cqe == 0 || init->cqe > LIMIT_CQE ||
	    init->comp_vector >= (uint32_t)context->num_comp_vectors)
		return EINVAL;
	if (init->channel != NULL && init->channel->context != context)
		return EINVAL;
	if (init->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	    (domain == NULL || domain->context != context || !is_parent_domain(domain)))
		return EINVAL;
	return 0;
}

static struct cq *new_cq(struct ibv_context *context, const struct ibv_cq_init_attr_ex *init)
{
	struct cq *cq = calloc(1, sizeof(*cq));

	if (cq == NULL)
		return NULL;
	cq->ibv.context = context;
	cq->ibv.channel = init->channel;
	cq->ibv.cq_context = init->cq_context;
	cq->channel = init->channel != NULL ? channel_of(init->channel) : NULL;
	cq->attachment = attachment_of(context);
	cq->domain = domain_of(init);
	cq->loses = (flags_of(init) & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0;
	cq->lock.is_single = (flags_of(init) & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) ||
			     domain_is_single_threaded(cq->domain);
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	cq_ex_fill(&cq->ibv, init->wc_flags);
	return cq;
}

static struct cq *create_cq(struct ibv_context *context, const struct ibv_cq_init_attr_ex *init)
{
	struct context *c = context_of(context);
	int error = check_init(context, init);
	struct cq *cq;

	if (error != 0) {
		client_info("create_cq: %u entries, vector %u: %s", init->cqe, init->comp_vector,
			    strerror(error));
		return fail_with(error);
	}
	cq = new_cq(context, init);
	if (cq == NULL)
		return fail_with(ENOMEM);
	error = verbs_object_enter(&cq->object, VERBS_OBJECT_CQ);
	if (error == 0)
		error = create_in_engine(c, cq, init);
	if (error != 0) {
		verbs_object_leave(&cq->object);
		free(cq);
		return fail_with(error);
	}
	if (cq->channel != NULL) {
		verbs_object_use(&cq->channel->object);
		/*
		 * A member of verbs.h, for programs that look at it. Relaxed, because only the
		 * number is shared.
		 */
		__atomic_add_fetch(&cq->ibv.channel->refcnt, 1, __ATOMIC_RELAXED);
	}
	if (cq->domain != NULL)
		verbs_object_use(&pd_of(cq->domain)->object);
	context_hold(c);
	return cq;
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = cqe > 0 ? (uint32_t)cqe : 0,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)comp_vector,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};

	if (context == NULL)
		return fail_with(EINVAL);
	return (struct ibv_cq *)create_cq(context, &init);
}

struct ibv_cq_ex *verbs_create_cq_ex(struct ibv_context *context,
				     struct ibv_cq_init_attr_ex *init_attr)
{
	struct cq *cq;

	if (init_attr == NULL)
		return fail_with(EINVAL);
	if ((init_attr->comp_mask & ~(uint32_t)CQ_MASK_KNOWN) ||
	    (flags_of(init_attr) & ~(uint32_t)CQ_FLAGS_KNOWN) ||
	    (init_attr->wc_flags & ~(uint64_t)WC_FLAGS_KNOWN))
		return fail_with(EOPNOTSUPP);
	cq = create_cq(context, init_attr);
	return cq != NULL ? &cq->ibv : NULL;
}

static int destroy_in_engine(struct context *c, struct cq *cq)
{
	struct request_handle request = { .handle = cq->ibv.handle };
	struct reply_destroy reply;

	if (c->closed)
		return 0;
	return destroy_error(c, attachment_command(c->attachment, COMMAND_DESTROY_CQ, &request.h,
						   sizeof(request), &reply.h, sizeof(reply), NULL,
						   NULL));
}

EXPORT int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct context *c = context_of(ibv->context);
	struct cq *cq = cq_of(ibv);
	int error;

	if (verbs_object_busy(&cq->object))
		return EBUSY;
	error = destroy_in_engine(c, cq);
	if (error != 0)
		return error;
	verbs_object_leave(&cq->object);
	if (!cq->stale) {
		/* First: a thread that still has to acknowledge others must not block in fetching these. */
		events_withdraw(c);
		if (cq->channel != NULL)
			channel_withdraw(cq->channel);
		events_wait(&cq->ibv.mutex, &cq->ibv.cond, &cq->ibv.comp_events_completed,
			    cq->object.comp_delivered);
		events_wait(&cq->ibv.mutex, &cq->ibv.cond, &cq->ibv.async_events_completed,
			    cq->object.async_delivered);
	}
	if (cq->channel != NULL) {
		verbs_object_unuse(&cq->channel->object);
		__atomic_sub_fetch(&cq->ibv.channel->refcnt, 1, __ATOMIC_RELAXED);
	}
	domain_free(cq->domain, &cq->qps_memory, DOMAIN_CQ);
	if (cq->domain != NULL)
		verbs_object_unuse(&pd_of(cq->domain)->object);
	free(cq->backlog.held);
	free(cq);
	context_drop(c);
	return 0;
}
