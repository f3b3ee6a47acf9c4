/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that read what has descriptors: what they keep of their engine, when they end, and what
 * happens if they are slow.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rig/control_rig.h"
#include "rig/porters.h"

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static uint32_t shared_mappings(pid_t pid)
{
	char file[64], line[512], access[5];
	uint32_t n = 0;
	FILE *f;

	snprintf(file, sizeof(file), "/proc/%d/maps", pid);
	f = fopen(file, "re");
	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		n += sscanf(line, "%*s %4s", access) == 1 && access[3] == 's';
	fclose(f);
	return n;
}

/* Of an engine that was killed they would keep its hugepages from the next one. Sanitizers need theirs. */
Test(control_porters, keep_no_memory_of_their_engine, .timeout = 120)
{
	int fd;

	porters_adopt();
	control_rig_open();
	fd = attach();
	cr_assert_gt(shared_mappings(getpid()), 0);
#ifndef UROCE_SANITIZED
	cr_expect_eq(shared_mappings(porters_parent()), 0);
#endif
	close(fd);
	control_rig_close();
}

Test(control_porters, end_with_their_engine, .timeout = 120)
{
	int64_t end = now_ms() + ENOUGH_MS;
	pid_t parent, ended;
	int fd;

	porters_adopt();
	control_rig_open();
	fd = attach(); /* HELLO needs one */
	parent = porters_parent();
	close(fd);
	control_rig_close();
	while ((ended = waitpid(parent, NULL, WNOHANG)) == 0 && now_ms() < end)
		poll(NULL, 0, 1);
	cr_expect_eq(ended, parent, "the process that makes them is still there");
}

/* ---- many at once, where processes are slow ---- */

#define PROGRAMS 20
#define SLOW_MS	 300

static void say_hello(int fd)
{
	struct request_hello q = { { COMMAND_MAGIC, COMMAND_VERSION, COMMAND_HELLO, sizeof(q),
				     1 } };

	message_prove(q.proof);
	q.proof_at = message_proof_at();
	cr_assert_eq(send(fd, &q, sizeof(q), 0), sizeof(q));
}

/* How many of them have been answered, and are counted for the first time. */
static uint32_t answers(struct pollfd *p)
{
	uint32_t n = 0;

	poll(p, PROGRAMS, 10);
	for (uint32_t i = 0; i < PROGRAMS; i++) {
		struct command_reply reply = { .error = -1 };

		if (p[i].fd < 0 || p[i].revents == 0)
			continue;
		cr_assert_gt(recv(p[i].fd, &reply, sizeof(reply), 0), 0, "program %u: no reply", i);
		cr_expect_eq(reply.error, 0, "program %u: %s: %s", i, strerror(reply.error),
			     reply.why);
		p[i].fd = ~p[i].fd; /* poll(2) passes over it */
		n++;
	}
	return n;
}

/* The engine's parent of porters stands still while all these programs say hello. Returns its pid. */
static pid_t greet_stopped(struct pollfd p[PROGRAMS])
{
	pid_t parent;

	porters_adopt();
	control_rig_open();
	parent = porters_parent();
	for (uint32_t i = 0; i < PROGRAMS; i++) {
		p[i] = (struct pollfd){ .fd = message_connect(path), .events = POLLIN };
		cr_assert_geq(p[i].fd, 0);
	}
	kill(parent, SIGSTOP);
	for (uint32_t i = 0; i < PROGRAMS; i++)
		say_hello(p[i].fd);
	return parent;
}

/* All were answered. */
static void part(const struct pollfd p[PROGRAMS])
{
	for (uint32_t i = 0; i < PROGRAMS; i++)
		close(~p[i].fd);
	expect_counts(0, 0, 0, 0);
	expect_serving();
	control_rig_close();
}

/*
 * More programs of one user than have porters at a time, on a machine that is slow to make processes:
 * the last one waits for longer than for one that hangs, and is served.
 */
Test(control_porters, programs_wait_their_turn, .timeout = 120)
{
	struct pollfd p[PROGRAMS];
	uint32_t answered = 0;
	pid_t parent;

	parent = greet_stopped(p);
	while (answered < PROGRAMS) {
		int64_t end = now_ms() + ENOUGH_MS;
		uint32_t more = 0;

		poll(NULL, 0, SLOW_MS);
		kill(parent, SIGCONT);
		while (more == 0) {
			cr_assert_lt(now_ms(), end, "%u answers, and no more", answered);
			more = answers(p);
		}
		kill(parent, SIGSTOP);
		answered += more;
	}
	kill(parent, SIGCONT);
	part(p);
}

/*
 * The process that makes porters is killed while it owes some: programs that wait for them are served
 * by those of another parent, which is asked once for each.
 */
Test(control_porters, their_parent_may_be_killed, .timeout = 120)
{
	int64_t end = now_ms() + 2 * ENOUGH_MS;
	struct pollfd p[PROGRAMS];
	uint32_t answered = 0;
	pid_t parent;

	parent = greet_stopped(p);
	poll(NULL, 0, SLOW_MS);
	kill(parent, SIGKILL);
	while (answered < PROGRAMS) {
		cr_assert_lt(now_ms(), end, "%u answers, and no more", answered);
		answered += answers(p);
	}
	part(p);
}

/* ---- one that gets no processor ---- */

#define STARVES_MS 4000

static void await_stop(pid_t pid, int event)
{
	int64_t end = now_ms() + ENOUGH_MS;
	int status = 0;

	while (waitpid(pid, &status, WNOHANG | __WALL) == 0) {
		cr_assert_lt(now_ms(), end, "process %d does not stop", pid);
		poll(NULL, 0, 1);
	}
	cr_assert(WIFSTOPPED(status) && status >> 16 == event, "process %d: %#x", pid, status);
}

/* The porter that is made for this message, before its first instruction. */
static pid_t hold_porter_of(int fd)
{
	pid_t parent = porters_parent();
	unsigned long porter = 0;

	if (ptrace(PTRACE_SEIZE, parent, NULL, PTRACE_O_TRACEFORK) != 0)
		cr_skip_test("processes cannot be traced here");
	say_hello(fd);
	await_stop(parent, PTRACE_EVENT_FORK);
	cr_assert_eq(ptrace(PTRACE_GETEVENTMSG, parent, NULL, &porter), 0);
	await_stop((pid_t)porter, PTRACE_EVENT_STOP);
	cr_assert_eq(ptrace(PTRACE_DETACH, parent, NULL, NULL), 0);
	return (pid_t)porter;
}

/* On a busy machine: that is no reason to say that its descriptors hang. */
Test(control_porters, one_may_wait_for_a_processor, .timeout = 120)
{
	struct command_reply reply = { .error = -1 };
	struct pollfd p = { .events = POLLIN };
	int fd, early;
	pid_t porter;

	porters_adopt();
	control_rig_open();
	p.fd = fd = message_connect(path);
	porter = hold_porter_of(fd);
	early = poll(&p, 1, STARVES_MS);
	cr_assert_eq(ptrace(PTRACE_DETACH, porter, NULL, NULL), 0);
	cr_assert_gt(recv(fd, &reply, sizeof(reply), 0), 0, "no reply");
	cr_expect_eq(early, 0, "an answer without a porter");
	cr_expect_eq(reply.error, 0, "%s: %s", strerror(reply.error), reply.why);
	close(fd);
	expect_counts(0, 0, 0, 0);
	expect_serving();
	control_rig_close();
}
