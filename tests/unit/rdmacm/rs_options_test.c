/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of rsockets: rsocket(7), and others that TCP programs set. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rs_rig.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

TestSuite(rs_options, .init = rs_pair_open, .fini = rs_pair_close, .timeout = 60);

static int get_error(int socket, int level, int name)
{
	socklen_t length = sizeof(int);
	int value;

	return rgetsockopt(socket, level, name, &value, &length) == 0 ? 0 : errno;
}

Test(rs_options, a_stream_remembers_them)
{
	static const struct {
		int level, name, value, expected;
	} options[] = {
		{ SOL_SOCKET, SO_REUSEADDR, 1, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 7, 1 },
		{ SOL_SOCKET, SO_OOBINLINE, 1, 1 },
		{ SOL_SOCKET, SO_RCVBUF, 70000, 140000 },
		{ SOL_SOCKET, SO_SNDBUF, 80000, 160000 },
		{ IPPROTO_TCP, TCP_NODELAY, 1, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 5, 5 },
		{ IPPROTO_IP, IP_TOS, 0x28, 0x28 },
		{ SOL_RDMA, RDMA_SQSIZE, 99, 99 },
		{ SOL_RDMA, RDMA_RQSIZE, 98, 98 },
		{ SOL_RDMA, RDMA_RQSIZE, 1 << 20, 0xfffe }, /* credits have 16 bits */
		{ SOL_RDMA, RDMA_INLINE, 32, 32 },
		{ SOL_RDMA, RDMA_IOMAPSIZE, 300, 256 }, /* as the greeting can express */
	};

	for (size_t i = 0; i < COUNT_OF(options); i++) {
		cr_expect_eq(rs_set(s, options[i].level, options[i].name, options[i].value), 0,
			     "option %zu", i);
		cr_expect_eq(rs_ask(s, options[i].level, options[i].name), options[i].expected,
			     "option %zu", i);
	}
}

/* ip(7): an option of IP may be an octet. Others may not. */
Test(rs_options, in_an_octet)
{
	const uint8_t octet = 0x28;
	int six = rsocket(AF_INET6, SOCK_STREAM, 0);

	cr_expect_eq(rsetsockopt(s, IPPROTO_IP, IP_TOS, &octet, sizeof(octet)), 0);
	cr_expect_eq(rs_ask(s, IPPROTO_IP, IP_TOS), 0x28);
	cr_expect_eq(rsetsockopt(d, IPPROTO_IP, IP_TOS, &octet, sizeof(octet)), 0);
	cr_expect_eq(rs_ask(d, IPPROTO_IP, IP_TOS), 0x28);
	cr_expect_eq(rsetsockopt(six, IPPROTO_IPV6, IPV6_TCLASS, &octet, sizeof(octet)), -1);
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(rclose(six), 0);
}

Test(rs_options, what_can_only_be_asked)
{
	struct sockaddr_in a;

	cr_expect_eq(rs_ask(s, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
	cr_expect_eq(rs_ask(s, SOL_SOCKET, SO_DOMAIN), AF_INET);
	cr_expect_eq(rs_ask(s, SOL_SOCKET, SO_ERROR), 0);
	cr_expect_eq(rs_ask(s, SOL_SOCKET, SO_ACCEPTCONN), 0);
	cr_assert_eq(rbind(s, address(&a, OWN_ADDRESS, 0), sizeof(a)), 0);
	cr_assert_eq(rlisten(s, 1), 0);
	cr_expect_eq(rs_ask(s, SOL_SOCKET, SO_ACCEPTCONN), 1);
}

/* The queue pair decides these, so a program may set them in vain. */
Test(rs_options, what_a_queue_pair_does_anyway)
{
	cr_expect_eq(rs_set(s, IPPROTO_TCP, TCP_KEEPCNT, 9), 0);
	cr_expect_eq(rs_set(s, IPPROTO_TCP, TCP_KEEPINTVL, 75), 0);
	cr_expect_eq(rs_set(s, IPPROTO_TCP, TCP_MAXSEG, 536), 0);
	cr_expect_eq(rs_ask(s, IPPROTO_TCP, TCP_KEEPCNT), 1);
	cr_expect_eq(rs_ask(s, IPPROTO_TCP, TCP_KEEPINTVL), 1);
	cr_expect_gt(rs_ask(s, IPPROTO_TCP, TCP_MAXSEG), 0);
}

Test(rs_options, refused)
{
	static const struct {
		int level, name;
	} unknown[] = { { SOL_SOCKET, SO_MARK },       { IPPROTO_IP, IP_TTL },
			{ IPPROTO_TCP, TCP_CORK },     { IPPROTO_IPV6, IPV6_UNICAST_HOPS },
			{ SOL_RDMA, RDMA_ROUTE + 90 }, { 12345, 1 } };
	int value = 0;

	for (size_t i = 0; i < COUNT_OF(unknown); i++) {
		cr_expect_eq(rs_set(s, unknown[i].level, unknown[i].name, 1), ENOPROTOOPT, "%zu",
			     i);
		cr_expect_eq(get_error(s, unknown[i].level, unknown[i].name), ENOPROTOOPT, "%zu",
			     i);
	}
	cr_expect_eq(rs_set(s, IPPROTO_IP, IP_TOS, 256), EINVAL);
	cr_expect_eq(rsetsockopt(s, IPPROTO_IP, IP_TOS, &value, 0), -1);
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(rs_set(s, IPPROTO_IP, IP_TOS, -1), EINVAL);
	cr_expect_eq(rs_set(s, IPPROTO_TCP, TCP_KEEPIDLE, 0), EINVAL);
	cr_expect_eq(rs_set(s, IPPROTO_IPV6, IPV6_V6ONLY, 1), ENOPROTOOPT, "an IPv4 socket");
	cr_expect_eq(rgetsockopt(s, SOL_SOCKET, SO_TYPE, &value, NULL), -1);
	cr_expect_eq(errno, EFAULT);
	cr_expect_eq(rs_ask(s, IPPROTO_IP, IP_TOS), 0);
	cr_expect_eq(rs_ask(s, IPPROTO_TCP, TCP_KEEPIDLE), 7200, "as tcp(7) says");
}

Test(rs_options, of_ipv6)
{
	int six = rsocket(AF_INET6, SOCK_STREAM, 0);

	cr_assert_geq(six, 0);
	cr_expect_eq(rs_set(six, IPPROTO_IPV6, IPV6_V6ONLY, 1), 0);
	cr_expect_eq(rs_ask(six, IPPROTO_IPV6, IPV6_V6ONLY), 1);
	cr_expect_eq(rs_set(six, IPPROTO_IPV6, IPV6_TCLASS, 0x20), 0);
	cr_expect_eq(rs_ask(six, IPPROTO_IPV6, IPV6_TCLASS), 0x20);
	cr_expect_eq(rs_ask(six, SOL_SOCKET, SO_DOMAIN), AF_INET6);
	cr_expect_eq(rclose(six), 0);
}

Test(rs_options, linger)
{
	struct linger in = { 1, 3 }, out = { 0 };
	socklen_t length = sizeof(out);

	cr_expect_eq(rsetsockopt(s, SOL_SOCKET, SO_LINGER, &in, sizeof(in)), 0);
	cr_expect_eq(rgetsockopt(s, SOL_SOCKET, SO_LINGER, &out, &length), 0);
	cr_expect(length == sizeof(out) && out.l_onoff == 1 && out.l_linger == 3);
	in.l_linger = -1; /* Linux takes it for a number without a sign: for ever */
	cr_expect_eq(rsetsockopt(s, SOL_SOCKET, SO_LINGER, &in, sizeof(in)), 0);
	cr_expect_eq(rgetsockopt(s, SOL_SOCKET, SO_LINGER, &out, &length), 0);
	cr_expect_eq(out.l_linger, -1);
	cr_expect_eq(rsetsockopt(s, SOL_SOCKET, SO_LINGER, &in, sizeof(in) - 1), -1);
	cr_expect_eq(errno, EINVAL);
}

/* A linger time of 0 is for rclose(), which then ends a stream without waiting. */
Test(rs_options, a_shutdown_without_linger_time)
{
	static const char octets[50000]; /* the peer's engine acknowledges them after a while */
	const struct linger none = { .l_onoff = 1 };
	struct sockaddr_in a;
	int listener = rs_listening(&a), called = rs_connect_stream(listener, &a);
	char received[sizeof(octets)];
	ssize_t n, all = 0;

	cr_assert_eq(rsetsockopt(s, SOL_SOCKET, SO_LINGER, &none, sizeof(none)), 0);
	cr_assert_eq(rsend(s, octets, sizeof(octets), 0), sizeof(octets));
	cr_expect_eq(rshutdown(s, SHUT_WR), 0, "%s", strerror(errno));
	while ((n = rrecv(called, received, sizeof(received), 0)) > 0)
		all += n;
	cr_expect_eq(n, 0, "%s", strerror(errno));
	cr_expect_eq(all, sizeof(octets));
	cr_expect_eq(rclose(called), 0);
	cr_expect_eq(rclose(listener), 0);
}

/* Packets of a datagram socket obey its UDP socket, so the kernel knows its options. */
Test(rs_options, of_datagrams)
{
	cr_expect_eq(rs_set(d, SOL_SOCKET, SO_BROADCAST, 1), 0);
	cr_expect_eq(rs_ask(d, SOL_SOCKET, SO_BROADCAST), 1);
	cr_expect_eq(rs_set(d, IPPROTO_IP, IP_TOS, 0x28), 0);
	cr_expect_eq(rs_ask(d, IPPROTO_IP, IP_TOS), 0x28);
	cr_expect_eq(rs_ask(d, SOL_SOCKET, SO_TYPE), SOCK_DGRAM);
	cr_expect_eq(get_error(d, IPPROTO_TCP, TCP_NODELAY), EOPNOTSUPP);
	cr_expect_eq(rs_set(d, SOL_RDMA, RDMA_SQSIZE, 64), 0);
	cr_expect_eq(rs_ask(d, SOL_RDMA, RDMA_SQSIZE), 64);
	cr_expect_eq(rs_set(d, SOL_SOCKET, 12345, 1), ENOPROTOOPT, "the kernel refuses it");
}

Test(rs_options, flags_of_the_descriptor)
{
	cr_expect_eq(rfcntl(s, F_GETFL), O_RDWR);
	cr_expect_eq(rfcntl(s, F_SETFL, O_NONBLOCK), 0);
	cr_expect_eq(rfcntl(s, F_GETFL), O_RDWR | O_NONBLOCK);
	cr_expect_eq(rfcntl(s, F_SETFD, FD_CLOEXEC | 0x100), 0);
	cr_expect_eq(rfcntl(s, F_GETFD), FD_CLOEXEC);
	cr_expect_eq(rfcntl(s, F_GETOWN), -1);
	cr_expect_eq(errno, EOPNOTSUPP);
}

/* The kernel closes the descriptor of an executed program, so it must know. */
Test(rs_options, the_kernel_knows_what_exec_closes)
{
	cr_expect_eq(fcntl(s, F_GETFD), FD_CLOEXEC, "a stream is of no use after exec");
	for (int flags = FD_CLOEXEC; flags >= 0; flags -= FD_CLOEXEC) {
		cr_expect_eq(rfcntl(d, F_SETFD, flags), 0);
		cr_expect_eq(rfcntl(d, F_GETFD), flags);
		cr_expect_eq(fcntl(d, F_GETFD), flags);
	}
}

/* The program closed a descriptor that it did not know, and opened a file of its own. */
Test(rs_options, a_child_keeps_a_file_that_got_the_number)
{
	int status = -1, file;
	pid_t child;

	close(d);
	file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	cr_assert_geq(file, 0);
	if (file != d)
		cr_assert_eq(dup2(file, d), d);
	child = fork();
	if (child == 0)
		_exit(fcntl(d, F_GETFD) < 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "the child has lost the file");
}

/* socket(7) lets a program set it at any time. It counts when the socket is bound. */
Test(rs_options, reused_addresses_of_bound_sockets)
{
	struct sockaddr_in a;
	int listener = rs_listening(&a), called = rs_connect_stream(listener, &a);

	for (int value = 1; value >= 0; value--) {
		cr_expect_eq(rs_set(listener, SOL_SOCKET, SO_REUSEADDR, value), 0, "%d", value);
		cr_expect_eq(rs_set(called, SOL_SOCKET, SO_REUSEADDR, value), 0, "%d", value);
		cr_expect_eq(rs_ask(called, SOL_SOCKET, SO_REUSEADDR), value);
	}
	cr_expect_eq(rclose(called), 0);
	cr_expect_eq(rclose(listener), 0);
}

/* ---- of a connection ---- */

Test(rs_options, of_a_connection)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);
	struct sockaddr_in a;
	int listener = rs_listening(&a), called, buffer;

	cr_assert_eq(rgetsockopt(s, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
	cr_expect_eq(info.tcpi_state, TCP_CLOSE);
	called = rs_connect_stream(listener, &a);
	cr_assert_eq(rgetsockopt(s, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
	cr_expect_eq(info.tcpi_state, TCP_ESTABLISHED);
	cr_expect_eq((int)info.tcpi_snd_mss, rs_ask(s, IPPROTO_TCP, TCP_MAXSEG));
	cr_expect_eq((int)info.tcpi_snd_cwnd, rs_ask(s, SOL_RDMA, RDMA_SQSIZE));
	length = 1;
	cr_assert_eq(rgetsockopt(s, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
	cr_expect_eq(length, 1, "no more than there is room for");
	buffer = rs_ask(s, SOL_SOCKET, SO_RCVBUF);
	cr_expect_eq(rs_set(s, SOL_SOCKET, SO_RCVBUF, buffer * 2), 0);
	cr_expect_eq(rs_ask(s, SOL_SOCKET, SO_RCVBUF), buffer, "it is registered already");
	cr_expect_eq(rs_set(s, SOL_RDMA, RDMA_SQSIZE, 9), EINVAL);
	cr_expect_eq(rclose(called), 0);
	cr_expect_eq(rclose(listener), 0);
}
