/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port as the engine sees it: bursts of mbufs in and out, some properties, and a bell to sleep
 * on. The drivers make one from a DPDK ethdev (drivers/ethdev). A program that keeps its own port
 * makes one from two functions of its own (embedding). An engine that serves only its own host has
 * none (NULL).
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

/*
 * Which frames a port should let through besides those to its own address. The port keeps pointers
 * to the two texts.
 */
struct port_hears {
	const struct mac *group; /* multicast addresses; frames to others need not come */
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
	 * A descriptor that becomes readable when frames arrive (already armed). -1: there is none,
	 * and the engine sleeps for at most `nap`. Called before an lcore sleeps; `drain` is called
	 * after it woke.
	 */
	int (*bell_fd)(struct port *p, uint16_t queue);
	void (*bell_drain)(struct port *p, uint16_t queue);
	/*
	 * Control path: sets whether the bell also rings for frames that are not RoCE, which
	 * steering rules may want. NULL: the bell always does, or there is no bell.
	 */
	void (*bell_widen)(struct port *p, bool every_frame);
	/*
	 * Control thread: sets which frames are wanted besides those to its own address. NULL: all
	 * groups come.
	 */
	void (*hear)(struct port *p, const struct port_hears *h);
	/*
	 * Control path: the queue at which frames arrive that come from this UDP port of `from` and
	 * go to port 4791 of `to`. UINT16_MAX: not known. If the function is NULL, no queue is
	 * known.
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
	uint32_t offloads; /* OFFLOAD_* that the port itself does; fixed while it is open */
	uint16_t queues; /* rx/tx queue pairs, >= 1; lcore i uses queue i if there is one */
	int socket; /* NUMA node of DPDK's memory for the port; -1: any */
	int node; /* NUMA node of the device; -1: unknown, or there is no device */
	uint32_t speed; /* of the link, Mbit/s; 0: unknown */
	bool link_up;
	/*
	 * The control thread changes the next three, so they are atomic. Why frames to all groups
	 * come; NULL: only those to the `groups` wanted ones.
	 */
	const char *hears_all;
	const char *hears_others; /* why frames to other hosts also come; NULL: they do not */
	uint32_t groups;
	bool taken; /* an engine has it */
	bool any_buffer; /* its frames may be in memory that DPDK does not know; fixed while it is open */
	bool kernel_answers; /* the Linux kernel owns the addresses and answers ARP, ND and echo */
	/*
	 * The Linux interface whose neighbours and routes are used, by its present name. "": none.
	 */
	char netdev[16];
	bool has_more_addresses; /* than `address` has room for, which was said */
	uint32_t ifindex;
	struct kernel_interface *kernel; /* gets frames that are not RoCE; NULL: none */
	nanotime nap; /* how long an idle lcore without a bell may sleep */
	bool rings_early; /* a bell may ring, and be drained, before its frame can be received */
	/* addresses of the interface (netdev); otherwise the engine uses those of --ip */
	uint32_t addresses;
	struct {
		struct gid gid;
		uint8_t prefix; /* bits; 0..32 for an IPv4 address */
	} address[LIMIT_ADDRESSES];
};

#endif
