/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port as the engine sees it: bursts of mbufs in and out, a few facts, and a bell to sleep on.
 * The drivers make one from a DPDK ethdev (drivers/ethdev). A program that keeps its own port makes
 * one from two functions of its own (embedding). A same-host engine has none (NULL).
 */
#ifndef DRIVERS_PORT_H
#define DRIVERS_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"
#include "config/limits.h"
#include "wire/envelope.h"

struct kernel_interface;
struct rte_mbuf;
struct rte_mempool;
struct port;

/* Which frames a port should let through besides those to its own address. It keeps the two texts. */
struct port_hears {
	const struct mac *group; /* multicast addresses; others need not come */
	uint32_t groups;
	const char *all_groups; /* why every group is wanted, or NULL */
	const char *everything; /* why frames to every host are wanted, or NULL */
};

struct port_ops {
	/*
	 * Receives at most n frames of this queue; the engine owns the mbufs. Called by the queue's
	 * lcore.
	 */
	uint16_t (*rx_burst)(struct port *p, uint16_t queue, struct rte_mbuf **frames, uint16_t n);
	/*
	 * Accepts the first k <= n frames and owns them from then on; the engine keeps the others.
	 */
	uint16_t (*tx_burst)(struct port *p, uint16_t queue, struct rte_mbuf **frames, uint16_t n);
	/*
	 * A descriptor that becomes readable when frames arrive (already armed); -1: the engine
	 * sleeps for `nap` at most. Called before an lcore sleeps; `drain` after it woke.
	 */
	int (*bell_fd)(struct port *p, uint16_t queue);
	void (*bell_drain)(struct port *p, uint16_t queue);
	/*
	 * Control path: whether the bell also rings for frames that are not RoCE, which steering
	 * rules may want. NULL: it always does, or there is no bell.
	 */
	void (*bell_widen)(struct port *p, bool every_frame);
	/* Control thread: what else is wanted than frames to its own address. NULL: all groups come. */
	void (*hear)(struct port *p, const struct port_hears *h);
	/*
	 * Control path: the queue at which frames arrive that come from this UDP port of `from`,
	 * and go to port 4791 of `to`; UINT16_MAX: not known. NULL: the same.
	 */
	uint16_t (*queue_of)(struct port *p, const struct gid *from, const struct gid *to,
			     uint16_t source_port);
	/* Control thread, about every 100 ms: true if link, MTU or addresses may have changed. */
	bool (*refresh)(struct port *p);
	void (*close)(struct port *p);
};

struct port {
	const struct port_ops *ops;
	char name[64];
	struct mac mac;
	uint16_t mtu; /* Ethernet MTU in octets, for both directions */
	uint32_t offloads; /* OFFLOAD_* that it does itself; fixed while it is open */
	uint16_t queues; /* rx/tx queue pairs, >= 1; lcore i uses queue i if there is one */
	int socket; /* NUMA node of DPDK's memory for it, -1 any */
	int node; /* NUMA node of the device, -1 unknown, or there is none */
	uint32_t speed; /* of the link, Mbit/s; 0: unknown */
	bool link_up;
	/* atomic, the three of them: the control thread changes them */
	const char *
		hears_all; /* why frames to every group come; NULL: only those to `groups` of them */
	const char *hears_others; /* why frames to other hosts come, too; NULL: they do not */
	uint32_t groups;
	bool taken; /* an engine has it */
	bool kernel_answers; /* the Linux kernel owns the addresses and answers ARP, ND and echo */
	/*
	 * the Linux interface whose neighbours and routes are used, by its present name; "" if none
	 */
	char netdev[16];
	uint32_t ifindex;
	struct kernel_interface *kernel; /* gets frames that are not RoCE; NULL: none */
	nanotime nap; /* how long an idle lcore may sleep without a bell */
	/* addresses of the interface (netdev); otherwise the engine uses the ones of --ip */
	uint32_t addresses;
	struct {
		struct gid gid;
		uint8_t prefix; /* bits; 0..32 for an IPv4 address */
	} address[LIMIT_GIDS];
};

#endif
