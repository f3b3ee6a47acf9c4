/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the parts of drivers/ethdev; private to them. */
#ifndef DRIVERS_ETHDEV_PRIVATE_H
#define DRIVERS_ETHDEV_PRIVATE_H

#include <stdatomic.h>

#include <rte_ethdev.h>

#include "drivers/ethdev/claim.h"
#include "drivers/ethdev/ethdev.h"

struct netdev;

struct ethdev_queue {
	atomic_uint_fast64_t source_own; /* written by the queue's lcore, read by any thread */
	atomic_uint_fast64_t truncated;
	int bell; /* descriptor, or -1 */
	bool bell_is_interrupt;
} __rte_cache_aligned;

struct ethdev {
	struct port port;
	uint16_t id;
	uint16_t behind; /* the port below net_impair, otherwise id */
	uint16_t mtu; /* as opened: frames are never larger */
	uint32_t link_ifindex; /* the Linux interface behind the port; 0: none */
	int facts; /* descriptor to query the interface; -1: none */
	bool sees_own_frames;
	bool promiscuous; /* on behalf of the kernel's interface */
	bool groups_need_it; /* promiscuous for groups, which it cannot receive otherwise */
	int removed; /* eventfd: readable once the device is taken away; -1: not watched */
	const char *device; /* whose removal EAL tells, by its name there; NULL: none */
	struct netdev *netdev; /* --netdev, or NULL */
	uint32_t claims; /* the Linux interface that one engine may have; 0: none */
	struct claim claim; /* ... which keeps others away */
	struct ethdev_queue queue[LIMIT_LCORES];
};

/* The largest MTU that the port's driver and arguments allow, and how the user can raise it. */
struct carries {
	uint32_t mtu;
	char raise[128]; /* "framesz=... of net_af_packet0" */
};

void ethdev_carries(uint16_t id, const struct rte_eth_dev_info *info,
		    const struct rte_mempool *pool, struct carries *c);

/* net_impair has the properties of its lower port: replaces id and facts by those. */
void ethdev_behind(uint16_t *id, struct rte_eth_dev_info *info);

/* A tap also gives its MAC address to the kernel's end, which would then talk to itself. */
bool ethdev_shares_mac(const struct rte_eth_dev_info *info);

/* The Linux interface behind the port, 0 if none. */
uint32_t ethdev_ifindex(uint16_t id, const struct rte_eth_dev_info *info);
/* ... also if it says nothing of the port's link: that of net_pcap. */
uint32_t ethdev_claims(uint16_t id, const struct rte_eth_dev_info *info);

/* Octets before the IP packet in a packet ring's frame: tpacket2 header, address, Ethernet. */
#define PACKET_RING_OVERHEAD 80u

/* A packet socket that becomes readable when frames arrive (roce_only: on UDP 4791). */
int bell_open(uint32_t ifindex, bool roce_only);
bool bell_filter(int fd, bool roce_only);
void bell_silence(int fd);

/* removal.c */
void removal_watch(struct ethdev *d, const struct rte_eth_dev_info *info);
void removal_forget(struct ethdev *d);
bool removal_told(const struct ethdev *d);

/* kernel.c: creates the interface of --kernel-interface. False: see `why`. */
bool kernel_join(struct ethdev *d, const char *name, char *why, size_t why_size);
/*
 * Synchronises interface and port: *up and *mtu are the port's on entry, and what programs see on
 * return. True: addresses or the MAC address changed.
 */
bool kernel_follow(struct ethdev *d, bool *up, uint16_t *mtu);

/* netdev.c */
bool netdev_refresh(struct netdev *n, struct port *p);
void netdev_close(struct netdev *n);

#endif
