/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port as the engine sees it: bursts of mbufs in and out, a few facts, a bell to sleep on. The
 * drivers make one from a DPDK ethdev (drivers/ethdev); a program that keeps its own port makes
 * one from two functions of its own (embedding); a same-host engine has none (NULL).
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

struct port_ops {
	/* At most n frames of this queue; the mbufs become the engine's. Lcore of that queue only. */
	uint16_t (*rx_burst)(struct port *p, uint16_t queue, struct rte_mbuf **frames, uint16_t n);
	/* Takes the first k <= n frames, which are the port's from then on; the rest stay the engine's. */
	uint16_t (*tx_burst)(struct port *p, uint16_t queue, struct rte_mbuf **frames, uint16_t n);
	/*
	 * A descriptor that becomes readable when frames arrive (already armed), or -1: then the
	 * engine naps for `nap` at most. Called before an lcore sleeps; `drain` after it woke.
	 */
	int (*bell_fd)(struct port *p, uint16_t queue);
	void (*bell_drain)(struct port *p, uint16_t queue);
	/*
	 * Control path: frames that are not RoCE are the engine's, too (steering rules may want them),
	 * or not any more: the bell rings for them. NULL: it always does, or there is none.
	 */
	void (*bell_widen)(struct port *p, bool every_frame);
	/* Control thread, about every 100 ms: link, MTU and addresses may have changed; true if so. */
	bool (*refresh)(struct port *p);
	void (*close)(struct port *p);
};

struct port {
	const struct port_ops *ops;
	char name[64];
	struct mac mac;
	uint16_t mtu; /* Ethernet MTU that frames of both directions fit, octets */
	uint16_t queues; /* rx/tx queue pairs, >= 1; lcore i uses queue i if it is there */
	int socket; /* NUMA node, -1 unknown */
	uint32_t speed; /* of the link, Mbit/s; 0: nobody says */
	bool link_up;
	bool kernel_answers; /* the Linux kernel owns the addresses: it answers ARP, ND and echo */
	/* Linux interface whose neighbours and routes are ours, by its present name; "" if none */
	char netdev[16];
	uint32_t ifindex;
	struct kernel_interface *kernel; /* where what is not RoCE goes; NULL: nowhere */
	nanotime nap; /* how long an idle lcore may sleep without a bell */
	/* addresses that follow the interface (netdev); the engine takes --ip otherwise */
	uint32_t addresses;
	struct {
		struct gid gid;
		uint8_t prefix; /* bits, of an IPv4 address: 0..32 */
	} address[LIMIT_GIDS];
};

#endif
