/* SPDX-License-Identifier: BSD-3-Clause */
/* The promoted file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/client_memory/promote_private.h"

struct promote_state promote_state = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.fd = -1,
};

static bool wanted(void)
{
	const char *how = getenv("UROCE_PROMOTE");

	return how == NULL || strcmp(how, "off") != 0;
}

bool promote_may_write(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
	       (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= PROMOTE_FILE_BYTES);
}

static int make_file(void)
{
	int fd;

	if (!promote_may_write())
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

bool promote_fd_is_ours(void)
{
	struct stat st;

	return promote_state.fd >= 0 && fstat(promote_state.fd, &st) == 0 &&
	       st.st_ino == promote_state.inode && st.st_dev == promote_state.device;
}

void promote_drop_pages(uint64_t offset, uint64_t length)
{
	if (!promote_fd_is_ours())
		return;
	/* on failure the memory stays in use, but is never read: the next user overwrites it */
	if (fallocate(promote_state.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		      (off_t)length) < 0)
		return;
}

bool promote_is_ours(const struct mapping *m)
{
	return m->shared && m->inode == promote_state.inode && m->device == promote_state.device;
}

bool promote_have_file(void)
{
	struct stat st;

	if (promote_state.fd >= 0)
		return promote_fd_is_ours();
	if (promote_state.refused || !wanted())
		return false;
	if (!promote_state.ready)
		promote_state.ready = promote_watch_forks();
	if (promote_state.ready)
		promote_state.fd = make_file();
	if (promote_state.fd < 0 || fstat(promote_state.fd, &st) < 0) {
		promote_state.refused = true;
		return false;
	}
	promote_state.inode = st.st_ino;
	promote_state.device = st.st_dev;
	return true;
}
