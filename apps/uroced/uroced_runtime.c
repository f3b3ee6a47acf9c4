/* SPDX-License-Identifier: BSD-3-Clause */
#include "uroced_runtime.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PREFIX	   "uroce-"
#define OPEN_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define TRIES	   1000 /* a millisecond apart: another engine removes a dead one's folder meanwhile */

static char own_folder[PATH_MAX];

static void remove_own(void)
{
	if (own_folder[0] != '\0')
		rmdir(own_folder); /* if not empty, another process uses the prefix */
}

void runtime_folder_remove_at_exit(void)
{
	atexit(remove_own);
}

/* Whether the path still leads to this descriptor's file. */
static bool is_there(int fd, const char *path)
{
	struct stat held, now;

	return fstat(fd, &held) == 0 && lstat(path, &now) == 0 && held.st_dev == now.st_dev &&
	       held.st_ino == now.st_ino;
}

/*
 * Shared, because others may use the prefix. The descriptor stays open: the lock ends with the process,
 * however the process ends. False: another engine was about to remove the folder, or has.
 */
static bool lock(const char *path)
{
	int fd = open(path, OPEN_FLAGS);

	if (fd < 0)
		return errno != ENOENT; /* not ours, or no folder: EAL will say so */
	if (flock(fd, LOCK_SH | LOCK_NB) == 0 && is_there(fd, path))
		return true;
	close(fd);
	return false;
}

/* As EAL finds the folder of its folders. */
static const char *folder_above(void)
{
	const char *folder = getenv("RUNTIME_DIRECTORY");

	if (folder == NULL && getuid() == 0)
		return "/var/run";
	if (folder == NULL)
		folder = getenv("XDG_RUNTIME_DIR");
	return folder != NULL ? folder : "/tmp";
}

void runtime_folder_make(int pid)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	char path[PATH_MAX];
	int tries = 0;

	if (snprintf(path, sizeof(path), "%s/dpdk", folder_above()) >= (int)sizeof(path) - 32)
		return;
	mkdir(path, 0700);
	snprintf(path + strlen(path), 32, "/" PREFIX "%d", pid);
	snprintf(own_folder, sizeof(own_folder), "%s", path);
	while ((mkdir(path, 0700) == 0 || errno == EEXIST) && !lock(path) && ++tries < TRIES)
		nanosleep(&pause, NULL);
}

void runtime_folder_hold(const char *folder)
{
	if (strcmp(folder, own_folder) == 0)
		return; /* since it was made */
	remove_own();
	snprintf(own_folder, sizeof(own_folder), "%s", folder);
	lock(own_folder);
}

/* The pid in a folder's name if it is exactly what uroced writes; otherwise 0. */
static pid_t pid_of(const char *name)
{
	const char *digits = name + strlen(PREFIX);
	unsigned long pid;

	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || digits[0] < '1' || digits[0] > '9' ||
	    strspn(digits, "0123456789") != strlen(digits))
		return 0;
	errno = 0;
	pid = strtoul(digits, NULL, 10);
	return errno == 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

static bool is_ours(int fd)
{
	struct stat s;

	return fstat(fd, &s) == 0 && s.st_uid == geteuid();
}

static void remove_contents(int folder)
{
	int copy = fcntl(folder, F_DUPFD_CLOEXEC, 0); /* closedir() closes the copy only */
	DIR *list = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *d;
	struct stat s;

	if (list == NULL) {
		if (copy >= 0)
			close(copy);
		return;
	}
	while ((d = readdir(list)) != NULL)
		if (fstatat(folder, d->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0 &&
		    (S_ISSOCK(s.st_mode) || S_ISREG(s.st_mode)))
			unlinkat(folder, d->d_name, 0);
	closedir(list);
}

static void remove_if_dead(int parent, const char *name)
{
	pid_t pid = pid_of(name);
	int folder;

	if (pid == 0 || kill(pid, 0) == 0 || errno != ESRCH)
		return;
	folder = openat(parent, name, OPEN_FLAGS);
	if (folder < 0)
		return;
	/* Check the pid again: a process that has got it since may not hold its lock yet. */
	if (is_ours(folder) && flock(folder, LOCK_EX | LOCK_NB) == 0 && kill(pid, 0) != 0 &&
	    errno == ESRCH) {
		remove_contents(folder);
		unlinkat(parent, name, AT_REMOVEDIR);
	}
	close(folder);
}

void runtime_folder_remove_dead(const char *folder)
{
	const char *slash = strrchr(folder, '/');
	char path[PATH_MAX];
	const struct dirent *d;
	DIR *parent;
	int fd;

	if (slash == NULL || slash == folder || (size_t)(slash - folder) >= sizeof(path))
		return;
	snprintf(path, sizeof(path), "%.*s", (int)(slash - folder), folder);
	fd = open(path, OPEN_FLAGS);
	if (fd < 0)
		return;
	parent = is_ours(fd) ? fdopendir(fd) : NULL;
	if (parent == NULL) {
		close(fd);
		return;
	}
	while ((d = readdir(parent)) != NULL)
		remove_if_dead(fd, d->d_name);
	closedir(parent);
}
