/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network interface of the Linux kernel beside a port that is ours: the exception path. What the
 * engine does not want from the port is given to the kernel here, and what the kernel sends is
 * taken from it, to be sent by the port. It is a tap: docs/decisions/0009 says why.
 *
 * One thread gives and takes. The control thread opens, refreshes and closes it.
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
 * An interface of this name with that MAC address and MTU, up. NULL and one line in `why` that
 * names the option: the name is taken or can be none, it is not permitted, this host has no taps.
 */
struct kernel_interface *kernel_interface_open(const char *name, const struct mac *mac,
					       uint16_t mtu, char *why, size_t why_size);
void kernel_interface_close(struct kernel_interface *k);

/* One more address of the interface, as `ip address add` does it. 0 or an errno. */
int kernel_interface_add_address(struct kernel_interface *k, const struct gid *gid, uint8_t prefix);

/* Frames that will be given may lack their checksums: checksum.h. */
void kernel_interface_fill_checksums(struct kernel_interface *k);

/* ---- frames ---- */

/* Becomes readable when the kernel has sent something. */
int kernel_interface_fd(const struct kernel_interface *k);
/* Gives n whole frames to the kernel; returns how many it took. All of them are freed. */
uint32_t kernel_interface_give(struct kernel_interface *k, struct rte_mbuf **frame, uint32_t n);
/*
 * At most n frames that the kernel sent, each in a buffer of the pool. Fewer than n: there are no
 * more, or *starved: no buffer was free.
 */
uint32_t kernel_interface_take(struct kernel_interface *k, struct rte_mempool *pool,
			       struct rte_mbuf **frame, uint32_t n, bool *starved);
/* Frames of the kernel that did not fit a buffer. Any thread. */
uint64_t kernel_interface_lost(const struct kernel_interface *k);

/* ---- what the kernel's administrator did to it: control thread ---- */

struct kernel_interface_state {
	bool up; /* false as well: somebody deleted it */
	bool promiscuous;
	uint16_t mtu; /* never more than was allowed at the last refresh */
	struct mac mac;
};

/* Whether its link is up for the kernel: the port's state. */
void kernel_interface_set_carrier(struct kernel_interface *k, bool carrier);
void kernel_interface_set_mac(struct kernel_interface *k, const struct mac *mac);
/*
 * *s is as it is now, p->address its addresses. An MTU above `most`, what the port carries, is set
 * back to it. False: nothing was announced since the last call, *s is as before.
 */
bool kernel_interface_refresh(struct kernel_interface *k, struct port *p, uint16_t most,
			      struct kernel_interface_state *s);
uint32_t kernel_interface_index(const struct kernel_interface *k);
const char *kernel_interface_name(const struct kernel_interface *k);

#endif
