/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending copies the octets, so a call may return before they have arrived. */
#include <limits.h>

#include "config/limits.h"
#include "rdmacm/rsockets/rs.h"

/* ---- one message ---- */

int rs_error_of_end(const struct rs_socket *s)
{
	if (s->error != 0)
		return s->error;
	return s->stream.shut ? EPIPE : ECONNRESET;
}

/* 0: a message can be sent, or none ever can. */
static int await_room(struct rs_socket *s, int flags)
{
	if (rs_may_send(s))
		return 0;
	return rs_wait(s, rs_may_send_or_gone, rs_must_not_wait(s, flags));
}

/*
 * Releases the lock while octets are copied. send_lock keeps other threads away from these places.
 */
static int fill_pieces(struct rs_socket *s, struct rs_write *w, struct rs_cursor *c, uint32_t n)
{
	struct rs_memory *m = &s->stream.send;
	struct rs_piece p[2];

	w->pieces = rs_outflow_pieces(&s->stream.out, n, p);
	w->octets = n;
	pthread_mutex_unlock(&s->lock);
	for (int i = 0; i < w->pieces; i++) {
		rs_copy_from(c, m->octets + p[i].offset, p[i].length);
		w->sge[i] = (struct ibv_sge){ .addr = (uintptr_t)m->octets + p[i].offset,
					      .length = p[i].length,
					      .lkey = m->mr->lkey };
	}
	pthread_mutex_lock(&s->lock);
	return s->writable ? 0 : rs_error_of_end(s);
}

static void fill_inline(struct rs_write *w, struct rs_cursor *c, uint8_t *buffer, uint32_t n)
{
	rs_copy_from(c, buffer, n);
	w->is_inline = true;
	w->pieces = 1;
	w->sge[0] = (struct ibv_sge){ .addr = (uintptr_t)buffer, .length = n };
}

/* Sends one message, for which there is room. `w`: its destination and type. */
static int send_one(struct rs_socket *s, struct rs_write *w, struct rs_cursor *c, uint32_t n)
{
	uint8_t buffer[LIMIT_INLINE];
	int error = 0;

	w->what = RS_POSTED_DATA;
	if (n <= s->sizes.inline_data)
		fill_inline(w, c, buffer, n);
	else
		error = fill_pieces(s, w, c, n);
	if (error != 0)
		return error;
	rs_outflow_sent(&s->stream.out, w->octets);
	return rs_stream_write(s, w);
}

/* ---- many ---- */

/* The first message is short, so that the peer starts while the next one is being copied. */
static uint32_t next_chunk(uint32_t *chunk, size_t left)
{
	uint32_t n = (uint32_t)MIN_OF(left, *chunk);

	if (*chunk < LIMIT_RS_CHUNK_MAX)
		*chunk *= 2;
	return n;
}

static int send_to_stream(struct rs_socket *s, struct rs_cursor *c, uint32_t *n)
{
	struct rs_stream *t = &s->stream;
	struct rs_write w = { .has_message = true };

	*n = MIN_OF(*n, MIN_OF(t->out.available, t->target.length));
	w.message = rs_message(RS_DATA, *n);
	w.address = t->target.address;
	w.key = t->target.key;
	t->out.sent++;
	t->target.address += *n;
	t->target.length -= *n;
	return send_one(s, &w, c, *n);
}

static int send_to_mapped(struct rs_socket *s, struct rs_cursor *c, uint64_t offset, uint32_t *n)
{
	struct rs_write w = { 0 };
	struct rs_sge left;

	if (!rs_find_mapped(s, offset, &left))
		return EINVAL;
	*n = MIN_OF(*n, MIN_OF(s->stream.out.available, left.length));
	w.address = left.address;
	w.key = left.key;
	return send_one(s, &w, c, *n);
}

/*
 * `offset`: into the peer's mapped buffers, or NULL. Returns the octets sent, and sets `error` if
 * these are not all.
 */
static size_t send_all(struct rs_socket *s, struct rs_cursor *c, size_t length, int flags,
		       uint64_t *offset, int *error)
{
	uint32_t chunk = LIMIT_RS_CHUNK_MIN, n;
	size_t sent = 0;

	*error = rs_await_connection(s, flags);
	if (*error == 0)
		*error = rs_tell_mappings(s, flags);
	while (*error == 0 && sent < length) {
		*error = await_room(s, flags);
		if (*error == 0 && !s->writable)
			*error = rs_error_of_end(s);
		if (*error != 0)
			break;
		n = next_chunk(&chunk, length - sent);
		if (offset == NULL)
			*error = send_to_stream(s, c, &n);
		else
			*error = send_to_mapped(s, c, *offset + sent, &n);
		if (*error == 0)
			sent += n;
	}
	return sent;
}

static ssize_t send_vector(struct rs_socket *s, const struct iovec *iov, size_t count, int flags,
			   uint64_t *offset)
{
	struct rs_cursor c = { .iov = iov, .count = (int)count };
	ssize_t length = rs_iov_length(iov, count);
	size_t sent;
	int error;

	if (length < 0)
		return result(EINVAL);
	if (flags & MSG_OOB)
		return result(EOPNOTSUPP);
	rs_direction_begin(&s->send_lock);
	pthread_mutex_lock(&s->lock);
	sent = send_all(s, &c, (size_t)length, flags, offset, &error);
	if (sent == 0 && error == s->error)
		s->error = 0; /* reported only once, by a call that did nothing else */
	pthread_mutex_unlock(&s->lock);
	rs_direction_end();
	return sent > 0 || error == 0 ? (ssize_t)sent : result(error);
}

ssize_t rs_stream_send(struct rs_socket *s, const struct iovec *iov, size_t count, int flags)
{
	return send_vector(s, iov, count, flags, NULL);
}

ssize_t rs_stream_send_to(struct rs_socket *s, const struct iovec *iov, uint64_t offset, int flags)
{
	return send_vector(s, iov, 1, flags, &offset);
}

/* ---- calls ---- */

static ssize_t send_any(int socket, const struct iovec *iov, size_t count, int flags,
			const struct sockaddr *to, socklen_t length)
{
	struct rs_socket *s = rs_get(socket);
	ssize_t sent;

	if (s == NULL)
		return -1;
	if (!rs_is_stream(s))
		sent = rs_datagram_send(s, iov, count, flags, to, length);
	else if (to != NULL)
		sent = result(s->state < RS_CONNECTED ? ENOTCONN : EISCONN);
	else
		sent = rs_stream_send(s, iov, count, flags);
	rs_put(s);
	return sent;
}

EXPORT ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return send_any(socket, &iov, 1, flags, NULL, 0);
}

EXPORT ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
		       const struct sockaddr *dest_addr, socklen_t addrlen)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return send_any(socket, &iov, 1, flags, dest_addr, addrlen);
}

EXPORT ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	if (msg == NULL)
		return result(EFAULT);
	if (msg->msg_iovlen > IOV_MAX)
		return result(EMSGSIZE);
	if (msg->msg_control != NULL && msg->msg_controllen > 0)
		return result(EOPNOTSUPP);
	return send_any(socket, msg->msg_iov, msg->msg_iovlen, flags, msg->msg_name,
			msg->msg_namelen);
}

EXPORT ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return rsend(socket, buf, count, 0);
}

EXPORT ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	return iovcnt < 0 ? result(EINVAL) : send_any(socket, iov, (size_t)iovcnt, 0, NULL, 0);
}
