/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port on a Linux interface (`--netdev IFACE`). netdev_open creates a device of net_af_xdp or
 * net_af_packet. The port has the interface's MAC, MTU and addresses, and refresh() follows them.
 * The kernel keeps the interface and keeps answering ARP, ND and echo. It is kept from answering
 * UDP 4791 with "port unreachable".
 *
 *	net_af_xdp	gets the engine's RoCE frames and nothing else (drivers/xdp); others are copied
 *			for steering rules only (aside.c)
 *	net_af_packet	gets a copy of every frame, and works on every Ethernet interface
 */
#ifndef DRIVERS_NETDEV_H
#define DRIVERS_NETDEV_H

#include "drivers/ethdev/claim.h"
#include "drivers/ethdev/ethdev.h"

enum netdev_driver {
	NETDEV_AF_PACKET,
	NETDEV_AF_XDP,
	NETDEV_AUTO /* only for netdev_choose() */
};

struct netdev_options {
	const char *iface;
	enum netdev_driver driver;
	uint16_t queues;
	uint16_t mtu; /* 0: the interface's; with AF_PACKET at most 9216 */
	/*
	 * The engine's VLAN: engines of different VLANs share an interface. 0: untagged.
	 * CLAIM_LATER: ethdev_claim() sets it.
	 */
	uint16_t vlan;
	/* only for this port; its mbufs have room for netdev_mbuf_octets() */
	struct rte_mempool *pool;
	int socket;
};

/*
 * Called before the pool is made. False: there is no such interface, it has no Ethernet frames, or
 * AF_XDP was chosen and does not work; `why` says so.
 */
bool netdev_check(const struct netdev_options *o, char *why, size_t why_size);

/* Replaces NETDEV_AUTO by AF_XDP if that works. Otherwise by AF_PACKET, and `why` says why. */
void netdev_choose(struct netdev_options *o, char *why, size_t why_size);

/* Octets of data (after the headroom) that mbufs need, with this driver; 0: no such interface. */
uint32_t netdev_mbuf_octets(const struct netdev_options *o);

/*
 * A pool for the port: n mbufs for the caller, and those that the driver keeps. NULL and rte_errno:
 * there is no memory for it.
 */
struct rte_mempool *netdev_pool(const struct netdev_options *o, const char *name, uint32_t n,
				uint32_t cache);

struct port *netdev_open(const struct netdev_options *o, char *why, size_t why_size);

#endif
