/* SPDX-License-Identifier: BSD-3-Clause */
/* One user takes all the connections that can be had: others are served (hostile H-122). */
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/limits.h"
#include "control_rig.h"

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

/* How many of `wanted` connections that user is given, at most as many as fit an exit status. */
static int as_user(uid_t uid, int wanted)
{
	int status, n = 0;
	pid_t child = fork();

	if (child == 0) {
		if (setuid(uid) != 0)
			_exit(0);
		while (n < wanted && connect_and_ask() >= 0)
			n++;
		_exit(n);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

Test(control_share, connections_of_one_user)
{
	int *fd = calloc(LIMIT_CONNECTIONS + 1, sizeof(*fd));
	uint32_t n = 0;
	int few, again;

	if (geteuid() != 0)
		cr_skip_test("another user is wanted");
	many_descriptors();
	cr_assert_eq(chmod(path, 0666), 0);
	while (n < LIMIT_CONNECTIONS && (fd[n] = connect_and_ask()) >= 0)
		n++;
	cr_expect_geq(n, LIMIT_CONNECTIONS / 2, "%u connections", n);
	cr_expect_lt(n, LIMIT_CONNECTIONS, "all of them");
	cr_expect_eq(as_user(NOBODY, 20), 20, "another user");
	/* those of before may not have ended yet */
	few = as_user(NOBODY, 200);
	cr_expect(few >= (int)LIMIT_CONNECTIONS / 16 - 20 && few <= (int)LIMIT_CONNECTIONS / 16,
		  "%d for who has few", few);
	cr_expect_lt(connect_and_ask(), 0);
	for (uint32_t i = 0; i < n; i++)
		close(fd[i]);
	/* the engine hears of their ends one by one */
	for (int ms = 0; (again = connect_and_ask()) < 0 && ms < ENOUGH_MS; ms++)
		usleep(1000);
	cr_expect_geq(again, 0, "there is room again");
	close(again);
	free(fd);
}
