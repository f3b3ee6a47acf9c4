/* SPDX-License-Identifier: BSD-3-Clause */
#include "uroced_notify.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bits.h"

static int notify_fd = -1;

void notify_open(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	size_t length = path != NULL ? strlen(path) : 0;

	if (length < 2 || length >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(to.sun_path, path, length);
	if (path[0] == '@') /* in no file system */
		to.sun_path[0] = '\0';
	notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (notify_fd >= 0 &&
	    connect(notify_fd, (struct sockaddr *)&to,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) == 0)
		return;
	if (notify_fd >= 0)
		close(notify_fd);
	notify_fd = -1;
}

void notify(const char *state)
{
	/* Go on if the manager does not listen. */
	if (notify_fd >= 0 && send(notify_fd, state, strlen(state), MSG_NOSIGNAL) < 0)
		return;
}

int notify_period(void)
{
	const char *limit = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	unsigned long us;

	if (notify_fd < 0 || limit == NULL || (pid != NULL && atol(pid) != getpid()))
		return -1;
	us = strtoul(limit, NULL, 10);
	return us == 0 ? -1 : (int)MAX_OF(MIN_OF(us / 2000, (unsigned long)INT_MAX), 1ul);
}
