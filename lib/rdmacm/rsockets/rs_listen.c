/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listeners. As with TCP, the peer's connect() succeeds before raccept(): the service thread
 * accepts connections when they are requested, up to the backlog. Further requests wait in the
 * engine.
 */
#include <poll.h>

#include "rdmacm/rsockets/rs.h"

/* ---- what may be accepted ---- */

static bool is_full(const struct rs_socket *listener)
{
	return listener->stream.asked >= listener->stream.backlog;
}

static void broken(struct rs_socket *listener)
{
	listener->state = RS_FAILED;
	listener->error = ENODEV;
	rs_service_unwatch(listener->fd);
	rs_wake(listener);
}

/*
 * Whether an event waits that can be taken now, because there is room for it or because the engine
 * is gone.
 */
static bool has_event(struct rs_socket *listener)
{
	struct pollfd p = { .fd = listener->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && (!is_full(listener) || (p.revents & (POLLHUP | POLLERR)));
}

/* Takes and counts the next request. NULL: there is none, or there is no room. */
static struct rdma_cm_event *next_request(struct rs_socket *listener)
{
	struct rdma_cm_event *event = NULL;

	pthread_mutex_lock(&listener->lock);
	if (is_full(listener))
		rs_service_pause(listener->fd, listener->fd, true);
	while (event == NULL && listener->state == RS_LISTENING && !listener->closed &&
	       has_event(listener) && rdma_get_cm_event(listener->stream.channel, &event) == 0) {
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			listener->stream.asked++;
			continue;
		}
		if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
			broken(listener);
		rdma_ack_cm_event(event);
		event = NULL;
	}
	pthread_mutex_unlock(&listener->lock);
	return event;
}

static void count_one_less(struct rs_socket *listener)
{
	pthread_mutex_lock(&listener->lock);
	listener->stream.asked--;
	if (!listener->closed)
		rs_service_pause(listener->fd, listener->fd, false);
	pthread_mutex_unlock(&listener->lock);
}

/* ---- accepting ---- */

static struct rs_socket *new_child(struct rs_socket *listener)
{
	struct rs_socket *s = rs_new(listener->domain, SOCK_STREAM);

	if (s == NULL)
		return NULL;
	pthread_mutex_lock(&listener->lock);
	s->sizes = listener->sizes;
	s->options = listener->options;
	pthread_mutex_unlock(&listener->lock);
	return s;
}

/* Moves the id from the listener's channel to one of its own. Returns 0 or an errno. */
static int take_id(struct rs_socket *s, struct rdma_cm_id *id)
{
	int error;

	s->stream.channel = rdma_create_event_channel();
	if (s->stream.channel == NULL)
		return errno;
	s->fd = s->stream.channel->fd;
	if (fcntl(s->fd, F_SETFL, O_NONBLOCK) != 0)
		return errno;
	error = id_migrate(id_of(id), s->stream.channel);
	if (error == 0)
		s->stream.id = id;
	return error;
}

static int answer(struct rs_socket *s, const struct rdma_conn_param *asked)
{
	uint8_t greeting[RS_GREETING_SIZE];
	struct rdma_conn_param p = {
		.private_data = greeting,
		.private_data_len = sizeof(greeting),
		.responder_resources = asked->responder_resources,
		.initiator_depth = asked->initiator_depth,
		.flow_control = asked->flow_control,
		.rnr_retry_count = 7,
	};
	int error = rs_endpoint_open(s);

	if (error != 0)
		return error;
	if (!rs_take_greeting(s, asked->private_data, asked->private_data_len))
		return EPROTONOSUPPORT;
	rs_greet(s, greeting);
	return rdma_accept(s->stream.id, &p) == 0 ? 0 : errno;
}

/* Prepares the child for the service thread. 0 or an errno. */
static int begin(struct rs_socket *listener, struct rs_socket *s, struct rdma_cm_event *event)
{
	int error = take_id(s, event->id);

	s->state = RS_ACCEPTING;
	if (error == 0)
		error = answer(s, &event->param.conn);
	if (error == 0)
		error = rs_enter(s);
	if (error != 0)
		return error;
	rs_hold(listener);
	s->stream.listener = listener;
	error = rs_service_watch(s->fd, s->fd);
	if (error != 0) {
		s->stream.listener = NULL;
		rs_put(listener);
		rs_leave(s->fd);
	}
	return error;
}

static void accept_one(struct rs_socket *listener, struct rdma_cm_event *event)
{
	struct rs_socket *s = new_child(listener);

	if (s != NULL && begin(listener, s, event) == 0)
		return;
	rdma_reject(event->id, NULL, 0);
	if (s == NULL || s->stream.id == NULL)
		rdma_destroy_id(event->id);
	if (s != NULL)
		rs_put(s);
	count_one_less(listener);
}

void rs_listener_progress(struct rs_socket *listener)
{
	struct rdma_cm_event *event;

	while ((event = next_request(listener)) != NULL) {
		accept_one(listener, event);
		rdma_ack_cm_event(event);
	}
}

/* ---- accepted ---- */

/*
 * Closes a connection that is not accepted, without lingering. As with TCP, data sent to it is
 * lost.
 */
static void discard(struct rs_socket *child)
{
	pthread_mutex_lock(&child->lock);
	child->options.linger = (struct linger){ .l_onoff = 1 };
	pthread_mutex_unlock(&child->lock);
	if (rs_leave(child->fd) == child)
		rs_finish(child);
}

void rs_listener_hears(struct rs_socket *child, bool established)
{
	struct rs_socket *listener = child->stream.listener;
	bool taken = false;

	child->stream.listener = NULL;
	pthread_mutex_lock(&listener->lock);
	if (established && !listener->closed) {
		child->stream.next_ready = NULL;
		*listener->stream.ready_end = child;
		listener->stream.ready_end = &child->stream.next_ready;
		taken = true;
		rs_wake(listener);
	}
	pthread_mutex_unlock(&listener->lock);
	if (!taken) {
		discard(child);
		count_one_less(listener);
	}
	rs_put(listener);
}

static struct rs_socket *take_ready(struct rs_socket *listener)
{
	struct rs_stream *t = &listener->stream;
	struct rs_socket *child = t->ready;

	if (child == NULL)
		return NULL;
	t->ready = child->stream.next_ready;
	if (t->ready == NULL)
		t->ready_end = &t->ready;
	t->asked--;
	return child;
}

void rs_listener_close(struct rs_socket *listener)
{
	struct rs_socket *child;

	do {
		pthread_mutex_lock(&listener->lock);
		child = take_ready(listener);
		pthread_mutex_unlock(&listener->lock);
		if (child != NULL)
			discard(child);
	} while (child != NULL);
}

/* ---- calls ---- */

static int listen_locked(struct rs_socket *s, int backlog)
{
	int error = 0;

	if (!rs_is_stream(s))
		return EOPNOTSUPP;
	if (s->state > RS_LISTENING)
		return EINVAL;
	/* As in Linux, a negative one is the largest. */
	s->stream.backlog = MAX_OF(1, (int)MIN_OF((unsigned int)backlog, (unsigned int)SOMAXCONN));
	if (s->state == RS_LISTENING) {
		rs_service_pause(s->fd, s->fd, false); /* the new backlog may have room */
		return 0;
	}
	if (rdma_listen(s->stream.id, s->stream.backlog) != 0)
		return errno;
	s->stream.ready_end = &s->stream.ready;
	s->state = RS_LISTENING;
	error = rs_service_watch(s->fd, s->fd);
	if (error != 0)
		s->state = RS_BOUND;
	return error;
}

EXPORT int rlisten(int socket, int backlog)
{
	struct rs_socket *s = rs_get(socket);
	int error;

	if (s == NULL)
		return -1;
	pthread_mutex_lock(&s->lock);
	error = listen_locked(s, backlog);
	pthread_mutex_unlock(&s->lock);
	rs_put(s);
	return result(error);
}

static bool has_connection_or_gone(struct rs_socket *s)
{
	return s->stream.ready != NULL || s->state != RS_LISTENING;
}

/* The caller holds the listener's lock. */
static int await_connection(struct rs_socket *s, struct rs_socket **child)
{
	int error;

	if (!rs_is_stream(s))
		return EOPNOTSUPP;
	if (s->state != RS_LISTENING)
		return s->state == RS_FAILED ? ENODEV : EINVAL;
	error = rs_wait(s, has_connection_or_gone, rs_must_not_wait(s, 0));
	if (error != 0)
		return error;
	*child = take_ready(s);
	if (*child == NULL)
		return s->closed ? EBADF : ENODEV;
	rs_service_pause(s->fd, s->fd, false);
	return 0;
}

/*
 * Renumbers the child to the lowest free descriptor, as accept(2) does. Debian's librspreload.so
 * relies on it: it opens a descriptor of its own first, and its select() finds the socket only if
 * our number is above that one. Returns 0, or an errno, and then the child is closed.
 */
static int renumber(struct rs_socket *child)
{
	struct rdma_event_channel *channel = child->stream.channel;
	int before, error;

	pthread_mutex_lock(&child->lock);
	before = child->fd;
	rs_service_unwatch(before);
	rs_leave(before);
	child->fd = fcntl(before, F_DUPFD_CLOEXEC, 0);
	if (child->fd < 0)
		child->fd = before; /* no lower number is free, so this one stays */
	error = rs_enter(child);
	if (child->fd != before)
		close(before);
	channel->fd = child->fd;
	if (error == 0)
		error = rs_service_watch(child->fd, child->fd);
	if (error == 0)
		error = rs_keepalive_follow(child);
	pthread_mutex_unlock(&child->lock);
	if (error != 0) {
		rs_leave(child->fd);
		rs_finish(child);
	}
	return error;
}

EXPORT int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs_socket *s, *child = NULL;
	int error;

	if (addr != NULL && addrlen == NULL)
		return result(EFAULT);
	s = rs_get(socket);
	if (s == NULL)
		return -1;
	pthread_mutex_lock(&s->lock);
	error = await_connection(s, &child);
	pthread_mutex_unlock(&s->lock);
	rs_put(s);
	if (error == 0)
		error = renumber(child);
	if (error != 0)
		return result(error);
	child->stream.connect_reported = true;
	if (addr != NULL)
		rs_copy_address(&child->stream.id->route.addr.dst_storage, addr, addrlen);
	return child->fd;
}
