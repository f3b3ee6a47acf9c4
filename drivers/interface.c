/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/interface.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drivers/port.h"

/* ---- changes ---- */

int interface_events_open(void)
{
	struct sockaddr_nl at = { .nl_family = AF_NETLINK,
				  .nl_groups =
					  RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Lost messages (ENOBUFS) count as such. */
bool interface_events_happened(int fd)
{
	bool happened = false;
	uint8_t octets[8192];

	for (int i = 0; i < 256 && fd >= 0; i++) {
		ssize_t n = recv(fd, octets, sizeof(octets), MSG_DONTWAIT);

		if (n < 0 && errno != ENOBUFS && errno != EINTR)
			break;
		happened = true;
	}
	return happened;
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

/* How many want it: the flag that ioctl shows is only what an administrator set. */
static uint32_t promiscuity(const struct nlmsghdr *h, size_t octets)
{
	const struct rtattr *a = (const void *)((const uint8_t *)NLMSG_DATA(h) +
						NLMSG_ALIGN(sizeof(struct ifinfomsg)));
	uint32_t count = 0;
	int left;

	if (!NLMSG_OK(h, octets) || h->nlmsg_type != RTM_NEWLINK ||
	    h->nlmsg_len < NLMSG_SPACE(sizeof(struct ifinfomsg)))
		return 0;
	left = (int)(h->nlmsg_len - NLMSG_SPACE(sizeof(struct ifinfomsg)));
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == IFLA_PROMISCUITY && RTA_PAYLOAD(a) >= sizeof(count))
			memcpy(&count, RTA_DATA(a), sizeof(count));
	return count;
}

bool ifindex_promiscuous(uint32_t ifindex, bool *promiscuous)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
	} ask = { .header = { .nlmsg_len = sizeof(ask),
			      .nlmsg_type = RTM_GETLINK,
			      .nlmsg_flags = NLM_F_REQUEST },
		  .link = { .ifi_index = (int)ifindex } };
	_Alignas(8) uint8_t answer[16384];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	uint32_t count = 0;

	if (fd < 0)
		return false;
	/* the kernel answers inside send() */
	if (send(fd, &ask, sizeof(ask), 0) == sizeof(ask)) {
		ssize_t n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);

		count = n > 0 ? promiscuity((void *)answer, (size_t)n) : 0;
	}
	close(fd);
	*promiscuous = count > 0;
	return true;
}

/* ---- addresses ---- */

#define ADDRESS_LOOKS 4 /* at a list that changes while it is read */

/* What a part of the kernel's list says. */
struct address_list {
	uint32_t ifindex; /* whose are wanted */
	uint32_t count[3]; /* by class */
	struct {
		struct gid gid;
		uint8_t prefix;
	} address[3][LIMIT_GIDS];
	bool done, failed;
};

static int address_class(const struct gid *g)
{
	if (gid_is_ipv4(g))
		return 1;
	return g->octet[0] == 0xfe && (g->octet[1] & 0xc0) == 0x80 ? 0 : 2;
}

/* Of a point-to-point interface IFA_ADDRESS is the other end's. */
static bool read_address(const struct nlmsghdr *h, struct gid *gid)
{
	const struct ifaddrmsg *m = NLMSG_DATA(h);
	size_t octets = m->ifa_family == AF_INET ? 4 : 16;
	const struct rtattr *found = NULL;
	int left = (int)(h->nlmsg_len - NLMSG_SPACE(sizeof(*m)));

	if (m->ifa_family != AF_INET && m->ifa_family != AF_INET6)
		return false;
	for (const struct rtattr *a = IFA_RTA(m); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (RTA_PAYLOAD(a) == octets &&
		    (a->rta_type == IFA_LOCAL || (a->rta_type == IFA_ADDRESS && found == NULL)))
			found = a;
	if (found == NULL)
		return false;
	*gid = octets == 4 ? (struct gid){ { [10] = 0xff, [11] = 0xff } } : (struct gid){ { 0 } };
	memcpy(gid->octet + 16 - octets, RTA_DATA(found), octets);
	return true;
}

static void take_address(struct address_list *l, const struct nlmsghdr *h)
{
	const struct ifaddrmsg *m = NLMSG_DATA(h);
	struct gid gid;
	int class;

	if (h->nlmsg_type != RTM_NEWADDR || h->nlmsg_len < NLMSG_SPACE(sizeof(*m)) ||
	    m->ifa_index != l->ifindex || !read_address(h, &gid))
		return;
	class = address_class(&gid);
	if (l->count[class] == LIMIT_GIDS)
		return;
	l->address[class][l->count[class]].gid = gid;
	l->address[class][l->count[class]++].prefix = m->ifa_prefixlen;
}

static void take_part(struct address_list *l, const struct nlmsghdr *h, size_t octets)
{
	for (; NLMSG_OK(h, octets); h = NLMSG_NEXT(h, octets)) {
		if (h->nlmsg_type == NLMSG_ERROR || (h->nlmsg_flags & NLM_F_DUMP_INTR))
			l->failed = true; /* the list changed meanwhile: perhaps not all is in it */
		if (h->nlmsg_type == NLMSG_ERROR || h->nlmsg_type == NLMSG_DONE)
			l->done = true;
		else
			take_address(l, h);
	}
}

/* By its index: an interface may get another name, and an IPv4 address has a label, which may be any. */
static void list_addresses(struct address_list *l)
{
	struct {
		struct nlmsghdr header;
		struct ifaddrmsg address;
	} ask = { .header = { .nlmsg_len = sizeof(ask),
			      .nlmsg_type = RTM_GETADDR,
			      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };
	_Alignas(8) uint8_t part[16384];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n;

	if (fd < 0 || send(fd, &ask, sizeof(ask), 0) != sizeof(ask))
		l->failed = l->done = true;
	while (!l->done) {
		/* each part is there when the last one was read */
		n = recv(fd, part, sizeof(part), MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			l->failed = l->done = true;
		else
			take_part(l, (void *)part, (size_t)n);
	}
	if (fd >= 0)
		close(fd);
}

bool interface_addresses(uint32_t ifindex, struct port *p)
{
	struct address_list l = { .failed = true };

	for (int i = 0; i < ADDRESS_LOOKS && l.failed; i++) {
		l = (struct address_list){ .ifindex = ifindex };
		list_addresses(&l);
	}
	if (l.failed)
		return false;
	p->addresses = 0;
	memset(p->address, 0, sizeof(p->address));
	for (int class = 0; class < 3; class ++)
		for (uint32_t i = 0; i < l.count[class] && p->addresses < LIMIT_GIDS; i++) {
			p->address[p->addresses].gid = l.address[class][i].gid;
			p->address[p->addresses++].prefix = l.address[class][i].prefix;
		}
	return true;
}
