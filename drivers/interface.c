/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/interface.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/limits.h"
#include "drivers/log.h"
#include "drivers/netlink.h"
#include "drivers/port.h"

/* ---- changes ---- */

struct mnl_socket *interface_events_open(void)
{
	return netlink_listen(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR);
}

/* Messages that were lost also count. */
bool interface_events_happened(struct mnl_socket *events)
{
	bool lost = false;

	return events != NULL && netlink_read(events, NULL, NULL, &lost);
}

void interface_events_close(struct mnl_socket *events)
{
	netlink_close(events);
}

/* ---- facts ---- */

int interface_socket(void)
{
	return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

int interface_request(int fd, uint32_t ifindex, unsigned long request, struct ifreq *r)
{
	int own = fd < 0 ? interface_socket() : -1, ret, error;
	struct ifreq name = { .ifr_ifindex = (int)ifindex };

	if (fd < 0)
		fd = own;
	ret = ioctl(fd, SIOCGIFNAME, &name);
	if (ret == 0) {
		memcpy(r->ifr_name, name.ifr_name, sizeof(r->ifr_name));
		ret = request == SIOCGIFNAME ? 0 : ioctl(fd, request, r);
	}
	error = errno;
	if (own >= 0)
		close(own);
	errno = error;
	return ret;
}

uint32_t ifindex_mtu(int fd, uint32_t ifindex)
{
	struct ifreq r = { 0 };

	return interface_request(fd, ifindex, SIOCGIFMTU, &r) == 0 ? (uint32_t)r.ifr_mtu : 0;
}

void ifindex_name(int fd, uint32_t ifindex, char name[IF_NAMESIZE])
{
	struct ifreq r = { 0 };

	if (interface_request(fd, ifindex, SIOCGIFNAME, &r) == 0)
		memcpy(name, r.ifr_name, IF_NAMESIZE);
}

static bool has_flags(int fd, uint32_t ifindex, int flags)
{
	struct ifreq r = { 0 };

	return interface_request(fd, ifindex, SIOCGIFFLAGS, &r) == 0 &&
	       (r.ifr_flags & flags) == flags;
}

bool ifindex_up(int fd, uint32_t ifindex)
{
	return has_flags(fd, ifindex, IFF_UP);
}

bool ifindex_running(int fd, uint32_t ifindex)
{
	return has_flags(fd, ifindex, IFF_UP | IFF_RUNNING);
}

uint32_t ifindex_speed(int fd, uint32_t ifindex)
{
	struct ethtool_cmd said = { .cmd = ETHTOOL_GSET };
	struct ifreq r = { .ifr_data = (void *)&said };
	uint32_t speed;

	if (interface_request(fd, ifindex, SIOCETHTOOL, &r) != 0)
		return 0;
	speed = ethtool_cmd_speed(&said);
	return speed != (uint32_t)SPEED_UNKNOWN ? speed : 0;
}

void ifindex_mac(int fd, uint32_t ifindex, struct mac *mac)
{
	struct ifreq r = { 0 };

	if (interface_request(fd, ifindex, SIOCGIFHWADDR, &r) == 0)
		memcpy(mac->octet, r.ifr_hwaddr.sa_data, sizeof(mac->octet));
}

/* How many users want it. The flag that ioctl shows is only what an administrator set. */
static uint32_t promiscuity(const struct nlmsghdr *h)
{
	const void *found = NULL;
	uint32_t count = 0;

	if (h->nlmsg_type == RTM_NEWLINK)
		found = netlink_attribute(h, sizeof(struct ifinfomsg), IFLA_PROMISCUITY,
					  sizeof(count));
	if (found != NULL)
		memcpy(&count, found, sizeof(count));
	return count;
}

bool ifindex_promiscuous(uint32_t ifindex, bool *promiscuous)
{
	struct mnl_socket *s = netlink_open(false);
	union netlink_question q;
	union netlink_answer a;
	struct ifinfomsg *link = netlink_begin(&q, RTM_GETLINK, 0, sizeof(*link));

	if (s == NULL)
		return false;
	link->ifi_index = (int)ifindex;
	*promiscuous = netlink_ask(s, &q, &a) == 0 && promiscuity(&a.header) > 0;
	netlink_close(s);
	return true;
}

/* ---- addresses ---- */

/* Collects a part of the kernel's list. */
struct address_list {
	uint32_t ifindex; /* the interface whose addresses are wanted */
	uint32_t count[3]; /* by class */
	bool full; /* there were more */
	struct {
		struct gid gid;
		uint8_t prefix;
	} address[3][LIMIT_ADDRESSES];
};

static int address_class(const struct gid *g)
{
	if (gid_is_ipv4(g))
		return 1;
	return gid_is_link_local(g) ? 0 : 2;
}

/*
 * On a point-to-point interface IFA_ADDRESS is the other end's address, so IFA_LOCAL comes first.
 */
static bool read_address(const struct nlmsghdr *h, struct gid *gid)
{
	const struct ifaddrmsg *m = mnl_nlmsg_get_payload(h);
	size_t octets = m->ifa_family == AF_INET ? 4 : 16;
	const void *found;

	if (m->ifa_family != AF_INET && m->ifa_family != AF_INET6)
		return false;
	found = netlink_attribute(h, sizeof(*m), IFA_LOCAL, octets);
	if (found == NULL)
		found = netlink_attribute(h, sizeof(*m), IFA_ADDRESS, octets);
	if (found == NULL)
		return false;
	*gid = octets == 4 ? (struct gid){ { [10] = 0xff, [11] = 0xff } } : (struct gid){ { 0 } };
	memcpy(gid->octet + 16 - octets, found, octets);
	return true;
}

static int take_address(const struct nlmsghdr *h, void *list)
{
	const struct ifaddrmsg *m = mnl_nlmsg_get_payload(h);
	struct address_list *l = list;
	struct gid gid;
	int class;

	if (h->nlmsg_type != RTM_NEWADDR || !netlink_has_body(h, sizeof(*m)) ||
	    m->ifa_index != l->ifindex || !read_address(h, &gid))
		return MNL_CB_OK;
	class = address_class(&gid);
	l->full |= l->count[0] + l->count[1] + l->count[2] >= LIMIT_ADDRESSES;
	if (l->count[class] == LIMIT_ADDRESSES)
		return MNL_CB_OK;
	l->address[class][l->count[class]].gid = gid;
	l->address[class][l->count[class]++].prefix = m->ifa_prefixlen;
	return MNL_CB_OK;
}

/*
 * Finds them by the index, because an interface may be renamed, and an IPv4 address may have any
 * label.
 */
static bool list_addresses(struct address_list *l)
{
	struct mnl_socket *s = netlink_open(false);
	union netlink_question q;
	int error;

	if (s == NULL)
		return false;
	netlink_begin(&q, RTM_GETADDR, NLM_F_DUMP, sizeof(struct ifaddrmsg));
	error = netlink_list(s, &q, take_address, l);
	netlink_close(s);
	return error == 0;
}

/* Once, until they are few again. */
static void say_full(bool full, uint32_t ifindex, struct port *p)
{
	char name[IF_NAMESIZE] = "";

	if (full && !p->has_more_addresses) {
		ifindex_name(-1, ifindex, name);
		LOG(WARNING, "%s has more than %u addresses: the engine uses the first ones only",
		    name, LIMIT_ADDRESSES);
	}
	p->has_more_addresses = full;
}

bool interface_addresses(uint32_t ifindex, struct port *p)
{
	struct address_list l;
	bool complete = false;

	for (int i = 0; i < LIMIT_ADDRESS_LOOKS && !complete; i++) {
		l = (struct address_list){ .ifindex = ifindex };
		complete = list_addresses(&l);
	}
	if (!complete)
		return false;
	say_full(l.full, ifindex, p);
	p->addresses = 0;
	memset(p->address, 0, sizeof(p->address));
	for (int class = 0; class < 3; class ++)
		for (uint32_t i = 0; i < l.count[class] && p->addresses < LIMIT_ADDRESSES; i++) {
			p->address[p->addresses].gid = l.address[class][i].gid;
			p->address[p->addresses++].prefix = l.address[class][i].prefix;
		}
	return true;
}
