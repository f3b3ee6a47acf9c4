/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network interface of the Linux kernel on the engine's own port: the exception path. Received
 * frames that the engine does not want are given to the kernel here. Frames that the kernel sends
 * are taken here, and leave through the port. The interface is a tap; docs/decisions/0009 says why.
 *
 * One thread gives and takes. The control thread opens, refreshes and closes.
 */
#ifndef DRIVERS_KERNEL_INTERFACE_H
#define DRIVERS_KERNEL_INTERFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/envelope.h"

struct kernel_interface;
struct port;
struct rte_mbuf;
struct rte_mempool;

/*
 * Creates an interface with this name, MAC address and MTU, and sets it up. NULL and one line in
 * `why` that names the option: the name is in use or invalid, permission is missing, or this host
 * has no taps.
 */
struct kernel_interface *kernel_interface_open(const char *name, const struct mac *mac,
					       uint16_t mtu, char *why, size_t why_size);
void kernel_interface_close(struct kernel_interface *k);

/* Adds an address to the interface, as `ip address add` does. 0 or an errno. */
int kernel_interface_add_address(struct kernel_interface *k, const struct gid *gid, uint8_t prefix);

/* Frames that are given may lack their checksums: see checksum.h. */
void kernel_interface_fill_checksums(struct kernel_interface *k);

/* ---- frames ---- */

/* Readable when the kernel has sent something. */
int kernel_interface_fd(const struct kernel_interface *k);
/* Gives n whole frames to the kernel; returns how many it accepted. Frees all of them. */
uint32_t kernel_interface_give(struct kernel_interface *k, struct rte_mbuf **frame, uint32_t n);
/*
 * Takes at most n frames that the kernel sent, each in a buffer of the pool. A result below n means
 * that there are no more frames, or (*starved) that no buffer was free.
 */
uint32_t kernel_interface_take(struct kernel_interface *k, struct rte_mempool *pool,
			       struct rte_mbuf **frame, uint32_t n, bool *starved);
/* How many of the kernel's frames did not fit into a buffer. Any thread. */
uint64_t kernel_interface_lost(const struct kernel_interface *k);

/* ---- settings made by the host's administrator: control thread ---- */

struct kernel_interface_state {
	bool up; /* also false if the interface was deleted */
	bool promiscuous;
	uint16_t mtu; /* at most `most` of the last refresh */
	struct mac mac;
};

/* Sets the interface's carrier: whether the port's link is up. */
void kernel_interface_set_carrier(struct kernel_interface *k, bool carrier);
void kernel_interface_set_mac(struct kernel_interface *k, const struct mac *mac);
/*
 * Reads the present state into *s and the addresses into p->address. Lowers an MTU above `most`,
 * which the port cannot carry. False: nothing was announced since the last call, and *s is
 * unchanged.
 */
bool kernel_interface_refresh(struct kernel_interface *k, struct port *p, uint16_t most,
			      struct kernel_interface_state *s);
uint32_t kernel_interface_index(const struct kernel_interface *k);
const char *kernel_interface_name(const struct kernel_interface *k);

#endif
