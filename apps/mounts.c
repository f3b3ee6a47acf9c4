/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mounts for one program. A folder made in /sys or /dev would be visible to every process, so a
 * folder that lacks the entry is covered: by a tmpfs into which every subfolder of the old one is
 * mounted (/sys/class), or by an overlay (/dev, whose device nodes must keep working).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? write(fd, text, strlen(text)) : -1;
	int error = n < 0 ? errno : 0;

	if (fd >= 0)
		close(fd);
	return error;
}

/* Maps one user and one group to themselves, so no identity changes. */
static int map_user(uid_t uid, gid_t gid)
{
	char text[64];
	int error;

	error = write_text("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "%u %u 1", uid, uid);
	if (error == 0)
		error = write_text("/proc/self/uid_map", text);
	snprintf(text, sizeof(text), "%u %u 1", gid, gid);
	return error != 0 ? error : write_text("/proc/self/gid_map", text);
}

int mounts_begin(bool user)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int error = 0;

	if (unshare(CLONE_NEWNS | (user ? CLONE_NEWUSER : 0)) != 0)
		return errno;
	if (user)
		error = map_user(uid, gid);
	/* Later mounts of the host appear here; ours do not appear in the host. */
	if (error == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0)
		error = errno;
	return error;
}

static int bind_folder(const char *source, const char *target)
{
	struct mount_attr attributes = { .attr_set = MOUNT_ATTR_RDONLY };
	int error = 0;

	if (mount(source, target, NULL, MS_BIND, NULL) != 0)
		return errno;
	if (mount_setattr(AT_FDCWD, target, 0, &attributes, sizeof(attributes)) != 0) {
		error = errno;
		umount2(target, MNT_DETACH);
	}
	return error;
}

/* Mounts one entry of the covered folder, which is still at /proc/self/fd/OLD. */
static int carry_over(int old, const char *parent, const struct dirent *entry)
{
	char source[PATH_MAX], target[PATH_MAX], link[PATH_MAX];
	struct stat st;
	ssize_t n;

	snprintf(source, sizeof(source), "/proc/self/fd/%d/%s", old, entry->d_name);
	if (snprintf(target, sizeof(target), "%s/%s", parent, entry->d_name) >= PATH_MAX ||
	    lstat(source, &st) != 0)
		return errno;
	if (S_ISLNK(st.st_mode)) {
		n = readlink(source, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = '\0';
		return n > 0 && symlink(link, target) == 0 ? 0 : errno;
	}
	if (S_ISDIR(st.st_mode) ? mkdir(target, 0755) != 0 : mknod(target, S_IFREG | 0444, 0) != 0)
		return errno;
	return mount(source, target, NULL, MS_BIND | MS_REC, NULL) == 0 ? 0 : errno;
}

/* Calls `each` for every entry of the folder. 0, or the first errno. */
static int for_each(int folder, const char *parent,
		    int (*each)(int folder, const char *parent, const struct dirent *entry))
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = 0;
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (list == NULL)
		return errno;
	while (error == 0 && (entry = readdir(list)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			error = each(folder, parent, entry);
	closedir(list);
	return error;
}

static int cover_with_mounts(int old, const char *parent)
{
	return for_each(old, parent, carry_over);
}

/*
 * An overlay hides mounts, and its sockets and pipes are not connected to anything. So these are
 * mounted on top of it, and folders, too, for what is in them or will be. Only nodes, links and
 * files are seen through the overlay.
 */
static int mount_again(int old, const char *parent, const struct dirent *entry)
{
	char source[PATH_MAX], target[PATH_MAX];
	struct stat folder, st;

	snprintf(source, sizeof(source), "/proc/self/fd/%d/%s", old, entry->d_name);
	if (snprintf(target, sizeof(target), "%s/%s", parent, entry->d_name) >= PATH_MAX ||
	    fstat(old, &folder) != 0 || lstat(source, &st) != 0)
		return errno;
	if (S_ISLNK(st.st_mode) || (st.st_dev == folder.st_dev && !S_ISDIR(st.st_mode) &&
				    !S_ISSOCK(st.st_mode) && !S_ISFIFO(st.st_mode)))
		return 0;
	return mount(source, target, NULL, MS_BIND | MS_REC, NULL) == 0 ? 0 : errno;
}

/* Overlays in a user namespace have device nodes that cannot be opened. */
static int check_nodes(const char *parent)
{
	char path[PATH_MAX];
	int fd, error;

	snprintf(path, sizeof(path), "%s/null", parent);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
	error = fd < 0 && errno != ENOENT ? errno : 0;
	if (fd >= 0)
		close(fd);
	return error;
}

/* The new folder is in the tmpfs that covers the parent; the overlay then covers the tmpfs. */
static int cover_with_overlay(int old, const char *parent)
{
	char options[3 * PATH_MAX], upper[PATH_MAX], work[PATH_MAX];
	int error = 0;

	snprintf(upper, sizeof(upper), "%s/upper", parent);
	snprintf(work, sizeof(work), "%s/work", parent);
	snprintf(options, sizeof(options), "lowerdir=/proc/self/fd/%d,upperdir=%s,workdir=%s", old,
		 upper, work);
	if (mkdir(upper, 0755) != 0 || mkdir(work, 0755) != 0 ||
	    mount("uroce", parent, "overlay", 0, options) != 0)
		return errno;
	error = check_nodes(parent);
	if (error == 0)
		error = for_each(old, parent, mount_again);
	if (error != 0)
		umount2(parent, MNT_DETACH);
	return error;
}

static int cover(const char *parent, bool overlay)
{
	int old = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error;

	if (old < 0)
		return errno;
	if (mount("uroce", parent, "tmpfs", MS_NOSUID, "mode=755,size=4m") != 0) {
		error = errno;
		close(old);
		return error;
	}
	error = overlay ? cover_with_overlay(old, parent) : cover_with_mounts(old, parent);
	close(old);
	if (error != 0)
		umount2(parent, MNT_DETACH);
	return error;
}

static void uncover(const char *parent, bool overlay)
{
	if (overlay)
		umount2(parent, MNT_DETACH);
	umount2(parent, MNT_DETACH); /* the tmpfs with all mounts in it */
}

int mounts_put(const char *source, const char *parent, const char *name, bool overlay)
{
	char target[PATH_MAX];
	bool covered = false;
	struct stat st;
	int error = 0;

	snprintf(target, sizeof(target), "%s/%s", parent, name);
	if (stat(target, &st) != 0) {
		error = cover(parent, overlay);
		covered = error == 0;
		if (covered && mkdir(target, 0755) != 0)
			error = errno;
	}
	if (error == 0)
		error = bind_folder(source, target);
	if (error != 0 && covered)
		uncover(parent, overlay);
	return error;
}
