/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving copies octets out of the buffer into which the peer writes. */
#include <limits.h>

#include "rdmacm/rsockets/rs.h"

/* 0: there is data, or none will come. */
static int await_data(struct rs_socket *s, int flags)
{
	int error;

	if (rs_inflow_waits(&s->stream.in))
		return 0;
	error = rs_wait(s, rs_has_data_or_gone, rs_must_not_wait(s, flags));
	if (error != 0 || rs_inflow_waits(&s->stream.in))
		return error;
	return s->error;
}

/*
 * Copies what has arrived, up to `length`. receive_lock keeps other readers away, so the data stays
 * in place while it is copied. MSG_TRUNC discards it instead (tcp(7)).
 */
static size_t copy_out(struct rs_socket *s, struct rs_cursor *c, size_t length, int flags)
{
	struct rs_inflow ahead = s->stream.in;
	struct rs_inflow *f = (flags & MSG_PEEK) ? &ahead : &s->stream.in;
	size_t copied = 0;

	while (copied < length) {
		size_t left = length - copied;
		struct rs_piece p = rs_inflow_next(f, (uint32_t)MIN_OF(left, UINT32_MAX));

		if (p.length == 0)
			break;
		pthread_mutex_unlock(&s->lock);
		if (!(flags & MSG_TRUNC))
			rs_copy_to(c, s->stream.receive.octets + p.offset, p.length);
		pthread_mutex_lock(&s->lock);
		rs_inflow_take(f, p.length);
		copied += p.length;
	}
	return copied;
}

static size_t receive_all(struct rs_socket *s, struct rs_cursor *c, size_t length, int flags,
			  int *error)
{
	size_t received = 0;

	*error = rs_await_connection(s, flags);
	while (*error == 0 && received < length) {
		size_t n;

		*error = await_data(s, flags);
		if (*error != 0)
			break;
		n = copy_out(s, c, length - received, flags);
		received += n;
		if (rs_inflow_owes(&s->stream.in))
			rs_process(s);
		if (n == 0 || (flags & MSG_PEEK) || !(flags & MSG_WAITALL))
			break;
	}
	return received;
}

ssize_t rs_stream_receive(struct rs_socket *s, const struct iovec *iov, size_t count, int flags)
{
	struct rs_cursor c = { .iov = iov, .count = (int)count };
	ssize_t length = rs_iov_length(iov, count);
	size_t received;
	int error;

	if (length < 0)
		return result(EINVAL);
	if (flags & MSG_OOB)
		return result(EINVAL);
	rs_direction_begin(&s->receive_lock);
	pthread_mutex_lock(&s->lock);
	received = receive_all(s, &c, (size_t)length, flags, &error);
	if (received == 0 && error == s->error)
		s->error = 0; /* reported only once, by a call that did nothing else */
	pthread_mutex_unlock(&s->lock);
	rs_direction_end();
	return received > 0 || error == 0 ? (ssize_t)received : result(error);
}

/* ---- calls ---- */

static ssize_t receive_any(int socket, const struct iovec *iov, size_t count, int flags,
			   struct sockaddr *from, socklen_t *length, int *message_flags)
{
	struct rs_socket *s;
	ssize_t received;

	if (from != NULL && length == NULL)
		return result(EFAULT);
	s = rs_get(socket);
	if (s == NULL)
		return -1;
	if (!rs_is_stream(s)) {
		received = rs_datagram_receive(s, iov, count, flags, from, length, message_flags);
	} else {
		received = rs_stream_receive(s, iov, count, flags);
		if (received >= 0 && from != NULL)
			rs_copy_address(&s->stream.id->route.addr.dst_storage, from, length);
	}
	rs_put(s);
	return received;
}

EXPORT ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	int message_flags;

	return receive_any(socket, &iov, 1, flags, NULL, NULL, &message_flags);
}

EXPORT ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr,
			 socklen_t *addrlen)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	int message_flags;

	return receive_any(socket, &iov, 1, flags, src_addr, addrlen, &message_flags);
}

/* A message never has control data. */
EXPORT ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	ssize_t received;

	if (msg == NULL)
		return result(EFAULT);
	if (msg->msg_iovlen > IOV_MAX)
		return result(EMSGSIZE);
	msg->msg_controllen = 0;
	msg->msg_flags = 0;
	received = receive_any(socket, msg->msg_iov, msg->msg_iovlen, flags, msg->msg_name,
			       &msg->msg_namelen, &msg->msg_flags);
	return received;
}

EXPORT ssize_t rread(int socket, void *buf, size_t count)
{
	return rrecv(socket, buf, count, 0);
}

EXPORT ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	int message_flags;

	if (iovcnt < 0)
		return result(EINVAL);
	return receive_any(socket, iov, (size_t)iovcnt, 0, NULL, NULL, &message_flags);
}
