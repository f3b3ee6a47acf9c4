/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of drivers/ethdev share; nobody else includes it. */
#ifndef DRIVERS_ETHDEV_PRIVATE_H
#define DRIVERS_ETHDEV_PRIVATE_H

#include <stdatomic.h>

#include <rte_ethdev.h>

#include "drivers/ethdev/ethdev.h"

struct netdev;

struct ethdev_queue {
	atomic_uint_fast64_t source_own; /* written by the queue's lcore alone */
	atomic_uint_fast64_t truncated;
	int bell; /* or -1 */
	bool bell_is_interrupt;
} __rte_cache_aligned;

struct ethdev {
	struct port port;
	uint16_t id;
	uint16_t behind; /* the port that net_impair stands on, else id */
	uint16_t mtu; /* as it was opened: frames are never larger, whatever is behind the port */
	uint32_t link_ifindex; /* the Linux interface behind it, 0: none */
	int facts; /* what is asked about it with, or -1 */
	bool sees_own_frames;
	bool promiscuous; /* for the kernel interface */
	bool groups_need_it; /* always promiscuous: it cannot receive groups otherwise */
	struct netdev *netdev; /* --netdev, or NULL */
	struct ethdev_queue queue[LIMIT_LCORES];
};

/* What the port's driver and arguments let through, and how the user can raise it. */
struct carries {
	uint32_t mtu;
	char raise[128]; /* "framesz=... of net_af_packet0" */
};

void ethdev_carries(uint16_t id, const struct rte_eth_dev_info *info,
		    const struct rte_mempool *pool, struct carries *c);

/* net_impair is as its lower port is: the id and facts of that one in their place. */
void ethdev_behind(uint16_t *id, struct rte_eth_dev_info *info);

/* A tap gives its MAC address to the kernel's end too, which would then talk to itself. */
bool ethdev_shares_mac(const struct rte_eth_dev_info *info);

/* The Linux interface behind the port, 0 if none. */
uint32_t ethdev_ifindex(uint16_t id, const struct rte_eth_dev_info *info);

/* Octets of a packet ring's frame in front of the IP packet: tpacket2 header, address, Ethernet. */
#define PACKET_RING_OVERHEAD 80u

/* A packet socket that becomes readable when frames arrive; only UDP 4791 if roce_only. */
int bell_open(uint32_t ifindex, bool roce_only);
bool bell_filter(int fd, bool roce_only);
void bell_silence(int fd);

/* kernel.c: the interface of --kernel-interface. False: `why`. */
bool kernel_join(struct ethdev *d, const char *name, char *why, size_t why_size);
/*
 * It follows the port (*up, *mtu are as the port has them) and the port follows it (they are as
 * programs see them then). True: addresses or the MAC address changed.
 */
bool kernel_follow(struct ethdev *d, bool *up, uint16_t *mtu);

/* netdev.c */
bool netdev_refresh(struct netdev *n, struct port *p);
void netdev_close(struct netdev *n);

#endif
