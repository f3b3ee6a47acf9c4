/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The identity of a client. HELLO ties the memory that the engine reads and writes to the process that
 * connected, not to another one whose memory it names, nor to a later one with the same pid.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig/control_rig.h"

TestSuite(control_identity, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

/* The reply's errno, or -1: the connection ended. */
static int say_hello(int fd, int mem, const uint8_t *proof)
{
	struct request_hello q = { { COMMAND_MAGIC, COMMAND_VERSION, COMMAND_HELLO, sizeof(q),
				     1 } };
	struct command_reply reply;

	memcpy(q.proof, proof, sizeof(q.proof));
	return throw_at(fd, &q, sizeof(q), &mem, mem >= 0, &reply);
}

/* A process that waits until it is ended. */
static pid_t make_stranger(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close_range(0, ~0U,
			    0); /* the engine is in our process: its ends are not to be held */
		for (;;)
			pause();
	}
	cr_assert_gt(pid, 0);
	return pid;
}

static int memory_of(pid_t pid)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/mem", (int)pid);
	fd = open(name, O_RDWR | O_CLOEXEC);
	cr_assert_geq(fd, 0, "%s: %m", name);
	return fd;
}

/*
 * Another program's: a child's has what ours has, the proof too, so one that has called execve(2). Reads
 * would come from one process and writes go to the other.
 */
Test(control_identity, memory_of_another_process_is_refused)
{
	int fd = message_connect(path), mem, out[2];
	uint8_t proof[16];
	char octet;
	pid_t cat;

	cr_assert_eq(pipe(out), 0);
	cat = fork();
	if (cat == 0) {
		int held[2];

		if (pipe(held) == 0 && write(out[1], "", 1) == 1) {
			dup2(held[0], 0);
			fcntl(held[1], F_SETFD, 0);
			execl("/bin/cat", "cat", (char *)NULL);
		}
		_exit(1);
	}
	cr_assert_eq(read(out[0], &octet, 1), 1);
	for (int tries = 0;; tries++) {
		char name[64], text[32] = "";
		FILE *f;

		snprintf(name, sizeof(name), "/proc/%d/comm", (int)cat);
		f = fopen(name, "re");
		if (f != NULL && fgets(text, sizeof(text), f) != NULL && strcmp(text, "cat\n") == 0)
			tries = -1;
		if (f != NULL)
			fclose(f);
		if (tries < 0)
			break;
		cr_assert_lt(tries, ENOUGH_MS, "cat does not start");
		poll(NULL, 0, 1);
	}
	mem = memory_of(cat);
	message_prove(proof);
	cr_expect_eq(say_hello(fd, mem, proof), EPROTO);
	close(mem);
	close(fd);
	process_end(cat);
	expect_counts(0, 0, 0, 0);
	/* without a descriptor the engine finds ours itself */
	fd = message_connect(path);
	cr_expect_eq(say_hello(fd, -1, proof), 0);
	expect_counts(1, 0, 0, 0);
	/* and to have the connection is not enough */
	proof[3] ^= 1;
	close(fd);
	fd = message_connect(path);
	cr_expect_eq(say_hello(fd, -1, proof), EPROTO);
	close(fd);
	expect_counts(0, 0, 0, 0);
	expect_serving();
}

static void expect_served(int fd)
{
	struct request_empty q = { 0 };
	struct reply_device r;

	cr_assert_eq(ask(fd, COMMAND_DEVICE, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0);
}

/* A process that connects, gives us the connection, and has ended. */
static int connection_of_the_dead(pid_t *dead)
{
	char octet = 0, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &octet, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = space,
			    .msg_controllen = sizeof(space) };
	int pass[2], fd;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pass), 0);
	*dead = fork();
	if (*dead == 0) {
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);

		fd = message_connect(path);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
		/* answered: the engine has taken the connection */
		expect_served(fd);
		_exit(sendmsg(pass[1], &m, 0) != 1);
	}
	cr_assert_eq(recvmsg(pass[0], &m, 0), 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	close(pass[0]);
	close(pass[1]);
	return fd;
}

/* Its memory blocks, say: what the engine ended then would be the stranger. */
Test(control_identity, a_connection_ends_with_the_process_that_made_it)
{
	pid_t dead, stranger;
	int fd = connection_of_the_dead(&dead);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint8_t proof[16];
	char octet;

	waitpid(dead, NULL, 0);
	stranger = process_with_number(make_stranger, dead);
	if (stranger == 0)
		cr_skip_test("no process can be given the number of another one");
	message_prove(proof);
	if (poll(&p, 1, 5000) != 1) {
		int mem = memory_of(getpid());

		cr_assert_fail("process %d is gone, and another has its number; HELLO: %d",
			       (int)dead, say_hello(fd, mem, proof));
	}
	cr_expect_leq(recv(fd, &octet, 1, 0), 0);
	close(fd);
	cr_expect_eq(kill(stranger, 0), 0);
	process_end(stranger);
	expect_counts(0, 0, 0, 0);
	expect_serving();
}
