/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/interface.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
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
		ret = ioctl(fd, request, r);
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

static uint8_t prefix_of(const uint8_t *mask, uint32_t length)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; mask != NULL && i < length; i++)
		bits += (uint32_t)__builtin_popcount(mask[i]);
	return (uint8_t)bits;
}

static bool read_address(const struct ifaddrs *a, struct gid *gid, uint8_t *prefix)
{
	const struct sockaddr_in6 *v6 = (const void *)a->ifa_addr;
	const struct sockaddr_in6 *mask6 = (const void *)a->ifa_netmask;
	const struct sockaddr_in *v4 = (const void *)a->ifa_addr;
	const struct sockaddr_in *mask4 = (const void *)a->ifa_netmask;

	if (a->ifa_addr->sa_family == AF_INET) {
		*gid = (struct gid){ { [10] = 0xff, [11] = 0xff } };
		memcpy(gid->octet + 12, &v4->sin_addr, 4);
		*prefix = mask4 == NULL ? 32 : prefix_of((const void *)&mask4->sin_addr, 4);
		return true;
	}
	if (a->ifa_addr->sa_family != AF_INET6)
		return false;
	memcpy(gid->octet, &v6->sin6_addr, 16);
	*prefix = mask6 == NULL ? 128 : prefix_of((const void *)&mask6->sin6_addr, 16);
	return true;
}

static int address_class(const struct gid *g)
{
	if (gid_is_ipv4(g))
		return 1;
	return g->octet[0] == 0xfe && (g->octet[1] & 0xc0) == 0x80 ? 0 : 2;
}

bool interface_addresses(const char *name, struct port *p)
{
	struct ifaddrs *list;

	if (getifaddrs(&list) != 0)
		return false;
	p->addresses = 0;
	memset(p->address, 0, sizeof(p->address));
	for (int class = 0; class < 3; class ++) {
		for (const struct ifaddrs *a = list; a != NULL; a = a->ifa_next) {
			struct gid gid;
			uint8_t prefix;

			if (p->addresses == LIMIT_GIDS || a->ifa_addr == NULL ||
			    strcmp(a->ifa_name, name) != 0 || !read_address(a, &gid, &prefix) ||
			    address_class(&gid) != class)
				continue;
			p->address[p->addresses].gid = gid;
			p->address[p->addresses++].prefix = prefix;
		}
	}
	freeifaddrs(list);
	return true;
}
