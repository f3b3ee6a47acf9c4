/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/log.h"
#include "verbs/events.h"
#include "verbs/private_node.h"
#include "verbs/raw.h"
#include "verbs/srq.h"

void events_wait(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *acknowledged,
		 uint32_t delivered)
{
	pthread_mutex_lock(mutex);
	while (*acknowledged != delivered)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
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

void events_silence(int fd, int *idle_fd)
{
	int pair[2];
	int flags = fcntl(fd, F_GETFL);

	if (*idle_fd >= 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return;
	if (flags >= 0)
		fcntl(pair[0], F_SETFL, flags);
	if (dup3(pair[0], fd, O_CLOEXEC) == fd)
		*idle_fd = pair[1];
	else
		close(pair[1]);
	close(pair[0]);
}

EXPORT void uroce_silence(struct ibv_context *context, int fd, int *idle_fd)
{
	client_ended(context_of(context)->client);
	events_silence(fd, idle_fd);
}

/* Which object an event is about, counted as handed out; false: it is destroyed already. */
static bool name_object(const struct async_message *m, struct ibv_async_event *event)
{
	bool found = true;
	struct object *o = NULL;

	objects_lock();
	if (m->object == 0) {
		event->element.port_num = (int)m->cookie;
	} else if (m->object == 1) {
		o = object_find(m->cookie, OBJECT_QP);
		if (o != NULL)
			event->element.qp = &container_of_type(o, struct qp, object)->ibv.qp_base;
	} else if (m->object == 2) {
		o = object_find(m->cookie, OBJECT_CQ);
		if (o != NULL)
			event->element.cq =
				(struct ibv_cq *)container_of_type(o, struct cq, object);
	} else if (m->object == 3) {
		o = object_find(m->cookie, OBJECT_SRQ);
		if (o != NULL)
			event->element.srq = &container_of_type(o, struct srq, object)->ibv;
	} else if (m->object == 4) {
		o = object_find(m->cookie, OBJECT_QP); /* a work queue is one inside */
		if (o != NULL)
			event->element.wq = &container_of_type(o, struct wq, qp.object)->ibv;
	}
	if (o != NULL)
		o->async_delivered++;
	else
		found = m->object == 0;
	objects_unlock();
	return found;
}

/* The first who sees the end of the engine gets DEVICE_FATAL; after that the descriptor is mute. */
static bool take_fatal(struct context *c, struct ibv_async_event *event)
{
	if (__atomic_exchange_n(&c->fatal_told, true, __ATOMIC_RELAXED)) {
		events_silence(c->verbs.context.async_fd, &c->idle_fd);
		return false;
	}
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
	int error;

	for (;;) {
		error = events_receive(context->async_fd, &message, sizeof(message));
		if (error == ENODEV) {
			client_ended(c->client);
			if (take_fatal(c, event))
				return 0;
			if (c->idle_fd >= 0)
				continue; /* wait like everybody else */
		}
		if (error != 0) {
			errno = error;
			return -1;
		}
		event->event_type = message.event;
		if (name_object(&message, event))
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
		break; /* of the device or its port: nothing waits for it */
	}
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	acknowledge(&cq->mutex, &cq->cond, &cq->comp_events_completed, nevents);
}
