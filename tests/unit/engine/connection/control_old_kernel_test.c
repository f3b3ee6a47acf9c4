/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The identity of a client on Linux before 6.5, which only tells the pid of the process that connected.
 * That process may have ended, and another one may have its pid, before the engine accepts the connection.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig/control_rig.h"
#include "control/control.h"
#include "lcore/inside.h"

#define NOBODY 65534

TestSuite(control_old_kernel, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

/* ---- the kernel, and an engine that may not look into processes of other users ---- */

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static bool unprivileged;
static bool filtered; /* process_vm_readv is refused, as by a filter of system calls */
static bool elsewhere; /* programs are in another pid namespace, from which ours is not seen */

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *size);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size);
int __real_open64(const char *name, int flags, ...);
int __wrap_open64(const char *name, int flags, ...);
ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
				const struct iovec *remote, unsigned long remote_count,
				unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
				const struct iovec *remote, unsigned long remote_count,
				unsigned long flags);

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
	if (level == SOL_SOCKET && name == SO_PEERPIDFD) {
		errno = ENOPROTOOPT;
		return -1;
	}
	if (__real_getsockopt(fd, level, name, value, size) != 0)
		return -1;
	if (level == SOL_SOCKET && name == SO_PEERCRED && elsewhere)
		((struct ucred *)value)->pid = 0;
	return 0;
}

int __wrap_open64(const char *name, int flags, ...)
{
	size_t length = strlen(name);
	mode_t mode = 0;
	va_list more;

	if (unprivileged && length > 4 && strcmp(name + length - 4, "/mem") == 0 &&
	    strcmp(name, "/proc/self/mem") != 0) {
		errno = EACCES;
		return -1;
	}
	va_start(more, flags);
	if ((flags & O_CREAT) != 0)
		mode = va_arg(more, mode_t);
	va_end(more);
	return __real_open64(name, flags, mode);
}

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
				const struct iovec *remote, unsigned long remote_count,
				unsigned long flags)
{
	if (unprivileged || filtered) {
		errno = EPERM;
		return -1;
	}
	return __real_process_vm_readv(pid, local, local_count, remote, remote_count, flags);
}

/* ---- connections whose process has ended, and whose pid another one has ---- */

/* Our child runs as the user nobody and keeps CAP_NET_RAW. */
static void be_nobody(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { { 0 } };

	prctl(PR_SET_KEEPCAPS, 1);
	if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
		_exit(100);
	d[0].effective = d[0].permitted = 1u << CAP_NET_RAW;
	if (syscall(SYS_capset, &h, d) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0)
		_exit(101);
}

static void pass(int channel, int fd)
{
	char octet = 0, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &octet, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = space,
			    .msg_controllen = sizeof(space) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(channel, &m, 0) != 1)
		_exit(102);
}

static int take(int channel)
{
	char octet, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &octet, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = space,
			    .msg_controllen = sizeof(space) };
	int fd = -1;

	cr_assert_eq(recvmsg(channel, &m, 0), 1);
	cr_assert_not_null(CMSG_FIRSTHDR(&m));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

/* The engine must not take it before its process has ended: called with the control lock. */
static int connection_of_the_dead(pid_t *dead)
{
	int channel[2], fd;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, channel), 0);
	*dead = fork();
	if (*dead == 0) {
		be_nobody();
		fd = message_connect(path);
		pass(channel[1], fd);
		_exit(fd < 0);
	}
	fd = take(channel[0]);
	close(channel[0]);
	close(channel[1]);
	waitpid(*dead, NULL, 0);
	return fd;
}

static bool other_program; /* the stranger runs one: it has another proof than we */

static void be_stranger(int ready)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	be_nobody();
	if (other_program)
		execl("/bin/sleep", "sleep", "1000", (char *)NULL);
	if (write(ready, "", 1) != 1)
		_exit(1);
	close_range(0, ~0U, 0); /* the engine is in our process: its ends are not to be held */
	for (;;)
		pause();
}

static pid_t make_stranger(void)
{
	int ready[2];
	char octet;
	pid_t pid;

	cr_assert_eq(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		be_stranger(ready[1]);
	close(ready[1]);
	cr_assert_eq(read(ready[0], &octet, 1), other_program ? 0 : 1);
	close(ready[0]);
	return pid;
}

/* HELLO by the connection of a dead process, whose pid the stranger has: its errno. */
static int hello_of_the_dead(pid_t *stranger, int *fd)
{
	struct engine *inside = (struct engine *)engine;
	struct request_hello q = { { COMMAND_MAGIC, COMMAND_VERSION, COMMAND_HELLO, sizeof(q),
				     1 } };
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	struct command_reply reply;
	pid_t dead;
	int error;

	cr_assert_eq(chmod(path, 0666), 0);
	pthread_mutex_lock(&inside->control_lock);
	*fd = connection_of_the_dead(&dead);
	*stranger = process_with_number(make_stranger, dead);
	pthread_mutex_unlock(&inside->control_lock);
	if (*stranger == 0)
		cr_skip_test("no process can be given the number of another one");
	message_prove(q.proof);
	q.proof_at = message_proof_at();
	error = throw_at(*fd, &q, sizeof(q), &mem, 1, &reply);
	close(mem);
	return error;
}

/* The engine looks into the process of that pid, and does not find the proof. */
Test(control_old_kernel, the_memory_of_a_later_process_with_the_pid_is_not_the_clients)
{
	pid_t stranger;
	int fd;

	if (geteuid() != 0)
		cr_skip_test("not root: there is no other user");
	other_program = true;
	cr_expect_eq(hello_of_the_dead(&stranger, &fd), EPROTO);
	close(fd);
	process_end(stranger);
	expect_counts(0, 0, 0, 0);
	expect_serving();
}

/* The engine has no process to watch, and the end of the connection has to do. */
Test(control_old_kernel, a_program_without_a_pid_is_served)
{
	struct request_empty q = { 0 };
	struct reply_device r;
	int fd;

	elsewhere = true;
	fd = message_connect(path);
	cr_expect_eq(ask(fd, COMMAND_DEVICE, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0);
	close(fd);
	expect_serving();
}

/* Before the engine begins: its porters are processes of their own. */
static void open_unprivileged(void)
{
	unprivileged = true;
	control_rig_open();
}

TestSuite(control_old_unprivileged, .init = open_unprivileged, .fini = control_rig_close,
	  .timeout = 60);

/*
 * The engine may not look, and takes the client's descriptor: then the process lends its privileges
 * to no client.
 */
Test(control_old_unprivileged, privileges_of_a_later_process_with_the_pid_are_not_the_clients)
{
	pid_t stranger;
	int fd;

	if (geteuid() != 0)
		cr_skip_test("not root: there is no other user");
	cr_assert_eq(hello_of_the_dead(&stranger, &fd), 0);
	for (uint32_t i = 0; i < LIMIT_CLIENTS; i++) {
		struct client *c = ((struct engine *)engine)->client[i];

		if (c != NULL) {
			cr_expect_eq(c->objects->pid, stranger);
			cr_expect_not(client_has_capability(c, CAP_NET_RAW));
		}
	}
	expect_counts(1, 0, 0, 0);
	close(fd);
	process_end(stranger);
	expect_counts(0, 0, 0, 0);
	expect_serving();
}

static void open_filtered(void)
{
	filtered = true;
	control_rig_open();
}

TestSuite(control_filtered, .init = open_filtered, .fini = control_rig_close, .timeout = 60);

/* The engine finds our memory, and the descriptor that comes with HELLO is of another program's. */
Test(control_filtered, memory_of_another_program_is_refused)
{
	struct request_hello q = { { COMMAND_MAGIC, COMMAND_VERSION, COMMAND_HELLO, sizeof(q),
				     1 } };
	int fd = message_connect(path), mem;
	struct command_reply reply;
	char name[64];
	pid_t other;

	if (geteuid() != 0)
		cr_skip_test("not root: there is no other user");
	other_program = true;
	other = make_stranger();
	snprintf(name, sizeof(name), "/proc/%d/mem", (int)other);
	mem = open(name, O_RDWR | O_CLOEXEC);
	cr_assert_geq(mem, 0, "%s: %m", name);
	message_prove(q.proof);
	q.proof_at = message_proof_at();
	cr_expect_eq(throw_at(fd, &q, sizeof(q), &mem, 1, &reply), EPROTO);
	close(mem);
	close(fd);
	process_end(other);
	expect_counts(0, 0, 0, 0);
}
