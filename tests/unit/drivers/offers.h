/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A DPDK driver without a device. It announces what the test tells it to, and remembers what it was
 * asked for. It has three names: net_offers, and those of drivers that are treated specially:
 * net_virtio_offers as virtio's, net_e1000_em, net_ixgbe.
 */
#ifndef TESTS_UNIT_DRIVERS_OFFERS_H
#define TESTS_UNIT_DRIVERS_OFFERS_H

#include <stddef.h>
#include <stdint.h>

#include <rte_ether.h>

#include "drivers/ethdev/ethdev.h"

#define OFFERS_FRAMES 8u
#define OFFERS_GROUPS 160u

struct offers {
	/* set before the port is opened */
	uint64_t rx_capa, tx_capa;
	uint16_t queues; /* queues that are announced, and wanted; 0: one */
	uint16_t least, most; /* descriptors of a ring; 0: any number */
	uint16_t preferred; /* 0: none */
	uint32_t offloads; /* that are wanted */
	bool card; /* it is on the PCI bus */
	int list_answer, all_answer; /* what set_mc_addr_list and allmulticast_enable return */
	uint32_t macs; /* addresses that its table holds beside its own; 0: none */
	int vlan_answer; /* what vlan_filter_set returns */
	/* the functions then set these */
	uint64_t rx_asked, tx_asked;
	uint16_t rx_ring, tx_ring;
	uint16_t vlan; /* the VLAN that may pass; 0: none was set */
	uint32_t groups; /* of its list, or of its table of MAC addresses */
	struct rte_ether_addr group[OFFERS_GROUPS];
	/*
	 * while it is open: the frames that it receives next (its bursts begin with rx[0]), and
	 * those that it has sent
	 */
	uint16_t rx_count, tx_count;
	struct rte_mbuf *rx[OFFERS_FRAMES], *tx[OFFERS_FRAMES];
	uint16_t tx_room; /* frames that it still takes */
	uint16_t (*prepare)(struct rte_mbuf **frames,
			    uint16_t n); /* as rte_eth_tx_prepare(); NULL: nothing to do */
};

extern struct offers offers;

#define OFFERS_POOL 8191u /* buffers */

/* Starts EAL and makes the pool. */
void offers_begin(void);
/* A buffer of that pool. */
struct rte_mbuf *offers_buffer(void);

/* A new device of this name (net_offers0, net_virtio_offers0) as the port of an engine in this VLAN, or NULL. */
struct port *offers_open(const char *name, uint16_t descriptors, uint16_t vlan, char *why,
			 size_t size);

#endif
