/* SPDX-License-Identifier: BSD-3-Clause */
#include "uroced_vdev.h"

#include <net/if.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_kvargs.h>

#include "base/bits.h"

#define GREETING_MS 2000 /* a process that takes longer to greet probably hangs */

const struct rte_devargs *vdev_missing(void)
{
	const struct rte_devargs *a;
	struct rte_dev_iterator i;
	struct rte_device *d;

	RTE_EAL_DEVARGS_FOREACH("vdev", a)
	{
		bool made = false;

		RTE_DEV_FOREACH(d, "bus=vdev", &i)
		made |= strcmp(rte_dev_name(d), a->name) == 0 && rte_dev_is_probed(d);
		if (!made)
			return a;
	}
	return NULL;
}

/*
 * net_memif greets a process that connects. If the connection is gone before that, net_memif closes
 * a descriptor that EAL still watches, and EAL ends the process (DPDK 22.11).
 */
static void await_greeting(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	(void)poll(&p, 1, GREETING_MS);
}

int vdev_holder(const struct rte_devargs *a)
{
	struct rte_kvargs *list = rte_kvargs_parse(a->args, NULL);
	const char *path = list != NULL ? rte_kvargs_get(list, "socket") : NULL;
	const char *named = list != NULL ? rte_kvargs_get(list, "socket-abstract") : NULL;
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred who = { 0 };
	socklen_t size = sizeof(who), length = sizeof(at);
	bool in_files = named != NULL && strcmp(named, "no") == 0;

	if (path != NULL)
		snprintf(at.sun_path + !in_files, sizeof(at.sun_path) - !in_files, "%s", path);
	if (path != NULL && !in_files)
		length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(path));
	if (path == NULL || connect(fd, (struct sockaddr *)&at, length) != 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
		who.pid = 0;
	else
		await_greeting(fd);
	if (fd >= 0)
		close(fd);
	rte_kvargs_free(list);
	return who.pid;
}

static bool may_use_interfaces(void)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* net_tap makes its `iface`, and the others' must be there. */
static bool interface_lacks(const struct rte_devargs *a, const char *key, const char *name)
{
	bool is_made =
		strncmp(a->name, "net_tap", strlen("net_tap")) == 0 && strcmp(key, "iface") == 0;

	return !may_use_interfaces() || (!is_made && if_nametoindex(name) == 0);
}

bool vdev_needs_machine(const struct rte_devargs *a)
{
	static const char *const interfaces[] = { "iface", "rx_iface", "rx_iface_in", "tx_iface",
						  "remote" };
	struct rte_kvargs *list = rte_kvargs_parse(a->args, NULL);
	const char *value = list != NULL ? rte_kvargs_get(list, "rx_pcap") : NULL;
	bool lacks = value != NULL && access(value, R_OK) != 0;

	for (size_t i = 0; list != NULL && i < ARRAY_SIZE(interfaces); i++) {
		value = rte_kvargs_get(list, interfaces[i]);
		lacks |= value != NULL && interface_lacks(a, interfaces[i], value);
	}
	rte_kvargs_free(list);
	return lacks;
}
