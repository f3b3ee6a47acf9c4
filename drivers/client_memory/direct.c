/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/client_memory/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/bits.h"

/*
 * Accepts only tmpfs. A hole in a hugetlbfs file raises SIGBUS when there is no free huge page, and
 * the owner of the file can punch a hole at any time.
 */
static bool is_sealed_memory(int fd)
{
	struct statfs fs;
	int seals;

	if (fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
		return false;
	seals = fcntl(fd, F_GET_SEALS);
	return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

int direct_look(int fd, struct direct_file *out)
{
	struct stat st;

	if (!is_sealed_memory(fd))
		return EOPNOTSUPP;
	if (fstat(fd, &st) < 0)
		return errno;
	out->device = st.st_dev;
	out->inode = st.st_ino;
	out->size = (uint64_t)st.st_size;
	out->allocated = (uint64_t)st.st_blocks * 512;
	return 0;
}

int direct_open(struct direct_map *d, int fd, uint64_t file_offset, uint64_t length, bool writable)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct stat st;
	void *p;

	if (!is_sealed_memory(fd))
		return EOPNOTSUPP;
	if (fstat(fd, &st) < 0)
		return errno;
	if (length == 0 && file_offset < (uint64_t)st.st_size)
		length = (uint64_t)st.st_size - file_offset;
	if (length == 0 || file_offset % page != 0 ||
	    !range_inside(file_offset, length, (uint64_t)st.st_size))
		return EINVAL;
	p = mmap(NULL, length, writable ? PROT_READ | PROT_WRITE : PROT_READ,
		 MAP_SHARED | MAP_NORESERVE, fd, (off_t)file_offset);
	if (p == MAP_FAILED)
		return errno;
	/* keeps the client's pages out of the engine's core files */
	madvise(p, length, MADV_DONTDUMP);
	d->base = p;
	d->file_offset = file_offset;
	d->length = length;
	return 0;
}

void direct_close(struct direct_map *d)
{
	if (d->base != NULL)
		munmap(d->base, d->length);
	d->base = NULL;
	d->length = 0;
}

void *direct_at(const struct direct_map *d, uint64_t file_offset, uint64_t length)
{
	if (d->base == NULL || file_offset < d->file_offset ||
	    !range_inside(file_offset - d->file_offset, length, d->length))
		return NULL;
	return d->base + (file_offset - d->file_offset);
}
