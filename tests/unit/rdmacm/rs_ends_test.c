/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams that end, are interrupted, or are closed by one thread while another thread uses them. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"

#define LONG 60000 /* octets that the peer's engine accepts without its program */

static int listener, caller, called;
static struct sockaddr_in name;
static pid_t engine;

static void connect_both(void)
{
	caller = rsocket(AF_INET, SOCK_STREAM, 0);
	cr_assert_geq(caller, 0, "%s", strerror(errno));
	cr_assert_eq(rconnect(caller, (struct sockaddr *)&name, sizeof(name)), 0, "%s",
		     strerror(errno));
	called = raccept(listener, NULL, NULL);
	cr_assert_geq(called, 0, "%s", strerror(errno));
}

static void begin(void)
{
	socklen_t length = sizeof(name);

	engine = (pid_t)atoi(getenv("UROCED_PID"));
	listener = rsocket(AF_INET, SOCK_STREAM, 0);
	caller = rsocket(AF_INET, SOCK_STREAM, 0);
	cr_assert_geq(listener, 0, "%s", strerror(errno));
	cr_assert_eq(rbind(listener, address(&name, OWN_ADDRESS, 0), length), 0);
	cr_assert_eq(rlisten(listener, 1), 0);
	cr_assert_eq(rgetsockname(listener, (struct sockaddr *)&name, &length), 0);
	connect_both();
}

static void end(void)
{
	kill(engine, SIGCONT); /* whatever a test did to it */
	rclose(caller);
	rclose(called);
	rclose(listener);
}

TestSuite(rs_ends, .init = begin, .fini = end, .timeout = 60);

/* As in proc(5): 'S' sleeps, 'T' is stopped. */
static char state_of(pid_t process, const char *thread)
{
	char path[320], state = '?';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", process, thread);
	file = fopen(path, "r");
	if (file != NULL && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	if (file != NULL)
		fclose(file);
	return state;
}

static bool engine_is_stopped(void)
{
	struct dirent *thread;
	bool is_stopped = true;
	char path[64];
	DIR *list;

	snprintf(path, sizeof(path), "/proc/%d/task", engine);
	list = opendir(path);
	cr_assert_not_null(list);
	while ((thread = readdir(list)) != NULL)
		if (thread->d_name[0] != '.' && state_of(engine, thread->d_name) != 'T')
			is_stopped = false;
	closedir(list);
	return is_stopped;
}

static void stop_engine(void)
{
	uint64_t end = wait_end();

	cr_assert_eq(kill(engine, SIGSTOP), 0);
	while (!engine_is_stopped() && nap_before(end))
		;
	cr_assert(engine_is_stopped(), "the engine is still running");
}

/* ---- signals ---- */

static volatile sig_atomic_t ticks;

static void tick(int signal)
{
	(void)signal;
	if (++ticks == 3)
		kill(engine, SIGCONT);
}

/* A signal every 20 ms, without SA_RESTART. */
static void set_ticking(bool on)
{
	const struct itimerval often = { { 0, 20000 }, { 0, 20000 } },
			       never = { { 0, 0 }, { 0, 0 } };
	struct sigaction act = { .sa_handler = tick };

	cr_assert_eq(sigaction(SIGALRM, &act, NULL), 0);
	cr_assert_eq(setitimer(ITIMER_REAL, on ? &often : &never, NULL), 0);
}

Test(rs_ends, a_signal_ends_poll_and_select)
{
	struct pollfd p = { .fd = caller, .events = POLLIN };
	struct timeval patience = { .tv_sec = WAIT_SECONDS };
	fd_set set;
	int error;

	set_ticking(true);
	cr_expect_eq(rpoll(&p, 1, WAIT_SECONDS * 1000), -1);
	error = errno;
	cr_expect_eq(error, EINTR, "%s", strerror(error));
	FD_ZERO(&set);
	FD_SET(caller, &set);
	cr_expect_eq(rselect(caller + 1, &set, NULL, NULL, &patience), -1);
	error = errno;
	set_ticking(false);
	cr_expect_eq(error, EINTR, "%s", strerror(error));
}

/* Data and the end arrive however often the sender is interrupted. */
static void end_while_interrupted(int (*how)(int socket))
{
	static uint8_t sent[LONG], received[LONG];
	ssize_t n, all = 0;

	memset(sent, 0x5a, sizeof(sent));
	stop_engine();
	cr_assert_eq(rsend(caller, sent, sizeof(sent), MSG_DONTWAIT), LONG);
	set_ticking(true); /* the third one needs the engine, too */
	cr_expect_eq(how(caller), 0, "%s", strerror(errno));
	set_ticking(false);
	kill(engine, SIGCONT);
	cr_expect_geq(ticks, 3);
	while ((n = rrecv(called, received, sizeof(received), 0)) > 0)
		all += n;
	cr_expect_eq(n, 0, "%s", strerror(errno));
	cr_expect_eq(all, LONG);
}

Test(rs_ends, a_signal_does_not_lose_data_being_sent)
{
	end_while_interrupted(rclose);
}

static int shut(int socket)
{
	return rshutdown(socket, SHUT_WR);
}

Test(rs_ends, a_signal_does_not_lose_the_end)
{
	end_while_interrupted(shut);
}

/* ---- the end, and data before it ---- */

/* A thread that waits for room to send gets the end even if there is data left to read. */
Test(rs_ends, a_sender_does_not_wait_after_the_end)
{
	struct pollfd in = { .fd = caller, .events = POLLIN };
	struct pollfd out = { .fd = caller, .events = POLLOUT };
	char octet;

	cr_assert_eq(rsend(called, "unread", 6, 0), 6);
	cr_assert_eq(rclose(called), 0);
	do { /* until the end has arrived behind it */
		cr_assert_eq(rpoll(&in, 1, WAIT_SECONDS * 1000), 1);
		in.events = POLLRDHUP;
	} while (!(in.revents & POLLRDHUP));
	cr_expect_eq(rpoll(&out, 1, WAIT_SECONDS * 1000), 1);
	cr_expect(out.revents & POLLOUT, "0x%x", out.revents);
	errno = 0;
	cr_expect_eq(rsend(caller, "x", 1, 0), -1);
	cr_expect_eq(errno, ECONNRESET, "%s", strerror(errno));
	cr_expect_eq(rrecv(caller, &octet, 1, 0), 1);
}

static int send_until_full(int socket)
{
	int sent = 0;

	while (rsend(socket, "x", 1, MSG_DONTWAIT) == 1)
		sent++;
	cr_assert_eq(errno, EAGAIN, "%s", strerror(errno));
	return sent;
}

static void receive_exactly(int socket, int count)
{
	char octet;

	for (int i = 0; i < count; i++)
		cr_assert_eq(rrecv(socket, &octet, 1, 0), 1, "%d: %s", i, strerror(errno));
}

/* Both messages of the end arrive although the peer's program reads nothing. */
Test(rs_ends, the_end_has_room_behind_unread_messages)
{
	const int few = 16; /* so that the sender runs out of credits first */
	char octet;
	int sent;

	rclose(caller);
	rclose(called);
	cr_assert_eq(rsetsockopt(listener, SOL_RDMA, RDMA_RQSIZE, &few, sizeof(few)), 0);
	connect_both();
	receive_exactly(caller, send_until_full(called)); /* this gives new credits */
	sent = send_until_full(caller);
	cr_expect_eq(rshutdown(caller, SHUT_WR), 0, "%s", strerror(errno));
	cr_expect_eq(rshutdown(caller, SHUT_RD), 0, "%s", strerror(errno));
	receive_exactly(called, sent);
	cr_expect_eq(rrecv(called, &octet, 1, 0), 0);
}

/* ---- threads ---- */

struct connecting {
	int fd;
	pid_t thread; /* 0: not started yet */
	int status, error;
};

static void *connect_and_wait(void *argument)
{
	struct connecting *c = argument;

	__atomic_store_n(&c->thread, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	c->status = rconnect(c->fd, (struct sockaddr *)&name, sizeof(name));
	c->error = errno;
	return NULL;
}

static void await_sleep(const pid_t *thread)
{
	uint64_t end = wait_end();
	char id[16];

	do {
		snprintf(id, sizeof(id), "%d", __atomic_load_n(thread, __ATOMIC_ACQUIRE));
		if (state_of(getpid(), id) == 'S')
			return;
	} while (nap_before(end));
	cr_assert_fail("the thread does not begin to wait");
}

static pid_t receiver;

static void *receive(void *argument)
{
	char octet;

	__atomic_store_n(&receiver, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	return (void *)rrecv(called, &octet, 1, 0);
}

static void *poll_for_ever(void *argument)
{
	struct pollfd p = { .fd = called, .events = POLLIN };

	__atomic_store_n(&receiver, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	return (void *)(intptr_t)rpoll(&p, 1, -1);
}

/* A thread that is cancelled in a socket leaves nothing behind. */
static void cancel_and_go_on(void *(*what)(void *argument))
{
	pthread_t thread;
	void *status;
	char octet;

	receiver = 0;
	cr_assert_eq(pthread_create(&thread, NULL, what, NULL), 0);
	await_sleep(&receiver);
	cr_assert_eq(pthread_cancel(thread), 0);
	cr_assert_eq(pthread_join(thread, &status), 0);
	cr_expect_eq(status, PTHREAD_CANCELED);
	cr_assert_eq(rsend(caller, "x", 1, 0), 1);
	cr_assert_eq(rrecv(called, &octet, 1, 0), 1);
	cr_expect_eq(octet, 'x');
}

Test(rs_ends, a_thread_that_receives_is_cancelled)
{
	cancel_and_go_on(receive);
}

Test(rs_ends, a_thread_that_polls_is_cancelled)
{
	cancel_and_go_on(poll_for_ever);
}

/* ---- signals between two threads ---- */

static void count(int signal)
{
	(void)signal;
	ticks++;
}

/* Interrupts the thread twice while it waits in rrecv(), then sends it an octet. */
static void *interrupt_twice(void *argument)
{
	const pid_t *whom = argument;

	for (int i = 1; i <= 2; i++) {
		uint64_t end = wait_end();

		await_sleep(whom);
		syscall(SYS_tgkill, getpid(), *whom, SIGUSR1);
		while (ticks < i && nap_before(end))
			;
	}
	cr_expect_eq(ticks, 2, "the signals do not come");
	cr_expect_eq(rsend(caller, "x", 1, 0), 1);
	return NULL;
}

/* What rrecv() returns while signals with a handler of these flags come, and its errno. */
static ssize_t receive_interrupted(int flags, int *error)
{
	struct sigaction act = { .sa_handler = count, .sa_flags = flags };
	pid_t self = (pid_t)syscall(SYS_gettid);
	pthread_t thread;
	ssize_t n;
	char octet;

	cr_assert_eq(sigaction(SIGUSR1, &act, NULL), 0);
	cr_assert_eq(pthread_create(&thread, NULL, interrupt_twice, &self), 0);
	n = rrecv(called, &octet, 1, 0);
	*error = errno;
	cr_assert_eq(pthread_join(thread, NULL), 0);
	return n;
}

/*
 * As in recv(2): signal(7), "Interruption of system calls and library functions by signal handlers".
 * Many programs have handlers for faults, too, as sanitizers do.
 */
Test(rs_ends, a_handler_that_restarts_calls_does_not_end_them)
{
	const struct sigaction of_fault = { .sa_handler = count };
	int error;

	cr_assert_eq(sigaction(SIGSEGV, &of_fault, NULL), 0);
	cr_expect_eq(receive_interrupted(SA_RESTART, &error), 1, "%s", strerror(error));
}

Test(rs_ends, another_handler_ends_them)
{
	int error;

	cr_expect_eq(receive_interrupted(0, &error), -1);
	cr_expect_eq(error, EINTR, "%s", strerror(error));
}

/* ---- listeners ---- */

/* Fills the backlog of the listener and that of the engine. */
static void fill_listener(int waiting[2])
{
	for (int i = 0; i < 2; i++) {
		waiting[i] = rsocket(AF_INET, SOCK_STREAM, 0);
		cr_assert_eq(rfcntl(waiting[i], F_SETFL, O_NONBLOCK), 0);
		cr_assert_eq(rconnect(waiting[i], (struct sockaddr *)&name, sizeof(name)), -1);
		cr_assert_eq(errno, EINPROGRESS);
	}
}

/* Their requests may arrive in either order. Returns the one that is connected. */
static int first_of(const int waiting[2])
{
	struct pollfd p[] = { { .fd = waiting[0], .events = POLLOUT },
			      { .fd = waiting[1], .events = POLLOUT } };

	cr_assert_eq(rpoll(p, 2, WAIT_SECONDS * 1000), 1, "neither is connected, or both are");
	return p[0].revents != 0 ? 0 : 1;
}

#define SHORT_MS 300

Test(rs_ends, a_listener_with_a_larger_backlog_takes_those_that_wait)
{
	struct pollfd p = { .events = POLLOUT };
	int waiting[2];

	fill_listener(waiting);
	p.fd = waiting[1 - first_of(waiting)];
	cr_assert_eq(rpoll(&p, 1, SHORT_MS), 0, "it is connected beyond the backlog");
	cr_assert_eq(rlisten(listener, 4), 0, "%s", strerror(errno));
	cr_expect_eq(rpoll(&p, 1, WAIT_SECONDS * 1000), 1, "it is never connected");
	rclose(waiting[0]);
	rclose(waiting[1]);
}

/* listen(2): the kernel compares it as a number without a sign. */
Test(rs_ends, a_negative_backlog_is_the_largest)
{
	struct pollfd p = { .events = POLLOUT };
	int waiting[2];

	fill_listener(waiting);
	cr_assert_eq(rlisten(listener, -1), 0, "%s", strerror(errno));
	for (int i = 0; i < 2; i++) {
		p.fd = waiting[i];
		cr_expect_eq(rpoll(&p, 1, WAIT_SECONDS * 1000), 1, "%d is never connected", i);
		rclose(waiting[i]);
	}
}

Test(rs_ends, closed_while_connecting)
{
	struct connecting c = { .status = 0 };
	pthread_t thread;
	int waiting[2];

	fill_listener(waiting);
	c.fd = rsocket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(pthread_create(&thread, NULL, connect_and_wait, &c), 0);
	await_sleep(&c.thread);
	cr_assert_eq(rclose(c.fd), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(c.status, -1, "it was never connected");
	cr_expect_eq(c.error, EBADF, "%s", strerror(c.error));
	rclose(waiting[0]);
	rclose(waiting[1]);
}

Test(rs_ends, a_listener_that_is_closed_ends_what_nobody_accepted)
{
	int waiting = rsocket(AF_INET, SOCK_STREAM, 0);
	struct pollfd p = { .fd = listener, .events = POLLIN };
	char octet;

	cr_assert_eq(rconnect(waiting, (struct sockaddr *)&name, sizeof(name)), 0, "%s",
		     strerror(errno));
	cr_assert_eq(rpoll(&p, 1, WAIT_SECONDS * 1000), 1);
	cr_expect_eq(rclose(listener), 0);
	cr_expect_eq(rrecv(waiting, &octet, 1, 0), 0);
	cr_expect_eq(rclose(waiting), 0);
	cr_assert_eq(rsend(caller, "x", 1, 0), 1, "what was accepted goes on");
	cr_expect_eq(rrecv(called, &octet, 1, 0), 1);
}

/* rsocket.h has no name for it: what a program of rsockets says of itself when it connects. */
static const uint8_t greeting[40] = {
	1, [2] = 1, [3] = 128, [13] = 1, [19] = 1, [23] = 2, [29] = 2, [35] = 1, [37] = 1
};

/* Connects, and is killed when it has the listener's answer, which it never confirms. */
static void connect_half(int says)
{
	struct rdma_conn_param p = { .private_data = greeting,
				     .private_data_len = sizeof(greeting),
				     .retry_count = 7 };
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id = open_caller(channel, RDMA_PS_TCP, ntohs(name.sin_port));
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 }
	};
	struct ibv_qp *qp =
		ibv_create_qp(id->pd, &init); /* not the id's, which would confirm by itself */

	if (qp == NULL)
		_exit(1);
	p.qp_num = qp->qp_num;
	if (rdma_connect(id, &p) != 0)
		_exit(1);
	pass_event(channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	if (write(says, "c", 1) != 1)
		_exit(1);
	pause();
}

/* Nobody accepts it, and its peer says nothing any more. */
Test(rs_ends, a_closed_listener_leaves_nothing_of_a_connection_that_is_half_open, .timeout = 200)
{
	unsigned int before = descriptors(), during;
	int says[2];
	uint64_t over;
	char octet;
	pid_t peer;
	ssize_t n;

	cr_assert_eq(pipe(says), 0);
	peer = fork();
	if (peer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails does not end us */
		connect_half(says[1]);
	}
	close(says[1]);
	n = read(says[0], &octet, 1);
	close(says[0]);
	during = descriptors();
	cr_assert_eq(kill(peer, SIGKILL), 0);
	cr_assert_eq(waitpid(peer, NULL, 0), peer);
	cr_assert_eq(n, 1, "it is not answered");
	cr_assert_gt(during, before, "the listener has no connection");
	cr_expect_eq(rclose(listener), 0);
	over = wait_end();
	while (descriptors() >= before && nap_before(over))
		;
	cr_expect_lt(descriptors(), before, "a descriptor of listener or connection is left");
}
