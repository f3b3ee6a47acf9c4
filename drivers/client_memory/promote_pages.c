/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replaces the pages of a range while the program runs:
 *
 *  1. A userfaultfd is registered on the range, for missing pages and for write protection
 *     (protection alone lets a write to an untouched page through), and protects it: all writers
 *     wait.
 *  2. The pages that exist are copied.
 *  3. One system call maps the new memory over the old.
 *  4. The userfaultfd is closed, and the writers go on in the new memory.
 *
 * If anything fails before step 3, the protection is removed, and the memory is unchanged.
 *
 * Between steps 1 and 4 this thread must not access the range, nor call anything that might: no
 * malloc, no stdio, no signal handler (all signals are blocked).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/memory_call.h"
#include "drivers/client_memory/promote_private.h"

static bool one_thread(void)
{
	struct stat st;

	return stat("/proc/self/task", &st) == 0 && st.st_nlink == 3;
}

/* -1: there is none, or only one that would make system calls of other threads fail. */
static int open_userfaultfd(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 && errno == EPERM && (one_thread() || promote_in_any_case()))
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool hold_writers(int fd, uintptr_t start, uint64_t length, uint64_t modes)
{
	struct uffdio_register reg = {
		.range = { start, length },
		.mode = UFFDIO_REGISTER_MODE_WP | modes,
	};
	struct uffdio_writeprotect protect = {
		.range = { start, length },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	return ioctl(fd, UFFDIO_REGISTER, &reg) == 0 &&
	       (reg.ioctls & (UINT64_C(1) << _UFFDIO_WRITEPROTECT)) != 0 &&
	       ioctl(fd, UFFDIO_WRITEPROTECT, &protect) == 0;
}

/* Removes the protection from the memory that is there now. Closing wakes all waiting writers. */
static void let_writers_go(int fd, uintptr_t start, uint64_t length)
{
	struct uffdio_writeprotect protect = { .range = { start, length }, .mode = 0 };
	struct uffdio_range range = { start, length };

	/* Both calls fail if the memory was replaced. Then there is nothing to do. */
	ioctl(fd, UFFDIO_WRITEPROTECT, &protect);
	ioctl(fd, UFFDIO_UNREGISTER, &range);
	close(fd);
}

/* --- copying ---------------------------------------------------------------------------------- */

/* What is read of the pages, and how: /proc/self/pagemap and /proc/self/mem. -1: it is not open. */
struct pages {
	int map, memory;
};

static struct pages open_pages(void)
{
	return (struct pages){
		.map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
		.memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC),
	};
}

static void close_pages(const struct pages *p)
{
	if (p->map >= 0)
		close(p->map);
	if (p->memory >= 0)
		close(p->memory);
}

static bool write_all(const uint8_t *from, uint64_t length, uint64_t offset)
{
	while (length > 0) {
		ssize_t n = pwrite(promote_state.fd, from, length, (off_t)offset);

		if (n <= 0)
			return false;
		from += n;
		offset += (uint64_t)n;
		length -= (uint64_t)n;
	}
	return true;
}

/*
 * Another thread may discard pages meanwhile. This thread would wait for ever for a missing page.
 * Reading /proc/self/mem fails instead.
 */
static bool copy_pages(int memory, uintptr_t from, uint64_t length, uint64_t offset)
{
	while (length > 0) {
		uint64_t some = MIN_OF(length, sizeof(promote_state.octets));
		ssize_t n = pread(memory, promote_state.octets, some, (off_t)from);

		if (n <= 0 || !write_all(promote_state.octets, (uint64_t)n, offset))
			return false;
		from += (size_t)n;
		offset += (uint64_t)n;
		length -= (uint64_t)n;
	}
	return true;
}

#define PAGEMAP_EXISTS (UINT64_C(3) << 62) /* present or swapped out */

/* Copies the pages that exist. The others become holes of the file, which also read as zeros. */
static bool copy_existing(const struct pages *p, uintptr_t start, uint64_t length, uint64_t offset)
{
	uint64_t entry[256];
	uint64_t pages = length / PAGE, run = 0;

	for (uint64_t i = 0; i < pages; i++) {
		uint64_t in_chunk = i % 256, left = pages - i < 256 ? pages - i : 256;

		if (in_chunk == 0 && pread(p->map, entry, left * 8,
					   (off_t)((start / PAGE + i) * 8)) != (ssize_t)(left * 8))
			return false;
		if ((entry[in_chunk] & PAGEMAP_EXISTS) != 0) {
			run++;
			if (i + 1 < pages)
				continue;
			i++;
		}
		if (run != 0 && !copy_pages(p->memory, start + (i - run) * PAGE, run * PAGE,
					    offset + (i - run) * PAGE))
			return false;
		run = 0;
	}
	return true;
}

int promote_find_data(uint64_t *from, uint64_t *to, uint64_t end)
{
	off_t data, hole;

	if (*from >= end)
		return 0;
	data = lseek(promote_state.fd, (off_t)*from, SEEK_DATA);
	if (data < 0)
		return errno == ENXIO ? 0 : -1;
	if ((uint64_t)data >= end)
		return 0;
	hole = lseek(promote_state.fd, data, SEEK_HOLE);
	if (hole <= data)
		return -1;
	*from = (uint64_t)data;
	*to = (uint64_t)hole > end ? end : (uint64_t)hole;
	return 1;
}

/* Copies the data that the file has in [offset, offset + length) to zeroed memory. */
static bool read_existing(void *to, uint64_t length, uint64_t offset)
{
	uint64_t at = offset, end = offset + length, hole;
	int found;

	while ((found = promote_find_data(&at, &hole, end)) > 0) {
		while (at < hole) {
			ssize_t n = pread(promote_state.fd, (char *)to + (at - offset), hole - at,
					  (off_t)at);

			if (n <= 0)
				return false;
			at += (uint64_t)n;
		}
	}
	return found == 0;
}

/* The same octets, through the mapping. Fails, instead of faulting, where nothing can be read. */
static bool read_mapping(void *to, uintptr_t start, uint64_t length)
{
	for (uint64_t at = 0; at < length;) {
		struct iovec into = { (char *)to + at, length - at };
		struct iovec from = { (void *)(start + at), length - at };
		ssize_t n = process_vm_readv(getpid(), &into, 1, &from, 1, 0);

		if (n <= 0)
			return false;
		at += (uint64_t)n;
	}
	return true;
}

/*
 * --- into the file and out of it ---------------------------------------------------------------
 */

static int access_of(const struct mapping *m)
{
	return (m->readable ? PROT_READ : 0) | (m->writable ? PROT_WRITE : 0) |
	       (m->executable ? PROT_EXEC : 0);
}

/* A mark that cannot be set is lost. Marks do not change what a program reads or writes. */
static void set_marks(void *at, size_t length, uint32_t marks)
{
	static const struct {
		uint32_t mark;
		int advice;
	} advice[] = {
		{ MARK_DONTFORK, MADV_DONTFORK },     { MARK_DONTDUMP, MADV_DONTDUMP },
		{ MARK_HUGE, MADV_HUGEPAGE },	      { MARK_NOT_HUGE, MADV_NOHUGEPAGE },
		{ MARK_SEQUENTIAL, MADV_SEQUENTIAL }, { MARK_RANDOM, MADV_RANDOM },
	};

	for (size_t i = 0; i < sizeof(advice) / sizeof(advice[0]); i++)
		if (marks & advice[i].mark)
			memory_advise(at, length, advice[i].advice);
}

static bool map_file(const struct mapping *m, uint64_t offset, int shared)
{
	void *start = (void *)m->start;
	size_t length = m->end - m->start;

	if (memory_map(start, length, access_of(m), shared | MAP_FIXED | MAP_NORESERVE,
		       promote_state.fd, offset) != start)
		return false;
	set_marks(start, length, m->marks);
	return true;
}

bool promote_map_privately(const struct mapping *m)
{
	return promote_fd_is_ours() && map_file(m, m->offset, MAP_PRIVATE);
}

bool promote_pages_into_file(const struct mapping *m, uint64_t offset)
{
	struct pages pages = open_pages();
	uint64_t length = m->end - m->start;
	int fd = open_userfaultfd();
	bool done = false;

	if (pages.map >= 0 && pages.memory >= 0 && fd >= 0)
		done = hold_writers(fd, m->start, length, UFFDIO_REGISTER_MODE_MISSING) &&
		       copy_existing(&pages, m->start, length, offset) &&
		       map_file(m, offset, MAP_SHARED);
	if (fd >= 0)
		let_writers_go(fd, m->start, length);
	close_pages(&pages);
	return done;
}

void *promote_copy_of(const struct mapping *m)
{
	size_t length = m->end - m->start;
	void *copy = memory_map(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);

	if (copy == MAP_FAILED)
		return copy;
	set_marks(copy, length, m->marks);
	if (promote_fd_is_ours() ? read_existing(copy, length, m->offset)
				 : read_mapping(copy, m->start, length))
		return copy;
	memory_unmap(copy, length);
	return MAP_FAILED;
}

bool promote_put_copy(void *copy, const struct mapping *m)
{
	size_t length = m->end - m->start;

	set_marks(copy, length, m->marks);
	if (memory_protect(copy, length, access_of(m)) != 0 ||
	    !memory_remap(copy, length, (void *)m->start))
		return false;
	if (m->marks & MARK_LOCKED)
		memory_lock((void *)m->start, length);
	return true;
}

bool promote_replace_by_copy(const struct mapping *m)
{
	void *copy = promote_copy_of(m);

	if (copy == MAP_FAILED)
		return false;
	/* Copying takes long, and the memory need not be registered any more. */
	if (promote_is_there(m) && promote_put_copy(copy, m))
		return true;
	memory_unmap(copy, m->end - m->start);
	return false;
}

bool promote_pages_out_of_file(const struct mapping *m)
{
	/* A copy of the mapping itself must not wait for missing pages. */
	uint64_t modes = promote_fd_is_ours() ? UFFDIO_REGISTER_MODE_MISSING : 0;
	int fd = open_userfaultfd();
	bool done;

	if (fd < 0)
		return false;
	/* before Linux 5.19 shared memory cannot be protected */
	done = hold_writers(fd, m->start, m->end - m->start, modes) && promote_replace_by_copy(m);
	let_writers_go(fd, m->start, m->end - m->start);
	return done;
}
