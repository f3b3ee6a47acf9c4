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
#include <sys/socket.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "config/limits.h"
#include "drivers/ethdev/claim.h"
#include "drivers/ethdev/private.h"
#include "drivers/interface.h"

#define PAGE	     4096u
#define ADDRESS_ROOM 16u /* what the driver needs of an mbuf beyond a ring frame, or more */

struct netdev {
	char iface[IF_NAMESIZE];
	char vdev[64];
	struct mnl_socket *events; /* of links and addresses */
	bool unread; /* an announced change was not read yet */
	int mute[2]; /* UDP 4791, IPv4 and IPv6 */
};

/*
 * The ring's frame size for an MTU. The driver assumes that frames are contiguous across blocks, so
 * the size must divide a block, which is whole pages: half a page, or whole pages.
 */
static uint32_t frame_size(uint32_t mtu)
{
	uint32_t need = mtu + PACKET_RING_OVERHEAD;

	return need <= PAGE / 2 ? PAGE / 2 : (uint32_t)round_up(need, PAGE);
}

static uint32_t wanted_mtu(const char *iface, uint16_t mtu)
{
	uint32_t most = ifindex_mtu(-1, if_nametoindex(iface));

	most = MIN_OF(most, (uint32_t)UINT16_MAX);
	return mtu != 0 && mtu < most ? mtu : most;
}

uint32_t netdev_mbuf_octets(const char *iface, uint16_t mtu)
{
	uint32_t wanted = wanted_mtu(iface, mtu);

	/* net_af_packet refuses a pool whose mbufs hold less than a ring frame */
	return wanted == 0 ? 0 : frame_size(wanted) + ADDRESS_ROOM;
}

/*
 * A socket that never receives: the datagrams are the engine's, which gets them from the packet
 * ring.
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
	/* another engine on the same interface, in another VLAN, has such a socket, too */
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
	return strcmp(before.netdev, p->netdev) != 0 || before.addresses != p->addresses ||
	       memcmp(&before.mac, &p->mac, sizeof(p->mac)) != 0 ||
	       memcmp(before.address, p->address, sizeof(p->address)) != 0;
}

void netdev_close(struct netdev *n)
{
	interface_events_close(n->events);
	for (int i = 0; i < 2; i++)
		if (n->mute[i] >= 0)
			close(n->mute[i]);
	rte_vdev_uninit(n->vdev);
	free(n);
}

/* Engines of other VLANs in this process have such devices, too. */
static int make_vdev(struct netdev *n, uint32_t mtu, uint16_t queues)
{
	uint32_t frame = frame_size(mtu);
	uint32_t block = MAX_OF(frame, PAGE);
	uint32_t frames = LIMIT_NETDEV_RING / block * (block / frame);
	char arguments[256];
	int ret = -EEXIST;

	snprintf(arguments, sizeof(arguments),
		 "iface=%s,framesz=%u,blocksz=%u,framecnt=%u,qpairs=%u,qdisc_bypass=1", n->iface,
		 frame, block, frames, queues);
	for (uint32_t i = 0; ret == -EEXIST && i < LIMIT_EMBEDDED_ENGINES; i++) {
		snprintf(n->vdev, sizeof(n->vdev),
			 i == 0 ? "net_af_packet_%s" : "net_af_packet_%s.%u", n->iface, i);
		ret = rte_vdev_init(n->vdev, arguments);
	}
	return ret;
}

static bool is_usable(const struct netdev_options *o, char *why, size_t size)
{
	uint32_t mtu = wanted_mtu(o->iface, o->mtu);
	uint32_t room;

	if (mtu == 0 || strpbrk(o->iface, ",[]=") != NULL) {
		snprintf(why, size, "no interface %s (see ip link)", o->iface);
		return false;
	}
	if (o->mtu > mtu) {
		snprintf(why, size, "%s has an MTU of %u, not %u: raise it with ip link set %s mtu",
			 o->iface, mtu, o->mtu, o->iface);
		return false;
	}
	room = rte_pktmbuf_data_room_size(o->pool);
	if (room < netdev_mbuf_octets(o->iface, o->mtu) + RTE_PKTMBUF_HEADROOM) {
		snprintf(why, size,
			 "packet buffers of %u octets are too small for %s: %u are needed", room,
			 o->iface, netdev_mbuf_octets(o->iface, o->mtu) + RTE_PKTMBUF_HEADROOM);
		return false;
	}
	return true;
}

static struct port *open_port(struct netdev *n, const struct netdev_options *o, char *why,
			      size_t size)
{
	struct ethdev_options e = { .name = n->vdev,
				    .queues = o->queues,
				    .mtu = (uint16_t)wanted_mtu(o->iface, o->mtu),
				    .pool = o->pool,
				    .socket = o->socket };
	int ret = make_vdev(n, e.mtu, MAX_OF(o->queues, 1));
	struct port *p;

	if (ret != 0) {
		snprintf(why, size, "cannot open a packet socket on %s: %s%s", o->iface,
			 rte_strerror(-ret), geteuid() == 0 ? "" : " (it needs CAP_NET_RAW)");
		return NULL;
	}
	p = ethdev_open(&e, why, size);
	if (p == NULL)
		rte_vdev_uninit(n->vdev);
	return p;
}

/* The bells ring for every frame at first. If the kernel answers on this port only RoCE is ours. */
static void narrow_bells(struct ethdev *d)
{
	for (uint16_t i = 0; i < d->port.queues; i++) {
		if (d->queue[i].bell >= 0)
			close(d->queue[i].bell);
		d->queue[i].bell = bell_open(d->port.ifindex, true);
	}
}

static void take_interface(struct netdev *n, struct port *p, const struct claim *claim)
{
	struct ethdev *d = container_of_type(p, struct ethdev, port);

	d->netdev = n;
	d->claim = *claim;
	p->kernel_answers = true;
	snprintf(p->netdev, sizeof(p->netdev), "%s", n->iface);
	ifindex_mac(d->facts, p->ifindex, &p->mac);
	interface_addresses(p->ifindex, p);
	narrow_bells(d);
}

struct port *netdev_open(const struct netdev_options *o, char *why, size_t why_size)
{
	struct claim claim = claim_none();
	struct netdev *n;
	struct port *p;

	if (!is_usable(o, why, why_size))
		return NULL;
	n = calloc(1, sizeof(*n));
	if (n == NULL) {
		snprintf(why, why_size, "no memory for %s", o->iface);
		return NULL;
	}
	snprintf(n->iface, sizeof(n->iface), "%s", o->iface);
	p = claim_take(&claim, if_nametoindex(o->iface), o->vlan, why, why_size)
		    ? open_port(n, o, why, why_size)
		    : NULL;
	if (p == NULL) {
		claim_end(&claim);
		free(n);
		return NULL;
	}
	/* before the addresses are read, so that no change is missed in between */
	n->events = interface_events_open();
	n->mute[0] = mute_open(AF_INET, n->iface);
	n->mute[1] = mute_open(AF_INET6, n->iface);
	take_interface(n, p, &claim);
	return p;
}
