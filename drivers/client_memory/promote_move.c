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
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/client_memory/promote_private.h"

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
		ssize_t n = pwrite(promote_state.fd, (const void *)from, length, (off_t)offset);

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
		off_t data = lseek(promote_state.fd, (off_t)at, SEEK_DATA);
		off_t hole;

		if (data < 0 && errno == ENXIO)
			return true;
		if (data < 0)
			return false;
		if ((uint64_t)data >= end)
			return true;
		hole = lseek(promote_state.fd, data, SEEK_HOLE);
		if (hole <= data)
			return false;
		if ((uint64_t)hole > end)
			hole = (off_t)end;
		for (at = (uint64_t)data; at < (uint64_t)hole;) {
			ssize_t n = pread(promote_state.fd, (char *)to + (at - offset),
					  (size_t)hole - at, (off_t)at);

			if (n <= 0)
				return false;
			at += (uint64_t)n;
		}
	}
	return true;
}

/* --- there and back --------------------------------------------------------------------------- */

bool promote_move_into_file(uintptr_t start, uint64_t length, uint64_t offset)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	int fd = open_userfaultfd();
	bool done = false;

	if (pagemap >= 0 && fd >= 0)
		done = hold_writers(fd, start, length) &&
		       copy_existing(pagemap, start, length, offset) &&
		       mmap((void *)start, length, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_FIXED | MAP_NORESERVE, promote_state.fd,
			    (off_t)offset) != MAP_FAILED;
	if (fd >= 0)
		let_writers_go(fd, start, length);
	if (pagemap >= 0)
		close(pagemap);
	return done;
}

/* Puts a private copy of the file's pages over [start, start + length). Nobody writes meanwhile. */
bool promote_replace_by_copy(uintptr_t start, uint64_t length, uint64_t offset)
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

bool promote_move_out_of_file(uintptr_t start, uint64_t length, uint64_t offset)
{
	int fd = open_userfaultfd();
	bool done;

	if (fd < 0)
		return false;
	/* before Linux 5.19 shared memory cannot be protected: it stays where it is */
	done = hold_writers(fd, start, length) && promote_replace_by_copy(start, length, offset);
	let_writers_go(fd, start, length);
	return done;
}
