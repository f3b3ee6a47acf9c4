/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port on a Linux interface (`--netdev IFACE`): an af_packet device, created here, with the
 * interface's MAC, MTU and addresses, which refresh() follows. The kernel keeps the interface and
 * keeps answering ARP, ND and echo. It is kept from answering UDP 4791 with "port unreachable".
 */
#ifndef DRIVERS_NETDEV_H
#define DRIVERS_NETDEV_H

#include "drivers/ethdev/claim.h"
#include "drivers/ethdev/ethdev.h"

struct netdev_options {
	const char *iface;
	uint16_t queues;
	uint16_t mtu; /* 0: the interface's */
	/*
	 * Of the engine: engines of different VLANs share an interface. 0: untagged.
	 * CLAIM_LATER: ethdev_claim() will say.
	 */
	uint16_t vlan;
	struct rte_mempool *pool; /* its mbufs have room for netdev_mbuf_octets() */
	int socket;
};

struct port *netdev_open(const struct netdev_options *o, char *why, size_t why_size);

/* Octets of data (after the headroom) that mbufs need for this interface; 0: no such interface. */
uint32_t netdev_mbuf_octets(const char *iface, uint16_t mtu);

#endif
