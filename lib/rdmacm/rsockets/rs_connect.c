/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connecting, step by step. The service thread takes a step when an event arrives on the socket's
 * channel.
 */
#include <poll.h>

#include "rdmacm/rsockets/rs.h"

int rs_error_of_event(const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return ENODEV;
	case RDMA_CM_EVENT_REJECTED:
		return ECONNREFUSED;
	case RDMA_CM_EVENT_UNREACHABLE:
		return event->status < 0 ? -event->status : ETIMEDOUT;
	default:
		return event->status < 0 ? -event->status : ECONNRESET;
	}
}

static void refuse(struct rs_socket *s, int error)
{
	s->state = RS_REFUSED;
	s->error = error;
	rs_wake(s);
}

static void established(struct rs_socket *s)
{
	s->state = RS_CONNECTED;
	s->readable = s->writable = true;
	if (s->alive >= 0)
		rs_keepalive_follow(s);
	rs_process(s); /* the peer may already have sent something */
	rs_wake(s);
}

/* ---- the steps ---- */

static int ask_for_connection(struct rs_socket *s)
{
	uint8_t greeting[RS_GREETING_SIZE];
	struct rdma_conn_param p = {
		.private_data = greeting,
		.private_data_len = sizeof(greeting),
		.flow_control = 1,
		.retry_count = 7,
		.rnr_retry_count = 7, /* for ever, because a slow peer is not a dead one */
	};
	int error = rs_endpoint_open(s);

	if (error != 0)
		return error;
	rs_greet(s, greeting);
	return rdma_connect(s->stream.id, &p) == 0 ? 0 : errno;
}

static void resolved(struct rs_socket *s)
{
	s->state = RS_ROUTING;
	if (rdma_resolve_route(s->stream.id, LIMIT_RS_RESOLVE_MS) != 0)
		refuse(s, errno);
}

static void routed(struct rs_socket *s)
{
	int error;

	s->state = RS_CONNECTING;
	error = ask_for_connection(s);
	if (error != 0)
		refuse(s, error);
}

static void answered(struct rs_socket *s, const struct rdma_conn_param *p)
{
	if (s->state == RS_CONNECTING &&
	    !rs_take_greeting(s, p->private_data, p->private_data_len)) {
		rdma_disconnect(s->stream.id);
		refuse(s, EPROTONOSUPPORT);
	} else {
		established(s);
	}
}

/*
 * A connection that is being accepted ends without having been established, if the RTU was lost. Only
 * a peer that has taken our REP can end it, so that peer was connected, and may have sent data.
 */
static void ended(struct rs_socket *s)
{
	if (s->state == RS_ACCEPTING)
		established(s);
	else
		rs_process(s); /* data that came before the end can still be read */
	rs_stream_disconnected(s);
	rdma_disconnect(s->stream.id);
}

static void broken(struct rs_socket *s, const struct rdma_cm_event *event)
{
	int error = rs_error_of_event(event);

	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		rs_service_unwatch(s->fd);
	if (rs_is_opening(s)) {
		refuse(s, error);
	} else {
		rs_process(s); /* data that came before can still be read */
		rs_stream_fail(s, error);
	}
}

static void take_event(struct rs_socket *s, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (s->state == RS_RESOLVING)
			resolved(s);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (s->state == RS_ROUTING)
			routed(s);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (rs_is_opening(s))
			answered(s, &event->param.conn);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		ended(s);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		broken(s, event);
		break;
	default:
		break;
	}
}

/* ---- in the service thread ---- */

static bool says_something(struct rs_socket *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	return !s->closed && poll(&p, 1, 0) == 1;
}

void rs_connection_progress(struct rs_socket *s)
{
	bool was_accepted = s->stream.listener != NULL, is_established;
	struct rdma_cm_event *event;

	pthread_mutex_lock(&s->lock);
	while (says_something(s) && rdma_get_cm_event(s->stream.channel, &event) == 0) {
		bool is_last = event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;

		take_event(s, event);
		rdma_ack_cm_event(event);
		if (is_last)
			break;
	}
	is_established = s->state >= RS_CONNECTED && s->state != RS_REFUSED;
	was_accepted = was_accepted && s->state != RS_ACCEPTING;
	pthread_mutex_unlock(&s->lock);
	if (was_accepted)
		rs_listener_hears(s, is_established);
}

/* ---- in calls ---- */

static bool is_settled(struct rs_socket *s)
{
	return !rs_is_opening(s);
}

static int error_of_state(struct rs_socket *s)
{
	int error = 0;

	if (s->closed)
		error = EBADF;
	else if (s->state < RS_CONNECTED)
		error = ENOTCONN;
	else if (s->state == RS_REFUSED)
		error = s->error != 0 ? s->error : ENOTCONN;
	if (s->state == RS_REFUSED)
		s->error = 0; /* reported once */
	return error;
}

int rs_await_connection(struct rs_socket *s, int flags)
{
	int error;

	if (rs_is_opening(s)) {
		error = rs_wait(s, is_settled, rs_must_not_wait(s, flags));
		if (error != 0)
			return error;
	}
	return error_of_state(s);
}

static int begin(struct rs_socket *s, const struct sockaddr *a)
{
	enum rs_state before = s->state;

	s->state = RS_RESOLVING;
	if (rdma_resolve_addr(s->stream.id, NULL, (struct sockaddr *)a, LIMIT_RS_RESOLVE_MS) != 0) {
		s->state = before;
		return errno;
	}
	return 0;
}

int rs_stream_connect(struct rs_socket *s, const struct sockaddr *a)
{
	int error = 0;

	switch (s->state) {
	case RS_NEW:
	case RS_BOUND:
		error = begin(s, a);
		if (error != 0)
			return error;
		break;
	case RS_LISTENING:
		return EINVAL;
	case RS_RESOLVING:
	case RS_ROUTING:
	case RS_CONNECTING:
	case RS_ACCEPTING:
		if (s->status_flags & O_NONBLOCK)
			return EALREADY;
		break;
	case RS_REFUSED:
		return error_of_state(s);
	default:
		if (s->stream.connect_reported || s->state != RS_CONNECTED)
			return EISCONN;
		break;
	}
	error = rs_await_connection(s, 0);
	s->stream.connect_reported = error == 0;
	return error == EAGAIN ? EINPROGRESS : error;
}
