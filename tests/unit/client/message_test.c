/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges of commands; this test is at the other end of the socket. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/message.h"

#define TIMEOUT_MS 20000

static int ours, engines;

static void make_pair(void)
{
	int pair[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ours = pair[0];
	engines = pair[1];
}

/* The socket keeps messages, so the engine's reply can be sent before the request. */
static void answer(uint32_t sequence, int32_t error, uint16_t version, int fd)
{
	struct reply_handle reply = {
		.h = { .magic = COMMAND_MAGIC,
		       .version = version,
		       .command = COMMAND_ALLOC_PD,
		       .length = sizeof(reply),
		       .sequence = sequence,
		       .error = error },
		.handle = sequence + 100,
	};
	struct iovec iov = { &reply, sizeof(reply) };
	char space[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *c;

		message.msg_control = space;
		message.msg_controllen = sizeof(space);
		c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	cr_assert_eq(sendmsg(engines, &message, 0), (ssize_t)sizeof(reply));
}

static int ask(uint32_t sequence, struct reply_handle *reply, struct carrier_descriptors *out)
{
	struct request_handle request = { .handle = 7 };

	return message_exchange(ours, COMMAND_ALLOC_PD, sequence, TIMEOUT_MS, &request.h,
				sizeof(request), &reply->h, sizeof(*reply), NULL, out);
}

Test(message, a_request_gets_its_reply, .init = make_pair)
{
	struct request_handle seen;
	struct reply_handle reply;

	answer(3, 0, COMMAND_VERSION, -1);
	cr_assert_eq(ask(3, &reply, NULL), 0);
	cr_assert_eq(reply.handle, 103);
	cr_assert_eq(recv(engines, &seen, sizeof(seen), MSG_DONTWAIT), (ssize_t)sizeof(seen));
	cr_assert_eq(seen.h.magic, COMMAND_MAGIC);
	cr_assert_eq(seen.h.version, COMMAND_VERSION);
	cr_assert_eq(seen.h.command, COMMAND_ALLOC_PD);
	cr_assert_eq(seen.h.length, sizeof(seen));
	cr_assert_eq(seen.handle, 7);
}

Test(message, the_engines_errno_is_returned, .init = make_pair)
{
	struct reply_handle reply;

	answer(1, EBUSY, COMMAND_VERSION, -1);
	cr_assert_eq(ask(1, &reply, NULL), EBUSY);
}

Test(message, replies_to_requests_that_timed_out_are_skipped, .init = make_pair)
{
	struct reply_handle reply;

	answer(1, EBUSY, COMMAND_VERSION, -1);
	answer(2, 0, COMMAND_VERSION, -1);
	answer(3, 0, COMMAND_VERSION, -1);
	cr_assert_eq(ask(3, &reply, NULL), 0);
	cr_assert_eq(reply.handle, 103);
}

/* A late reply has the length of its own request's reply, not of the current one's. */
Test(message, a_shorter_reply_to_a_request_that_timed_out_is_skipped, .init = make_pair)
{
	struct command_reply shorter = { .magic = COMMAND_MAGIC,
					 .version = COMMAND_VERSION,
					 .command = COMMAND_DEALLOC_PD,
					 .length = sizeof(shorter),
					 .sequence = 2 };
	struct reply_handle reply;

	cr_assert_eq(send(engines, &shorter, sizeof(shorter), 0), (ssize_t)sizeof(shorter));
	answer(3, 0, COMMAND_VERSION, -1);
	cr_assert_eq(ask(3, &reply, NULL), 0);
	cr_assert_eq(reply.handle, 103);
}

/* As after an engine was stopped for a long time. */
Test(message, many_replies_to_requests_that_timed_out_are_skipped, .init = make_pair)
{
	struct request_handle request = { .handle = 7 };
	struct reply_handle reply;

	for (uint32_t i = 1; i <= 40; i++)
		answer(i, 0, COMMAND_VERSION, -1);
	cr_assert_eq(ask(40, &reply, NULL), 0);
	cr_assert_eq(reply.handle, 140);
	for (uint32_t i = 41; i <= 80; i++)
		answer(i, 0, COMMAND_VERSION, -1);
	cr_assert_eq(message_exchange(ours, COMMAND_ALLOC_PD, 81, 20, &request.h, sizeof(request),
				      &reply.h, sizeof(reply), NULL, NULL),
		     ETIMEDOUT);
}

Test(message, another_version_is_refused, .init = make_pair)
{
	struct reply_handle reply;

	answer(1, 0, COMMAND_VERSION + 1, -1);
	cr_assert_eq(ask(1, &reply, NULL), EPROTO);
}

static bool ends; /* the engine, as soon as the program waits */

ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	if (ends) {
		ends = false;
		answer(1, EUSERS, COMMAND_VERSION, -1);
		close(engines);
	}
	return __real_recvmsg(fd, message, flags);
}

/* It has not read the request, so the kernel reports ECONNRESET before the reply. */
Test(message, a_refusal_is_read_although_the_engine_has_closed, .init = make_pair)
{
	struct request_handle request = { .handle = 7 };
	struct reply_handle reply;

	ends = true;
	cr_assert_eq(message_exchange(ours, COMMAND_ALLOC_PD, 1, LIMIT_COMMAND_WAIT, &request.h,
				      sizeof(request), &reply.h, sizeof(reply), NULL, NULL),
		     EUSERS);
	cr_assert_eq(recv(ours, &reply, sizeof(reply), 0), 0);
}

Test(message, a_closed_connection_is_enodev, .init = make_pair)
{
	struct reply_handle reply;

	close(engines);
	cr_assert_eq(ask(1, &reply, NULL), ENODEV);
}

Test(message, descriptors_arrive_close_on_exec, .init = make_pair)
{
	struct carrier_descriptors out = { 0 };
	struct reply_handle reply;
	int null = open("/dev/null", O_RDONLY);

	answer(1, 0, COMMAND_VERSION, null);
	cr_assert_eq(ask(1, &reply, &out), 0);
	cr_assert_eq(out.count, 1);
	cr_assert_eq(fcntl(out.fd[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(out.fd[0]);
}

static int descriptors_open(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

Test(message, unexpected_descriptors_are_closed, .init = make_pair)
{
	struct reply_handle reply;
	int null = open("/dev/null", O_RDONLY);
	int before = descriptors_open();

	answer(1, 0, COMMAND_VERSION, null);
	cr_assert_eq(ask(1, &reply, NULL), 0);
	answer(2, EINVAL, COMMAND_VERSION, null);
	cr_assert_eq(ask(2, &reply, NULL), EINVAL);
	cr_assert_eq(descriptors_open(), before);
}

Test(message, descriptors_of_replies_that_come_too_late_are_closed, .init = make_pair)
{
	struct carrier_descriptors out = { 0 };
	struct reply_handle reply;
	int null = open("/dev/null", O_RDONLY);
	int before = descriptors_open();

	answer(1, 0, COMMAND_VERSION, null);
	answer(2, 0, COMMAND_VERSION, -1);
	cr_assert_eq(ask(2, &reply, &out), 0);
	cr_assert_eq(out.count, 0);
	cr_assert_eq(descriptors_open(), before);
}

static bool over; /* atomic: the exchange has returned */

/* Sends replies to a request that has no waiter, until `over`, or for ten seconds. */
static void *send_late_replies(void *arg)
{
	struct command_reply late = { .magic = COMMAND_MAGIC,
				      .version = COMMAND_VERSION,
				      .length = sizeof(late),
				      .sequence = 1 };

	for (int i = 0; i < 10000 && !__atomic_load_n(&over, __ATOMIC_ACQUIRE); i++) {
		send(engines, &late, sizeof(late), MSG_DONTWAIT); /* full: there are enough */
		usleep(1000);
	}
	return (void *)(uintptr_t)__atomic_load_n(&over, __ATOMIC_ACQUIRE);
}

/* However many unwanted replies arrive, a command waits no longer than it was told to. */
Test(message, late_replies_do_not_prolong_the_wait, .init = make_pair)
{
	struct request_handle request = { .handle = 7 };
	struct reply_handle reply;
	void *in_time;
	pthread_t sender;

	cr_assert_eq(pthread_create(&sender, NULL, send_late_replies, NULL), 0);
	cr_assert_eq(message_exchange(ours, COMMAND_ALLOC_PD, 2, 50, &request.h, sizeof(request),
				      &reply.h, sizeof(reply), NULL, NULL),
		     ETIMEDOUT);
	__atomic_store_n(&over, true, __ATOMIC_RELEASE);
	pthread_join(sender, &in_time);
	cr_assert_not_null(in_time, "it waited until no more replies came");
}

/* ---- an engine that is stopped ---- */

static int listener;

/* It never accepts, and its queue is full. */
static void listen_in_vain(char *path, size_t octets)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int tries = 0;

	snprintf(path, octets, "/tmp/uroce-message-%d", (int)getpid());
	strcpy(a.sun_path, path);
	unlink(path);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0, "%m");
	cr_assert_eq(listen(listener, 0), 0);
	for (;;) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		cr_assert_lt(tries++, 100, "the queue never becomes full");
		if (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
			break; /* the others stay open, because the test ends soon */
	}
	cr_assert_eq(errno, EAGAIN, "%m");
}

Test(message, connecting_to_a_stopped_engine_is_a_timeout, .timeout = 30)
{
	char path[64];

	listen_in_vain(path, sizeof(path));
	cr_expect_eq(message_connect_within(path, 20), -1);
	cr_expect_eq(errno, ETIMEDOUT, "%m");
	unlink(path);
}

static uint32_t signals;

static void on_signal(int number)
{
	signals++;
}

/* Signals neither end the wait nor prolong it. */
Test(message, signals_do_not_change_how_long_connecting_waits, .timeout = 30)
{
	const struct itimerval every = { { .tv_usec = 10000 }, { .tv_usec = 10000 } },
			       never = { 0 };
	struct sigaction action = { .sa_handler = on_signal };
	char path[64];

	listen_in_vain(path, sizeof(path));
	cr_assert_eq(sigaction(SIGALRM, &action, NULL), 0);
	cr_assert_eq(setitimer(ITIMER_REAL, &every, NULL), 0);
	cr_expect_eq(message_connect_within(path, 200), -1);
	cr_expect_eq(errno, ETIMEDOUT, "%m");
	cr_assert_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
	cr_expect_gt(signals, 0);
	unlink(path);
}

/* As after many commands that timed out. */
Test(message, a_request_that_the_engine_does_not_read_is_a_timeout, .init = make_pair,
     .timeout = 30)
{
	const struct timeval wait = { .tv_usec = 20000 };
	struct request_handle request = { .handle = 7 };
	struct reply_handle reply;

	cr_assert_eq(setsockopt(ours, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)), 0);
	while (send(ours, &request, sizeof(request), MSG_DONTWAIT) > 0)
		;
	cr_assert_eq(errno, EAGAIN, "%m");
	cr_expect_eq(ask(1, &reply, NULL), ETIMEDOUT);
}

Test(message, a_missing_reply_is_a_timeout, .init = make_pair)
{
	struct request_handle request = { .handle = 7 };
	struct reply_handle reply;

	cr_assert_eq(message_exchange(ours, COMMAND_ALLOC_PD, 1, 20, &request.h, sizeof(request),
				      &reply.h, sizeof(reply), NULL, NULL),
		     ETIMEDOUT);
}

/* Its command timed out. The engine serves no more of the connection while it waits with a descriptor. */
Test(message, a_late_reply_is_taken_when_another_is_awaited, .init = make_pair)
{
	int file[2];
	char octet;

	cr_assert_eq(pipe(file), 0);
	answer(3, 0, COMMAND_VERSION, file[1]);
	close(file[1]);
	message_skip_late(ours, 3);
	cr_expect_gt(recv(ours, &octet, 1, MSG_PEEK | MSG_DONTWAIT), 0, "it is the one");
	message_skip_late(ours, 4);
	cr_expect_eq(recv(ours, &octet, 1, MSG_PEEK | MSG_DONTWAIT), -1);
	cr_expect_eq(read(file[0], &octet, 1), 0, "its descriptor is closed");
	message_skip_late(ours, 4); /* there is none */
	close(engines);
	message_skip_late(ours, 4);
}
