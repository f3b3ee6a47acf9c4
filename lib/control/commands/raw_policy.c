/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may use raw queue pairs, work queues and steering rules. They see all traffic of the port and
 * can send with any address, so they need the same privilege as a packet socket. An embedding
 * program already has the port.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "control/control.h"
#include "control/commands/raw_control.h"

#define CAP_NET_RAW_BIT 13

/* Root of another user namespace has all capabilities there, but not here. */
static bool of_our_user_namespace(pid_t pid)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	return stat("/proc/self/ns/user", &ours) == 0 && stat(path, &theirs) == 0 &&
	       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

/*
 * The connection may have survived an execve(): another process has a copy of its descriptor, and
 * this one now runs a program whose privileges come from its file (setuid, file capabilities) and
 * not from its caller. The kernel hides such a program's files in /proc from its caller.
 */
static bool is_users_own(pid_t pid, uid_t uid)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	return stat(path, &st) == 0 && st.st_uid == uid;
}

/*
 * Requires that all user ids of the process are this one. One read, so that all values are of one
 * moment.
 */
static bool has_capability(pid_t pid, uid_t uid, uint32_t bit)
{
	unsigned long long effective = 0;
	unsigned int id[4] = { 0 };
	char path[64], text[32768]; /* a user may be in thousands of groups */
	const char *uids, *capabilities;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	uids = strstr(text, "\nUid:");
	capabilities = strstr(text, "\nCapEff:");
	if (uids == NULL || capabilities == NULL ||
	    sscanf(uids, "\nUid: %u %u %u %u", &id[0], &id[1], &id[2], &id[3]) != 4 ||
	    sscanf(capabilities, "\nCapEff: %llx", &effective) != 1)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(id); i++)
		if (id[i] != uid)
			return false;
	return (effective >> bit & 1) != 0;
}

/*
 * The pid cannot belong to another process if it did not when the connection was taken: its pidfd is
 * watched, and if the process ends the connection ends before the next command, or with the effects of
 * this one. The process may change its identity between two reads, so its owner is checked before and
 * after.
 */
bool client_has_capability(const struct client *c, uint32_t bit)
{
	const struct client_objects *o = c->objects;

	return c->embedded || o->uid == 0 ||
	       (o->pid > 0 && o->pid_sure && of_our_user_namespace(o->pid) &&
		is_users_own(o->pid, o->uid) && has_capability(o->pid, o->uid, bit) &&
		is_users_own(o->pid, o->uid));
}

bool client_is_privileged(const struct client *c)
{
	return client_has_capability(c, CAP_NET_RAW_BIT);
}

int raw_check_privilege(struct call *call)
{
	if (client_is_privileged(call->client))
		return 0;
	return call_fail(call, EPERM, "raw packets need root or CAP_NET_RAW");
}
