/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/log.h"
#include "queue/cancel.h"
#include "verbs/events.h"
#include "verbs/private_node.h"
#include "verbs/queues/raw.h"
#include "verbs/queues/srq.h"

static void unlock(void *mutex)
{
	pthread_mutex_unlock(mutex);
}

void events_wait(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *acknowledged,
		 uint32_t delivered)
{
	pthread_mutex_lock(mutex);
	pthread_cleanup_push(unlock, mutex);
	while (*acknowledged != delivered)
		pthread_cond_wait(cond, mutex);
	pthread_cleanup_pop(1);
}

int events_receive(int fd, void *message, size_t octets)
{
	ssize_t n = recv(fd, message, octets, 0);

	if (n == (ssize_t)octets)
		return 0;
	if (n < 0 && errno != ECONNRESET)
		return errno;
	return n > 0 ? EPROTO : ENODEV;
}

/* The timeout is for a thread that is about to block in `fd` and has not seen the end of file. */
static int make_mute(int fd, int mute)
{
	const struct timeval patience = { .tv_usec = LIMIT_MUTE_WAIT * 1000 };
	int flags = fcntl(fd, F_GETFL);

	if (setsockopt(mute, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0)
		return -1;
	if (flags >= 0)
		fcntl(mute, F_SETFL, flags);
	return dup3(mute, fd, O_CLOEXEC);
}

void events_silence(int fd, int *idle_fd)
{
	/* several threads may see the end of file at once */
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int pair[2], cancel = cancel_off();

	pthread_mutex_lock(&lock);
	if (*idle_fd < 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
		/* Release: a thread that sees the descriptor (events_ended) finds the mute socket. */
		if (make_mute(fd, pair[0]) == fd)
			__atomic_store_n(idle_fd, pair[1], __ATOMIC_RELEASE);
		else
			close(pair[1]);
		close(pair[0]);
	}
	pthread_mutex_unlock(&lock);
	cancel_restore(cancel);
}

int events_end(int fd, int *idle_fd)
{
	int flags;

	events_silence(fd, idle_fd);
	flags = fcntl(fd, F_GETFL);
	if (__atomic_load_n(idle_fd, __ATOMIC_RELAXED) < 0 || flags < 0)
		return ENODEV;
	return flags & O_NONBLOCK ? EAGAIN : ENODEV;
}

EXPORT int uroce_silence(struct ibv_context *context, int fd, int *idle_fd)
{
	attachment_ended(context_of(context)->attachment);
	return events_end(fd, idle_fd);
}

static struct verbs_object *find_object(const struct async_message *m)
{
	switch (m->object) {
	case 1:
	case 4: /* a struct wq contains a queue pair */
		return verbs_object_find(m->cookie, VERBS_OBJECT_QP);
	case 2:
		return verbs_object_find(m->cookie, VERBS_OBJECT_CQ);
	case 3:
		return verbs_object_find(m->cookie, VERBS_OBJECT_SRQ);
	default:
		return NULL;
	}
}

static void point_to(struct verbs_object *o, uint32_t kind, struct ibv_async_event *event)
{
	if (kind == 1)
		event->element.qp = &container_of_type(o, struct qp, object)->ibv.qp_base;
	else if (kind == 2)
		event->element.cq = (struct ibv_cq *)container_of_type(o, struct cq, object);
	else if (kind == 3)
		event->element.srq = &container_of_type(o, struct srq, object)->ibv;
	else
		event->element.wq = &container_of_type(o, struct wq, qp.object)->ibv;
}

/* Fills in the object of the event and counts it as delivered. False: the object is destroyed. */
static bool name_object(const struct async_message *m, struct ibv_async_event *event)
{
	struct verbs_object *o;
	bool found;

	verbs_objects_lock();
	o = find_object(m);
	found = o != NULL || m->object == 0;
	if (m->object == 0)
		event->element.port_num = (int)m->cookie;
	if (o != NULL) {
		point_to(o, m->object, event);
		o->async_delivered++;
	}
	verbs_objects_unlock();
	return found;
}

static bool is_of_nothing(const void *message)
{
	const struct async_message *m = message;
	bool found;

	verbs_objects_lock();
	found = m->object == 0 || find_object(m) != NULL;
	verbs_objects_unlock();
	return !found;
}

void events_withdraw(struct context *c)
{
	int fd = c->verbs.context.async_fd;

	if (own_file_is(&c->async_file, fd))
		withdrawn_remove(&c->withdrawn, fd, sizeof(struct async_message), is_of_nothing);
}

/*
 * The first thread that sees the engine's end gets DEVICE_FATAL. Then the descriptor is mute. The
 * exchange alone decides which thread is the first: relaxed.
 */
static bool take_fatal(struct context *c, struct ibv_async_event *event)
{
	if (__atomic_exchange_n(&c->fatal_told, true, __ATOMIC_RELAXED))
		return false;
	client_info("%s: the engine is gone: IBV_EVENT_DEVICE_FATAL", c->device->ibv.name);
	event->element.port_num = 0;
	event->event_type = IBV_EVENT_DEVICE_FATAL;
	events_silence(c->verbs.context.async_fd, &c->idle_fd);
	return true;
}

EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct context *c = context_of(context);
	struct async_message message;
	bool found;
	int error;

	for (;;) {
		error = events_receive(context->async_fd, &message, sizeof(message));
		if (events_ended(error, &c->idle_fd)) {
			attachment_ended(c->attachment);
			if (take_fatal(c, event))
				return 0;
			error = events_end(context->async_fd, &c->idle_fd);
		}
		if (error != 0) {
			errno = error;
			return -1;
		}
		do {
			event->event_type = message.event;
			found = name_object(&message, event);
		} while (!found && withdrawn_kept(&c->withdrawn, &message, sizeof(message)));
		if (withdrawn_may_wait(&c->withdrawn))
			events_withdraw(c);
		if (found)
			return 0;
	}
}

static void acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *count, uint32_t n)
{
	pthread_mutex_lock(mutex);
	*count += n;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		acknowledge(&event->element.cq->mutex, &event->element.cq->cond,
			    &event->element.cq->async_events_completed, 1);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		acknowledge(&event->element.qp->mutex, &event->element.qp->cond,
			    &event->element.qp->events_completed, 1);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		acknowledge(&event->element.srq->mutex, &event->element.srq->cond,
			    &event->element.srq->events_completed, 1);
		break;
	case IBV_EVENT_WQ_FATAL:
		acknowledge(&event->element.wq->mutex, &event->element.wq->cond,
			    &event->element.wq->events_completed, 1);
		break;
	default:
		/* an event of the device or its port; nothing waits for its acknowledgement */
		break;
	}
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	acknowledge(&cq->mutex, &cq->cond, &cq->comp_events_completed, nevents);
}
