/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that has threads makes the parent and the porters with clone(2). So they call nothing
 * that takes a lock: no malloc, no stdio. They send the program no signal when they end, because an
 * embedding program may wait for children of its own.
 */
#include "drivers/client_memory/porter.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/limits.h"
#include "drivers/client_memory/maps.h"
#include "drivers/client_memory/peer.h"
#include "drivers/client_memory/porter_code.h"

#define FDS_OF_MESSAGE 253 /* SCM_MAX_FD: the most that a message can carry */
#define LARGE	       (4ul << 20) /* octets; a larger private mapping is not the code's */

static_assert(LIMIT_PORTER_LIFE < LIMIT_PORTER_WAIT_S,
	      "a signal ends it before it counts as hanging");

union descriptor_space {
	struct cmsghdr align;
	char octets[CMSG_SPACE(FDS_OF_MESSAGE * sizeof(int))];
};

static struct maps maps; /* only the parent uses it, and the parent has one thread */

/* ---- messages ---- */

static int send_with(int channel, const void *octets, size_t length, const int *fd, uint32_t n)
{
	struct iovec iov = { (void *)(uintptr_t)octets, length };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	union descriptor_space space;

	if (n > 0) {
		struct cmsghdr *c;

		memset(&space, 0, sizeof(space));
		m.msg_control = &space;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fd, n * sizeof(int));
	}
	return sendmsg(channel, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)length ? 0 : errno;
}

int porter_send(int channel, const void *octets, uint32_t length, int fd)
{
	return send_with(channel, octets, length, &fd, fd >= 0);
}

struct received {
	ssize_t got;
	int flags;
	uint32_t count;
	int fd[FDS_OF_MESSAGE];
};

static void receive(int socket, void *octets, size_t length, int flags, struct received *r)
{
	struct iovec iov = { octets, length };
	union descriptor_space space;
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &space,
			    .msg_controllen = sizeof(space) };

	r->count = 0;
	do {
		r->got = recvmsg(socket, &m, flags | MSG_CMSG_CLOEXEC);
	} while (r->got < 0 && errno == EINTR);
	r->flags = m.msg_flags;
	if (r->got < 0) {
		r->got = -errno;
		return;
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(r->fd + r->count, CMSG_DATA(c), n * sizeof(int));
		r->count += (uint32_t)n;
	}
}

/* ---- a porter ---- */

/*
 * Whether a descriptor may be passed on. Checks seals first: only memory files have them, and the
 * check cannot block.
 */
static bool is_harmless(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return (seals >= 0 && (seals & F_SEAL_SHRINK) != 0) || peer_memory_is(fd);
}

/*
 * Returns an O_PATH descriptor of the file, or -1. It keeps the inode in use, so that no other file
 * gets its number before the engine releases this porter.
 */
static int describe(int fd, struct porter_report *report)
{
	struct statx s;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &s) != 0)
		return -1;
	report->device = makedev(s.stx_dev_major, s.stx_dev_minor);
	report->inode = s.stx_ino;
	report->described = 1;
	return fd;
}

/* Tries again, because the kernel limits how many descriptors of a user are in flight. */
static bool send_report(int channel, const struct porter_report *report, const int *fd, uint32_t n)
{
	int error = EAGAIN;

	for (uint32_t i = 0; i < LIMIT_PORTER_TRIES && error != 0; i++) {
		error = send_with(channel, report, sizeof(*report), fd, n);
		if (error != ETOOMANYREFS && error != EAGAIN && error != ENOBUFS)
			break;
		usleep(1000);
	}
	return error == 0;
}

/* Keeps the file until the engine no longer needs it. */
static void hold(int channel, int file)
{
	unsigned int low = (unsigned int)(channel < file ? channel : file);
	unsigned int high = (unsigned int)(channel < file ? file : channel);
	char octet;

	alarm(0);
	if (low > 0)
		close_range(0, low - 1, 0);
	if (low + 1 < high)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0u, 0);
	while (read(channel, &octet, 1) < 0 && errno == EINTR)
		;
}

/*
 * Opens the memory of the program that sent HELLO, and returns the descriptor; -1: not permitted.
 * Then checks, as far as that is permitted, whether the descriptor that the program passed is of
 * the program's own memory.
 */
static int greet(const struct porter_task *task, const struct received *r,
		 struct porter_report *report)
{
	struct peer_proof proof;
	uint64_t at;
	int fd = -1;

	if (report->got < 0 || (uint32_t)report->got < task->proof + sizeof(proof) ||
	    (uint32_t)report->got < task->proof_at + sizeof(at))
		return -1;
	memcpy(&proof, report->octets + task->proof, sizeof(proof));
	report->greeted = 1;
	report->by_pid = task->pid > 0 && peer_memory_by_pid(task->pid);
	report->found = task->pid > 0 ? peer_memory_find(task->pid, &proof, &fd, &at) : EACCES;
	if (report->found != 0)
		memcpy(&at, report->octets + task->proof_at, sizeof(at));
	report->proven = r->count == 1 && peer_memory_is(r->fd[0]) &&
			 peer_memory_proves(r->fd[0], &proof, at);
	if (report->found == EACCES && report->by_pid)
		report->proven = report->proven && peer_memory_proves_pid(task->pid, &proof, at);
	report->foreign =
		r->count == 1 && !report->proven && (report->found == 0 || report->by_pid);
	return fd;
}

static void carry(int channel, int socket, const struct porter_task *task)
{
	static struct porter_report report;
	static struct received r;
	int passed[LIMIT_COMMAND_FDS + 1], file = -1, found = -1;
	uint32_t n = 0;

	receive(socket, report.octets, sizeof(report.octets), MSG_DONTWAIT, &r);
	report.got = (int32_t)r.got;
	report.count = r.count;
	report.lost = (r.flags & (MSG_CTRUNC | MSG_TRUNC)) != 0 || r.count > LIMIT_COMMAND_FDS;
	for (uint32_t i = 0; i < r.count && !report.lost; i++) {
		if (!is_harmless(r.fd[i]))
			continue;
		report.passed |= 1u << i;
		passed[n++] = r.fd[i];
	}
	if (task->order == PORTER_GREET)
		found = greet(task, &r, &report);
	if (found >= 0)
		passed[n++] = found;
	if (r.count == 1 && n == 0)
		file = describe(r.fd[0], &report);
	if (send_report(channel, &report, passed, n) && file >= 0)
		hold(channel, file);
}

/* Waits until the engine has closed its references, so that this porter closes the last one. */
static void wait_for_end(int channel)
{
	struct pollfd p = { .fd = channel };

	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
}

/*
 * The porter does not close its descriptors. When a process ends, SO_LINGER of a socket has no
 * effect.
 */
static void be_porter(int channel)
{
	struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t none;
	static struct received r;
	struct porter_task task = { 0 };

	sigaction(SIGALRM, &plain, NULL);
	sigemptyset(&none);
	sigaddset(&none, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &none, NULL);
	prctl(PR_SET_NAME, "uroce-porter");
	receive(channel, &task, sizeof(task), 0, &r);
	alarm(LIMIT_PORTER_LIFE);
	if (r.got != sizeof(task))
		return;
	if (task.order == PORTER_DROP)
		wait_for_end(channel);
	else if (r.count == 1)
		carry(channel, r.fd[0], &task);
}

/* ---- their parent ---- */

static bool holds(const struct mapping *m, const void *object)
{
	return (uintptr_t)object >= m->start && (uintptr_t)object < m->end;
}

/*
 * Hugepages, rings of ports and arenas. While they stay mapped, a new engine could not have them, even if
 * all that is left is a porter that hangs.
 */
static bool is_memory(const struct mapping *m)
{
	int here;

#ifdef UROCE_SANITIZED
	return false; /* the sanitizers' shadows are among the large mappings */
#endif
	if (holds(m, &here) || holds(m, &errno) || holds(m, &maps))
		return false;
	return m->shared || (m->inode == 0 && m->end - m->start > LARGE && !m->named);
}

static void let_go_of(bool (*unneeded)(const struct mapping *))
{
	struct mapping m;

	if (maps_open(&maps) != 0)
		return;
	while (maps_next(&maps, &m))
		if (unneeded(&m))
			munmap((void *)m.start, m.end - m.start);
	maps_close(&maps);
}

static void let_go(int channel)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGCHLD, SIG_IGN); /* nobody waits for the porters */
	setsid();
	prctl(PR_SET_NAME, "uroce-porters");
	if (channel > 0)
		close_range(0, (unsigned int)channel - 1, 0);
	close_range((unsigned int)channel + 1, ~0u, 0);
	let_go_of(is_memory);
	if (porter_code_find())
		let_go_of(porter_code_is_foreign);
}

static long make_process(unsigned long flags, int *pidfd)
{
	return syscall(SYS_clone, flags, NULL, pidfd, NULL, NULL);
}

static void make_porter(int channel, int end)
{
	struct porter_made made = { 0 };
	int pidfd = -1;
	long pid = make_process(CLONE_PIDFD | SIGCHLD, &pidfd);

	if (pid == 0) {
		close(channel);
		be_porter(end);
		_exit(0);
	}
	if (pid < 0)
		made.error = errno;
	/* Closed before the answer, so that only the porter holds this end. */
	close(end);
	while (send_with(channel, &made, sizeof(made), &pidfd, pid > 0) != 0 && errno != EPIPE)
		usleep(1000);
	if (pidfd >= 0)
		close(pidfd);
}

static void be_parent(int channel)
{
	static struct received r;
	uint8_t octet;

	let_go(channel);
	for (;;) {
		receive(channel, &octet, sizeof(octet), 0, &r);
		if (r.got <= 0)
			return;
		if (r.count == 1)
			make_porter(channel, r.fd[0]);
	}
}

/* Makes the parent a grandchild, so that no signal reports its end. */
static void be_forgotten(int channel)
{
	long pid = make_process(0, NULL);

	if (pid == 0)
		be_parent(channel);
	_exit(pid < 0);
}

int porter_start(void)
{
	int ends[2], status = 0, error = 0;
	long pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	pid = make_process(0, NULL);
	if (pid == 0)
		be_forgotten(ends[1]);
	if (pid < 0)
		error = errno;
	close(ends[1]);
	while (pid > 0 && waitpid((pid_t)pid, &status, __WCLONE) < 0 && errno == EINTR)
		;
	if (error == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
		error = EAGAIN;
	if (error == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0)
		error = errno;
	if (error == 0)
		return ends[0];
	close(ends[0]);
	errno = error;
	return -1;
}
