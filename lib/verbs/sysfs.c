/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of sysfs. There is no kernel device, so most of them do not exist. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "queue/cancel.h"
#include "verbs/types.h"

const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

EXPORT const char *ibv_get_sysfs_path(void)
{
	return "/sys";
}

/* Returns the octets read, without the newline at the end, or -1 with errno. */
static int read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, buf, size);
	close(fd);
	if (n > 0 && buf[n - 1] == '\n')
		buf[--n] = '\0';
	else if (n >= 0 && (size_t)n < size)
		buf[n] = '\0';
	else if (n >= 0)
		n = -1; /* longer than the program's buffer */
	return (int)n;
}

static bool is_ours(const char *dir)
{
	return strncmp(dir, "/sys/class/infiniband/uroce", 27) == 0;
}

EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[IBV_SYSFS_PATH_MAX * 2];
	int n, cancel;

	if (is_ours(dir) && strcmp(file, "board_id") == 0) {
		n = snprintf(buf, size, "uroce-%s", UROCE_VERSION);
		return n;
	}
	n = snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (n < 0 || (size_t)n >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	cancel = cancel_off();
	n = read_file(path, buf, size);
	cancel_restore(cancel);
	return n;
}
