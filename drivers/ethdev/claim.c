/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/ethdev/claim.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "drivers/netlink.h"

#define WAITING 128 /* connections are never accepted; connecting is enough to learn our pid */

static socklen_t name_it(struct sockaddr_un *at, uint32_t ifindex, uint16_t vlan)
{
	memset(at, 0, sizeof(*at));
	at->sun_family = AF_UNIX;
	snprintf(at->sun_path + 1, sizeof(at->sun_path) - 1, "uroce/netdev/%u/%u", ifindex, vlan);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(at->sun_path + 1));
}

/* Whose the socket of a name is. */
struct owner {
	const char *name;
	size_t length;
	bool found;
	uid_t uid;
};

static int take_socket(const struct nlmsghdr *h, void *owner)
{
	const size_t body = sizeof(struct unix_diag_msg);
	struct owner *o = owner;
	const void *name, *uid;

	if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY || !netlink_has_body(h, body))
		return MNL_CB_OK;
	name = netlink_attribute(h, body, UNIX_DIAG_NAME, o->length);
	uid = netlink_attribute(h, body, UNIX_DIAG_UID, sizeof(o->uid));
	if (name == NULL || uid == NULL || memcmp(name, o->name, o->length) != 0)
		return MNL_CB_OK;
	memcpy(&o->uid, uid, sizeof(o->uid));
	o->found = true;
	return MNL_CB_OK;
}

/* Asks the kernel, which does not say which process it is. */
static bool ask_kernel(const struct sockaddr_un *at, socklen_t length, struct ucred *who)
{
	struct owner o = { at->sun_path, length - offsetof(struct sockaddr_un, sun_path), false,
			   0 };
	struct mnl_socket *s = mnl_socket_open2(NETLINK_SOCK_DIAG, SOCK_CLOEXEC | SOCK_NONBLOCK);
	union netlink_question q;
	struct unix_diag_req *r = netlink_begin(&q, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, sizeof(*r));

	if (s == NULL)
		return false;
	r->sdiag_family = AF_UNIX;
	r->udiag_states = 1u << TCP_LISTEN; /* states of all sockets have the numbers of TCP */
	r->udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_UID;
	netlink_list(s, &q, take_socket, &o);
	netlink_close(s);
	*who = (struct ucred){ .uid = o.uid };
	return o.found;
}

/*
 * Finds the process that listens there. False: its user is unknown, or is one who cannot have the
 * interface. Any user may take any such name, but a packet socket needs privileges.
 */
static bool ask(const struct sockaddr_un *at, socklen_t length, struct ucred *who)
{
	socklen_t size = sizeof(*who);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool known, full = false;

	if (fd < 0)
		return false;
	known = connect(fd, (const struct sockaddr *)at, length) == 0;
	if (known)
		known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, who, &size) == 0;
	else
		full = errno == EAGAIN; /* those who asked before stay in its queue */
	close(fd);
	if (full)
		known = ask_kernel(at, length, who);
	return known && (who->uid == 0 || who->uid == geteuid());
}

static void explain(uint32_t ifindex, int pid, char *why, size_t why_size)
{
	char process[32] = "", name[IF_NAMESIZE + sizeof("interface ")];

	if (pid > 0) /* 0: it is in another pid namespace */
		snprintf(process, sizeof(process), " (process %d)", pid);
	if ((ifindex & CLAIM_MEMIF) != 0) {
		snprintf(
			why, why_size,
			"another engine%s is the client of this memif: use or stop that engine, or "
			"choose another socket= or id=",
			process);
		return;
	}
	if (if_indextoname(ifindex, name) == NULL) /* the interface is gone */
		snprintf(name, sizeof(name), "interface %u", ifindex);
	snprintf(why, why_size,
		 "%s: another engine%s has this interface: use or stop that engine, or choose "
		 "another interface or --vlan",
		 name, process);
}

/* take() returns the descriptor of the claim, or one of these. */
#define NONE  (-1) /* claims are not possible here */
#define TAKEN (-2)

static int take(uint32_t ifindex, uint16_t vlan, char *why, size_t why_size)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un at;
	socklen_t length = name_it(&at, ifindex, vlan);
	struct ucred who;
	int error;

	if (fd < 0)
		return NONE;
	if (bind(fd, (struct sockaddr *)&at, length) == 0 && listen(fd, WAITING) == 0)
		return fd;
	error = errno;
	close(fd);
	if (error != EADDRINUSE || !ask(&at, length, &who))
		return NONE;
	explain(ifindex, who.pid, why, why_size);
	return TAKEN;
}

bool claim_take(struct claim *c, uint32_t ifindex, uint16_t vlan, char *why, size_t why_size)
{
	int fd;

	if ((ifindex & CLAIM_MEMIF) != 0)
		vlan = 0;
	if (vlan == c->vlan)
		return true;
	fd = take(ifindex, vlan, why, why_size);
	if (fd == TAKEN)
		return false;
	claim_end(c); /* ends a claim of another VLAN, for an engine that was not made */
	*c = (struct claim){ .fd = fd, .vlan = vlan };
	return true;
}

void claim_end(struct claim *c)
{
	if (c->fd >= 0)
		close(c->fd);
	*c = claim_none();
}

static bool has_open(const char *pid, const char *file)
{
	char path[PATH_MAX], target[PATH_MAX];
	struct dirent *d;
	bool found = false;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%.32s/fd", pid);
	fds = opendir(path);
	while (fds != NULL && !found && (d = readdir(fds)) != NULL) {
		ssize_t n = readlinkat(dirfd(fds), d->d_name, target, sizeof(target) - 1);

		target[n > 0 ? n : 0] = '\0';
		found = strcmp(target, file) == 0;
	}
	if (fds != NULL)
		closedir(fds);
	return found;
}

int claim_holder_of(const char *file)
{
	DIR *processes = opendir("/proc");
	struct dirent *d;
	int pid = 0;

	while (processes != NULL && pid == 0 && (d = readdir(processes)) != NULL) {
		int next = d->d_name[0] >= '1' && d->d_name[0] <= '9' ? atoi(d->d_name) : 0;

		if (next > 0 && next != getpid() && has_open(d->d_name, file))
			pid = next;
	}
	if (processes != NULL)
		closedir(processes);
	return pid;
}
