/* SPDX-License-Identifier: BSD-3-Clause */
/* One user takes all that can be had of connections and programs: others are served (H-122). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/limits.h"
#include "rig/control_rig.h"

#define NOBODY 65534

TestSuite(control_share, .init = control_rig_open, .fini = control_rig_close, .timeout = 120);

static void many_descriptors(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < 3 * LIMIT_CONNECTIONS)
		cr_skip_test("ulimit -n %lu is too few", (unsigned long)limit.rlim_max);
}

/* A connection that was answered, or -1. */
static int connect_and_ask(void)
{
	struct request_empty q = { 0 };
	struct reply_statistics r;
	int fd = message_connect(path);

	if (fd >= 0 &&
	    ask(fd, COMMAND_STATISTICS, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* A program that is served, or -1 with errno. */
static int connect_and_attach(void)
{
	struct request_hello q = { .pid = (uint32_t)getpid(), .program = "control_share_test" };
	struct carrier_descriptors in = { .count = 1 }, out = { 0 };
	struct reply_hello r;
	int fd = message_connect(path), error;

	if (fd < 0)
		return -1;
	in.fd[0] = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	message_prove(q.proof);
	error = ask(fd, COMMAND_HELLO, &q.h, sizeof(q), &r.h, sizeof(r), &in, &out);
	close(in.fd[0]);
	for (uint32_t i = 0; i < out.count; i++)
		close(out.fd[i]);
	if (error == 0)
		return fd;
	close(fd);
	errno = error;
	return -1;
}

/* How many of `wanted` that user is given, at most as many as fit an exit status. */
static int as_user(uid_t uid, int wanted, int (*take)(void))
{
	int status, n = 0;
	pid_t child = fork();

	if (child == 0) {
		/* its memory is its own to show again */
		if (setuid(uid) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0)
			_exit(0);
		while (n < wanted && take() >= 0)
			n++;
		_exit(n);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* This user takes all that it is given of `most`; another one is given up to a sixteenth. */
static void expect_shares(int (*take)(void), uint32_t most, int refused)
{
	int *fd = calloc(most + 1, sizeof(*fd)), few, again;
	uint32_t n = 0;

	if (geteuid() != 0)
		cr_skip_test("another user is wanted");
	many_descriptors();
	cr_assert_eq(chmod(path, 0666), 0);
	while (n < most && (fd[n] = take()) >= 0)
		n++;
	if (refused != 0)
		cr_expect_eq(errno, refused, "%m");
	cr_expect_geq(n, most / 2, "%u of %u", n, most);
	cr_expect_lt(n, most, "all of them");
	cr_expect_eq(as_user(NOBODY, 20, take), 20, "another user");
	/* those of before may not have ended yet */
	few = as_user(NOBODY, 200, take);
	cr_expect(few >= (int)most / 16 - 20 && few <= (int)most / 16, "%d for who has few", few);
	cr_expect_lt(take(), 0);
	for (uint32_t i = 0; i < n; i++)
		close(fd[i]);
	/* the engine is told of their ends one by one */
	for (int ms = 0; (again = take()) < 0 && ms < ENOUGH_MS; ms++)
		usleep(1000);
	cr_expect_geq(again, 0, "there is room again");
	close(again);
	free(fd);
}

/*
 * They are closed as they come: before HELLO no client is told why. hostile H-122: as many as can
 * be had, and more.
 */
Test(control_share, connections_of_one_user)
{
	expect_shares(connect_and_ask, LIMIT_CONNECTIONS, 0);
}

/* hostile H-122: as many as can be had, and more. */
Test(control_share, programs_of_one_user)
{
	expect_shares(connect_and_attach, LIMIT_CLIENTS, EUSERS);
}
