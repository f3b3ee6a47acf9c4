/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Linux kernel's routes and neighbours, queried over rtnetlink. RTM_GETROUTE gives the next
 * hop, and RTM_GETNEIGH its MAC address. RTM_NEWNEIGH with NTF_USE makes the kernel resolve an
 * address as if it had a packet for it.
 */
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "config/limits.h"
#include "drivers/neighbour/kernel_watch.h"
#include "drivers/neighbour/table.h"
#include "drivers/netlink.h"

#define NUD_USABLE (NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY)

struct asked {
	struct gid gid;
	nanotime at; /* 0: never */
};

struct joined {
	struct gid group;
	int fd; /* 0: the entry has no group */
};

struct neighbour_kernel {
	struct mnl_socket *socket;
	uint32_t joins[2]; /* sockets that join groups for us: IPv6, IPv4 */
	int join_fd[2][LIMIT_JOIN_SOCKETS];
	struct joined joined[LIMIT_ENGINE_GROUPS];
	uint32_t ifindex;
	uint32_t sequence;
	struct asked asked[LIMIT_NEIGHBOURS_ASKED];
	nanotime now; /* of the call at hand */
	struct kernel_watch watch;
};

struct neighbour_kernel *neighbour_kernel_new(uint32_t ifindex)
{
	struct neighbour_kernel *k = calloc(1, sizeof(*k));

	if (k == NULL)
		return NULL;
	k->ifindex = ifindex;
	k->socket = netlink_open(true);
	if (k->socket == NULL) {
		free(k);
		return NULL;
	}
	kernel_watch_open(&k->watch, ifindex);
	return k;
}

void neighbour_kernel_free(struct neighbour_kernel *k)
{
	if (k == NULL)
		return;
	for (uint32_t family = 0; family < 2; family++)
		for (uint32_t i = 0; i < k->joins[family]; i++)
			close(k->join_fd[family][i]);
	kernel_watch_close(&k->watch);
	netlink_close(k->socket);
	free(k);
}

static uint8_t family_of(const struct gid *g)
{
	return gid_is_ipv4(g) ? AF_INET : AF_INET6;
}

static void put_address(union netlink_question *q, uint16_t type, const struct gid *g)
{
	if (gid_is_ipv4(g))
		netlink_put(q, type, g->octet + 12, 4);
	else
		netlink_put(q, type, g->octet, 16);
}

static int ask(struct neighbour_kernel *k, union netlink_question *q, union netlink_answer *a)
{
	q->header.nlmsg_seq = ++k->sequence;
	return netlink_ask(k->socket, q, a);
}

static bool find_attribute(const struct nlmsghdr *h, size_t body, uint16_t type, void *value,
			   size_t octets)
{
	const void *found = netlink_attribute(h, body, type, octets);

	if (found != NULL)
		memcpy(value, found, octets);
	return found != NULL;
}

/* The gateway of a route, which may be of the other family (RTA_VIA, RFC 5549). */
static void read_gateway(const struct nlmsghdr *h, uint8_t family, struct gid *hop)
{
	uint8_t via[18], octets[16];

	if (family == AF_INET6) {
		find_attribute(h, sizeof(struct rtmsg), RTA_GATEWAY, hop->octet, 16);
	} else if (find_attribute(h, sizeof(struct rtmsg), RTA_GATEWAY, octets, 4)) {
		*hop = gid_of_ipv4(octets);
	} else if (find_attribute(h, sizeof(struct rtmsg), RTA_VIA, via, sizeof(via))) {
		memcpy(hop->octet, via + 2, 16);
	}
}

/* IPv6 answers with a route that says why it leads nowhere, IPv4 with an error alone. */
static int error_of_route(const struct nlmsghdr *h)
{
	struct rta_cacheinfo info;

	if (h->nlmsg_type != RTM_NEWROUTE || !netlink_has_body(h, sizeof(struct rtmsg)))
		return EHOSTUNREACH;
	if (find_attribute(h, sizeof(struct rtmsg), RTA_CACHEINFO, &info, sizeof(info)))
		return -info.rta_error;
	return 0;
}

/* What is asked about a route. */
struct query_route {
	const struct gid *to;
	const struct gid *from; /* NULL: any address */
	uint32_t ifindex; /* 0: any interface */
	uint32_t flags;
};

static int ask_route(struct neighbour_kernel *k, const struct query_route *r,
		     union netlink_answer *a)
{
	union netlink_question q;
	struct rtmsg *route = netlink_begin(&q, RTM_GETROUTE, 0, sizeof(*route));
	int error;

	route->rtm_family = family_of(r->to);
	route->rtm_dst_len = gid_is_ipv4(r->to) ? 32 : 128;
	route->rtm_flags = r->flags;
	put_address(&q, RTA_DST, r->to);
	if (r->from != NULL) {
		route->rtm_src_len = route->rtm_dst_len;
		put_address(&q, RTA_SRC, r->from);
	}
	if (r->ifindex != 0)
		netlink_put(&q, RTA_OIF, &r->ifindex, 4);
	error = ask(k, &q, a);
	return error != 0 ? error : error_of_route(&a->header);
}

static bool is_unicast(const union netlink_answer *a)
{
	const struct rtmsg *route = mnl_nlmsg_get_payload(&a->header);

	return route->rtm_type == RTN_UNICAST;
}

/* Policy rules may be for a source, and so may IPv6 routes. */
static int next_hop(struct neighbour_kernel *k, const struct gid *from, const struct gid *gid,
		    struct gid *hop)
{
	bool same_family = from != NULL && gid_is_ipv4(from) == gid_is_ipv4(gid);
	struct query_route r = { gid, same_family ? from : NULL, k->ifindex, 0 };
	union netlink_answer a;

	if (ask_route(k, &r, &a) != 0 || !is_unicast(&a))
		return EHOSTUNREACH;
	*hop = *gid;
	read_gateway(&a.header, family_of(gid), hop);
	return 0;
}

static bool leads_out_of(const union netlink_answer *a, uint32_t ifindex)
{
	uint32_t out = 0;

	find_attribute(&a->header, sizeof(struct rtmsg), RTA_OIF, &out, sizeof(out));
	return out == ifindex && is_unicast(a);
}

/*
 * Another interface is preferred, or none, but there is a route out of ours, too. Without RTM_F_FIB_MATCH,
 * IPv4 takes everything for on link that has no route out of the interface.
 */
static int ask_second_route(struct neighbour_kernel *k, const struct gid *gid,
			    const struct gid *from, union netlink_answer *a)
{
	struct query_route r = { gid, from, k->ifindex, RTM_F_FIB_MATCH };

	if (ask_route(k, &r, a) != 0 || !is_unicast(a))
		return ENODEV;
	r.flags = 0;
	return ask_route(k, &r, a);
}

/* Whether it says what the kernel knows of the destination, and not that the question failed. */
static bool is_verdict(int error)
{
	return error == ENETUNREACH || error == EHOSTUNREACH || error == EINVAL ||
	       error == EACCES || error == ENODEV;
}

/*
 * The kernel leads elsewhere, or nowhere. But an engine has this interface only, and rules may be for
 * it, or for its address.
 */
static int ask_for_ours(struct neighbour_kernel *k, const struct gid *gid, struct gid *near,
			union netlink_answer *a)
{
	const struct gid none = { { 0 } };
	int error = ask_second_route(k, gid, NULL, a);

	if (error != 0 && !gid_equal(near, &none))
		return ask_second_route(k, gid, near, a);
	*near = none;
	return error;
}

int neighbour_kernel_source(struct neighbour_kernel *k, const struct gid *gid, struct gid *source)
{
	/* A link-local destination is on every link, so the kernel must be told which. */
	bool on_link = gid_is_link_local(gid);
	struct query_route r = { .to = gid, .ifindex = on_link ? k->ifindex : 0 };
	union netlink_answer a;
	struct gid near = *source;
	uint8_t octets[4];
	int error = ask_route(k, &r, &a), second;

	memset(source, 0, sizeof(*source));
	if (!on_link && (error == 0 ? !leads_out_of(&a, k->ifindex) : is_verdict(error))) {
		second = ask_for_ours(k, gid, &near, &a);
		if (second != 0)
			return error != 0 ? error : ENODEV;
		*source = near;
	} else if (error != 0) {
		return 0;
	}
	if (!gid_is_ipv4(gid))
		find_attribute(&a.header, sizeof(struct rtmsg), RTA_PREFSRC, source->octet, 16);
	else if (find_attribute(&a.header, sizeof(struct rtmsg), RTA_PREFSRC, octets, 4))
		*source = gid_of_ipv4(octets);
	return 0;
}

static int neighbour_request(struct neighbour_kernel *k, const struct gid *hop, uint16_t type,
			     uint16_t flags, uint8_t ndm_flags, union netlink_answer *a)
{
	union netlink_question q;
	struct ndmsg *n = netlink_begin(&q, type, flags, sizeof(*n));

	n->ndm_family = family_of(hop);
	n->ndm_ifindex = (int)k->ifindex;
	n->ndm_flags = ndm_flags;
	put_address(&q, NDA_DST, hop);
	return ask(k, &q, a);
}

/*
 * Returns the entry's state (NUD_NONE if there is none). If the entry is usable, also gives its MAC
 * address.
 */
static uint16_t ask_neighbour(struct neighbour_kernel *k, const struct gid *hop, struct mac *mac)
{
	union netlink_answer a;
	const struct ndmsg *n;

	if (neighbour_request(k, hop, RTM_GETNEIGH, 0, 0, &a) != 0 ||
	    a.header.nlmsg_type != RTM_NEWNEIGH || !netlink_has_body(&a.header, sizeof(*n)))
		return NUD_NONE;
	n = mnl_nlmsg_get_payload(&a.header);
	if ((n->ndm_state & NUD_USABLE) != 0 &&
	    !find_attribute(&a.header, sizeof(*n), NDA_LLADDR, mac->octet, 6))
		return NUD_NONE;
	return n->ndm_state;
}

static void make_kernel_resolve(struct neighbour_kernel *k, const struct gid *hop)
{
	union netlink_answer a;

	neighbour_request(k, hop, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE | NLM_F_ACK, NTF_USE,
			  &a);
}

static struct asked *asked_slot(struct neighbour_kernel *k, const struct gid *hop)
{
	struct asked *oldest = &k->asked[0];

	for (uint32_t i = 0; i < LIMIT_NEIGHBOURS_ASKED; i++) {
		if (gid_equal(&k->asked[i].gid, hop))
			return &k->asked[i];
		if (k->asked[i].at < oldest->at)
			oldest = &k->asked[i];
	}
	*oldest = (struct asked){ .gid = *hop };
	return oldest;
}

/*
 * For a missing, stale or failed entry: tells the kernel, once in an interval, that the neighbour
 * is needed.
 */
static void ask_once(struct neighbour_kernel *k, const struct gid *hop, nanotime now)
{
	struct asked *asked = asked_slot(k, hop);

	if (asked->at != 0 && now - asked->at < LIMIT_NEIGHBOUR_INTERVAL)
		return;
	make_kernel_resolve(k, hop);
	asked->at = now;
}

int neighbour_kernel_resolve(struct neighbour_kernel *k, const struct gid *from,
			     const struct gid *gid, nanotime now, struct mac *mac)
{
	struct asked *asked;
	uint16_t state;
	struct gid hop;

	if (gid_is_unspecified(gid) || next_hop(k, from, gid, &hop) != 0)
		return EHOSTUNREACH;
	state = ask_neighbour(k, &hop, mac);
	if ((state & NUD_USABLE) != 0)
		kernel_watch_put(&k->watch, &hop, mac);
	if ((state & NUD_USABLE & ~NUD_STALE) != 0)
		return 0;
	if (state == NUD_FAILED)
		kernel_watch_forget(&k->watch, &hop);
	asked = asked_slot(k, &hop);
	if (state == NUD_FAILED && asked->at != 0 && now - asked->at < LIMIT_NEIGHBOUR_FAILED_HOLD)
		return EHOSTUNREACH;
	ask_once(k, &hop, now);
	if ((state & NUD_STALE) != 0)
		return 0;
	/*
	 * The kernel had no use for the entry and dropped it. The old answer serves until there is
	 * a new one.
	 */
	return kernel_watch_get(&k->watch, &hop, mac) ? 0 : EINPROGRESS;
}

static void look_for(void *arg, const struct gid *hop)
{
	struct neighbour_kernel *k = arg;

	ask_once(k, hop, k->now);
}

bool neighbour_kernel_changed(struct neighbour_kernel *k, nanotime now)
{
	k->now = now;
	return kernel_watch_changed(&k->watch, now, look_for, k);
}

/* ---- groups: the kernel reports them, and the interface lets their frames through ---- */

static int membership(const struct neighbour_kernel *k, int fd, const struct gid *group, bool joins)
{
	struct ipv6_mreq six = { .ipv6mr_interface = k->ifindex };
	struct ip_mreqn four = { .imr_ifindex = (int)k->ifindex };

	memcpy(&four.imr_multiaddr, group->octet + 12, 4);
	memcpy(&six.ipv6mr_multiaddr, group->octet, 16);
	if (gid_is_ipv4(group))
		return setsockopt(fd, IPPROTO_IP, joins ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP,
				  &four, sizeof(four));
	return setsockopt(fd, IPPROTO_IPV6, joins ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &six,
			  sizeof(six));
}

/* Joins with the first socket that can join one more group. Returns 0, or an errno. */
static int join_by_some(struct neighbour_kernel *k, const struct gid *group, int *fd)
{
	uint32_t family = gid_is_ipv4(group);

	for (uint32_t i = 0; i < LIMIT_JOIN_SOCKETS; i++) {
		if (i == k->joins[family]) {
			*fd = socket(family_of(group), SOCK_DGRAM | SOCK_CLOEXEC, 0);
			if (*fd < 0)
				return errno;
			k->join_fd[family][k->joins[family]++] = *fd;
		}
		*fd = k->join_fd[family][i];
		if (membership(k, *fd, group, true) == 0)
			return 0;
		/* Only the error of a full socket can be different for the next one. */
		if (errno != ENOBUFS && errno != ENOMEM)
			return errno;
	}
	return ENOBUFS;
}

int neighbour_kernel_join(struct neighbour_kernel *k, const struct gid *group)
{
	struct joined *free_slot = NULL;
	int error, fd;

	for (uint32_t i = 0; i < LIMIT_ENGINE_GROUPS; i++) {
		if (k->joined[i].fd == 0)
			free_slot = free_slot != NULL ? free_slot : &k->joined[i];
		else if (gid_equal(&k->joined[i].group, group))
			return 0;
	}
	if (free_slot == NULL)
		return ENOSPC;
	error = join_by_some(k, group, &fd);
	if (error == 0)
		*free_slot = (struct joined){ *group, fd };
	return error;
}

void neighbour_kernel_leave(struct neighbour_kernel *k, const struct gid *group)
{
	for (uint32_t i = 0; i < LIMIT_ENGINE_GROUPS; i++) {
		if (k->joined[i].fd == 0 || !gid_equal(&k->joined[i].group, group))
			continue;
		membership(k, k->joined[i].fd, group, false);
		k->joined[i].fd = 0;
		return;
	}
}
