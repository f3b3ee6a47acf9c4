/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagram rsockets: their bounds, and shutting them down. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"

static int a, b; /* a sends to b */
static struct sockaddr_in to;

static void begin(void)
{
	socklen_t length = sizeof(to);
	struct sockaddr_in from;

	a = rsocket(AF_INET, SOCK_DGRAM, 0);
	b = rsocket(AF_INET, SOCK_DGRAM, 0);
	cr_assert_geq(a, 0);
	cr_assert_geq(b, 0);
	cr_assert_eq(rbind(a, address(&from, OWN_ADDRESS, 0), length), 0);
	cr_assert_eq(rbind(b, address(&to, OWN_ADDRESS, 0), length), 0);
	cr_assert_eq(rgetsockname(b, (struct sockaddr *)&to, &length), 0);
}

static void end(void)
{
	cr_expect_eq(rclose(a), 0);
	cr_expect_eq(rclose(b), 0);
}

TestSuite(rs_datagrams, .init = begin, .fini = end, .timeout = 120);

static bool comes(int socket, int milliseconds)
{
	struct pollfd p = { .fd = socket, .events = POLLIN };

	return rpoll(&p, 1, milliseconds) == 1;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void send_number(uint32_t number)
{
	cr_assert_eq(rsendto(a, &number, sizeof(number), 0, (struct sockaddr *)&to, sizeof(to)),
		     sizeof(number), "%s", strerror(errno));
}

#define MARK  UINT32_MAX /* sent after everything else */
#define LATER 100000u /* numbers after the mark */

static uint32_t receive_number(const char *what, uint32_t i)
{
	uint32_t number;

	cr_assert(comes(b, WAIT_SECONDS * 1000), "%s %u does not come", what, i);
	cr_assert_eq(rrecv(b, &number, sizeof(number), 0), sizeof(number));
	return number;
}

/* A datagram that finds no room is lost; reading makes room. */
Test(rs_datagrams, received_datagrams_wait_in_bounded_memory)
{
	uint32_t number = 0, received = 0, places = (1 << 17) / 2048;
	int64_t begin;
	bool in_order;

	begin = now_ms();
	for (uint32_t i = 0; i < 50; i++) { /* then they go by the queue pair */
		send_number(i);
		cr_assert_eq(receive_number("number", i), i);
	}
	for (uint32_t i = 0; i < 20 * places; i++)
		send_number(i);
	in_order = now_ms() - begin < 500; /* after 1 s, some go another way */
	for (uint32_t tries = 0; number != MARK; tries++) {
		cr_assert_lt(tries, WAIT_SECONDS * 10, "the mark does not come");
		send_number(MARK); /* lost, too, if there is no room */
		while (number != MARK && comes(b, 100)) {
			number = receive_number("number", received);
			if (number == MARK)
				break;
			if (received < places && in_order)
				cr_expect_eq(number, received, "the first ones are kept");
			received++;
		}
	}
	cr_expect_geq(received, places);
	cr_expect_lt(received, 20 * places, "a program that does not read costs no memory");
	for (uint32_t i = 0; i < 3 * places; i++) {
		send_number(LATER + i);
		do
			number = receive_number("number", LATER + i);
		while (number != LATER + i); /* older ones may come over UDP */
	}
}

/* The port from which the next datagram comes to b. */
static in_port_t next_port(uint32_t i)
{
	struct sockaddr_in from = { 0 };
	socklen_t length = sizeof(from);
	uint32_t number;

	cr_assert(comes(b, WAIT_SECONDS * 1000), "number %u does not come", i);
	cr_assert_eq(rrecvfrom(b, &number, sizeof(number), 0, (struct sockaddr *)&from, &length),
		     sizeof(number));
	cr_assert_eq(number, i);
	return from.sin_port;
}

/* As with UDP, its first datagram gives a socket its port. */
Test(rs_datagrams, an_unbound_socket_sends_from_one_port)
{
	struct sockaddr_in from;
	socklen_t length = sizeof(from);
	uint8_t octet = 0;

	cr_assert_eq(rclose(a), 0);
	a = rsocket(AF_INET, SOCK_DGRAM, 0);
	send_number(0);
	cr_assert_eq(rgetsockname(a, (struct sockaddr *)&from, &length), 0);
	cr_expect_neq(from.sin_port, 0);
	cr_expect_eq(next_port(0), from.sin_port);
	for (uint32_t i = 1; i < 200; i++) { /* by its queue pair, after the first ones */
		send_number(i);
		cr_assert_eq(next_port(i), from.sin_port, "number %u", i);
	}
	address(&from, OWN_ADDRESS, ntohs(from.sin_port));
	cr_assert_eq(rsendto(b, &octet, 1, 0, (struct sockaddr *)&from, length), 1);
	cr_assert(comes(a, WAIT_SECONDS * 1000), "no answer comes");
	cr_expect_eq(rrecv(a, &octet, 1, 0), 1);
}

/* Among what comes, until nothing comes for a moment. */
static bool receives(uint32_t number)
{
	bool it_came = false;

	while (comes(b, it_came ? 0 : 100))
		it_came |= receive_number("number", number) == number;
	return it_came;
}

/* Its port is the same, but its queue pair is another one: who hears from it sends there. */
Test(rs_datagrams, a_peer_that_came_back_is_sent_to)
{
	socklen_t length = sizeof(to);
	struct sockaddr_in from;
	uint8_t octet = 0;

	cr_assert_eq(rgetsockname(a, (struct sockaddr *)&from, &length), 0);
	for (uint32_t i = 0; i < 200; i++) { /* by its queue pair, after the first ones */
		send_number(i);
		cr_assert_eq(receive_number("number", i), i);
	}
	cr_assert_eq(rclose(b), 0);
	b = rsocket(AF_INET, SOCK_DGRAM, 0);
	cr_assert_geq(b, 0);
	cr_assert_eq(rbind(b, (struct sockaddr *)&to, sizeof(to)), 0);
	cr_assert_eq(rsendto(b, &octet, 1, 0, (struct sockaddr *)&from, sizeof(from)), 1);
	cr_assert(comes(a, WAIT_SECONDS * 1000));
	cr_assert_eq(rrecv(a, &octet, 1, 0), 1);
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t tries = 0;

		do /* what goes to the queue pair that is gone is lost */
			send_number(i);
		while (!receives(i) && ++tries < WAIT_SECONDS * 10);
		cr_assert_lt(tries, WAIT_SECONDS * 10, "number %u does not come", i);
	}
}

/* As a server that was restarted: it sends nothing before it is asked. */
Test(rs_datagrams, a_peer_that_came_back_and_says_nothing_is_sent_to)
{
	uint32_t tries = 0;

	for (uint32_t i = 0; i < 200; i++) { /* by its queue pair, after the first ones */
		send_number(i);
		cr_assert_eq(receive_number("number", i), i);
	}
	cr_assert_eq(rclose(b), 0);
	b = rsocket(AF_INET, SOCK_DGRAM, 0);
	cr_assert_geq(b, 0);
	cr_assert_eq(rbind(b, (struct sockaddr *)&to, sizeof(to)), 0);
	do
		send_number(7);
	while (!receives(7) && ++tries < WAIT_SECONDS * 10);
	cr_assert_lt(tries, WAIT_SECONDS * 10, "nothing comes to the new queue pair");
}

static int bound(struct sockaddr_in *address_of)
{
	socklen_t length = sizeof(*address_of);
	int socket = rsocket(AF_INET, SOCK_DGRAM, 0);

	cr_assert_geq(socket, 0, "%s", strerror(errno));
	cr_assert_eq(rbind(socket, address(address_of, OWN_ADDRESS, 0), length), 0);
	cr_assert_eq(rgetsockname(socket, (struct sockaddr *)address_of, &length), 0);
	return socket;
}

/* connect(2): its peer is "the only address from which datagrams are received". */
Test(rs_datagrams, a_connected_socket_hears_its_peer_only)
{
	struct sockaddr_in peer;
	int c = bound(&peer);
	uint32_t number = 7;

	for (uint32_t i = 0; i < 200; i++) { /* by b's queue pair, after the first ones */
		send_number(i);
		cr_assert_eq(receive_number("number", i), i);
	}
	cr_assert_eq(rconnect(b, (struct sockaddr *)&peer, sizeof(peer)), 0, "%s", strerror(errno));
	send_number(0);
	cr_expect(!comes(b, 100), "it hears another socket");
	cr_assert_eq(rsendto(c, &number, sizeof(number), 0, (struct sockaddr *)&to, sizeof(to)),
		     sizeof(number));
	cr_expect_eq(receive_number("the peer's", 0), 7);
	cr_assert_eq(
		rconnect(b, &(struct sockaddr){ .sa_family = AF_UNSPEC }, sizeof(struct sockaddr)),
		0);
	send_number(8);
	cr_expect_eq(receive_number("number", 8), 8, "it has no peer any more");
	cr_expect_eq(rclose(c), 0);
}

/* Linux takes it away if bind(2) has chosen it. But datagrams name it, and the peer knows it. */
Test(rs_datagrams, a_socket_that_disconnects_keeps_its_port)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct sockaddr_in before, after;
	socklen_t length = sizeof(before);

	cr_assert_eq(rclose(a), 0);
	a = rsocket(AF_INET, SOCK_DGRAM, 0);
	cr_assert_eq(rconnect(a, (struct sockaddr *)&to, sizeof(to)), 0, "%s", strerror(errno));
	cr_assert_eq(rgetsockname(a, (struct sockaddr *)&before, &length), 0);
	for (uint32_t i = 0; i < 200; i++) { /* by its queue pair, after the first ones */
		send_number(i);
		cr_assert_eq(next_port(i), before.sin_port);
	}
	cr_assert_eq(rconnect(a, &none, sizeof(none)), 0, "%s", strerror(errno));
	cr_assert_eq(rgetsockname(a, (struct sockaddr *)&after, &length), 0);
	cr_expect_eq(after.sin_port, before.sin_port);
	for (uint32_t i = 0; i < 3; i++) {
		send_number(i);
		cr_expect_eq(next_port(i), after.sin_port, "number %u", i);
	}
}

/* udp(7): an error of an earlier datagram is reported once, and only to a connected socket. */
Test(rs_datagrams, a_peer_that_is_not_there_is_reported)
{
	struct pollfd p = { .fd = a };
	char octet;

	cr_assert_eq(rclose(b), 0);
	cr_assert_eq(rsendto(a, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), 1);
	cr_expect_eq(rpoll(&p, 1, 100), 0, "it has no peer");
	cr_assert_eq(rconnect(a, (struct sockaddr *)&to, sizeof(to)), 0);
	cr_assert_eq(rsend(a, "x", 1, 0), 1);
	FAILS(rrecv(a, &octet, 1, 0), ECONNREFUSED);
	FAILS(rrecv(a, &octet, 1, MSG_DONTWAIT), EAGAIN);
	cr_assert_eq(rsend(a, "x", 1, 0), 1);
	cr_assert_eq(rpoll(&p, 1, WAIT_SECONDS * 1000), 1);
	cr_expect_eq(p.revents, POLLERR);
	FAILS(rsend(a, "x", 1, 0), ECONNREFUSED);
	b = bound(&to);
	cr_assert_eq(rconnect(a, (struct sockaddr *)&to, sizeof(to)), 0);
	send_number(7);
	cr_expect_eq(receive_number("number", 7), 7, "it goes on with another peer");
}

/* A child cannot use the socket, so it must not keep its port either. */
Test(rs_datagrams, the_child_of_a_fork_does_not_keep_the_port)
{
	int ends[2], status = -1;
	char octet = 0;
	pid_t child;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	child = fork();
	if (child == 0)
		_exit(write(ends[1], &octet, 1) == 1 && read(ends[1], &octet, 1) == 1 ? 0 : 1);
	cr_assert_eq(read(ends[0], &octet, 1), 1, "the child does not run");
	cr_assert_eq(rclose(b), 0);
	b = rsocket(AF_INET, SOCK_DGRAM, 0);
	cr_expect_eq(rbind(b, (struct sockaddr *)&to, sizeof(to)), 0, "%s", strerror(errno));
	cr_assert_eq(write(ends[0], &octet, 1), 1);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(ends[0]);
	close(ends[1]);
}

/* ---- any peer can send to it ---- */

/* Sends as an rsocket with a queue pair that does not exist: rs_wire.h. */
static void send_from_nowhere(void)
{
	static const uint8_t datagram[17] = { 0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0,  0,
					      1,    2,	  3,	127,  0, 0, 1,	'x' };
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	cr_assert_geq(s, 0, "%s", strerror(errno));
	cr_assert_eq(sendto(s, datagram, sizeof(datagram), 0, (struct sockaddr *)&to, sizeof(to)),
		     sizeof(datagram));
	close(s);
}

Test(rs_datagrams, strangers_use_bounded_memory)
{
	unsigned int before = descriptors(), most = 0;
	char octet;

	for (int i = 0; i < 5000; i++) {
		send_from_nowhere();
		if (i % 16 == 15) { /* no more than the program can read */
			most = MAX(most, descriptors());
			while (comes(b, 0))
				cr_assert_eq(rrecv(b, &octet, 1, MSG_DONTWAIT), 1);
		}
	}
	cr_expect_lt(most, before + 200, "%u descriptors before, up to %u then", before, most);
	/* 5000 peers are more than it remembers; it can still send to a new one */
	cr_expect_eq(rsendto(b, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), 1, "%s",
		     strerror(errno));
	octet = 0;
	for (int i = 0; i < 1000 && octet != 7; i++) { /* a datagram that finds no room is lost */
		send_number(7);
		while (octet != 7 && comes(b, 10))
			cr_assert_eq(rrecv(b, &octet, 1, MSG_DONTWAIT), 1);
	}
	cr_expect_eq(octet, 7);
}

/* ---- the class of its packets ---- */

/* Both libraries share this context, so its function table affects both. */
static struct ibv_context *shared_context(void)
{
	struct ibv_context **list = rdma_get_devices(NULL), *context;

	cr_assert(list != NULL && list[0] != NULL, "no device: %s", strerror(errno));
	context = list[0];
	rdma_free_devices(list);
	return context;
}

static int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
static int class = -1; /* of the last datagram that came to a queue pair */

/* A place is posted again after its datagram was taken out. In a GRH, the IPv4 header is behind. */
static int see_class(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	const uint8_t *grh = (const uint8_t *)(uintptr_t)wr->sg_list[0].addr;

	if (grh[20] == 0x45)
		class = grh[21];
	return post_recv(qp, wr, bad);
}

static void expect_class(int wanted)
{
	for (int i = 0; i < WAIT_SECONDS * 1000 && class != wanted; i++) {
		send_number(7);
		receives(7);
		poll(NULL, 0, 1); /* its path is being resolved */
	}
	cr_expect_eq(class, wanted, "0x%x", class);
}

static void set_class(const void *value, socklen_t length)
{
	cr_assert_eq(rsetsockopt(a, IPPROTO_IP, IP_TOS, value, length), 0, "%s", strerror(errno));
}

Test(rs_datagrams, the_class_of_its_packets_is_that_of_its_options)
{
	struct ibv_context *context = shared_context();
	const uint8_t octet = 0x68; /* ip(7): IP_TOS may be an octet */
	int value = 0x28;

	post_recv = context->ops.post_recv;
	context->ops.post_recv = see_class;
	set_class(&value, sizeof(value));
	expect_class(0x28);
	value = 0x48;
	set_class(&value, sizeof(value));
	expect_class(0x48);
	set_class(&octet, sizeof(octet));
	expect_class(0x68);
	context->ops.post_recv = post_recv;
}

/* ---- shut down ---- */

static void *receive(void *argument)
{
	char octet;

	return (void *)rrecv(*(int *)argument, &octet, 1, 0);
}

Test(rs_datagrams, a_waiting_thread_sees_the_shutdown)
{
	pthread_t thread;
	void *received;

	cr_assert_eq(pthread_create(&thread, NULL, receive, &b), 0);
	FAILS(rshutdown(b, SHUT_RD), ENOTCONN); /* like udp(7): it fails, but takes effect */
	cr_assert_eq(pthread_join(thread, &received), 0);
	cr_expect_eq((ssize_t)received, 0);
}

/* CPU time that the process uses while nothing happens. */
static long busy_milliseconds(void)
{
	struct timespec before, after;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	cr_expect_eq(poll(NULL, 0, 300), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	return (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
}

Test(rs_datagrams, shut_down_both_ways)
{
	struct pollfd p = { .fd = a, .events = POLLIN | POLLOUT };
	char octet;

	cr_assert_eq(rconnect(a, (struct sockaddr *)&to, sizeof(to)), 0);
	cr_assert_eq(rsend(a, "x", 1, 0), 1);
	cr_assert(comes(b, WAIT_SECONDS * 1000));
	cr_assert_eq(rshutdown(a, SHUT_RDWR), 0);
	FAILS(rsend(a, "x", 1, 0), EPIPE);
	cr_expect_eq(rrecv(a, &octet, 1, 0), 0);
	cr_assert_eq(rpoll(&p, 1, 0), 1);
	cr_expect_eq(p.revents, POLLIN | POLLOUT | POLLHUP);
	cr_expect_lt(busy_milliseconds(), 150, "the process does not spin");
}

Test(rs_datagrams, options_without_effect_fail)
{
	const struct timeval soon = { .tv_usec = 1000 };
	const int on = 1;

	FAILS(rsetsockopt(a, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)), ENOPROTOOPT);
	FAILS(rsetsockopt(a, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon)), ENOPROTOOPT);
	FAILS(rsetsockopt(a, IPPROTO_IP, IP_RECVERR, &on, sizeof(on)), ENOPROTOOPT);
	FAILS(rsetsockopt(a, IPPROTO_UDP, UDP_CORK, &on, sizeof(on)), ENOPROTOOPT);
}

/* ---- a queue pair that refuses receive requests ---- */

static int refuse_receives(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)qp;
	*bad = wr;
	return ENOBUFS;
}

/* Otherwise it would receive less and less, and wait for ever in the end. */
Test(rs_datagrams, a_refused_receive_request_is_reported)
{
	struct ibv_context *context = shared_context();
	struct pollfd p = { .fd = b, .events = POLLIN };
	uint32_t number, i;

	for (i = 0; i < 100; i++) {
		send_number(i);
		cr_assert_eq(receive_number("number", i), i);
	}
	context->ops.post_recv = refuse_receives;
	p.revents = 0;
	for (i = 0; (p.revents & POLLERR) == 0 && i < WAIT_SECONDS * 100; i++) {
		send_number(
			100); /* over UDP, if b was silent for long: then no request is posted */
		rpoll(&p, 1, 10);
	}
	while (rrecv(b, &number, sizeof(number), MSG_DONTWAIT) > 0) /* what came is read first */
		cr_expect_eq(number, 100);
	for (i = 0; i < 3; i++) {
		errno = 0;
		cr_assert_eq(rpoll(&p, 1, WAIT_SECONDS * 1000), 1, "the error is not reported");
		cr_expect(p.revents & POLLERR);
		cr_expect_eq(rrecv(b, &number, sizeof(number), 0), -1);
		cr_expect_eq(errno, ENOBUFS, "%s", strerror(errno));
	}
}

Test(rs_datagrams, without_receive_requests_there_is_no_queue_pair)
{
	shared_context()->ops.post_recv = refuse_receives;
	cr_expect_eq(rconnect(a, (struct sockaddr *)&to, sizeof(to)), -1);
	cr_expect_eq(errno, ENOBUFS, "%s", strerror(errno));
}

/* Its port and its peer are as before. */
Test(rs_datagrams, a_failed_connect_leaves_a_socket_as_it_was)
{
	struct ibv_context *context = shared_context();
	int (*really)(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **) =
		context->ops.post_recv;
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in before, after;
	socklen_t length = sizeof(before);

	cr_assert_eq(rgetsockname(a, (struct sockaddr *)&before, &length), 0);
	context->ops.post_recv = refuse_receives;
	FAILS(rconnect(a, (struct sockaddr *)&to, sizeof(to)), ENOBUFS);
	context->ops.post_recv = really;
	FAILS(rconnect(a, (struct sockaddr *)&six, sizeof(six)), EAFNOSUPPORT);
	FAILS(rgetpeername(a, (struct sockaddr *)&after, &length), ENOTCONN);
	cr_assert_eq(rgetsockname(a, (struct sockaddr *)&after, &length), 0);
	cr_expect_eq(after.sin_port, before.sin_port);
	send_number(7);
	cr_expect_eq(receive_number("number", 7), 7);
	cr_assert_eq(
		rsendto(b, &length, sizeof(length), 0, (struct sockaddr *)&before, sizeof(before)),
		sizeof(length));
	cr_expect(comes(a, WAIT_SECONDS * 1000), "no answer comes");
}
