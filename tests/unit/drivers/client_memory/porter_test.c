/* SPDX-License-Identifier: BSD-3-Clause */
/* What porters do not keep. How they serve an engine: engine/control_descriptors. */
#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/client_memory/porter.h"

#define ENOUGH_MS 20000

TestSuite(porter, .timeout = 60);

/* The number that follows this word in a file of /proc. */
static int number_in(const char *file, const char *word)
{
	FILE *f = fopen(file, "re");
	size_t length = strlen(word);
	char line[256];
	int n = -1;

	cr_assert_not_null(f, "%s", file);
	while (n < 0 && fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, word, length) == 0)
			sscanf(line + length, "%d", &n);
	fclose(f);
	return n;
}

static void wait_for(int fd, short events, const char *what)
{
	struct pollfd p = { .fd = fd, .events = events };

	cr_assert_eq(poll(&p, 1, ENOUGH_MS), 1, "%s", what);
}

/* Asks the parent for a porter, which has this end, and returns its pidfd. */
static int ask_for_one(int channel, int end)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct porter_made made;
	struct iovec iov = { &made, sizeof(made) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	int pidfd;

	cr_assert_eq(porter_send(channel, "", 1, end), 0);
	wait_for(channel, POLLIN, "the parent did not answer");
	cr_assert_eq(recvmsg(channel, &m, 0), sizeof(made));
	cr_assert_eq(made.error, 0);
	cr_assert_not_null(CMSG_FIRSTHDR(&m));
	memcpy(&pidfd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(pidfd));
	return pidfd;
}

static pid_t parent_of(int pidfd)
{
	char file[64];

	snprintf(file, sizeof(file), "/proc/self/fdinfo/%d", pidfd);
	snprintf(file, sizeof(file), "/proc/%d/status", number_in(file, "Pid:"));
	return number_in(file, "PPid:");
}

/* ... or the engine would not notice that it must start another parent, as long as a porter hangs. */
Test(porter, one_that_hangs_does_not_hide_that_the_parent_was_killed)
{
	int channel = porter_start(), ends[2], pidfd;
	pid_t parent;
	char octet;

	cr_assert_geq(channel, 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	pidfd = ask_for_one(channel, ends[1]);
	close(ends[1]);
	parent = parent_of(pidfd); /* the porter waits for its task */
	cr_assert_gt(parent, 1);
	cr_assert_eq(kill(parent, SIGKILL), 0);
	wait_for(channel, POLLIN, "the porter still has the parent's end");
	cr_expect_eq(recv(channel, &octet, sizeof(octet), 0), 0);
	close(ends[0]);
	wait_for(pidfd, POLLIN, "the porter is still there");
	close(pidfd);
	close(channel);
}

/* ... of what may be executed, each time a fork that copies it: nothing but what porters call. */
static bool is_needed(const char *path, const char *program)
{
#ifdef UROCE_SANITIZED
	if (strstr(path, "san") != NULL)
		return true;
#endif
	return path[0] == '[' || strcmp(path, program) == 0 || strstr(path, "/libc.so.") != NULL ||
	       strstr(path, "/ld-") != NULL;
}

Test(porter, their_parent_keeps_no_library_but_libc)
{
	int channel = porter_start(), ends[2], pidfd;
	char file[64], line[512], program[256] = "", path[256];
	uint32_t kept = 0;
	FILE *f;

	cr_assert_geq(channel, 0);
	cr_assert_gt(readlink("/proc/self/exe", program, sizeof(program) - 1), 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	pidfd = ask_for_one(channel, ends[1]);
	snprintf(file, sizeof(file), "/proc/%d/maps", parent_of(pidfd));
	f = fopen(file, "re");
	cr_assert_not_null(f, "%s", file);
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "%*s r-xp %*s %*s %*s %255s", path) == 1) {
			cr_expect(is_needed(path, program), "%s", path);
			kept++;
		}
	cr_expect_geq(kept, 4, "%u: this program, libc, the dynamic linker, the kernel's functions",
		      kept);
	fclose(f);
	close(ends[1]);
	close(ends[0]);
	wait_for(pidfd, POLLIN, "the porter is still there");
	close(pidfd);
	close(channel);
}
