/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/neighbour/kernel_watch.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/neighbour/table.h"
#include "drivers/netlink.h"

#define PROBES 16u /* slots in which a hop may be */
#define GROUPS (RTMGRP_NEIGH | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE | RTMGRP_IPV4_RULE)

void kernel_watch_open(struct kernel_watch *w, uint32_t ifindex)
{
	int ipv6_rules = RTNLGRP_IPV6_RULE; /* RTMGRP_* has no name for it */

	memset(w, 0, sizeof(*w));
	w->ifindex = ifindex;
	w->socket = netlink_listen(GROUPS);
	if (w->socket != NULL)
		mnl_socket_setsockopt(w->socket, NETLINK_ADD_MEMBERSHIP, &ipv6_rules,
				      sizeof(ipv6_rules));
}

void kernel_watch_close(struct kernel_watch *w)
{
	netlink_close(w->socket);
	w->socket = NULL;
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
		const struct watched *s = &w->slot[(first + i) % LIMIT_WATCH_SLOTS];

		if (s->used && gid_equal(&s->hop, hop))
			return (struct watched *)(uintptr_t)s;
	}
	return NULL;
}

void kernel_watch_put(struct kernel_watch *w, const struct gid *hop, const struct mac *mac)
{
	struct watched *s = find(w, hop);
	uint32_t first = first_slot(hop);

	/* The announcement, which comes later, will say nothing new. */
	w->answers |= s != NULL && memcmp(&s->mac, mac, sizeof(*mac)) != 0;
	for (uint32_t i = 0; s == NULL && i < PROBES; i++)
		if (!w->slot[(first + i) % LIMIT_WATCH_SLOTS].used)
			s = &w->slot[(first + i) % LIMIT_WATCH_SLOTS];
	if (s == NULL) {
		w->overflowed = true;
		s = &w->slot[first % LIMIT_WATCH_SLOTS];
	}
	*s = (struct watched){ .hop = *hop, .mac = *mac, .used = true };
}

void kernel_watch_forget(struct kernel_watch *w, const struct gid *hop)
{
	struct watched *s = find(w, hop);

	if (s != NULL)
		s->failed = true;
}

bool kernel_watch_get(const struct kernel_watch *w, const struct gid *hop, struct mac *mac)
{
	const struct watched *s = find(w, hop);

	if (s == NULL || s->failed)
		return false;
	*mac = s->mac;
	return true;
}

/* ---- announcements ---- */

struct neighbour {
	struct gid gid;
	struct mac mac;
	bool has_mac;
};

/* False: the announcement is for another interface, or names no address. */
static bool read_neighbour(const struct kernel_watch *w, const struct nlmsghdr *h,
			   struct neighbour *n)
{
	const struct ndmsg *m = mnl_nlmsg_get_payload(h);
	const void *mac, *address = NULL;

	if (!netlink_has_body(h, sizeof(*m)) || (uint32_t)m->ndm_ifindex != w->ifindex)
		return false;
	memset(n, 0, sizeof(*n));
	mac = netlink_attribute(h, sizeof(*m), NDA_LLADDR, sizeof(n->mac));
	n->has_mac = mac != NULL;
	if (mac != NULL)
		memcpy(&n->mac, mac, sizeof(n->mac));
	if (m->ndm_family == AF_INET)
		address = netlink_attribute(h, sizeof(*m), NDA_DST, 4);
	else if (m->ndm_family == AF_INET6)
		address = netlink_attribute(h, sizeof(*m), NDA_DST, 16);
	if (address == NULL)
		return false;
	if (m->ndm_family == AF_INET)
		n->gid = gid_of_ipv4(address);
	else
		memcpy(n->gid.octet, address, 16);
	return true;
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

/* Passed to the reader of announcements, and its result. */
struct reader {
	struct kernel_watch *watch;
	void (*lost)(void *arg, const struct gid *hop);
	void *arg;
	bool changed;
};

/* A route, or a rule that says which table's routes are used. */
static bool is_about_routes(uint16_t type)
{
	return type == RTM_NEWROUTE || type == RTM_DELROUTE || type == RTM_NEWRULE ||
	       type == RTM_DELRULE;
}

static int take(const struct nlmsghdr *h, void *reader)
{
	struct reader *r = reader;
	struct neighbour n;
	struct mac mac;

	if (h->nlmsg_type == RTM_NEWNEIGH)
		r->changed |= neighbour_changed(r->watch, h);
	else if (is_about_routes(h->nlmsg_type))
		r->watch->routes = true;
	else if (h->nlmsg_type == RTM_DELNEIGH && read_neighbour(r->watch, h, &n) &&
		 kernel_watch_get(r->watch, &n.gid, &mac))
		r->lost(r->arg, &n.gid);
	return MNL_CB_OK;
}

bool kernel_watch_read(struct kernel_watch *w, const void *octets, size_t length,
		       void (*lost)(void *arg, const struct gid *hop), void *arg)
{
	struct reader r = { w, lost, arg, false };

	mnl_cb_run(octets, length, 0, 0, take, &r);
	return r.changed;
}

bool kernel_watch_changed(struct kernel_watch *w, nanotime now,
			  void (*lost)(void *arg, const struct gid *hop), void *arg)
{
	struct reader r = { w, lost, arg, w->answers };

	w->answers = false;
	if (w->socket != NULL)
		netlink_read(w->socket, take, &r, &r.changed); /* a lost message may be a change */
	/*
	 * Waits, because a routing daemon may change many routes, and each look costs two queries
	 * for each queue pair.
	 */
	if (w->routes && now >= w->routes_at) {
		w->routes = false;
		w->routes_at = now + LIMIT_WATCH_ROUTES;
		r.changed = true;
	}
	return r.changed;
}
