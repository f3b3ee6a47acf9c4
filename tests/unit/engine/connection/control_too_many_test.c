/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs do not read their replies until the kernel takes no more descriptors of the engine's user
 * (ETOOMANYREFS, unix(7)). The engine has no privilege, and other programs work beside them.
 */
#include <criterion/logging.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rig/control_rig.h"
#include "../verbs/rig/endpoint.h"
#include "../verbs/rig/starved.h"

#define DESCRIPTORS \
	1024u /* RLIMIT_NOFILE: as many may be under way, and more may not be sent then */
#define ROOM	  24u /* that others leave of it */
#define PROGRAMS  32u /* each gets a reply with two descriptors */
#define AT_A_TIME 128u /* of one message, at most 253 */
#define COMMAND	  0.2 /* s of the engine's own */
#define DATA	  0.1
#define ROUNDS	  50

static uint32_t refused; /* atomic: replies that the kernel refused */

ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
/* Our libraries call it, too. */
__attribute__((visibility("default"))) ssize_t __wrap_sendmsg(int fd, const struct msghdr *m,
							      int flags);

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	const struct command_reply *r = m->msg_iov[0].iov_base;
	ssize_t n = __real_sendmsg(fd, m, flags);

	if (n < 0 && errno == ETOOMANYREFS && m->msg_iov[0].iov_len >= sizeof(*r) &&
	    r->magic == COMMAND_MAGIC)
		__atomic_add_fetch(&refused, 1, __ATOMIC_ACQ_REL);
	return n;
}

/* ---- the engine, of a user without other processes ---- */

static char folder[] = "/tmp/uroce-too-many-XXXXXX"; /* DPDK's, of this user */

static void begin(void)
{
	uid_t uid = 20000 + (uid_t)getpid() % 40000;
	struct rlimit limit = { DESCRIPTORS, DESCRIPTORS };

	if (geteuid() != 0)
		cr_skip_test("it takes root to be a user of its own");
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || setgid(uid) != 0 || setuid(uid) != 0)
		cr_skip_test("this user cannot become another: %m");
	prctl(PR_SET_DUMPABLE, 1); /* its memory is its own to show again */
	cr_assert_not_null(mkdtemp(folder), "%m");
	setenv("XDG_RUNTIME_DIR", folder, 1);
	setenv("UROCE_SOCKET", "/nonexistent", 1); /* nobody but ourselves */
	control_rig_open();
	cr_assert_eq(uroce_register(engine), 0, "libibverbs.so.1 of this build is not loaded");
}

static void end(void)
{
	char command[64];

	control_rig_close();
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_expect_eq(system(command), 0);
}

TestSuite(control_too_many, .timeout = 120);

/* ---- programs that do not read ---- */

static void send_open_context(int fd)
{
	struct request_empty q = { .h = { COMMAND_MAGIC, COMMAND_VERSION, COMMAND_OPEN_CONTEXT,
					  sizeof(q), 1 } };

	if (send(fd, &q, sizeof(q), MSG_NOSIGNAL) != (ssize_t)sizeof(q))
		abort();
}

static struct {
	pid_t pid;
	int go, ready; /* pipes */
} attacker;

static _Noreturn void be_attacker(int go, int ready)
{
	int fd[PROGRAMS];
	char octet;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (uint32_t i = 0; i < PROGRAMS; i++)
		fd[i] = attach();
	if (write(ready, "r", 1) != 1 || read(go, &octet, 1) != 1)
		_exit(1);
	for (uint32_t i = 0; i < PROGRAMS; i++)
		send_open_context(fd[i]);
	if (read(go, &octet, 1) != 0)
		_exit(1);
	_exit(0);
}

static void attack_begin(void)
{
	int go[2], ready[2];
	char octet;

	cr_assert(pipe(go) == 0 && pipe(ready) == 0, "%m");
	attacker.pid = fork();
	cr_assert_geq(attacker.pid, 0);
	if (attacker.pid == 0) {
		close(go[1]);
		be_attacker(go[0], ready[1]);
	}
	close(go[0]);
	close(ready[1]);
	cr_assert_eq(read(ready[0], &octet, 1), 1, "the attacker ended");
	close(ready[0]);
	attacker.go = go[1];
}

static void attack_go_on(void)
{
	cr_assert_eq(write(attacker.go, "g", 1), 1);
}

static void attack_end(void)
{
	int status;

	close(attacker.go);
	cr_assert_eq(waitpid(attacker.pid, &status, 0), attacker.pid);
	cr_expect_eq(status, 0, "the attacker ended with 0x%x", (unsigned int)status);
}

/* Descriptors of this user that are sent and not received, until only ROOM is left. */
static void fill(int ends[2])
{
	union {
		struct cmsghdr align;
		char octets[CMSG_SPACE(AT_A_TIME * sizeof(int))];
	} space = { 0 };
	struct iovec iov = { (void *)(uintptr_t) "f", 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &space };
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	uint32_t n;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0, "%m");
	for (uint32_t left = DESCRIPTORS - ROOM; left > 0; left -= n) {
		struct cmsghdr *c = &space.align;

		n = left < AT_A_TIME ? left : AT_A_TIME;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		*c = (struct cmsghdr){ CMSG_LEN(n * sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
		for (uint32_t i = 0; i < n; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &file, sizeof(int));
		cr_assert_eq(sendmsg(ends[0], &m, MSG_DONTWAIT), 1, "%u are left: %m", left);
	}
	close(file);
}

/* ---- programs beside them ---- */

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void await_refusals(uint32_t wanted)
{
	int64_t until = now_ms() + ENOUGH_MS;

	while (__atomic_load_n(&refused, __ATOMIC_ACQUIRE) < wanted && now_ms() < until)
		poll(NULL, 0, 1);
	cr_assert_geq(__atomic_load_n(&refused, __ATOMIC_ACQUIRE), wanted,
		      "the kernel has refused no descriptors");
}

static double ask_once(int fd, uint32_t context, struct starved *starved)
{
	double made, ended;
	uint32_t pd;

	starved_begin(starved);
	cr_assert_eq(ask_handle(fd, COMMAND_ALLOC_PD, context, &pd), 0);
	made = starved_command(starved);
	starved_begin(starved);
	cr_assert_eq(ask_handle(fd, COMMAND_DEALLOC_PD, pd, NULL), 0);
	ended = starved_command(starved);
	return made > ended ? made : ended;
}

/* Some commands and WRITEs, all of them quick. */
static void expect_going_on(struct endpoint *e, int fd, uint32_t context, const char *when)
{
	double command = 0, data = 0;
	struct starved starved;

	starved_open(&starved);
	for (int i = 0; i < ROUNDS; i++) {
		double took = ask_once(fd, context, &starved);

		command = took > command ? took : command;
		took = starved_write(&starved, e, 1);
		data = took > data ? took : data;
	}
	starved_close(&starved);
	cr_log_info("%s: the longest command took %.3f s, the longest WRITE %.3f s", when, command,
		    data);
	cr_expect_leq(command, COMMAND, "%s: a command took %.3f s", when, command);
	cr_expect_leq(data, DATA, "%s: a WRITE took %.3f s", when, data);
}

static void expect_context(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct reply_context r;

	cr_assert_eq(poll(&p, 1, ENOUGH_MS), 1, "its reply does not come");
	cr_assert_eq(recv(fd, &r, sizeof(r), 0), (ssize_t)sizeof(r), "the program was ended");
	cr_expect_eq(r.h.error, 0, "%s", r.h.why);
}

/* hostile H-122 */
Test(control_too_many, replies_that_are_not_read)
{
	struct pollfd waits = { .events = POLLIN };
	int ends[2], fd, needy;
	struct endpoint e;
	uint32_t context, before;

	begin();
	endpoint_open(&e);
	fd = attach();
	context = open_context(fd);
	needy = attach();
	attack_begin();
	expect_going_on(&e, fd, context, "before");
	fill(ends);
	attack_go_on();
	await_refusals(1);
	expect_going_on(&e, fd, context, "the kernel refuses the attacker's replies");
	/* one beside them needs descriptors, too, and waits for them */
	before = __atomic_load_n(&refused, __ATOMIC_ACQUIRE);
	send_open_context(needy);
	await_refusals(before + 1);
	expect_going_on(&e, fd, context, "another program's reply waits as well");
	waits.fd = needy;
	cr_expect_eq(poll(&waits, 1, 0), 0, "it was answered, or ended");
	attack_end();
	expect_context(needy);
	close(ends[0]);
	close(ends[1]);
	close(needy);
	close(fd);
	endpoint_close(&e);
	expect_counts(0, 0, 0, 0);
	end();
}
