/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket in the file system. The engine that has PATH.lock locked (flock) serves PATH, so a
 * socket whose lock is free belongs to a dead engine. The socket is bound to PATH.PID and renamed
 * to PATH when the engine serves, so that every program that finds it gets an answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control/control.h"

#define SOCKET_PATH 108 /* sockaddr_un.sun_path */

static int fail(int error, char *why, size_t why_size, const char *path, const char *what)
{
	snprintf(why, why_size, "--socket %s: %s: %s", path, what, strerror(error));
	return error;
}

/* A file that is not a socket is not replaced. */
static int check_place(const char *path, char *why, size_t why_size)
{
	struct stat st;

	if (lstat(path, &st) != 0 || S_ISSOCK(st.st_mode))
		return 0;
	snprintf(why, why_size,
		 "--socket %s: must be a path where nothing is, or a socket: there is a %s", path,
		 S_ISDIR(st.st_mode) ? "folder" : "file");
	return EEXIST;
}

/* Only the descriptor of the file is closed here: its contents belong to the holder. */
static int say_holder(int fd, const char *path, char *why, size_t why_size)
{
	char pid[32] = "";
	ssize_t n = pread(fd, pid, sizeof(pid) - 1, 0);

	close(fd);
	if (n > 0)
		pid[strcspn(pid, "\n")] = '\0';
	snprintf(why, why_size,
		 "--socket %s: another engine (process %s) serves it: use or stop that engine, or "
		 "choose another path",
		 path, n > 0 ? pid : "unknown");
	return EADDRINUSE;
}

static int take_lock(struct listener *l, char *why, size_t why_size)
{
	char path[PATH_MAX];
	int fd, length;

	snprintf(path, sizeof(path), "%s.lock", l->path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fail(errno, why, why_size, path, "cannot open the lock file");
	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		return say_holder(fd, l->path, why, why_size);
	l->lock_fd = fd;
	l->locker = getpid();
	length = snprintf(path, sizeof(path), "%d\n", getpid());
	if (ftruncate(l->lock_fd, 0) != 0 || pwrite(l->lock_fd, path, (size_t)length, 0) != length)
		return fail(errno, why, why_size, l->path, "cannot write the lock file");
	return 0;
}

/* listener_open has checked that it fits. */
static void temporary_path(const struct listener *l, char path[SOCKET_PATH])
{
	if (snprintf(path, SOCKET_PATH, "%s.%d", l->path, getpid()) >= SOCKET_PATH)
		path[0] = '\0';
}

static int bind_socket(struct listener *l, const struct uroce_options *o, char *why,
		       size_t why_size)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int error;

	temporary_path(l, address.sun_path);
	l->watch.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->watch.fd < 0)
		return fail(errno, why, why_size, l->path, "cannot make the socket");
	unlink(address.sun_path);
	/*
	 * The socket inherits the mode of the file: a library must not change umask(2), which
	 * belongs to the process.
	 */
	error = fchmod(l->watch.fd, 0600) == 0 &&
				bind(l->watch.fd, (struct sockaddr *)&address, sizeof(address)) == 0
			? 0
			: errno;
	if (error != 0)
		return fail(error, why, why_size, address.sun_path, "cannot make the socket");
	if (o->socket_gid >= 0 && chown(address.sun_path, (uid_t)-1, (gid_t)o->socket_gid) != 0)
		error = fail(errno, why, why_size, l->path, "cannot change its group");
	else if (chmod(address.sun_path, o->socket_mode != 0 ? o->socket_mode : 0600) != 0)
		error = fail(errno, why, why_size, l->path, "cannot set its mode");
	else if (listen(l->watch.fd, LIMIT_BACKLOG) != 0)
		error = fail(errno, why, why_size, l->path, "cannot listen");
	if (error != 0)
		unlink(address.sun_path);
	return error;
}

int listener_open(struct listener *l, const struct uroce_options *o, char *why, size_t why_size)
{
	size_t room = sizeof(((struct sockaddr_un *)0)->sun_path) - sizeof(".4194304");
	int error;

	if (o->socket_path == NULL)
		return 0;
	if (strlen(o->socket_path) > room) {
		snprintf(why, why_size, "--socket %s: the path is longer than %zu octets",
			 o->socket_path, room);
		return ENAMETOOLONG;
	}
	snprintf(l->path, sizeof(l->path), "%s", o->socket_path);
	error = check_place(l->path, why, why_size);
	if (error == 0)
		error = take_lock(l, why, why_size);
	if (error == 0)
		error = bind_socket(l, o, why, why_size);
	return error;
}

int listener_show(struct listener *l, char *why, size_t why_size)
{
	char path[SOCKET_PATH];

	if (l->watch.fd < 0)
		return 0;
	l->watch.ready = connection_accept;
	temporary_path(l, path);
	if (watch_add(l->engine, &l->watch) != 0)
		return fail(errno, why, why_size, l->path, "cannot watch it");
	if (rename(path, l->path) != 0)
		return fail(errno, why, why_size, l->path, "cannot put it in place");
	l->shown = true;
	return 0;
}

/* No descriptors are left: new connections wait until the next tick. */
void listener_pause(struct listener *l)
{
	epoll_ctl(l->engine->control->epoll_fd, EPOLL_CTL_DEL, l->watch.fd, NULL);
	l->paused = true;
}

void listener_resume(struct listener *l)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &l->watch };

	if (!l->paused)
		return;
	l->paused =
		epoll_ctl(l->engine->control->epoll_fd, EPOLL_CTL_ADD, l->watch.fd, &event) != 0;
}

void listener_close(struct listener *l)
{
	char path[SOCKET_PATH];

	if (l->watch.fd >= 0) {
		/*
		 * This engine has the lock, so the socket is its own, unless it was removed.
		 */
		temporary_path(l, path);
		unlink(l->shown ? l->path : path);
		connections_decline(l);
		watch_remove(l->engine, &l->watch);
	}
	if (l->lock_fd >= 0) {
		/*
		 * The lock file stays: removing it would let two engines lock two files of the same
		 * name.
		 */
		if (ftruncate(l->lock_fd, 0) != 0)
			errno = 0;
		/* A child that this process forked has the lock as well, as long as it lives. */
		if (l->locker == getpid())
			flock(l->lock_fd, LOCK_UN);
		close(l->lock_fd);
	}
	l->lock_fd = -1;
}
