/* SPDX-License-Identifier: BSD-3-Clause */
/* Several requests that wait at one socket: how many have their turn at once. */
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "rig/control_rig.h"

#define MANY   (2 * LIMIT_COMMANDS_IN_A_ROW)
#define STEPS  10000 /* of the control thread, which has other work, too */
#define ROUNDS 9

/* The control thread does not wait for anything before the test lets it take a step. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool gated, at_gate;
static uint32_t steps;

int __real_epoll_wait(int fd, struct epoll_event *events, int most, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout);

int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
	if (most != 1)
		return __real_epoll_wait(fd, events, most, timeout); /* lcores take more at once */
	pthread_mutex_lock(&lock);
	at_gate = true;
	pthread_cond_broadcast(&changed);
	while (gated && steps == 0)
		pthread_cond_wait(&changed, &lock);
	if (gated)
		steps--;
	at_gate = false;
	pthread_mutex_unlock(&lock);
	return __real_epoll_wait(fd, events, most, timeout);
}

/* The caller holds `lock`, which is free afterwards: a failed test opens the gate at its end. */
static void unlock_after_arrival(void)
{
	struct timespec until;
	int error = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ENOUGH_MS / 1000;
	while ((!at_gate || steps > 0) && error != ETIMEDOUT)
		error = pthread_cond_timedwait(&changed, &lock, &until);
	pthread_mutex_unlock(&lock);
	cr_assert_neq(error, ETIMEDOUT, "the control thread does not come back to its wait");
}

static void close_gate(void)
{
	pthread_mutex_lock(&lock);
	gated = true;
	unlock_after_arrival();
}

static void step(void)
{
	pthread_mutex_lock(&lock);
	steps = 1;
	pthread_cond_broadcast(&changed);
	unlock_after_arrival();
}

static void open_gate(void)
{
	pthread_mutex_lock(&lock);
	gated = false;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void end(void)
{
	open_gate();
	control_rig_close();
}

TestSuite(exchange, .init = control_rig_open, .fini = end, .timeout = 120);

static void request(int fd, uint32_t n)
{
	for (uint32_t i = 1; i <= n; i++) {
		struct request_empty q = { .h = { COMMAND_MAGIC, COMMAND_VERSION, COMMAND_DEVICE,
						  sizeof(q), i } };

		cr_assert_eq(send(fd, &q, sizeof(q), MSG_NOSIGNAL | MSG_DONTWAIT),
			     (ssize_t)sizeof(q), "request %u", i);
	}
}

/* The replies that are there, which come in the order of the requests. */
static uint32_t take_replies(int fd, uint32_t before)
{
	struct reply_device r;
	uint32_t n = before;

	while (recv(fd, &r, sizeof(r), MSG_DONTWAIT) == (ssize_t)sizeof(r))
		cr_expect_eq(r.h.sequence, ++n);
	return n;
}

static int connect_to_engine(void)
{
	struct request_empty q = { 0 };
	struct reply_device r;
	int fd = message_connect(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ask(fd, COMMAND_DEVICE, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0);
	return fd;
}

Test(exchange, takes_several_requests_at_once)
{
	int fd = connect_to_engine();
	uint32_t n = 0;

	close_gate();
	request(fd, MANY);
	for (int i = 0; i < STEPS && n == 0; i++) {
		step();
		n = take_replies(fd, 0);
	}
	cr_expect_eq(n, LIMIT_COMMANDS_IN_A_ROW);
	for (int i = 0; i < STEPS && n < MANY; i++) {
		step();
		n = take_replies(fd, n);
	}
	cr_expect_eq(n, MANY);
	close(fd);
}

Test(exchange, others_have_their_turn)
{
	int eager = connect_to_engine(), modest = connect_to_engine();
	uint32_t theirs = 0, ours = 0;

	close_gate();
	request(eager, MANY);
	request(modest, 1);
	for (int i = 0; i < STEPS && ours == 0; i++) {
		step();
		theirs = take_replies(eager, theirs);
		ours = take_replies(modest, 0);
	}
	cr_expect_eq(ours, 1);
	cr_expect_leq(theirs, LIMIT_COMMANDS_IN_A_ROW);
	close(eager);
	close(modest);
}

/*
 * Takes a reply with descriptors. Returns whether the request after it has its reply when the control thread has
 * taken one step.
 */
static bool next_goes_on(int fd)
{
	struct request_empty q = { .h = { COMMAND_MAGIC, COMMAND_VERSION, COMMAND_CM_CREATE_CHANNEL,
					  sizeof(q), 1 } };
	uint8_t reply[256];
	ssize_t got = -1;
	uint32_t steps_taken = 0;

	cr_assert_eq(send(fd, &q, sizeof(q), MSG_NOSIGNAL), (ssize_t)sizeof(q));
	for (int i = 0; i < STEPS && got < 0; i++) {
		step();
		got = recv(fd, reply, sizeof(reply), MSG_PEEK | MSG_DONTWAIT);
	}
	cr_assert_geq(got, (ssize_t)sizeof(struct command_reply));
	cr_expect_eq(((struct command_reply *)reply)->error, 0);
	recv(fd, reply, sizeof(reply), 0); /* without the descriptor */
	request(fd, 1);
	do {
		step();
		steps_taken++;
	} while (take_replies(fd, 0) == 0 && steps_taken < STEPS);
	cr_assert_lt(steps_taken, STEPS, "the request waits for ever");
	return steps_taken == 1;
}

/*
 * A reply with descriptors keeps no request waiting that comes after it: otherwise each would wait for the control
 * thread's next beat. A step may be one of the beats, so not every request is served in the first one.
 */
Test(exchange, goes_on_after_descriptors)
{
	int fd = attach(), at_once = 0;

	close_gate();
	for (int i = 0; i < ROUNDS; i++)
		at_once += next_goes_on(fd);
	cr_expect_gt(at_once, ROUNDS / 2);
	close(fd);
}
