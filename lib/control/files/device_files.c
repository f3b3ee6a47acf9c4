/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device's files, in PATH.files beside the socket, for the programs that `uroce run` runs. The
 * engine that has PATH.lock writes them. They are not needed to reach the engine: if they cannot be
 * created, the engine reports it and serves without them.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/log.h"
#include "control/control.h"
#include "control/files/device_tree.h"

static void path_of_files(const struct listener *l, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s%s", l->path, DEVICE_TREE_SUFFIX);
}

/*
 * Opens a directory of this engine alone, perhaps left by an engine that was killed. -1 with errno.
 */
static int open_folder(const char *path)
{
	struct stat st;
	int fd;

	if (mkdir(path, 0755) != 0 && errno != EEXIST)
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && fchmod(fd, 0755) == 0)
		return fd;
	close(fd);
	errno = EPERM;
	return -1;
}

static int write_files(struct engine *e, int folder)
{
	struct reply_device d = { 0 };
	char netdev[16];

	device_describe(e, &d);
	device_tree_netdev(&d, netdev);
	return device_tree_write(folder, &d, netdev);
}

void device_files_open(struct engine *e)
{
	struct listener *l = &e->control->listener;
	char path[PATH_MAX];
	int error;

	if (l->watch.fd < 0)
		return;
	path_of_files(l, path);
	l->files_fd = open_folder(path);
	error = l->files_fd < 0 ? errno : 0;
	if (error == 0) {
		device_tree_clear(
			l->files_fd); /* an earlier engine's device may have had another name */
		error = write_files(e, l->files_fd);
	}
	if (error == 0)
		return;
	LOG(WARNING, "%s: %s: programs cannot find the device in the file system", path,
	    strerror(error));
	device_files_close(e);
}

/*
 * Programs may have used the last descriptors, or the room of the file system; they will free some. The
 * files stay as they are until then.
 */
static bool will_pass(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOSPC || error == EDQUOT ||
	       error == ENOMEM;
}

void device_files_update(struct engine *e)
{
	struct listener *l = &e->control->listener;
	int error = l->files_fd >= 0 ? write_files(e, l->files_fd) : 0;

	l->files_late = will_pass(error);
	if (error != 0 && !l->files_late)
		device_files_close(e);
}

void device_files_close(struct engine *e)
{
	struct listener *l = &e->control->listener;
	char path[PATH_MAX];

	if (l->files_fd < 0)
		return;
	device_tree_clear(l->files_fd);
	close(l->files_fd);
	l->files_fd = -1;
	path_of_files(l, path);
	rmdir(path);
}
