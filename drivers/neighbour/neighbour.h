/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which MAC address an IP address has behind a port, and the answers that the owner of an IP
 * address owes its link: ARP (RFC 826), neighbour discovery (RFC 4861), echo (RFC 792, RFC 4443),
 * membership of groups (RFC 3376, RFC 3810).
 *
 * A table belongs to one thread, the engine's control thread. It reads no clock and sends nothing
 * itself: frames come in as octets, frames to send go into a list that the caller empties. Use:
 *
 *	1. neighbour_table_new(), neighbour_set_addresses(), neighbour_set_gateways()
 *	2. every frame that is not RoCE: neighbour_input(), then send and clear the list
 *	3. about every 100 ms and after a resolve that said EINPROGRESS: neighbour_tick(), likewise
 *	4. neighbour_resolve() whenever a flow needs its MAC address
 *
 * On a port whose addresses the Linux kernel owns (port->kernel_answers) the table is a window on
 * the kernel's routes and neighbours: same calls, but it answers nothing and sends nothing.
 */
#ifndef DRIVERS_NEIGHBOUR_H
#define DRIVERS_NEIGHBOUR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"
#include "config/limits.h"
#include "wire/envelope.h"

/* Complete Ethernet frames, padded to 60 octets, to be sent in order. */
struct neighbour_frames {
	uint32_t count;
	uint32_t used; /* octets */
	struct {
		uint32_t offset; /* into octets */
		uint32_t length;
	} frame[LIMIT_NEIGHBOUR_FRAMES];
	uint8_t octets[LIMIT_NEIGHBOUR_FRAME_BYTES];
};

static inline void neighbour_frames_clear(struct neighbour_frames *out)
{
	out->count = 0;
	out->used = 0;
}

struct neighbour_address {
	struct gid gid;
	uint8_t prefix; /* bits; of an IPv4 address 0..32 */
};

struct neighbour_table;

/*
 * kernel_ifindex 0: our own protocol; else the kernel's tables for that interface, NULL with errno
 * if they cannot be reached. vlan 0: untagged.
 */
struct neighbour_table *neighbour_table_new(const struct mac *mac, uint16_t vlan,
					    uint32_t kernel_ifindex);
void neighbour_table_free(struct neighbour_table *t);

/* Replace what was set before; at most LIMIT_GIDS and LIMIT_NEIGHBOUR_GATEWAYS of them are kept. */
void neighbour_set_addresses(struct neighbour_table *t, const struct neighbour_address *address,
			     uint32_t count);
void neighbour_set_gateways(struct neighbour_table *t, const struct gid *gateway, uint32_t count);

/* One received frame, any bytes. True if it was ARP, ND, IGMP, MLD or an echo request (answered or not). */
bool neighbour_input(struct neighbour_table *t, const uint8_t *frame, uint32_t length, nanotime now,
		     struct neighbour_frames *out);

/*
 * 0 and the MAC address of the next hop towards gid; EINPROGRESS while it is being asked for;
 * EHOSTUNREACH if nobody answered, there is no route, or gid is no unicast or multicast address.
 */
int neighbour_resolve(struct neighbour_table *t, const struct gid *gid, nanotime now,
		      struct mac *mac);

/* Sends what is due; returns when to be called next at the latest (TIME_NEVER: nothing pends). */
nanotime neighbour_tick(struct neighbour_table *t, nanotime now, struct neighbour_frames *out);

/* Announce our addresses unasked (gratuitous ARP, unsolicited NA): at start, after a change. */
void neighbour_announce(struct neighbour_table *t, struct neighbour_frames *out);

/*
 * Membership of a multicast group: the link hears of it with the next tick, and again when a
 * querier asks; leaving is told at once. Joining twice is joining once. 0, or an errno: too many
 * groups (of ours or of the kernel).
 */
int neighbour_join(struct neighbour_table *t, const struct gid *group, nanotime now);
void neighbour_leave(struct neighbour_table *t, const struct gid *group, nanotime now,
		     struct neighbour_frames *out);

/* Rises whenever a known MAC address changed: then flows should resolve theirs again. */
uint32_t neighbour_generation(const struct neighbour_table *t);

#endif
