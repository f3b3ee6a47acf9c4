/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/client_memory/maps_kept.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

static const pthread_mutex_t unlocked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

static struct {
	pthread_mutex_t lock;
	int fd;
	ino_t inode;
	dev_t device;
} kept = { .lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP, .fd = -1 };

/* Some programs close descriptors that they do not know. The number may then be another file's. */
static bool is_ours(void)
{
	struct stat st;

	return kept.fd >= 0 && fstat(kept.fd, &st) == 0 && st.st_ino == kept.inode &&
	       st.st_dev == kept.device;
}

static void open_kept(void)
{
	struct stat st;

	kept.fd = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
	if (kept.fd < 0 || fstat(kept.fd, &st) < 0)
		return; /* nothing has inode 0 */
	kept.inode = st.st_ino;
	kept.device = st.st_dev;
}

void maps_keep(void)
{
	if (pthread_mutex_lock(&kept.lock) != 0)
		return;
	if (!is_ours())
		open_kept();
	pthread_mutex_unlock(&kept.lock);
}

void maps_forget(void)
{
	kept.lock = unlocked;
	if (is_ours())
		close(kept.fd);
	kept.fd = -1;
}

int maps_kept_take(void)
{
	if (pthread_mutex_lock(&kept.lock) != 0)
		return -1;
	if (is_ours() && lseek(kept.fd, 0, SEEK_SET) == 0)
		return kept.fd;
	pthread_mutex_unlock(&kept.lock);
	return -1;
}

void maps_kept_give(void)
{
	pthread_mutex_unlock(&kept.lock);
}
