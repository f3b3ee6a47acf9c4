/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "queue/cancel.h"
#include "verbs/device.h"
#include "verbs/memory/mw.h"
#include "verbs/private_node.h"
#include "verbs/queues/raw.h"
#include "verbs/queues/srq.h"
#include "verbs/queues/xrc.h"

/*
 * Programs call these functions without a check for NULL. Slots that are not set here may stay
 * empty.
 */
static void fill_operations(struct context *c)
{
	struct ibv_context_ops *ops = &c->verbs.context.ops;

	ops->poll_cq = verbs_poll_cq;
	ops->req_notify_cq = verbs_req_notify_cq;
	ops->post_send = verbs_post_send;
	ops->post_recv = verbs_post_recv;
	ops->post_srq_recv = verbs_post_srq_recv;
	ops->alloc_mw = verbs_alloc_mw;
	ops->bind_mw = verbs_bind_mw;
	ops->dealloc_mw = verbs_dealloc_mw;
	c->verbs.sz = sizeof(struct verbs_context);
	c->verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	c->verbs.query_port = verbs_query_port;
	c->verbs.query_device_ex = verbs_query_device_ex;
	c->verbs.advise_mr = verbs_advise_mr;
	c->verbs.alloc_null_mr = verbs_alloc_null_mr;
	c->verbs.create_cq_ex = verbs_create_cq_ex;
	c->verbs.create_qp_ex = verbs_create_qp_ex;
	c->verbs.modify_cq = verbs_modify_cq;
	c->verbs.query_rt_values = verbs_query_rt_values;
	c->verbs.alloc_td = verbs_alloc_td;
	c->verbs.dealloc_td = verbs_dealloc_td;
	c->verbs.alloc_parent_domain = verbs_alloc_parent_domain;
	c->verbs.create_srq_ex = verbs_create_srq_ex;
	c->verbs.get_srq_num = verbs_get_srq_num;
	c->verbs.post_srq_ops = verbs_post_srq_ops;
	raw_fill_operations(&c->verbs);
	c->verbs.open_xrcd = verbs_open_xrcd;
	c->verbs.close_xrcd = verbs_close_xrcd;
	c->verbs.open_qp = verbs_open_qp;
	c->verbs.modify_qp_rate_limit = verbs_modify_qp_rate_limit;
	c->verbs.alloc_dm = verbs_alloc_dm;
	c->verbs.free_dm = verbs_free_dm;
	c->verbs.reg_dm_mr = verbs_reg_dm_mr;
}

static void stale_context(struct verbs_object *o, void *argument)
{
	struct context *c = container_of_type(o, struct context, object);

	pthread_mutex_init(&c->verbs.context.mutex, NULL);
	own_file_close(&c->async_file, c->verbs.context.async_fd);
	c->verbs.context.async_fd = -1;
}

static void stale_channel(struct verbs_object *o, void *argument)
{
	struct channel *ch = container_of_type(o, struct channel, object);

	own_file_close(&ch->file, ch->ibv.fd);
	ch->ibv.fd = -1;
}

static void stale_cq(struct verbs_object *o, void *argument)
{
	struct cq *cq = container_of_type(o, struct cq, object);

	queue_lock_init(&cq->lock);
	cq->poller = 0;
	cq->stale = true;
}

static void stale_qp(struct verbs_object *o, void *argument)
{
	struct qp *qp = container_of_type(o, struct qp, object);

	queue_lock_init(&qp->sq.lock);
	queue_lock_init(&qp->rq.lock);
	qp_show_state(&qp->ibv.qp_base, IBV_QPS_RESET); /* so that posting checks `stale` */
	qp->stale = true;
}

static void stale_srq(struct verbs_object *o, void *argument)
{
	struct srq *srq = container_of_type(o, struct srq, object);

	queue_lock_init(&srq->lock);
	srq->stale = true;
}

/*
 * Called in the child of a fork, which shares no object with its parent. The child can only destroy
 * what it inherited. Its copies of descriptors are closed, so that the engine sees when the parent
 * dies. Mute ones (events.h) stay: their engine is gone.
 */
static void forked(void)
{
	verbs_objects_each(VERBS_OBJECT_CONTEXT, stale_context, NULL);
	verbs_objects_each(VERBS_OBJECT_CHANNEL, stale_channel, NULL);
	verbs_objects_each(VERBS_OBJECT_CQ, stale_cq, NULL);
	verbs_objects_each(VERBS_OBJECT_QP, stale_qp, NULL);
	verbs_objects_each(VERBS_OBJECT_SRQ, stale_srq, NULL);
}

static int number_of_vectors(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	/* UCX uses the number of its lowest CPU as completion vector. */
	return MAX_OF((int)cpus, (int)LIMIT_COMP_VECTORS);
}

static int open_in_engine(struct context *c, int token_fd)
{
	struct carrier_descriptors token = { .count = 1, .fd = { token_fd } };
	struct carrier_descriptors received = { 0 };
	struct request_empty request = { 0 };
	struct reply_context reply;
	bool imports = token_fd >= 0;
	int error = attachment_command(
		c->attachment, imports ? COMMAND_IMPORT_CONTEXT : COMMAND_OPEN_CONTEXT, &request.h,
		sizeof(request), &reply.h, sizeof(reply), imports ? &token : NULL, &received);

	if (error != 0)
		return error;
	if (received.count != 2) { /* they were sent, but this process has no free descriptors */
		while (received.count > 0)
			close(received.fd[--received.count]);
		attachment_command_handle(c->attachment, COMMAND_CLOSE_CONTEXT, reply.handle);
		return EMFILE;
	}
	c->handle = reply.handle;
	c->verbs.context.async_fd = received.fd[0];
	c->async_file = own_file_of(received.fd[0]);
	/* Programs do not read it. They duplicate it and pass it on for ibv_import_device(3). */
	c->verbs.context.cmd_fd = received.fd[1];
	return 0;
}

static int attach(struct context *c, int token_fd)
{
	int error = attachment_get(&c->device->source, c->device->facts.engine_id, &c->attachment);

	if (error != 0)
		return error;
	error = open_in_engine(c, token_fd);
	if (error == 0)
		error = verbs_object_enter(&c->object, VERBS_OBJECT_CONTEXT);
	if (error != 0)
		attachment_put(c->attachment);
	return error;
}

int context_open(struct device *device, int token_fd, struct context **out)
{
	struct context *c = calloc(1, sizeof(*c));
	int error, cancel;

	if (c == NULL)
		return ENOMEM;
	attachment_at_fork(forked);
	c->device = device;
	c->references = 1;
	c->idle_fd = -1;
	withdrawn_init(&c->withdrawn);
	c->token_fd = -1;
	cancel = cancel_off();
	error = attach(c, token_fd);
	cancel_restore(cancel);
	if (error != 0) {
		free(c);
		return error;
	}
	fill_operations(c);
	pthread_mutex_init(&c->verbs.context.mutex, NULL);
	c->verbs.context.device = &device->ibv;
	c->verbs.context.num_comp_vectors = number_of_vectors();
	*out = c;
	return 0;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct context *c;
	int error;

	device_hold(device_of(device));
	error = context_open(device_of(device), -1, &c);
	if (error != 0) {
		device_drop(device_of(device));
		return fail_with(error);
	}
	return &c->verbs.context;
}

/*
 * Acquire and release: the thread that drops the last reference sees what others did while they had
 * theirs.
 */
void context_hold(struct context *c)
{
	__atomic_add_fetch(&c->references, 1, __ATOMIC_RELAXED);
}

void context_drop(struct context *c)
{
	if (__atomic_sub_fetch(&c->references, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	for (struct pd *pd = c->retired, *next; pd != NULL; pd = next) {
		next = pd->next_retired;
		free(pd);
	}
	if (c->own_attachment != NULL)
		attachment_put(c->own_attachment);
	attachment_put(c->attachment);
	device_drop(c->device);
	pthread_mutex_destroy(&c->verbs.context.mutex);
	free(c);
}

int destroy_error(const struct context *c, int error)
{
	if (error == ENODEV || c->closed)
		return 0;
	return error;
}

int context_destroy(struct context *c, enum command what, uint32_t handle)
{
	return c->closed ? 0
			 : destroy_error(c, attachment_command_handle(c->attachment, what, handle));
}

static void close_descriptor(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

EXPORT int uroce_context_command(struct ibv_context *context, enum command what,
				 struct command_request *request, size_t request_bytes,
				 struct command_reply *reply, size_t reply_bytes,
				 struct carrier_descriptors *out)
{
	return attachment_command(context_of(context)->attachment, what, request, request_bytes,
				  reply, reply_bytes, NULL, out);
}

EXPORT int uroce_context_post(struct ibv_context *context, enum command what,
			      struct command_request *request, size_t request_bytes)
{
	return attachment_post(context_of(context)->attachment, what, request, request_bytes);
}

EXPORT void *uroce_arena_at(struct ibv_context *context, uint64_t offset)
{
	return attachment_at(context_of(context)->attachment, offset);
}

EXPORT bool uroce_context_gone(struct ibv_context *context)
{
	return attachment_gone(context_of(context)->attachment);
}

/*
 * The engine destroys the objects that are still in the context. The library's part of them stays
 * until the program destroys them.
 */
EXPORT int ibv_close_device(struct ibv_context *context)
{
	struct context *c = context_of(context);
	int cancel = cancel_off();

	attachment_command_handle(c->attachment, COMMAND_CLOSE_CONTEXT, c->handle);
	verbs_object_leave(&c->object);
	c->closed = true;
	close_descriptor(&context->async_fd);
	close_descriptor(&context->cmd_fd);
	close_descriptor(&c->token_fd);
	close_descriptor(&c->idle_fd);
	context_drop(c);
	cancel_restore(cancel);
	return 0;
}
