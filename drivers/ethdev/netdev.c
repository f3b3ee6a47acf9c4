/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/ethdev/netdev.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_errno.h>

#include "base/bits.h"
#include "config/limits.h"
#include "drivers/ethdev/claim.h"
#include "drivers/ethdev/private.h"
#include "drivers/interface.h"
#include "drivers/xdp/xdp.h"

struct netdev {
	char iface[IF_NAMESIZE];
	char vdev[64];
	struct xdp *xdp; /* the program in the kernel; NULL: net_af_packet */
	struct mnl_socket *events; /* of links and addresses */
	bool unread; /* an announced change has not been read yet */
	int mute[2]; /* UDP 4791, IPv4 and IPv6 */
};

/*
 * Opens a socket that never receives. Without it the kernel would answer the datagrams with "port
 * unreachable". They are the engine's, which gets them from the packet ring.
 */
static int mute_open(int family, const char *iface)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog filter = { .len = 1, .filter = &drop };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(ROCE_UDP_PORT) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT) };
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1;
	int ret;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
	setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, iface, (socklen_t)strlen(iface));
	/* An engine in another VLAN has such a socket on the same interface, too. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	ret = family == AF_INET6 ? bind(fd, (struct sockaddr *)&v6, sizeof(v6))
				 : bind(fd, (struct sockaddr *)&v4, sizeof(v4));
	if (ret == 0)
		return fd;
	close(fd); /* another socket has the port, so the kernel does not answer */
	return -1;
}

bool netdev_refresh(struct netdev *n, struct port *p)
{
	const struct ethdev *d = container_of_type(p, struct ethdev, port);
	struct port before = *p;

	n->unread |= interface_events_happened(n->events);
	if (!n->unread)
		return false;
	ifindex_mac(d->facts, p->ifindex, &p->mac);
	ifindex_name(d->facts, p->ifindex, p->netdev);
	n->unread = !interface_addresses(p->ifindex, p);
	if (n->xdp != NULL)
		xdp_set_addresses(n->xdp, p);
	return strcmp(before.netdev, p->netdev) != 0 || before.addresses != p->addresses ||
	       memcmp(&before.mac, &p->mac, sizeof(p->mac)) != 0 ||
	       memcmp(before.address, p->address, sizeof(p->address)) != 0;
}

void netdev_close(struct netdev *n)
{
	xdp_release(n->xdp);
	interface_events_close(n->events);
	for (int i = 0; i < 2; i++)
		if (n->mute[i] >= 0)
			close(n->mute[i]);
	rte_vdev_uninit(n->vdev);
	free(n);
}

static struct port *open_port(struct netdev *n, const struct netdev_options *o, char *why,
			      size_t size)
{
	struct ethdev_options e = { .name = n->vdev,
				    .queues = o->queues,
				    .mtu = netdev_mtu(o),
				    .pool = o->pool,
				    .socket = o->socket };
	int program = o->driver == NETDEV_AF_XDP ? xdp_program_file() : -1;
	int ret = netdev_make_device(o, program, n->vdev, sizeof(n->vdev));
	struct port *p = NULL;

	if (ret != 0)
		snprintf(why, size, "cannot open a packet socket on %s: %s%s", o->iface,
			 rte_strerror(-ret), geteuid() == 0 ? "" : " (it needs CAP_NET_RAW)");
	else
		p = ethdev_open(&e, why, size);
	if (ret == 0 && p == NULL)
		rte_vdev_uninit(n->vdev);
	if (program >= 0)
		close(program);
	return p;
}

/*
 * open.c's bells ring for every frame. The kernel answers on this port, so only RoCE concerns the
 * engine.
 */
static void narrow_bells(struct ethdev *d)
{
	for (uint16_t i = 0; i < d->port.queues; i++) {
		if (d->queue[i].bell >= 0)
			close(d->queue[i].bell);
		d->queue[i].bell = bell_open(d->port.ifindex, true);
	}
}

/*
 * If there is a socket beside the port, either of them rings: the bell of queue 0 is an epoll of
 * both. Without that socket, steering rules get no frames that the kernel keeps.
 */
static void ring_for_both(struct ethdev *d, struct rte_mempool *pool)
{
	struct epoll_event readable = { .events = EPOLLIN };
	int both;

	d->aside = aside_open(d->port.ifindex, pool);
	both = d->aside != NULL && d->queue[0].bell >= 0 ? epoll_create1(EPOLL_CLOEXEC) : -1;
	if (both < 0)
		return;
	if (epoll_ctl(both, EPOLL_CTL_ADD, d->queue[0].bell, &readable) != 0 ||
	    epoll_ctl(both, EPOLL_CTL_ADD, aside_fd(d->aside), &readable) != 0) {
		close(both);
		return;
	}
	d->queue[0].bell = both;
	d->queue[0].bell_is_borrowed = false;
}

static void take_interface(struct netdev *n, struct port *p, const struct claim *claim,
			   struct rte_mempool *pool)
{
	struct ethdev *d = container_of_type(p, struct ethdev, port);

	d->netdev = n;
	d->claim = *claim;
	p->kernel_answers = true;
	snprintf(p->netdev, sizeof(p->netdev), "%s", n->iface);
	ifindex_mac(d->facts, p->ifindex, &p->mac);
	interface_addresses(p->ifindex, p);
	if (n->xdp != NULL) {
		xdp_set_addresses(n->xdp, p);
		ring_for_both(d, pool);
	} else {
		narrow_bells(d);
	}
}

/* Opens the port, and takes over the program if there is one. NULL: nothing is left behind. */
static struct port *open_all(struct netdev *n, const struct netdev_options *o, char *why,
			     size_t size)
{
	struct port *p;

	p = open_port(n, o, why, size);
	if (p == NULL || o->driver != NETDEV_AF_XDP)
		return p;
	n->xdp = xdp_take(p->ifindex, why, size);
	if (n->xdp != NULL)
		return p;
	p->ops->close(p);
	rte_vdev_uninit(n->vdev);
	return NULL;
}

struct port *netdev_open(const struct netdev_options *options, char *why, size_t why_size)
{
	struct netdev_options o = *options;
	struct claim claim = claim_none();
	struct netdev *n;
	struct port *p;

	if (!netdev_check(&o, why, why_size) || !netdev_fits(&o, why, why_size))
		return NULL;
	n = calloc(1, sizeof(*n));
	if (n == NULL) {
		snprintf(why, why_size, "no memory for %s", o.iface);
		return NULL;
	}
	snprintf(n->iface, sizeof(n->iface), "%s", o.iface);
	p = claim_take(&claim, if_nametoindex(o.iface), o.vlan, why, why_size)
		    ? open_all(n, &o, why, why_size)
		    : NULL;
	if (p == NULL) {
		claim_end(&claim);
		free(n);
		return NULL;
	}
	/* First, so that no change after the addresses are read is missed. */
	n->events = interface_events_open();
	n->mute[0] = mute_open(AF_INET, n->iface);
	n->mute[1] = mute_open(AF_INET6, n->iface);
	take_interface(n, p, &claim, o.pool);
	return p;
}
