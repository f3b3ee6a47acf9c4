/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "queue/cancel.h"
#include "verbs/events.h"
#include "verbs/queues/flush.h"

static int create_in_engine(struct context *c, struct channel *ch)
{
	struct request_handle request = { .handle = c->handle };
	struct carrier_descriptors received = { 0 };
	struct reply_handle reply;
	int error = attachment_command(c->attachment, COMMAND_CREATE_CHANNEL, &request.h,
				       sizeof(request), &reply.h, sizeof(reply), NULL, &received);

	if (error != 0)
		return error;
	if (received.count != 1) { /* it was sent, but this process has no free descriptor */
		attachment_command_handle(c->attachment, COMMAND_DESTROY_CHANNEL, reply.handle);
		return EMFILE;
	}
	ch->handle = reply.handle;
	ch->ibv.fd = received.fd[0];
	ch->file = own_file_of(received.fd[0]);
	return 0;
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct context *c;
	struct channel *ch;
	int error;

	if (context == NULL)
		return fail_with(EINVAL);
	c = context_of(context);
	ch = calloc(1, sizeof(*ch));
	if (ch == NULL)
		return fail_with(ENOMEM);
	ch->ibv.context = context;
	ch->idle_fd = -1;
	withdrawn_init(&ch->withdrawn);
	error = create_in_engine(c, ch);
	if (error == 0)
		error = verbs_object_enter(&ch->object, VERBS_OBJECT_CHANNEL);
	if (error != 0) {
		free(ch);
		return fail_with(error);
	}
	context_hold(c);
	return &ch->ibv;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	struct context *c = context_of(ibv->context);
	struct channel *ch = channel_of(ibv);
	int error, cancel;

	if (verbs_object_busy(&ch->object))
		return EBUSY;
	error = context_destroy(c, COMMAND_DESTROY_CHANNEL, ch->handle);
	if (error != 0)
		return error;
	verbs_object_leave(&ch->object);
	cancel = cancel_off();
	if (ibv->fd >= 0)
		close(ibv->fd);
	if (ch->idle_fd >= 0)
		close(ch->idle_fd);
	cancel_restore(cancel);
	free(ch);
	context_drop(c);
	return 0;
}

static struct cq *deliver(uint64_t cookie)
{
	struct cq *cq = NULL;
	struct verbs_object *o;

	verbs_objects_lock();
	o = verbs_object_find(cookie, VERBS_OBJECT_CQ);
	if (o != NULL) {
		o->comp_delivered++;
		cq = container_of_type(o, struct cq, object);
		/* relaxed: the program orders its calls for one CQ, if it wants an order */
		__atomic_store_n(&cq->polled, false, __ATOMIC_RELAXED);
	}
	verbs_objects_unlock();
	return cq;
}

/*
 * The engine is gone. Returns an event for each CQ that has completions to poll: once, and again
 * after the CQ was armed.
 */
static int event_at_end(struct channel *ch, struct cq **cq)
{
	int error;

	/* First, so that an empty CQ gets its flush completions before the program polls. */
	attachment_ended(context_of(ch->ibv.context)->attachment);
	*cq = flush_wake_one(ch);
	if (*cq != NULL)
		return 0;
	error = events_end(ch->ibv.fd, &ch->idle_fd);
	*cq = flush_wake_one(ch); /* for a CQ that was armed before the channel was silenced */
	return *cq != NULL ? 0 : error;
}

static bool is_of_nothing(const void *message)
{
	const struct channel_message *m = message;
	bool found;

	verbs_objects_lock();
	found = verbs_object_find(m->cookie, VERBS_OBJECT_CQ) != NULL;
	verbs_objects_unlock();
	return !found;
}

void channel_withdraw(struct channel *ch)
{
	if (own_file_is(&ch->file, ch->ibv.fd))
		withdrawn_remove(&ch->withdrawn, ch->ibv.fd, sizeof(struct channel_message),
				 is_of_nothing);
}

/* Skips messages for CQs that were destroyed meanwhile. */
static int next_event(struct channel *ch, struct cq **cq)
{
	struct channel_message message;
	int error;

	for (;;) {
		error = events_receive(ch->ibv.fd, &message, sizeof(message));
		if (events_ended(error, &ch->idle_fd))
			return event_at_end(ch, cq);
		if (error != 0)
			return error;
		do {
			*cq = deliver(message.cookie);
		} while (*cq == NULL && withdrawn_kept(&ch->withdrawn, &message, sizeof(message)));
		if (withdrawn_may_wait(&ch->withdrawn))
			channel_withdraw(ch);
		if (*cq != NULL)
			return 0;
	}
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct cq *found;
	int error = next_event(channel_of(channel), &found);

	if (error != 0) {
		errno = error;
		return -1;
	}
	*cq = (struct ibv_cq *)found;
	*cq_context = (*cq)->cq_context;
	return 0;
}
