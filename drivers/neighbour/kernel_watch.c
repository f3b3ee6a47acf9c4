/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/neighbour/kernel_watch.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"

#define PROBES	   16u /* slots that a hop may stand in */
#define READS_MOST 256 /* datagrams at once; what is left is read with the next call */
#define GROUPS	   (RTMGRP_NEIGH | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE)

void kernel_watch_open(struct kernel_watch *w, uint32_t ifindex)
{
	struct sockaddr_nl at = { .nl_family = AF_NETLINK, .nl_groups = GROUPS };

	memset(w, 0, sizeof(*w));
	w->ifindex = ifindex;
	w->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (w->fd >= 0 && bind(w->fd, (struct sockaddr *)&at, sizeof(at)) != 0)
		kernel_watch_close(w);
}

void kernel_watch_close(struct kernel_watch *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

/* ---- answers ---- */

static uint32_t first_slot(const struct gid *hop)
{
	uint64_t half[2];

	memcpy(half, hop->octet, sizeof(half));
	return (uint32_t)(((half[0] ^ half[1]) * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static struct watched *find(const struct kernel_watch *w, const struct gid *hop)
{
	uint32_t first = first_slot(hop);

	for (uint32_t i = 0; i < PROBES; i++) {
		const struct watched *s = &w->slot[(first + i) % WATCH_SLOTS];

		if (s->used && gid_equal(&s->hop, hop))
			return (struct watched *)(uintptr_t)s;
	}
	return NULL;
}

void kernel_watch_put(struct kernel_watch *w, const struct gid *hop, const struct mac *mac)
{
	struct watched *s = find(w, hop);
	uint32_t first = first_slot(hop);

	for (uint32_t i = 0; s == NULL && i < PROBES; i++)
		if (!w->slot[(first + i) % WATCH_SLOTS].used)
			s = &w->slot[(first + i) % WATCH_SLOTS];
	if (s == NULL) {
		w->overflowed = true;
		s = &w->slot[first % WATCH_SLOTS];
	}
	*s = (struct watched){ *hop, *mac, true };
}

void kernel_watch_forget(struct kernel_watch *w, const struct gid *hop)
{
	struct watched *s = find(w, hop);

	if (s != NULL)
		s->used = false;
}

bool kernel_watch_get(const struct kernel_watch *w, const struct gid *hop, struct mac *mac)
{
	const struct watched *s = find(w, hop);

	if (s != NULL)
		*mac = s->mac;
	return s != NULL;
}

/* ---- announcements ---- */

struct neighbour {
	struct gid gid;
	struct mac mac;
	bool has_mac;
};

/* False: not of this interface, or no unicast address. */
static bool read_neighbour(const struct kernel_watch *w, const struct nlmsghdr *h,
			   struct neighbour *n)
{
	const struct ndmsg *m = NLMSG_DATA(h);
	const struct rtattr *a =
		(const void *)((const uint8_t *)m + NLMSG_ALIGN(sizeof(struct ndmsg)));
	bool has_address = false;
	int left;

	if (h->nlmsg_len < NLMSG_SPACE(sizeof(*m)) || (uint32_t)m->ndm_ifindex != w->ifindex)
		return false;
	memset(n, 0, sizeof(*n));
	left = (int)(h->nlmsg_len - NLMSG_SPACE(sizeof(*m)));
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == NDA_LLADDR && RTA_PAYLOAD(a) == sizeof(n->mac)) {
			memcpy(&n->mac, RTA_DATA(a), sizeof(n->mac));
			n->has_mac = true;
		} else if (a->rta_type == NDA_DST && m->ndm_family == AF_INET &&
			   RTA_PAYLOAD(a) == 4) {
			n->gid.octet[10] = n->gid.octet[11] = 0xff;
			memcpy(n->gid.octet + 12, RTA_DATA(a), 4);
			has_address = true;
		} else if (a->rta_type == NDA_DST && m->ndm_family == AF_INET6 &&
			   RTA_PAYLOAD(a) == 16) {
			memcpy(n->gid.octet, RTA_DATA(a), 16);
			has_address = true;
		}
	}
	return has_address;
}

static bool neighbour_changed(struct kernel_watch *w, const struct nlmsghdr *h)
{
	struct neighbour n;
	struct watched *s;

	if (!read_neighbour(w, h, &n) || !n.has_mac)
		return false;
	s = find(w, &n.gid);
	if (s == NULL)
		return w->overflowed;
	if (memcmp(&s->mac, &n.mac, sizeof(n.mac)) == 0)
		return false;
	s->mac = n.mac;
	return true;
}

bool kernel_watch_read(struct kernel_watch *w, const void *octets, size_t length,
		       void (*lost)(void *arg, const struct gid *hop), void *arg)
{
	const struct nlmsghdr *h;
	bool changed = false;
	struct neighbour n;

	for (size_t at = 0; at < length && length - at >= sizeof(*h);
	     at += NLMSG_ALIGN(h->nlmsg_len)) {
		h = (const void *)((const uint8_t *)octets + at);
		if (h->nlmsg_len < sizeof(*h) || h->nlmsg_len > length - at)
			break;
		if (h->nlmsg_type == RTM_NEWNEIGH)
			changed |= neighbour_changed(w, h);
		else if (h->nlmsg_type == RTM_NEWROUTE || h->nlmsg_type == RTM_DELROUTE)
			w->routes = true;
		else if (h->nlmsg_type == RTM_DELNEIGH && read_neighbour(w, h, &n) &&
			 find(w, &n.gid) != NULL)
			lost(arg, &n.gid);
	}
	return changed;
}

bool kernel_watch_changed(struct kernel_watch *w, nanotime now,
			  void (*lost)(void *arg, const struct gid *hop), void *arg)
{
	_Alignas(8) uint8_t octets[8192];
	bool changed = false;

	for (int i = 0; i < READS_MOST && w->fd >= 0; i++) {
		ssize_t n = recv(w->fd, octets, sizeof(octets), MSG_DONTWAIT);

		if (n >= 0)
			changed |= kernel_watch_read(w, octets, (size_t)n, lost, arg);
		else if (errno == ENOBUFS)
			changed = true; /* some were lost */
		else if (errno != EINTR)
			break;
	}
	/* A routing daemon may change many, and looking again costs two questions a queue pair. */
	if (w->routes && now >= w->routes_at) {
		w->routes = false;
		w->routes_at = now + WATCH_ROUTES;
		changed = true;
	}
	return changed;
}
