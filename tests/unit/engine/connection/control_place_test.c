/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The place of an engine's socket in the file system: it may hold another engine's socket, or a
 * file that is not a socket.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig/control_rig.h"

TestSuite(control_place, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

Test(control_place, second_engine_is_refused_and_told_why)
{
	char why[256], holder[64];

	snprintf(holder, sizeof(holder), "another engine (process %d)", getpid());
	for (int i = 0; i < 2; i++) { /* who is refused leaves the holder's name */
		cr_assert_null(make_engine(why, sizeof(why)));
		cr_expect_not_null(strstr(why, holder), "why: %s", why);
		cr_expect_not_null(strstr(why, path), "why: %s", why);
	}
	expect_serving();
}

/* It has the lock, but did not write its number yet. */
Test(control_place, a_holder_without_a_number_is_unknown)
{
	char why[256], lock[sizeof(path) + 8];

	snprintf(lock, sizeof(lock), "%s.lock", path);
	cr_assert_eq(truncate(lock, 0), 0);
	cr_assert_null(make_engine(why, sizeof(why)));
	cr_expect_not_null(strstr(why, "another engine (process unknown)"), "%s", why);
}

/* A child of the program has all that it had, the locked file, too. */
Test(control_place, a_child_does_not_keep_the_place)
{
	pid_t child = fork();
	char why[256];

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	cr_assert_gt(child, 0);
	cr_expect_eq(uroce_destroy(engine), 0);
	engine = make_engine(why, sizeof(why));
	kill(child, SIGKILL);
	cr_expect_eq(waitpid(child, NULL, 0), child);
	cr_assert_not_null(engine, "%s", why);
	cr_assert_eq(uroce_start(engine), 0);
	expect_serving();
}

/* Of descriptors it gets one more each time, until there are enough. */
Test(control_place, an_engine_without_descriptors_says_why)
{
	struct rlimit limit;
	bool told = false;
	char why[256];

	uroce_destroy(engine);
	engine = NULL;
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	for (limit.rlim_cur = 3; engine == NULL && limit.rlim_cur < limit.rlim_max;
	     limit.rlim_cur++) {
		cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
		why[0] = '\0';
		engine = make_engine(why, sizeof(why));
		cr_expect(engine != NULL || why[0] != '\0',
			  "it fails with %llu and does not say why",
			  (unsigned long long)limit.rlim_cur);
		told |= strncmp(why, "no file descriptors: ", 21) == 0;
	}
	cr_expect(told);
	uroce_destroy(engine); /* it serves with no more than it found */
	limit.rlim_cur = limit.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	engine = make_engine(why, sizeof(why));
	cr_assert_not_null(engine, "%s", why);
	cr_assert_eq(uroce_start(engine), 0);
	expect_serving();
}

/* The files that a killed engine leaves. */
static void leave_socket(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

Test(control_place, stale_socket_is_replaced)
{
	char why[256];

	uroce_destroy(engine);
	leave_socket();
	engine = make_engine(why, sizeof(why));
	cr_assert_not_null(engine, "%s", why);
	cr_assert_eq(uroce_start(engine), 0);
	expect_serving();
}

/* A file, a folder, a link to a socket. */
Test(control_place, what_is_no_socket_is_not_replaced)
{
	char why[256];
	struct stat st;

	uroce_destroy(engine);
	for (int i = 0; i < 3; i++) {
		int error = i == 0   ? mknod(path, S_IFREG | 0600, 0)
			    : i == 1 ? mkdir(path, 0700)
				     : symlink("/run/another.sock", path);

		cr_assert_eq(error, 0);
		cr_expect_null(make_engine(why, sizeof(why)));
		cr_expect_eq(errno, EEXIST);
		cr_expect_not_null(strstr(why, i == 1 ? "there is a folder" : "there is a file"),
				   "%s", why);
		cr_assert_eq(lstat(path, &st), 0, "it stays");
		cr_assert_eq(remove(path), 0);
	}
	engine = make_engine(why, sizeof(why));
	cr_assert_not_null(engine, "%s", why);
	cr_assert_eq(uroce_start(engine), 0);
	expect_serving();
}
