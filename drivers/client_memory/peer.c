/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/client_memory/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

/* As proc(5) has it: "R", runs or would run; the name in front of it may hold anything. */
bool thread_waits(uint32_t thread)
{
	char path[64], text[512];
	const char *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%u/stat", thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	state = strrchr(text, ')');
	return state == NULL || strncmp(state, ") R", 3) != 0;
}

#define BATCH_MIN  3u /* below this a read each costs less than one call and the look after it */
#define BATCH_MAX  64u
#define LOCK_TRIES 2000u

/* ".../PID/mem": procfs has no other file of that name in a folder that is called by a number. */
static bool is_mem_path(const char *path)
{
	const char *end = strrchr(path, '/'), *p;

	if (end == NULL || strcmp(end, "/mem") != 0)
		return false;
	for (p = end; p > path && p[-1] >= '0' && p[-1] <= '9'; p--)
		;
	return p < end && p > path && p[-1] == '/';
}

static bool is_mem_file(int fd)
{
	char link[64], path[256];
	struct statfs fs;
	struct stat st;
	ssize_t n;

	if (fstatfs(fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		return false;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return false;
	path[n] = '\0';
	return is_mem_path(path);
}

/*
 * Whether process_vm_readv is permitted on this pid. Address 0 of a program is not mapped, so the
 * call tells EFAULT (permitted) from EPERM and ESRCH; a program that maps it is answered too.
 */
static bool pid_path_works(pid_t pid)
{
	uint8_t octet;
	struct iovec local = { &octet, 1 }, remote = { NULL, 1 };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == 1 || errno == EFAULT;
}

int peer_memory_open(struct peer_memory *m, int mem_fd, pid_t pid, uid_t uid)
{
	if (!is_mem_file(mem_fd))
		return EBADF;
	m->fd = mem_fd;
	m->pid = 0;
	if (pid > 0 && uid == geteuid() && pid_path_works(pid))
		m->pid = pid;
	return 0;
}

void peer_memory_close(struct peer_memory *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
	m->pid = 0;
}

int peer_memory_clone(struct peer_memory *to, const struct peer_memory *from)
{
	*to = *from;
	to->fd = fcntl(from->fd, F_DUPFD_CLOEXEC, 0);
	return to->fd < 0 ? errno : 0;
}

/* 0 octets: the address space is gone; an error: only this address is not there. */
static bool alive_at(const struct peer_memory *m, uint64_t address)
{
	uint8_t octet;

	return pread(m->fd, &octet, 1, (off_t)address) != 0;
}

bool peer_memory_alive(const struct peer_memory *m)
{
	return m->fd >= 0 && alive_at(m, 4096);
}

static bool copy_one(const struct peer_memory *m, const struct peer_copy *c)
{
	uint32_t done = 0;

	/* the kernel may stop after each page; a call that gets nowhere ends it */
	while (done < c->length) {
		off_t at = (off_t)(c->peer_address + done);
		void *local = (char *)c->local + done;
		ssize_t n;

		if (at < 0)
			return false;
		n = c->to_peer ? pwrite(m->fd, local, c->length - done, at)
			       : pread(m->fd, local, c->length - done, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (uint32_t)n;
	}
	return true;
}

static void copy_each(const struct peer_memory *m, struct peer_copy *copy, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		copy[i].ok = copy_one(m, &copy[i]);
}

/* Reads n ranges by pid; returns how many from the front are complete. */
static uint32_t read_by_pid(const struct peer_memory *m, const struct peer_copy *copy, uint32_t n)
{
	struct iovec local[BATCH_MAX], remote[BATCH_MAX];
	uint32_t complete = 0;
	ssize_t octets;

	for (uint32_t i = 0; i < n; i++) {
		local[i].iov_base = copy[i].local;
		local[i].iov_len = copy[i].length;
		remote[i].iov_base = (void *)(uintptr_t)copy[i].peer_address;
		remote[i].iov_len = copy[i].length;
	}
	octets = process_vm_readv(m->pid, local, n, remote, n, 0);
	while (complete < n && octets >= (ssize_t)copy[complete].length)
		octets -= copy[complete++].length;
	return complete;
}

static void read_batch(const struct peer_memory *m, struct peer_copy *copy, uint32_t n)
{
	for (uint32_t i = 0; i < n;) {
		uint32_t chunk = n - i < BATCH_MAX ? n - i : BATCH_MAX;
		uint32_t complete = read_by_pid(m, copy + i, chunk);
		bool alive = complete > 0 && alive_at(m, copy[i].peer_address);

		for (uint32_t k = i; k < i + complete; k++)
			copy[k].ok = alive;
		i += complete;
		if (complete < chunk) { /* the one that stopped it: its own verdict */
			copy_each(m, copy + i, 1);
			i++;
		}
	}
}

static uint32_t reads_ahead(const struct peer_copy *copy, uint32_t n)
{
	uint32_t run = 0;

	while (run < n && !copy[run].to_peer)
		run++;
	return run;
}

/* Copies of one memory. */
static void copy_run(const struct peer_memory *m, struct peer_copy *copy, uint32_t n)
{
	if (m->pid == 0) {
		copy_each(m, copy, n);
		return;
	}
	for (uint32_t i = 0; i < n;) {
		uint32_t reads = reads_ahead(copy + i, n - i);

		if (reads >= BATCH_MIN) {
			read_batch(m, copy + i, reads);
			i += reads;
		} else {
			copy_each(m, copy + i, 1);
			i++;
		}
	}
}

void peer_memory_copy(const struct peer_memory *m, struct peer_copy *copy, uint32_t n)
{
	for (uint32_t i = 0, run; i < n; i += run) {
		run = peer_copy_run(copy + i, n - i);
		copy_run(copy[i].memory != NULL ? copy[i].memory : m, copy + i, run);
	}
}

static uint32_t *stripe_of(struct peer_locks *locks, uint64_t address)
{
	/* by address alone: two clients may share the memory at the same offset of a page */
	uint64_t in_page = (address & 4095) >> 3;

	return &locks->stripe[in_page % PEER_STRIPES].taken;
}

static bool lock_stripe(uint32_t *taken)
{
	for (uint32_t i = 0; i < LOCK_TRIES; i++) {
		/* acquire: pairs with the release in unlock_stripe */
		if (__atomic_load_n(taken, __ATOMIC_RELAXED) == 0 &&
		    __atomic_exchange_n(taken, 1, __ATOMIC_ACQUIRE) == 0)
			return true;
		__builtin_ia32_pause();
	}
	return false;
}

static void unlock_stripe(uint32_t *taken)
{
	__atomic_store_n(taken, 0, __ATOMIC_RELEASE);
}

int peer_memory_atomic(const struct peer_memory *m, struct peer_locks *locks, uint64_t address,
		       bool compare_and_swap, uint64_t compare, uint64_t value, uint64_t *original)
{
	uint64_t old, new;
	struct peer_copy in = { .peer_address = address, .local = &old, .length = sizeof(old) };
	struct peer_copy out = {
		.peer_address = address, .local = &new, .length = sizeof(new), .to_peer = true
	};
	uint32_t *taken = stripe_of(locks, address);
	int error = 0;

	if (!lock_stripe(taken))
		return EBUSY;
	if (!copy_one(m, &in)) {
		error = EFAULT;
	} else {
		*original = old;
		new = compare_and_swap ? value : old + value;
		if ((!compare_and_swap || old == compare) && !copy_one(m, &out))
			error = EFAULT;
	}
	unlock_stripe(taken);
	return error;
}
