/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagram sockets are not there yet: rsocket() says EOPNOTSUPP. */
#include "rdmacm/rs.h"

int rs_datagrams_open(struct rs_socket *s)
{
	(void)s;
	return EOPNOTSUPP;
}
void rs_datagrams_close(struct rs_socket *s)
{
	(void)s;
}
void rs_datagrams_process(struct rs_socket *s)
{
	(void)s;
}
void rs_datagrams_arm(struct rs_socket *s)
{
	(void)s;
}
bool rs_datagram_waits(struct rs_socket *s)
{
	(void)s;
	return false;
}
bool rs_datagram_may_go(struct rs_socket *s)
{
	(void)s;
	return false;
}
int rs_datagrams_bind(struct rs_socket *s, const struct sockaddr *a, socklen_t length)
{
	(void)s;
	(void)a;
	(void)length;
	return EOPNOTSUPP;
}
int rs_datagrams_connect(struct rs_socket *s, const struct sockaddr *a, socklen_t length)
{
	(void)s;
	(void)a;
	(void)length;
	return EOPNOTSUPP;
}
ssize_t rs_datagram_send(struct rs_socket *s, const struct iovec *iov, size_t count, int flags,
			 const struct sockaddr *to, socklen_t length)
{
	(void)s;
	(void)iov;
	(void)count;
	(void)flags;
	(void)to;
	(void)length;
	return result(EOPNOTSUPP);
}
ssize_t rs_datagram_receive(struct rs_socket *s, const struct iovec *iov, size_t count, int flags,
			    struct sockaddr *from, socklen_t *length, int *message_flags)
{
	(void)s;
	(void)iov;
	(void)count;
	(void)flags;
	(void)from;
	(void)length;
	(void)message_flags;
	return result(EOPNOTSUPP);
}
void rs_datagrams_progress(struct rs_socket *s)
{
	(void)s;
}
