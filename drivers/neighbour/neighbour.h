/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the MAC address of an IP address on the port's link, and answers for the engine's own
 * addresses: ARP (RFC 826), neighbour discovery (RFC 4861), echo (RFC 792, RFC 4443), membership of
 * multicast groups (RFC 3376, RFC 3810).
 *
 * A table belongs to one thread, the engine's control thread. It reads no clock and sends nothing
 * itself: frames come in as octets, and frames to send go into a list that the caller empties. Use:
 *
 *	1. neighbour_table_new(), neighbour_set_addresses(), neighbour_set_gateways()
 *	2. for every frame that is not RoCE: neighbour_input(), then send the list and clear it
 *	3. every 100 ms, and after a resolve that returned EINPROGRESS: neighbour_tick(), likewise
 *	4. whenever a flow needs its MAC address: neighbour_resolve_from()
 *
 * If the Linux kernel owns the port's addresses (port->kernel_answers), the table shows the
 * kernel's routes and neighbours. The calls are the same, but the table answers nothing and sends
 * nothing.
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
	uint8_t prefix; /* bits; 0..32 for an IPv4 address */
};

struct neighbour_table;

/*
 * kernel_ifindex: 0 uses our own protocols; otherwise the kernel's tables for that interface.
 * Returns NULL with errno if they cannot be read. vlan: 0 means untagged.
 */
struct neighbour_table *neighbour_table_new(const struct mac *mac, uint16_t vlan,
					    uint32_t kernel_ifindex);
void neighbour_table_free(struct neighbour_table *t);

/* Replaces the previous list. Keeps at most LIMIT_GIDS and LIMIT_NEIGHBOUR_GATEWAYS entries. */
void neighbour_set_addresses(struct neighbour_table *t, const struct neighbour_address *address,
			     uint32_t count);
void neighbour_set_gateways(struct neighbour_table *t, const struct gid *gateway, uint32_t count);

/*
 * Handles one received frame. Any octets are allowed. True: it was ARP, ND, IGMP, MLD or an echo
 * request.
 */
bool neighbour_input(struct neighbour_table *t, const uint8_t *frame, uint32_t length, nanotime now,
		     struct neighbour_frames *out);

/*
 * Returns 0 and the MAC address of the next hop towards gid; EINPROGRESS while it is being
 * resolved; EHOSTUNREACH if no host answered, there is no route, or gid is neither unicast nor
 * multicast.
 */
int neighbour_resolve(struct neighbour_table *t, const struct gid *gid, nanotime now,
		      struct mac *mac);
/* The same for packets from an own address, which the kernel has if it owns the port's (NULL: any). */
int neighbour_resolve_from(struct neighbour_table *t, const struct gid *from, const struct gid *gid,
			   nanotime now, struct mac *mac);

/*
 * The address from which the kernel sends to gid out of this port. *source is an address of the
 * kernel that may have rules for it, or unspecified. 0, and an unspecified address if it is not
 * known; or why the kernel does not send there. ENODEV: only out of others.
 */
int neighbour_source_towards(struct neighbour_table *t, const struct gid *gid, struct gid *source);

/*
 * Sends due frames. Returns when the next call is due at the latest (TIME_NEVER: nothing is
 * pending).
 */
nanotime neighbour_tick(struct neighbour_table *t, nanotime now, struct neighbour_frames *out);

/* Announces our addresses (gratuitous ARP, unsolicited NA). Call it at start and after a change. */
void neighbour_announce(struct neighbour_table *t, struct neighbour_frames *out);

/*
 * Joins or leaves a multicast group. A join is reported with the next tick, and again when a
 * querier asks. A leave is reported at once. A second join has no effect. Returns 0, or an errno:
 * there are too many groups (ours or the kernel's).
 */
int neighbour_join(struct neighbour_table *t, const struct gid *group, nanotime now);
void neighbour_leave(struct neighbour_table *t, const struct gid *group, nanotime now,
		     struct neighbour_frames *out);

/*
 * Grows whenever a known MAC address changes, or is about to be forgotten. Flows must then resolve
 * theirs again.
 */
uint32_t neighbour_generation(const struct neighbour_table *t);

#endif
