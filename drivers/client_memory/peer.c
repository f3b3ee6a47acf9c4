/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/client_memory/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "drivers/client_memory/peer_atomic.h"

#define BATCH_MIN 3u /* for fewer, single reads cost less than one call and the check after it */
#define BATCH_MAX 64u

/*
 * Whether the path is ".../PID/mem". procfs has no other file "mem" in a folder whose name is a
 * number.
 */
static bool is_mem_path(const char *path)
{
	const char *end = strrchr(path, '/'), *p;

	if (end == NULL || strcmp(end, "/mem") != 0)
		return false;
	for (p = end; p > path && p[-1] >= '0' && p[-1] <= '9'; p--)
		;
	return p < end && p > path && p[-1] == '/';
}

bool peer_memory_is(int fd)
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

/* ---- whose memory ---- */

/* The address of the AT_RANDOM octets in the program that the process runs; 0: unknown. */
static uint64_t address_of_proof(pid_t pid)
{
	uint64_t pair[2], address = 0;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	while (address == 0 && read(fd, pair, sizeof(pair)) == sizeof(pair) && pair[0] != AT_NULL)
		if (pair[0] == AT_RANDOM)
			address = pair[1];
	close(fd);
	return address;
}

bool peer_memory_proves(int mem_fd, const struct peer_proof *proof, uint64_t at)
{
	struct peer_proof found;

	return pread(mem_fd, &found, sizeof(found), (off_t)at) == sizeof(found) &&
	       memcmp(&found, proof, sizeof(found)) == 0;
}

int peer_memory_find(pid_t pid, const struct peer_proof *proof, int *fd, uint64_t *at)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	*fd = open(path, O_RDWR | O_CLOEXEC);
	if (*fd < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? errno : EACCES;
	/*
	 * The descriptor is opened first. If an execve(2) comes in between, the address belongs to
	 * the new program, and the memory that we hold does not have the proof there.
	 */
	*at = address_of_proof(pid);
	if (*at != 0 && peer_memory_proves(*fd, proof, *at))
		return 0;
	close(*fd);
	*fd = -1;
	return *at != 0 ? EPERM : EACCES;
}

bool peer_memory_proves_pid(pid_t pid, const struct peer_proof *proof, uint64_t at)
{
	struct peer_proof found;
	struct iovec local = { &found, sizeof(found) };
	struct iovec remote = { (void *)(uintptr_t)at, sizeof(found) };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == sizeof(found) &&
	       memcmp(&found, proof, sizeof(found)) == 0;
}

/*
 * Reads address 0, which is not mapped. EFAULT means that reading is permitted, EPERM or ESRCH that
 * it is not. If a program does map it, the read succeeds.
 */
bool peer_memory_by_pid(pid_t pid)
{
	uint8_t octet;
	struct iovec local = { &octet, 1 }, remote = { NULL, 1 };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == 1 || errno == EFAULT;
}

int peer_memory_open(struct peer_memory *m, int mem_fd, pid_t pid, uid_t uid)
{
	static uint32_t ids;

	if (!peer_memory_is(mem_fd))
		return EBADF;
	m->locks = peer_locks_get(uid);
	if (m->locks == NULL)
		return ENOMEM;
	m->id = __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
	m->fd = mem_fd;
	m->pid = 0;
	if (pid > 0 && uid == geteuid())
		m->pid = pid;
	return 0;
}

void peer_memory_close(struct peer_memory *m)
{
	if (m->fd >= 0)
		close(m->fd);
	if (m->locks != NULL)
		peer_locks_put(m->locks);
	m->fd = -1;
	m->pid = 0;
	m->locks = NULL;
}

int peer_memory_clone(struct peer_memory *to, const struct peer_memory *from)
{
	*to = *from;
	to->locks = NULL;
	to->fd = fcntl(from->fd, F_DUPFD_CLOEXEC, 0);
	if (to->fd < 0)
		return errno;
	if (from->locks != NULL)
		to->locks = peer_locks_share(from->locks);
	return 0;
}

/*
 * A read of 0 octets means that the address space is gone. An error only means that the address is
 * not mapped.
 */
static bool alive_at(const struct peer_memory *m, uint64_t address)
{
	uint8_t octet;

	return pread(m->fd, &octet, 1, (off_t)address) != 0;
}

bool peer_memory_alive(const struct peer_memory *m)
{
	return m->fd >= 0 && alive_at(m, 4096);
}

static bool copy_part(const struct peer_memory *m, const struct peer_copy *c, uint32_t done,
		      uint32_t end)
{
	/* The kernel may stop after each page. A call without progress ends the loop. */
	while (done < end) {
		off_t at = (off_t)(c->peer_address + done);
		void *local = (char *)c->local + done;
		ssize_t n;

		if (at < 0)
			return false;
		n = c->to_peer ? pwrite(m->fd, local, end - done, at)
			       : pread(m->fd, local, end - done, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (uint32_t)n;
	}
	return true;
}

/*
 * Makes one copy. The kernel copies the octets of one call in any order, so the tail needs its own
 * call.
 */
static bool copy_one(const struct peer_memory *m, const struct peer_copy *c)
{
	uint32_t head = c->length - c->tail;

	if (c->direct != NULL) {
		copy_direct(c->direct, c->local, c->length, c->tail);
		return true;
	}
	return copy_part(m, c, 0, head) && copy_part(m, c, head, c->length);
}

bool copy_chain_broken(const struct copy_breaks *b, uint64_t chain)
{
	uint32_t n = b->count < LIMIT_COPY_BREAKS ? b->count : LIMIT_COPY_BREAKS;

	for (uint32_t i = 0; i < n; i++)
		if (b->chain[i] == chain)
			return chain != 0;
	return false;
}

void copy_chain_break(struct copy_breaks *b, uint64_t chain)
{
	if (chain != 0 && !copy_chain_broken(b, chain))
		b->chain[b->count++ % LIMIT_COPY_BREAKS] = chain;
}

static void copy_each(const struct peer_memory *m, struct peer_copy *copy, uint32_t n,
		      struct copy_breaks *b)
{
	for (uint32_t i = 0; i < n; i++) {
		copy[i].ok = !copy_chain_broken(b, copy[i].chain) && copy_one(m, &copy[i]);
		if (!copy[i].ok)
			copy_chain_break(b, copy[i].chain);
	}
}

/* Reads n ranges by pid. Returns how many of them, from the first on, are complete. */
static uint32_t read_by_pid(const struct peer_memory *m, const struct peer_copy *copy, uint32_t n)
{
	struct iovec local[BATCH_MAX], remote[BATCH_MAX];
	uint32_t complete = 0;
	ssize_t octets;

	if (n == 0)
		return 0;
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

static void read_batch(const struct peer_memory *m, struct peer_copy *copy, uint32_t n,
		       struct copy_breaks *b)
{
	for (uint32_t i = 0; i < n;) {
		uint32_t chunk = n - i < BATCH_MAX ? n - i : BATCH_MAX;
		uint32_t complete = read_by_pid(m, copy + i, chunk);
		bool alive = complete > 0 && alive_at(m, copy[i].peer_address);

		for (uint32_t k = i; k < i + complete; k++)
			copy[k].ok = alive;
		i += complete;
		if (complete < chunk) { /* the copy that failed is tried again, alone */
			copy_each(m, copy + i, 1, b);
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

/* Makes copies that are all of one memory. */
static void copy_run(const struct peer_memory *m, struct peer_copy *copy, uint32_t n,
		     struct copy_breaks *b)
{
	if (m == NULL || m->pid == 0) {
		copy_each(m, copy, n, b);
		return;
	}
	for (uint32_t i = 0; i < n;) {
		uint32_t reads = reads_ahead(copy + i, n - i);

		if (reads >= BATCH_MIN) {
			read_batch(m, copy + i, reads, b);
			i += reads;
		} else {
			copy_each(m, copy + i, 1, b);
			i++;
		}
	}
}

void peer_memory_copy_chained(const struct peer_memory *m, struct peer_copy *copy, uint32_t n,
			      struct copy_breaks *breaks)
{
	for (uint32_t i = 0, run; i < n; i += run) {
		run = peer_copy_run(copy + i, n - i);
		copy_run(copy[i].memory != NULL ? copy[i].memory : m, copy + i, run, breaks);
	}
}

void peer_memory_copy(const struct peer_memory *m, struct peer_copy *copy, uint32_t n)
{
	struct copy_breaks breaks;

	breaks.count = 0;
	peer_memory_copy_chained(m, copy, n, &breaks);
}
