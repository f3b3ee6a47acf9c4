/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wrong arguments and wrong states of rsockets: the errno of the corresponding call of socket(2).
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "rs_rig.h"

TestSuite(rs_arguments, .init = rs_pair_open, .fini = rs_pair_close, .timeout = 60);

Test(rs_arguments, unknown_domains_types_and_protocols)
{
	FAILS(rsocket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
	FAILS(rsocket(AF_INET, SOCK_SEQPACKET, 0), ESOCKTNOSUPPORT);
	FAILS(rsocket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ESOCKTNOSUPPORT);
	FAILS(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), EPROTONOSUPPORT);
	FAILS(rsocket(AF_INET, SOCK_DGRAM, IPPROTO_TCP), EPROTONOSUPPORT);
}

Test(rs_arguments, descriptors_that_are_not_rsockets)
{
	struct sockaddr_in a;
	char octet;

	FAILS(rbind(0, address(&a, OWN_ADDRESS, 0), sizeof(a)), EBADF);
	FAILS(rlisten(-1, 1), EBADF);
	FAILS(raccept(1 << 20, NULL, NULL), EBADF);
	FAILS(rrecv(0, &octet, 1, 0), EBADF);
	FAILS(rsend(0, &octet, 1, 0), EBADF);
	FAILS(rclose(0), EBADF);
	FAILS(rfcntl(0, F_GETFL), EBADF);
	FAILS(riomap(0, &octet, 1, PROT_WRITE, 0, 0), EBADF);
}

Test(rs_arguments, addresses)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in a;

	FAILS(rbind(s, NULL, sizeof(a)), EFAULT);
	FAILS(rbind(s, address(&a, OWN_ADDRESS, 0), 4), EINVAL);
	FAILS(rbind(s, (struct sockaddr *)&six, sizeof(six)), EAFNOSUPPORT);
	FAILS(rbind(s, address(&a, "192.0.2.1", 0), sizeof(a)), EADDRNOTAVAIL);
	FAILS(rconnect(s, NULL, sizeof(a)), EFAULT);
	FAILS(rgetsockname(s, (struct sockaddr *)&a, NULL), EFAULT);
}

/* A buffer for them may be there, as long as it is empty. */
Test(rs_arguments, ancillary_data)
{
	char octet = 0, room[64] = { 0 };
	struct iovec piece = { &octet, 1 };
	struct msghdr m = { .msg_iov = &piece,
			    .msg_iovlen = 1,
			    .msg_control = room,
			    .msg_controllen = sizeof(room) };

	FAILS(rsendmsg(s, &m, 0), EOPNOTSUPP);
	m.msg_controllen = 0;
	FAILS(rsendmsg(s, &m, 0), ENOTCONN);
}

/* writev(2) and sendmsg(2) have different errors for this. */
Test(rs_arguments, too_many_pieces)
{
	static struct iovec pieces[IOV_MAX + 1];
	struct msghdr m = { .msg_iov = pieces, .msg_iovlen = IOV_MAX + 1 };

	FAILS(rwritev(d, pieces, IOV_MAX + 1), EINVAL);
	FAILS(rreadv(d, pieces, IOV_MAX + 1), EINVAL);
	FAILS(rwritev(d, pieces, -1), EINVAL);
	FAILS(rsendmsg(d, &m, 0), EMSGSIZE);
	FAILS(rrecvmsg(d, &m, MSG_DONTWAIT), EMSGSIZE);
	m.msg_iovlen = IOV_MAX;
	FAILS(rsendmsg(s, &m, 0), ENOTCONN);
	FAILS(rrecvmsg(d, &m, MSG_DONTWAIT), EAGAIN);
}

Test(rs_arguments, not_in_this_state)
{
	socklen_t length = sizeof(struct sockaddr_in);
	struct sockaddr_in a;
	char octet = 0;

	FAILS(raccept(s, NULL, NULL), EINVAL);
	FAILS(rrecv(s, &octet, 1, 0), ENOTCONN);
	FAILS(rsend(s, &octet, 1, 0), ENOTCONN);
	FAILS(rshutdown(s, SHUT_RDWR), ENOTCONN);
	FAILS(rgetpeername(s, (struct sockaddr *)&a, &length), ENOTCONN);
	FAILS(riomap(s, &octet, 1, PROT_WRITE, 0, 0), ENOTCONN);
	FAILS(riounmap(s, &octet, 1), EINVAL);
	FAILS(rlisten(d, 1), EOPNOTSUPP);
	FAILS(raccept(d, NULL, NULL), EOPNOTSUPP);
	FAILS(rsend(d, &octet, 1, 0), EDESTADDRREQ);
	FAILS(rrecv(d, &octet, 1, MSG_DONTWAIT), EAGAIN);
	cr_assert_eq(rbind(s, address(&a, OWN_ADDRESS, 0), sizeof(a)), 0);
	FAILS(rbind(s, (struct sockaddr *)&a, sizeof(a)), EINVAL);
	cr_assert_eq(rlisten(s, 1), 0);
	FAILS(rconnect(s, (struct sockaddr *)&a, sizeof(a)), EINVAL);
	cr_assert_eq(rfcntl(s, F_SETFL, O_NONBLOCK), 0);
	FAILS(raccept(s, NULL, NULL), EAGAIN);
}

Test(rs_arguments, refused_without_a_listener)
{
	struct sockaddr_in a;

	FAILS(rconnect(s, address(&a, OWN_ADDRESS, 9), sizeof(a)), ECONNREFUSED);
	FAILS(rsend(s, "x", 1, 0), ENOTCONN); /* that it was refused is said once */
}

Test(rs_arguments, options)
{
	int value = 70000;
	socklen_t length = sizeof(value);

	FAILS(rsetsockopt(s, SOL_SOCKET, SO_RCVBUF, NULL, sizeof(value)), EFAULT);
	FAILS(rsetsockopt(s, SOL_SOCKET, SO_RCVBUF, &value, 1), EINVAL);
	FAILS(rsetsockopt(s, SOL_SOCKET, SO_MARK, &value, sizeof(value)), ENOPROTOOPT);
	FAILS(rgetsockopt(s, SOL_RDMA, 99, &value, &length), ENOPROTOOPT);
	cr_assert_eq(rsetsockopt(s, SOL_SOCKET, SO_RCVBUF, &value, sizeof(value)), 0);
	cr_assert_eq(rgetsockopt(s, SOL_SOCKET, SO_RCVBUF, &value, &length), 0);
	cr_expect_eq(value, 140000);
	value = 300;
	cr_assert_eq(rsetsockopt(s, SOL_RDMA, RDMA_IOMAPSIZE, &value, sizeof(value)), 0);
	cr_assert_eq(rgetsockopt(s, SOL_RDMA, RDMA_IOMAPSIZE, &value, &length), 0);
	cr_expect_eq(value, 256, "as the greeting can express");
	value = 0;
	FAILS(rsetsockopt(s, IPPROTO_TCP, TCP_KEEPIDLE, &value, sizeof(value)), EINVAL);
}

/* One thread is enough, because connections are established before they are accepted. */
Test(rs_arguments, connected_before_accepted_and_the_end)
{
	struct sockaddr_in a;
	int listener = rs_listening(&a), called;
	char text[8] = { 0 };

	cr_assert_eq(rconnect(s, (struct sockaddr *)&a, sizeof(a)), 0, "%s", strerror(errno));
	FAILS(rconnect(s, (struct sockaddr *)&a, sizeof(a)), EISCONN);
	FAILS(rsendto(s, "x", 1, 0, (struct sockaddr *)&a, sizeof(a)), EISCONN);
	called = raccept(listener, NULL, NULL);
	cr_assert_geq(called, 0, "%s", strerror(errno));
	cr_assert_eq(rsend(s, "hello", 6, 0), 6);
	cr_assert_eq(rrecv(called, text, 3, MSG_PEEK), 3);
	cr_assert_eq(rrecv(called, text, 6, MSG_WAITALL), 6);
	cr_expect_str_eq(text, "hello");
	cr_assert_eq(rshutdown(s, SHUT_WR), 0);
	cr_expect_eq(rrecv(called, text, 6, 0), 0, "the end of the stream");
	cr_assert_eq(rsend(called, "back", 4, 0), 4, "the other direction is open");
	FAILS(rsend(s, "x", 1, 0), EPIPE);
	cr_assert_eq(rclose(called), 0);
	cr_expect_eq(rrecv(s, text, 8, 0), 4, "data that came before the end can be read");
	cr_expect_eq(rrecv(s, text, 8, 0), 0);
	cr_assert_eq(rclose(listener), 0);
}

/* send(2): EPIPE, "the local end has been shut down". */
Test(rs_arguments, the_error_after_an_own_end)
{
	struct sockaddr_in a;
	int listener = rs_listening(&a), called;
	char octet = 0;

	cr_assert_eq(rs_set(listener, SOL_RDMA, RDMA_IOMAPSIZE, 8), 0);
	called = rs_connect_stream(listener, &a);
	cr_assert_eq(riomap(s, &octet, 1, PROT_WRITE, 0, 0), 0, "%s", strerror(errno));
	cr_assert_eq(rshutdown(s, SHUT_WR), 0);
	FAILS(rsend(s, "x", 1, 0), EPIPE); /* it would tell the mapping first */
	cr_assert_eq(riounmap(s, &octet, 1), 0);
	FAILS(rsend(s, "x", 1, 0), EPIPE);
	cr_assert_eq(rshutdown(s, SHUT_RDWR), 0);
	FAILS(rsend(s, "x", 1, 0), EPIPE);
	cr_expect_eq(rclose(called), 0);
	cr_expect_eq(rclose(listener), 0);
}

/* tcp(7): MSG_TRUNC discards octets of a stream, and needs no buffer. */
Test(rs_arguments, octets_are_discarded)
{
	struct sockaddr_in a;
	int listener = rs_listening(&a), called = rs_connect_stream(listener, &a);
	char octets[2] = "";

	cr_assert_eq(rsend(s, "abcde", 5, 0), 5);
	cr_expect_eq(rrecv(called, octets, 1, 0), 1);
	cr_expect_eq(rrecv(called, NULL, 3, MSG_TRUNC | MSG_WAITALL), 3);
	cr_expect_eq(rrecv(called, octets + 1, 1, 0), 1);
	cr_expect(octets[0] == 'a' && octets[1] == 'e');
	cr_expect_eq(rclose(called), 0);
	cr_expect_eq(rclose(listener), 0);
}

Test(rs_arguments, poll_reports_both_kinds)
{
	struct sockaddr_in a;
	int listener = rs_listening(&a), called, ends[2];
	struct pollfd p[3] = { { .fd = listener, .events = POLLIN },
			       { .fd = s, .events = POLLIN | POLLOUT } };

	cr_assert_eq(pipe(ends), 0);
	p[2] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	cr_expect_eq(rpoll(p, 3, 0), 0);
	cr_assert_eq(rfcntl(s, F_SETFL, O_NONBLOCK), 0);
	FAILS(rconnect(s, (struct sockaddr *)&a, sizeof(a)), EINPROGRESS);
	p[2].fd = -1;
	cr_assert_eq(rpoll(p, 1, WAIT_SECONDS * 1000), 1, "the listener");
	called = raccept(listener, NULL, NULL);
	cr_assert_geq(called, 0);
	cr_assert_eq(rpoll(p + 1, 1, WAIT_SECONDS * 1000), 1);
	cr_expect_eq(p[1].revents, POLLOUT);
	p[2].fd = ends[0];
	p[1].events = POLLIN;
	cr_assert_eq(write(ends[1], "x", 1), 1);
	cr_assert_eq(rpoll(p, 3, WAIT_SECONDS * 1000), 1);
	cr_expect_eq(p[2].revents, POLLIN);
	cr_assert_eq(rclose(called), 0);
	p[2].fd = -1;
	cr_assert_eq(rpoll(p, 3, WAIT_SECONDS * 1000), 1);
	cr_expect_eq(p[1].revents, POLLIN | POLLHUP);
	cr_assert_eq(rclose(listener), 0);
	close(ends[0]);
	close(ends[1]);
}

/* poll(2): POLLRDNORM is equivalent to POLLIN, POLLWRNORM to POLLOUT. */
Test(rs_arguments, poll_knows_both_names)
{
	struct sockaddr_in a, nowhere;
	int listener = rs_listening(&a), refused = rsocket(AF_INET, SOCK_STREAM, 0);
	struct pollfd p = { .fd = listener, .events = POLLRDNORM };
	struct pollfd r = { .fd = refused, .events = POLLRDNORM | POLLWRNORM };

	cr_assert_eq(rfcntl(s, F_SETFL, O_NONBLOCK), 0);
	FAILS(rconnect(s, (struct sockaddr *)&a, sizeof(a)), EINPROGRESS);
	cr_expect_eq(rpoll(&p, 1, WAIT_SECONDS * 1000), 1, "the listener");
	cr_expect_eq(p.revents, POLLRDNORM);
	p = (struct pollfd){ .fd = s, .events = POLLWRNORM };
	cr_expect_eq(rpoll(&p, 1, WAIT_SECONDS * 1000), 1);
	cr_expect_eq(p.revents, POLLWRNORM);
	FAILS(rconnect(refused, address(&nowhere, OWN_ADDRESS, 9), sizeof(a)), ECONNREFUSED);
	cr_expect_eq(rpoll(&r, 1, 0), 1);
	cr_expect_eq(r.revents, POLLRDNORM | POLLWRNORM | POLLERR);
	cr_expect_eq(rclose(refused), 0);
	cr_expect_eq(rclose(listener), 0);
}

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* How long rselect() for one set of one descriptor finds nothing. -1: it finds something. */
static int64_t quiet_us(int fd, bool for_writing, int64_t patience_us)
{
	struct timeval patience = { .tv_usec = patience_us };
	int64_t begin = now_us();
	fd_set set;
	int found;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	found = rselect(fd + 1, NULL, for_writing ? &set : NULL, for_writing ? NULL : &set,
			&patience);
	cr_expect_geq(found, 0, "%s", strerror(errno));
	cr_expect_eq(found, FD_ISSET(fd, &set) != 0);
	return found > 0 ? -1 : now_us() - begin;
}

/* Linux's select(2): a hangup is readable, an error is readable and writable, neither is exceptional. */
Test(rs_arguments, select_waits_for_what_its_sets_are_about)
{
	const int64_t patience = 100000;
	struct sockaddr_in a;
	int listener = rs_listening(&a), called = rs_connect_stream(listener, &a), ends[2], more[2];

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(pipe(more), 0);
	close(ends[1]);
	close(more[0]);
	cr_expect_geq(quiet_us(ends[0], false, patience), patience, "the hangup of a pipe");
	cr_expect_geq(quiet_us(ends[0], true, patience), patience, "the hangup of a pipe");
	cr_expect_geq(quiet_us(more[1], false, patience), patience, "the error of a pipe");
	cr_expect_eq(quiet_us(more[1], true, patience), -1, "the error of a pipe");
	cr_expect_eq(quiet_us(ends[0], false, 0) < 0, false);
	cr_assert_eq(rclose(called), 0);
	cr_expect_geq(quiet_us(s, false, patience), patience, "the hangup of a stream");
	cr_expect_eq(quiet_us(s, true, patience), -1, "no sender waits for a peer that is gone");
	cr_expect_eq(rclose(listener), 0);
	close(ends[0]);
	close(more[1]);
}

/* What one descriptor is not asked for does not hide the others. */
Test(rs_arguments, select_finds_others_beside_a_hangup)
{
	struct timeval patience = { .tv_sec = WAIT_SECONDS };
	int ends[2], more[2];
	fd_set r, e;

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(pipe(more), 0);
	close(ends[1]);
	cr_assert_eq(write(more[1], "x", 1), 1);
	FD_ZERO(&r);
	FD_ZERO(&e);
	FD_SET(more[0], &r);
	FD_SET(ends[0], &e);
	cr_expect_eq(rselect(more[1] + 1, &r, NULL, &e, &patience), 1);
	cr_expect(FD_ISSET(more[0], &r) && !FD_ISSET(ends[0], &e));
	close(ends[0]);
	close(more[0]);
	close(more[1]);
}

/* Small sets are on the stack, larger ones are allocated. */
Test(rs_arguments, poll_takes_few_and_many)
{
	struct pollfd p[64];
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	for (nfds_t n = 1; n <= 64; n++) {
		for (nfds_t i = 0; i < n; i++)
			p[i] = (struct pollfd){ .fd = i % 2 ? s : -1, .events = POLLIN };
		p[n - 1] = (struct pollfd){ .fd = ends[1], .events = POLLOUT };
		cr_assert_eq(rpoll(p, n, 0), 1, "%lu", n);
		cr_assert_eq(p[n - 1].revents, POLLOUT, "%lu", n);
		p[n - 1] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
		cr_assert_eq(rpoll(p, n, 1), 0, "%lu", n);
	}
	close(ends[0]);
	close(ends[1]);
}
