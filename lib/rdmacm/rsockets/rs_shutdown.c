/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a stream. A message after the data tells the peer. Data and message must have arrived
 * before the queue pair can be destroyed. The peer's engine acknowledges them whatever its program
 * does (RS_CONTROL_RECEIVES). The wait is bounded in case the engine is gone.
 */
#include "rdmacm/rsockets/rs.h"

static bool may_tell_or_gone(struct rs_socket *s)
{
	return s->stream.out.control_places > 0 || s->state != RS_CONNECTED;
}

/*
 * A linger time of 0 concerns rclose() alone, which does not come here then. Linux takes a
 * negative one for a very long one.
 */
static int patience(const struct rs_socket *s)
{
	if (s->options.linger.l_onoff && s->options.linger.l_linger > 0)
		return (int)MIN_OF(s->options.linger.l_linger, LIMIT_RS_CLOSE_MS / 1000) * 1000;
	return LIMIT_RS_CLOSE_MS;
}

/* A stream that has failed has nothing left to wait for, and did not send it. */
static int linger(struct rs_socket *s, rs_condition *is_true)
{
	int error = rs_linger(s, is_true, patience(s));

	if (error != 0 || s->state != RS_FAILED)
		return error;
	return s->error != 0 ? s->error : ECONNRESET; /* another thread's call has reported it */
}

/*
 * Waits even on a non-blocking socket. This is like the linger of TCP, except that TCP lingers
 * after the call.
 */
static int tell(struct rs_socket *s, enum rs_control what)
{
	int error = linger(s, may_tell_or_gone);

	if (error != 0 || s->state != RS_CONNECTED)
		return error;
	error = rs_stream_post(s, rs_message(RS_CONTROL, what),
			       what == RS_DISCONNECT ? RS_POSTED_DISCONNECT : RS_POSTED_SHUTDOWN);
	return error != 0 ? error : linger(s, rs_all_is_sent);
}

int rs_stream_shutdown(struct rs_socket *s, int how)
{
	bool was_writable = s->writable;

	if (s->state != RS_CONNECTED)
		return 0;
	if (!s->readable && !s->writable) /* told, by another thread perhaps */
		return linger(s, rs_all_is_sent);
	if (how != SHUT_WR)
		s->readable = false;
	if (how != SHUT_RD) {
		s->stream.shut = true;
		s->writable = false;
	}
	rs_wake(s);
	if (!s->readable && !s->writable)
		return tell(s, RS_DISCONNECT);
	/* the protocol has no message for "reads no more" */
	return was_writable && !s->writable ? tell(s, RS_SHUTDOWN) : 0;
}

/*
 * Does not use shutdown(2). A UDP socket that was shut down stays readable for ever, and the call
 * would not wake waiting threads, because they do not wait in the socket. Like shutdown(2) on UDP,
 * this takes effect even if it fails because there is no peer.
 */
static int shutdown_datagrams(struct rs_socket *s, int how)
{
	if (how != SHUT_WR)
		s->readable = false;
	if (how != SHUT_RD)
		s->writable = false;
	rs_wake(s);
	return s->datagrams.peer == NULL ? ENOTCONN : 0;
}

static int shutdown_locked(struct rs_socket *s, int how)
{
	int error;

	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return EINVAL;
	if (!rs_is_stream(s))
		return shutdown_datagrams(s, how);
	if (s->state < RS_CONNECTED || s->state == RS_REFUSED)
		return ENOTCONN;
	error = rs_stream_shutdown(s, how);
	if (s->state == RS_DISCONNECTED)
		rdma_disconnect(s->stream.id);
	return error == EAGAIN ? ETIMEDOUT : error;
}

EXPORT int rshutdown(int socket, int how)
{
	struct rs_socket *s = rs_get(socket);
	int error;

	if (s == NULL)
		return -1;
	pthread_mutex_lock(&s->lock);
	error = shutdown_locked(s, how);
	pthread_mutex_unlock(&s->lock);
	rs_put(s);
	return result(error);
}
