/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UDP socket of a datagram socket. It finds the peers' queue pairs, and carries datagrams until
 * they are known.
 */
#include "rdmacm/rsockets/rs_datagram.h"

int rs_udp_send(struct rs_socket *s, const struct rs_destination *d, enum rs_udp_operation what,
		const void *octets, size_t length, bool must_not_wait)
{
	int flags = MSG_NOSIGNAL | (must_not_wait ? MSG_DONTWAIT : 0);
	struct rs_udp u = { .operation = what, .qpn = d->local->id->qp->qp_num };
	uint8_t header[RS_UDP_HEADER_MAX];
	struct iovec iov[2] = { { .iov_base = header },
				{ .iov_base = (void *)octets, .iov_len = length } };
	struct msghdr m = { .msg_name = (void *)&d->address,
			    .msg_namelen = rs_address_length((const struct sockaddr *)&d->address),
			    .msg_iov = iov,
			    .msg_iovlen = 2 };

	iov[0].iov_len = rs_udp_store(header, &u, (const struct sockaddr *)&d->local->address);
	return sendmsg(s->fd, &m, flags) >= 0 ? 0 : errno;
}

/*
 * Linux takes the port away, too, unless bind(2) asked for that port. But our datagrams name it,
 * so the socket is bound to it again. sin_port and sin6_port have the same offset. If another
 * socket is faster, this one takes a port when it sends.
 */
int rs_udp_disconnect(struct rs_socket *s)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct sockaddr_storage before = { 0 }, after = { 0 };
	struct sockaddr_in *now = (struct sockaddr_in *)&after;
	socklen_t length = sizeof(before), after_length = sizeof(after);

	if (getsockname(s->fd, (struct sockaddr *)&before, &length) != 0 ||
	    connect(s->fd, &none, sizeof(none)) != 0 ||
	    getsockname(s->fd, (struct sockaddr *)&after, &after_length) != 0)
		return errno;
	if (now->sin_port == 0) {
		now->sin_port = ((struct sockaddr_in *)&before)->sin_port;
		bind(s->fd, (struct sockaddr *)&after, after_length);
	}
	return 0;
}

static void take(struct rs_socket *s, const uint8_t *octets, size_t length,
		 const struct sockaddr_storage *from)
{
	struct rs_udp u;
	size_t header = rs_udp_load(&u, octets, length, from->ss_family);
	struct rs_destination *d;

	if (header == 0 || rs_destination_for(s, (const struct sockaddr *)from, &d) != 0)
		return;
	if (u.operation == RS_UDP_DATA)
		rs_udp_send(s, d, RS_UDP_CONTROL, NULL, 0, true); /* best effort */
	rs_destination_heard(d);
	rs_destination_resolve(s, d, u.qpn);
	if (u.operation == RS_UDP_DATA)
		rs_deliver(s, from, octets + header, length - header);
}

/*
 * As udp(7), a connected socket reports what came back for an earlier datagram: ECONNREFUSED, if the
 * peer has no such port.
 */
static void report(struct rs_socket *s, int error)
{
	if (error == EAGAIN || error == EINTR || s->datagrams.peer == NULL)
		return;
	s->error = error;
	rs_wake(s);
}

void rs_udp_progress(struct rs_socket *s)
{
	uint8_t octets[RS_UDP_HEADER_MAX + LIMIT_RS_DATAGRAM];
	struct sockaddr_storage from;
	socklen_t from_length;
	ssize_t n;

	for (int i = 0; i < LIMIT_RS_UDP_BURST; i++) {
		from_length = sizeof(from);
		memset(&from, 0, sizeof(from));
		n = recvfrom(s->fd, octets, sizeof(octets), MSG_DONTWAIT, (struct sockaddr *)&from,
			     &from_length);
		if (n < 0) {
			report(s, errno);
			break;
		}
		take(s, octets, (size_t)n, &from);
	}
}
