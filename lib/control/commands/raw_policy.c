/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may use raw queue pairs, work queues and steering rules: they see and speak for everybody
 * on the port, so it takes what a packet socket takes. An embedding program already has the port.
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

/* A process that is root of a user namespace of its own has all capabilities, but not here. */
static bool of_our_user_namespace(pid_t pid)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	return stat("/proc/self/ns/user", &ours) == 0 && stat(path, &theirs) == 0 &&
	       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

/*
 * The connection may have outlived an execve(): another process has a copy of it, and this one has
 * become a program whose privileges are its file's (setuid, file capabilities), not its caller's.
 * The kernel keeps such a program's files in /proc from its caller.
 */
static bool is_users_own(pid_t pid, uid_t uid)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	return stat(path, &st) == 0 && st.st_uid == uid;
}

/* Of a process all of whose user ids are this one; in one read, so that it is of one moment. */
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
 * The pid cannot be somebody else's: its pidfd is watched since HELLO, and the connection ends
 * with the process before the next command is looked at, or the command's effects with it. What the
 * process is may change between two looks: whose it is is looked at on both sides.
 */
bool client_has_capability(const struct client *c, uint32_t bit)
{
	const struct client_objects *o = c->objects;

	return c->embedded || o->uid == 0 ||
	       (o->pid > 0 && of_our_user_namespace(o->pid) && is_users_own(o->pid, o->uid) &&
		has_capability(o->pid, o->uid, bit) && is_users_own(o->pid, o->uid));
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
