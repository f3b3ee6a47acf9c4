/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may use raw queue pairs, work queues and steering rules: they see and speak for everybody
 * on the port, so it takes what a packet socket takes. An embedding program already has the port.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/control.h"
#include "engine/raw_control.h"

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

static bool has_capability(pid_t pid, uint32_t bit)
{
	unsigned long long effective = 0;
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "CapEff: %llx", &effective) == 1)
			break;
	fclose(f);
	return (effective >> bit & 1) != 0;
}

/*
 * The pid cannot be somebody else's: its pidfd is watched since HELLO, and the connection ends
 * with the process before the next command is looked at, or the command's effects with it.
 */
bool client_has_capability(const struct client *c, uint32_t bit)
{
	const struct client_objects *o = c->objects;

	return c->embedded || o->uid == 0 ||
	       (o->pid > 0 && of_our_user_namespace(o->pid) && has_capability(o->pid, bit));
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
