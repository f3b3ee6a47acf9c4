/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a port may do to frames instead of the engine, and the names by which users request it.
 * docs/decisions/0017-offloads.md says what to expect from it.
 */
#ifndef DRIVERS_OFFLOAD_H
#define DRIVERS_OFFLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum offload {
	OFFLOAD_IPV4_CKSUM_TX = 1 << 0, /* fills in the IPv4 header's checksum of RoCE packets */
	OFFLOAD_IPV4_CKSUM_RX = 1 << 1, /* says whether the IPv4 header's checksum is right */
	OFFLOAD_VLAN_TX = 1 << 2, /* puts the VLAN tag into the frame */
	OFFLOAD_VLAN_RX = 1 << 3, /* takes the VLAN tag out of the frame */
	OFFLOAD_AUTO = 1 << 4, /* those worth using on a card (drivers/ethdev/offloads.c) */
};

/*
 * The offloads (in both directions) that "ipv4-cksum,vlan", "all", "auto" or "none" name. False:
 * `list` is not such a list.
 */
bool offload_parse(const char *list, uint32_t *offloads);

#define OFFLOAD_TEXT 96u

/*
 * Says for each offload whether the port or software does it, if `wanted` was requested and the
 * port does `done`: "ipv4-cksum (tx port, rx software)". The text is "" if nothing is wanted. For
 * OFFLOAD_AUTO it names what the port does: "auto: ipv4-cksum (tx port, rx port)", or "auto: none".
 */
void offload_describe(uint32_t wanted, uint32_t done, char text[OFFLOAD_TEXT]);

#endif
