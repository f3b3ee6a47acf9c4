/* SPDX-License-Identifier: BSD-3-Clause */
#include "holding.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER	 "/mnt" /* of a mount namespace of our own */
#define DAEMON_S 40 /* held-up threads go on then, whatever the result of the test */
#define FILLED	 (4ul << 30) /* freeing it takes longer than anybody may wait */
#define SPARE	 (4ul << 30) /* octets that other programs have then */

/* It has octets that the peer does not read, and all the time there is for them. */
int lingering_socket(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct linger linger = { 1, 1000000 };
	socklen_t size = sizeof(a);
	static char octets[65536];
	int l = socket(AF_INET, SOCK_STREAM, 0), s = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(l, (struct sockaddr *)&a, size) != 0 || listen(l, 1) != 0 ||
	    getsockname(l, (struct sockaddr *)&a, &size) != 0 ||
	    connect(s, (struct sockaddr *)&a, size) != 0)
		return -1;
	while (send(s, octets, sizeof(octets), MSG_DONTWAIT) > 0)
		;
	setsockopt(s, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return s; /* the listener stays open with the process: no thread reads */
}

static void answer(int fd, const struct fuse_in_header *in, const void *body, size_t length)
{
	char octets[512];
	struct fuse_out_header out = { .len = (uint32_t)(sizeof(out) + length),
				       .unique = in->unique };

	memcpy(octets, &out, sizeof(out));
	memcpy(octets + sizeof(out), body, length);
	if (write(fd, octets, out.len) < 0)
		return;
}

/* Answers the requests that opening a file needs, and no others. */
static void be_mute_daemon(int fd)
{
	static char octets[1 << 20];
	struct fuse_attr file = {
		.ino = 2, .size = 4096, .mode = S_IFREG | 0666, .nlink = 1, .blksize = 4096
	};
	struct fuse_attr folder = { .ino = 1, .mode = S_IFDIR | 0755, .nlink = 2, .blksize = 4096 };

	prctl(PR_SET_PDEATHSIG, 0);
	alarm(DAEMON_S);
	for (;;) {
		const struct fuse_in_header *in = (const struct fuse_in_header *)octets;
		ssize_t n = read(fd, octets, sizeof(octets));

		if (n < 0)
			_exit(0);
		if (in->opcode == FUSE_INIT) {
			struct fuse_init_out o = { .major = 7, .minor = 31, .max_write = 4096 };

			answer(fd, in, &o, sizeof(o));
		} else if (in->opcode == FUSE_LOOKUP) {
			struct fuse_entry_out o = { .nodeid = 2, .attr = file };

			answer(fd, in, &o, sizeof(o));
		} else if (in->opcode == FUSE_GETATTR) {
			struct fuse_attr_out o = { .attr = in->nodeid == 1 ? folder : file };

			answer(fd, in, &o, sizeof(o));
		} else if (in->opcode == FUSE_OPEN) {
			struct fuse_open_out o = { .fh = 1 };

			answer(fd, in, &o, sizeof(o));
		}
	}
}

/* Until they end, they also hold up any process that has their file open. */
static struct {
	uint32_t count;
	pid_t pid[16];
} * daemons;

void daemons_share(void)
{
	if (daemons == NULL)
		daemons =
			mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (daemons == MAP_FAILED)
		abort();
}

void daemons_end(void)
{
	while (daemons->count > 0)
		kill(daemons->pid[--daemons->count], SIGKILL);
}

int mute_file(void)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[64];
	pid_t pid;

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (fd < 0 || unshare(CLONE_NEWNS) != 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("mute", FOLDER, "fuse", 0, options) != 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		close_range(0, (unsigned int)fd - 1, 0);
		close_range((unsigned int)fd + 1, ~0u, 0);
		be_mute_daemon(fd);
	}
	daemons->pid[daemons->count++] = pid;
	close(fd);
	return open(FOLDER "/file", O_RDWR);
}

int filled_memory(void)
{
	int fd = memfd_create("filled", MFD_ALLOW_SEALING);

	if ((uint64_t)sysconf(_SC_AVPHYS_PAGES) * 4096 < FILLED + SPARE)
		return -1;
	if (ftruncate(fd, (off_t)FILLED) != 0 || fallocate(fd, 0, 0, (off_t)FILLED) != 0)
		return -1;
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	return fd;
}

void send_with_descriptor(int fd, enum command what, size_t length, int passed, uint32_t times)
{
	union {
		struct cmsghdr align;
		char octets[CMSG_SPACE(253 * sizeof(int))];
	} space = { 0 };
	union {
		struct command_request h;
		uint8_t octets[LIMIT_COMMAND_BYTES];
	} q = { .h = { COMMAND_MAGIC, COMMAND_VERSION, (uint16_t)what, (uint32_t)length, 7 } };
	struct iovec iov = { &q, q.h.length };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &space };
	struct cmsghdr *c;

	m.msg_controllen = CMSG_SPACE(times * sizeof(int));
	c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(times * sizeof(int));
	for (uint32_t i = 0; i < times; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &passed, sizeof(int));
	sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}
