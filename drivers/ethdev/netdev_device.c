/* SPDX-License-Identifier: BSD-3-Clause */
/* The DPDK device of --netdev: which driver, how large its buffers are, and its arguments. */
#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include <rte_bus_vdev.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "config/limits.h"
#include "drivers/buffers.h"
#include "drivers/ethdev/netdev.h"
#include "drivers/ethdev/private.h"
#include "drivers/interface.h"
#include "drivers/xdp/xdp.h"

#define PAGE	     4096u
#define JUMBO	     9216u /* the largest MTU that an engine takes unasked */
#define ADDRESS_ROOM 16u /* at least what net_af_packet needs of an mbuf beyond a ring frame */

/*
 * The ring's frame size for an MTU. The driver assumes that frames are contiguous across blocks, so
 * the size must divide a block, which is whole pages: half a page, or whole pages.
 */
static uint32_t frame_size(uint32_t mtu)
{
	uint32_t need = mtu + PACKET_RING_OVERHEAD;

	return need <= PAGE / 2 ? PAGE / 2 : (uint32_t)round_up(need, PAGE);
}

uint16_t netdev_mtu(const struct netdev_options *o)
{
	uint32_t most = ifindex_mtu(-1, if_nametoindex(o->iface));

	most = MIN_OF(most, (uint32_t)UINT16_MAX);
	if (o->mtu != 0)
		return (uint16_t)MIN_OF((uint32_t)o->mtu, most);
	/* Each buffer has room for the MTU, and no RoCE packet needs the 64 KiB of lo. */
	return (uint16_t)(o->driver == NETDEV_AF_PACKET ? MIN_OF(most, JUMBO) : most);
}

uint32_t netdev_mbuf_octets(const struct netdev_options *o)
{
	uint32_t mtu = netdev_mtu(o);

	if (mtu == 0)
		return 0;
	if (o->driver == NETDEV_AF_XDP)
		return xdp_buffer_octets((uint16_t)mtu);
	/* net_af_packet refuses a pool whose mbufs hold less than a ring frame */
	return frame_size(mtu) + ADDRESS_ROOM;
}

struct rte_mempool *netdev_pool(const struct netdev_options *o, const char *name, uint32_t n,
				uint32_t cache)
{
	uint16_t room = (uint16_t)round_up(RTE_PKTMBUF_HEADROOM + netdev_mbuf_octets(o),
					   RTE_CACHE_LINE_SIZE);

	if (o->driver == NETDEV_AF_XDP)
		return pool_for_xdp(name, n, xdp_queues(if_nametoindex(o->iface)), cache, room,
				    o->socket);
	if (buffers_may_be_private(true))
		return buffers_make_private(name, n, cache, room, 0);
	return rte_pktmbuf_pool_create(name, n, cache, 0, room, o->socket);
}

/* ---- the driver ---- */

static bool xdp_works(const struct netdev_options *o, char *why, size_t why_size)
{
	uint16_t mtu = netdev_mtu(o);

	if (o->vlan != 0) {
		snprintf(why, why_size, "only an engine without --vlan can use af_xdp");
		return false;
	}
	if (mtu > XDP_MTU) {
		snprintf(why, why_size, "af_xdp carries an MTU of %u, and %s has %u: --mtu %u",
			 XDP_MTU, o->iface, mtu, XDP_MTU);
		return false;
	}
	return xdp_usable(o->iface, if_nametoindex(o->iface), MAX_OF(o->queues, 1), why, why_size);
}

/*
 * Whether no other engine has the interface. If one has, no program is tried there, because its own
 * is attached.
 */
static bool is_free(const struct netdev_options *o, char *why, size_t why_size)
{
	struct claim claim = claim_none();
	bool free = claim_take(&claim, if_nametoindex(o->iface), o->vlan, why, why_size);

	claim_end(&claim);
	return free;
}

/* Of tun, WireGuard, GRE or PPP a packet socket has frames without an Ethernet header. */
static bool is_ethernet(uint32_t ifindex)
{
	struct ifreq r = { 0 };

	return interface_request(-1, ifindex, SIOCGIFHWADDR, &r) == 0 &&
	       (r.ifr_hwaddr.sa_family == ARPHRD_ETHER ||
		r.ifr_hwaddr.sa_family == ARPHRD_LOOPBACK);
}

bool netdev_check(const struct netdev_options *o, char *why, size_t why_size)
{
	if (netdev_mtu(o) == 0 || strpbrk(o->iface, ",[]=") != NULL) {
		snprintf(why, why_size, "%s: there is no such interface (see ip link)", o->iface);
		return false;
	}
	if (!is_ethernet(if_nametoindex(o->iface))) {
		snprintf(why, why_size, "%s is not an Ethernet interface", o->iface);
		return false;
	}
	return o->driver == NETDEV_AF_PACKET ||
	       (is_free(o, why, why_size) && xdp_works(o, why, why_size));
}

void netdev_choose(struct netdev_options *o, char *why, size_t why_size)
{
	if (o->driver != NETDEV_AUTO)
		return;
	o->driver = NETDEV_AF_XDP;
	if (!netdev_check(o, why, why_size))
		o->driver = NETDEV_AF_PACKET;
}

bool netdev_fits(const struct netdev_options *o, char *why, size_t why_size)
{
	uint32_t room = rte_pktmbuf_data_room_size(o->pool);
	uint32_t need = netdev_mbuf_octets(o) + RTE_PKTMBUF_HEADROOM;
	uint16_t mtu = netdev_mtu(o);

	if (o->mtu > mtu) {
		snprintf(why, why_size,
			 "%s has an MTU of %u, not %u: raise it with ip link set %s mtu", o->iface,
			 mtu, o->mtu, o->iface);
		return false;
	}
	if (o->driver == NETDEV_AF_XDP && !pool_is_dense(o->pool)) {
		snprintf(why, why_size, "the packet buffers are not in one piece of memory");
		return false;
	}
	if (room < need)
		snprintf(why, why_size,
			 "packet buffers of %u octets are too small for %s: %u are needed", room,
			 o->iface, need);
	return room >= need;
}

/* ---- the device ---- */

static void packet_arguments(const struct netdev_options *o, char *text, size_t size)
{
	uint32_t frame = frame_size(netdev_mtu(o));
	uint32_t block = MAX_OF(frame, PAGE);
	uint32_t frames = LIMIT_NETDEV_RING / block * (block / frame);

	snprintf(text, size, "iface=%s,framesz=%u,blocksz=%u,framecnt=%u,qpairs=%u,qdisc_bypass=1",
		 o->iface, frame, block, frames, MAX_OF(o->queues, 1));
}

/*
 * Frames are copied between the kernel's buffers and ours. Zero copy was not tested on a NIC; with
 * it, the driver waits up to a second in an rx burst without frames, and an rx burst does not make
 * the kernel poll the NIC.
 */
static void xdp_arguments(const struct netdev_options *o, int program, char *text, size_t size)
{
	snprintf(text, size,
		 "iface=%s,queue_count=%u,force_copy=1,busy_budget=0,xdp_prog=/proc/self/fd/%d",
		 o->iface, xdp_queues(if_nametoindex(o->iface)), program);
}

int netdev_make_device(const struct netdev_options *o, int program, char *name, size_t size)
{
	bool xdp = o->driver == NETDEV_AF_XDP;
	char arguments[256];
	int ret = -EEXIST;

	if (xdp)
		xdp_arguments(o, program, arguments, sizeof(arguments));
	else
		packet_arguments(o, arguments, sizeof(arguments));
	/* Engines of other VLANs in this process have such devices, too. */
	for (uint32_t i = 0; ret == -EEXIST && i < LIMIT_EMBEDDED_ENGINES; i++) {
		snprintf(name, size, i == 0 ? "net_af_%s_%s" : "net_af_%s_%s.%u",
			 xdp ? "xdp" : "packet", o->iface, i);
		ret = rte_vdev_init(name, arguments);
	}
	return ret;
}
