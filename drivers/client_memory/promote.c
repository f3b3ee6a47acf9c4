/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How pages change their home while the program runs: a userfaultfd is registered on the range for
 * missing pages and write protection (protection alone lets a write to an untouched page through),
 * the range is protected, so nobody writes it any more; the pages that exist are copied; the new
 * memory is mapped over the old in one system call; closing the userfaultfd lets the writers go
 * on, in the new memory. If anything fails before that call, protection is taken away and the
 * memory is as it was.
 *
 * Between protecting and letting go this thread may not touch the range, nor call anything that
 * might: no malloc, no stdio, no signal handler (all are blocked).
 */
#include "drivers/client_memory/promote.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/client_memory/maps.h"

#define PAGE	     ((uintptr_t)4096)
#define FORK_WAIT_MS 60000 /* a child that copies slower than this is not waited for */

/* A part of the promoted file that regions use; sorted by offset, not overlapping. */
struct part {
	uint64_t offset, length;
	uint32_t users;
};

static struct {
	pthread_mutex_t lock;
	bool ready; /* fork handlers are in place */
	bool refused; /* this process does not promote */
	int fd;
	ino_t inode;
	dev_t device;
	uint32_t parts;
	struct part part[PROMOTE_RANGES_MAX];
	struct mapping found[PROMOTE_RANGES_MAX];
	int fork_pipe[2];
} state = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .fork_pipe = { -1, -1 } };

static bool holds(uintptr_t from, uintptr_t to, const void *object)
{
	return (uintptr_t)object >= from && (uintptr_t)object < to;
}

/* --- the promoted file ----------------------------------------------------------------------- */

static bool wanted(void)
{
	const char *how = getenv("UROCE_PROMOTE");

	return how == NULL || strcmp(how, "off") != 0;
}

static int make_file(void)
{
	struct rlimit limit;
	int fd;

	/* beyond RLIMIT_FSIZE ftruncate raises a signal that ends the program */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    limit.rlim_cur < PROMOTE_FILE_BYTES)
		return -1;
	fd = memfd_create("uroce-promoted", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)PROMOTE_FILE_BYTES) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void drop_pages(uint64_t offset, uint64_t length)
{
	/* failure keeps memory in use that nobody reads; the next user of the part overwrites it */
	if (fallocate(state.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		      (off_t)length) < 0)
		return;
}

static bool is_ours(const struct mapping *m)
{
	return m->shared && m->inode == state.inode && m->device == state.device;
}

/* --- parts ------------------------------------------------------------------------------------ */

static bool insert_part(uint32_t at, struct part p)
{
	if (state.parts == PROMOTE_RANGES_MAX)
		return false;
	memmove(&state.part[at + 1], &state.part[at], (state.parts - at) * sizeof(p));
	state.part[at] = p;
	state.parts++;
	return true;
}

static void remove_part(uint32_t at)
{
	state.parts--;
	memmove(&state.part[at], &state.part[at + 1], (state.parts - at) * sizeof(state.part[0]));
}

/* First part that ends behind offset. */
static uint32_t part_at(uint64_t offset)
{
	uint32_t low = 0, high = state.parts;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (state.part[middle].offset + state.part[middle].length <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Cuts the part that goes across `offset` in two. */
static bool split_part(uint64_t offset)
{
	uint32_t i = part_at(offset);
	struct part *p = &state.part[i], behind;

	if (i == state.parts || p->offset >= offset)
		return true;
	behind = *p;
	behind.offset = offset;
	behind.length = p->offset + p->length - offset;
	if (!insert_part(i + 1, behind))
		return false;
	p->length = offset - p->offset;
	return true;
}

/* One more user of [offset, offset + length), all of which is in parts. */
static bool use_parts(uint64_t offset, uint64_t length)
{
	if (!split_part(offset) || !split_part(offset + length))
		return false;
	for (uint32_t i = part_at(offset);
	     i < state.parts && state.part[i].offset < offset + length; i++)
		state.part[i].users++;
	return true;
}

/* The lowest free range of the file, UINT64_MAX if there is none. */
static uint64_t find_free(uint64_t length)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < state.parts; i++) {
		if (state.part[i].offset - at >= length)
			return at;
		at = state.part[i].offset + state.part[i].length;
	}
	return PROMOTE_FILE_BYTES - at >= length ? at : UINT64_MAX;
}

/* --- the userfaultfd -------------------------------------------------------------------------- */

static bool one_thread(void)
{
	struct stat st;

	return stat("/proc/self/task", &st) == 0 && st.st_nlink == 3;
}

/* -1: none, or one that would make other threads' system calls fail. */
static int open_userfaultfd(void)
{
	const char *how = getenv("UROCE_PROMOTE");
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 && errno == EPERM && (one_thread() || (how != NULL && strcmp(how, "on") == 0)))
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool hold_writers(int fd, uintptr_t start, uint64_t length)
{
	struct uffdio_register reg = {
		.range = { start, length },
		.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect protect = {
		.range = { start, length },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	return ioctl(fd, UFFDIO_REGISTER, &reg) == 0 &&
	       (reg.ioctls & (UINT64_C(1) << _UFFDIO_WRITEPROTECT)) != 0 &&
	       ioctl(fd, UFFDIO_WRITEPROTECT, &protect) == 0;
}

/* Whatever memory is there now is written freely again; closing wakes all who wait. */
static void let_writers_go(int fd, uintptr_t start, uint64_t length)
{
	struct uffdio_writeprotect protect = { .range = { start, length }, .mode = 0 };
	struct uffdio_range range = { start, length };

	/* both fail, and have nothing to do, when the memory was replaced */
	ioctl(fd, UFFDIO_WRITEPROTECT, &protect);
	ioctl(fd, UFFDIO_UNREGISTER, &range);
	close(fd);
}

/* --- copying ---------------------------------------------------------------------------------- */

static bool write_all(uintptr_t from, uint64_t length, uint64_t offset)
{
	while (length > 0) {
		ssize_t n = pwrite(state.fd, (const void *)from, length, (off_t)offset);

		if (n <= 0)
			return false;
		from += (size_t)n;
		offset += (uint64_t)n;
		length -= (uint64_t)n;
	}
	return true;
}

#define PAGEMAP_EXISTS (UINT64_C(3) << 62) /* present or swapped out */

/* Copies the runs of pages that exist; the others stay holes and read as zeros, as they did. */
static bool copy_existing(int pagemap, uintptr_t start, uint64_t length, uint64_t offset)
{
	uint64_t entry[256];
	uint64_t pages = length / PAGE, run = 0;

	for (uint64_t i = 0; i < pages; i++) {
		uint64_t in_chunk = i % 256, left = pages - i < 256 ? pages - i : 256;

		if (in_chunk == 0 && pread(pagemap, entry, left * 8,
					   (off_t)((start / PAGE + i) * 8)) != (ssize_t)(left * 8))
			return false;
		if ((entry[in_chunk] & PAGEMAP_EXISTS) != 0) {
			run++;
			if (i + 1 < pages)
				continue;
			i++;
		}
		if (run != 0 &&
		    !write_all(start + (i - run) * PAGE, run * PAGE, offset + (i - run) * PAGE))
			return false;
		run = 0;
	}
	return true;
}

/* Into zeroed memory at `to`, what the file has of [offset, offset + length). */
static bool read_existing(void *to, uint64_t length, uint64_t offset)
{
	uint64_t at = offset, end = offset + length;

	while (at < end) {
		off_t data = lseek(state.fd, (off_t)at, SEEK_DATA);
		off_t hole;

		if (data < 0 && errno == ENXIO)
			return true;
		if (data < 0)
			return false;
		if ((uint64_t)data >= end)
			return true;
		hole = lseek(state.fd, data, SEEK_HOLE);
		if (hole <= data)
			return false;
		if ((uint64_t)hole > end)
			hole = (off_t)end;
		for (at = (uint64_t)data; at < (uint64_t)hole;) {
			ssize_t n = pread(state.fd, (char *)to + (at - offset), (size_t)hole - at,
					  (off_t)at);

			if (n <= 0)
				return false;
			at += (uint64_t)n;
		}
	}
	return true;
}

/* --- there and back --------------------------------------------------------------------------- */

static bool move_into_file(uintptr_t start, uint64_t length, uint64_t offset)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	int fd = open_userfaultfd();
	bool done = false;

	if (pagemap >= 0 && fd >= 0)
		done = hold_writers(fd, start, length) &&
		       copy_existing(pagemap, start, length, offset) &&
		       mmap((void *)start, length, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_FIXED | MAP_NORESERVE, state.fd,
			    (off_t)offset) != MAP_FAILED;
	if (fd >= 0)
		let_writers_go(fd, start, length);
	if (pagemap >= 0)
		close(pagemap);
	return done;
}

/* Puts a private copy of the file's pages over [start, start + length). Nobody writes meanwhile. */
static bool replace_by_copy(uintptr_t start, uint64_t length, uint64_t offset)
{
	void *copy = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return false;
	if (read_existing(copy, length, offset) &&
	    mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start) !=
		    MAP_FAILED)
		return true;
	munmap(copy, length);
	return false;
}

static bool move_out_of_file(uintptr_t start, uint64_t length, uint64_t offset)
{
	int fd = open_userfaultfd();
	bool done;

	if (fd < 0)
		return false;
	/* before Linux 5.19 shared memory cannot be protected: it stays where it is */
	done = hold_writers(fd, start, length) && replace_by_copy(start, length, offset);
	let_writers_go(fd, start, length);
	return done;
}

/* --- what may move ---------------------------------------------------------------------------- */

static bool has_policy(uintptr_t address)
{
	int mode = MPOL_DEFAULT;

	if (syscall(SYS_get_mempolicy, &mode, NULL, 0, address, MPOL_F_ADDR) < 0)
		return false; /* a kernel without NUMA */
	return mode != MPOL_DEFAULT;
}

/*
 * The caller's own stack and thread-local storage: it needs them while the range is held. (The
 * first thread's stack has its name in the maps; the top of the others' holds their storage.)
 */
static bool is_callers_own(uintptr_t from, uintptr_t to)
{
	uintptr_t self = (uintptr_t)pthread_self();
	pthread_attr_t attr;
	void *stack;
	size_t octets;
	int error;

	if (holds(from, to, (const void *)self) || holds(from, to, &errno))
		return true;
	if (gettid() == getpid())
		return false;
	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return true;
	error = pthread_attr_getstack(&attr, &stack, &octets);
	pthread_attr_destroy(&attr);
	return error != 0 || (from < (uintptr_t)stack + octets && to > (uintptr_t)stack);
}

static bool is_own_data(uintptr_t from, uintptr_t to)
{
	uintptr_t data = (uintptr_t)&state;

	return from < data + sizeof(state) && to > data;
}

static bool may_move(const struct mapping *m, uintptr_t from, uintptr_t to)
{
	return !m->shared && m->inode == 0 && m->readable && m->writable && !m->executable &&
	       !m->stack && !m->special && !is_own_data(from, to) && !is_callers_own(from, to) &&
	       !has_policy(from);
}

static void add_backing(struct mr_backing *backing, uint32_t *count, uintptr_t region,
			uintptr_t start, uint64_t length, uint64_t offset)
{
	struct mr_backing *last = *count > 0 ? &backing[*count - 1] : NULL;

	if (last != NULL && last->offset + last->length == start - region &&
	    last->file_offset + last->length == offset) {
		last->length += length;
		return;
	}
	backing[*count] = (struct mr_backing){
		.offset = start - region,
		.length = length,
		.file_offset = offset,
		.fd = BACKING_PROMOTED,
		.writable = 1,
	};
	(*count)++;
}

/* Takes a part of the file for it first: what cannot be recorded is not moved. */
static bool promote_part(uintptr_t start, uint64_t length, uint64_t *offset)
{
	struct part p = { .length = length, .users = 1 };

	p.offset = find_free(length);
	if (p.offset == UINT64_MAX || !insert_part(part_at(p.offset), p))
		return false;
	if (!move_into_file(start, length, p.offset)) {
		remove_part(part_at(p.offset));
		drop_pages(p.offset, length);
		return false;
	}
	*offset = p.offset;
	return true;
}

static void promote_mapping(const struct mapping *m, uintptr_t region, uintptr_t from, uintptr_t to,
			    struct mr_backing *backing, uint32_t *count)
{
	uint64_t offset;

	if (from < m->start)
		from = m->start;
	if (to > m->end)
		to = m->end;
	if (is_ours(m)) {
		offset = m->offset + (from - m->start);
		if (!use_parts(offset, to - from))
			return;
	} else if (!may_move(m, from, to) || !promote_part(from, to - from, &offset)) {
		return;
	}
	add_backing(backing, count, region, from, to - from, offset);
}

/* --- fork ------------------------------------------------------------------------------------- */

static void fork_prepare(void)
{
	pthread_mutex_lock(&state.lock);
	if (state.parts == 0 || pipe2(state.fork_pipe, O_CLOEXEC) < 0)
		state.fork_pipe[0] = state.fork_pipe[1] = -1;
}

static void close_end(int i)
{
	if (state.fork_pipe[i] >= 0)
		close(state.fork_pipe[i]);
	state.fork_pipe[i] = -1;
}

/* The parent may write on only when the child has its copies: its end of the pipe closes then. */
static void fork_parent(void)
{
	struct pollfd p = { .fd = state.fork_pipe[0], .events = POLLIN };

	close_end(1);
	if (p.fd >= 0)
		while (poll(&p, 1, FORK_WAIT_MS) < 0 && errno == EINTR)
			;
	close_end(0);
	pthread_mutex_unlock(&state.lock);
}

/*
 * Without memory for a copy: at least what the child writes stays its own (what the parent writes
 * later shows through where the child has not written).
 */
static void copy_for_child(const struct mapping *m)
{
	size_t length = m->end - m->start;

	if (!replace_by_copy(m->start, length, m->offset) &&
	    mmap((void *)m->start, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
		 state.fd, (off_t)m->offset) == MAP_FAILED)
		abort(); /* two processes would write the same memory and believe it theirs */
}

static void fork_child(void)
{
	uintptr_t from = 0;
	int n = state.parts == 0 ? 0 : (int)PROMOTE_RANGES_MAX;

	while (n == (int)PROMOTE_RANGES_MAX) {
		n = maps_read(from, UINTPTR_MAX, false, state.found, PROMOTE_RANGES_MAX);
		for (int i = 0; i < n; i++)
			if (is_ours(&state.found[i]))
				copy_for_child(&state.found[i]);
		if (n > 0)
			from = state.found[n - 1].end;
	}
	if (n < 0)
		abort(); /* no /proc: as above */
	if (state.fd >= 0)
		close(state.fd);
	state.fd = -1;
	state.parts = 0;
	close_end(0);
	close_end(1);
	pthread_mutex_unlock(&state.lock);
}

/* --- the interface ---------------------------------------------------------------------------- */

static bool have_file(void)
{
	struct stat st;

	if (state.fd >= 0)
		return true;
	if (state.refused || !wanted())
		return false;
	if (!state.ready)
		state.ready = pthread_atfork(fork_prepare, fork_parent, fork_child) == 0;
	if (state.ready)
		state.fd = make_file();
	if (state.fd < 0 || fstat(state.fd, &st) < 0) {
		state.refused = true;
		return false;
	}
	state.inode = st.st_ino;
	state.device = st.st_dev;
	return true;
}

static void enter(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, old);
	pthread_mutex_lock(&state.lock);
}

static void leave(const sigset_t *old)
{
	pthread_mutex_unlock(&state.lock);
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

int promote_file(void)
{
	sigset_t old;
	int fd;

	enter(&old);
	fd = have_file() ? state.fd : -1;
	leave(&old);
	return fd;
}

uint32_t promote_range(void *addr, size_t length, struct mr_backing *backing, uint32_t max)
{
	uintptr_t region = (uintptr_t)addr;
	uintptr_t from = (region + PAGE - 1) & ~(PAGE - 1), to = (region + length) & ~(PAGE - 1);
	uint32_t count = 0;
	sigset_t old;
	int n = 0;

	if (length < PROMOTE_LENGTH_MIN || length > PROMOTE_LENGTH_MAX || from >= to)
		return 0;
	enter(&old);
	if (have_file())
		n = maps_read(from, to, true, state.found, PROMOTE_RANGES_MAX);
	for (int i = 0; i < n && count < max; i++)
		promote_mapping(&state.found[i], region, from, to, backing, &count);
	leave(&old);
	return count;
}

/* Whether all of [start, start + length) still shows the file from offset on. */
static bool still_there(uintptr_t start, uint64_t length, uint64_t offset)
{
	int n = maps_read(start, start + length, false, state.found, PROMOTE_RANGES_MAX);
	uintptr_t at = start;

	for (int i = 0; i < n; i++) {
		const struct mapping *m = &state.found[i];

		if (m->start > at || !is_ours(m) ||
		    m->offset + (at - m->start) != offset + (at - start))
			return false;
		at = m->end;
	}
	return at >= start + length;
}

/* Whether any mapping of the process shows something of [offset, offset + length) of the file. */
static bool shown_anywhere(uint64_t offset, uint64_t length)
{
	uintptr_t from = 0;
	int n;

	do {
		n = maps_read(from, UINTPTR_MAX, false, state.found, PROMOTE_RANGES_MAX);
		for (int i = 0; i < n; i++) {
			const struct mapping *m = &state.found[i];

			if (is_ours(m) && m->offset < offset + length &&
			    offset < m->offset + (m->end - m->start))
				return true;
		}
		if (n > 0)
			from = state.found[n - 1].end;
	} while (n == (int)PROMOTE_RANGES_MAX);
	return n < 0;
}

/*
 * The last user has gone. True: the part of the file is free again. Pages that the program has
 * moved elsewhere stay there, in the file; so do those that cannot be turned back.
 */
static bool demote_part(uintptr_t start, const struct part *p)
{
	if (still_there(start, p->length, p->offset)) {
		if (!move_out_of_file(start, p->length, p->offset))
			return false;
	} else if (shown_anywhere(p->offset, p->length)) {
		return false;
	}
	drop_pages(p->offset, p->length);
	return true;
}

static void release_one(uintptr_t start, uint64_t length, uint64_t offset)
{
	uint32_t i;

	/* without room to split, the parts keep their users and the pages stay promoted */
	if (!split_part(offset) || !split_part(offset + length))
		return;
	for (i = part_at(offset); i < state.parts && state.part[i].offset < offset + length;) {
		struct part *p = &state.part[i];

		if (p->users > 0)
			p->users--;
		if (p->users == 0 && demote_part(start + (p->offset - offset), p))
			remove_part(i);
		else
			i++;
	}
}

void promote_release(void *addr, const struct mr_backing *backing, uint32_t count)
{
	sigset_t old;

	enter(&old);
	for (uint32_t i = 0; state.fd >= 0 && i < count; i++)
		if (backing[i].fd == BACKING_PROMOTED)
			release_one((uintptr_t)addr + backing[i].offset, backing[i].length,
				    backing[i].file_offset);
	leave(&old);
}
