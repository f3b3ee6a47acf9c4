/* SPDX-License-Identifier: BSD-3-Clause */
/* The child of a fork: its files are its own, and it may use streams. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rs_rig.h"

static int listener, called;

static void begin(void)
{
	struct sockaddr_in a;

	rs_pair_open();
	listener = rs_listening(&a);
	called = rs_connect_stream(listener, &a);
}

static void end(void)
{
	rclose(called);
	rclose(listener);
	rs_pair_close();
}

TestSuite(rs_fork, .init = begin, .fini = end, .timeout = 60);

#define FILES 64 /* more than the library had open before the fork */

/* The program closes descriptors that it does not know, and opens its own. Its child must have them all. */
static int forks_with_own_files(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int tell[2], own, status;

	close_range(3, ~0u, 0);
	own = epoll_create1(EPOLL_CLOEXEC);
	for (int i = own + 1; i < FILES; i++)
		dup(own);
	if (pipe(tell) != 0 || epoll_ctl(own, EPOLL_CTL_ADD, tell[0], &e) != 0)
		return 1;
	if (fork() == 0) {
		for (int i = own; i < FILES; i++)
			if (fcntl(i, F_GETFD) < 0)
				_exit(i);
		_exit(0);
	}
	return wait(&status) > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

Test(rs_fork, a_program_with_files_of_its_own_forks)
{
	struct pollfd p = { .fd = s, .events = POLLIN };
	int status = -1;
	pid_t child;

	cr_assert_eq(rpoll(&p, 1, 20), 0, "this thread must sleep once");
	child = fork();
	if (child == 0) {
		int own = rsocket(AF_INET, SOCK_STREAM, 0);
		struct sockaddr_in a;

		if (rbind(own, address(&a, OWN_ADDRESS, 0), sizeof(a)) != 0 || rlisten(own, 1) != 0)
			_exit(1);
		_exit(forks_with_own_files());
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	cr_expect_eq(WEXITSTATUS(status), 0, "its file %d is closed (1, 2: it could not try)",
		     WEXITSTATUS(status));
}

/* A child closes what it inherited. Then its own files have the numbers that the library's had. */
static int use_streams_beside_files(void)
{
	int file = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct pollfd p = { .events = POLLIN };
	struct stat before, after;
	struct sockaddr_in a;

	dup2(file, 3);
	close_range(4, ~0u, 0);
	for (int i = 4; i < FILES; i++)
		if (dup(3) != i)
			return 1;
	p.fd = rsocket(AF_INET, SOCK_STREAM, 0);
	if (rbind(p.fd, address(&a, OWN_ADDRESS, 0), sizeof(a)) != 0 || rlisten(p.fd, 1) != 0 ||
	    rpoll(&p, 1, 20) != 0)
		return 2;
	stat("/", &before);
	for (int i = 3; i < FILES; i++)
		if (fstat(i, &after) != 0 || after.st_ino != before.st_ino)
			return i;
	return 0;
}

Test(rs_fork, the_child_of_a_fork_keeps_its_own_files)
{
	struct pollfd p = { .fd = s, .events = POLLIN };
	int status = -1;
	pid_t child;

	cr_assert_eq(rpoll(&p, 1, 20), 0, "this thread must sleep once");
	child = fork();
	if (child == 0)
		_exit(use_streams_beside_files());
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	cr_expect_neq(WEXITSTATUS(status), 1, "it cannot open files");
	cr_expect_neq(WEXITSTATUS(status), 2, "it cannot use streams");
	cr_expect_leq(WEXITSTATUS(status), 2, "its file %d is another one", WEXITSTATUS(status));
}
