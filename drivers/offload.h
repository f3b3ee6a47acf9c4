/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a port may do to frames instead of the engine, and the names by which a user requests it.
 * docs/decisions/0017-offloads.md says what to expect of it.
 */
#ifndef DRIVERS_OFFLOAD_H
#define DRIVERS_OFFLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum offload {
	OFFLOAD_IPV4_CKSUM_TX = 1 << 0, /* it fills in the IPv4 header's checksum of RoCE packets */
	OFFLOAD_IPV4_CKSUM_RX = 1 << 1, /* it says whether the IPv4 header's checksum is right */
	OFFLOAD_VLAN_TX = 1 << 2, /* it puts the VLAN tag into the frame */
	OFFLOAD_VLAN_RX = 1 << 3, /* it takes the VLAN tag out of the frame */
	OFFLOAD_AUTO = 1 << 4, /* worth asking a card for (drivers/ethdev/offloads.c) */
};

/*
 * The offloads (both ways of each) of "ipv4-cksum,vlan", "all", "auto" or "none". False: `list` is none of these.
 */
bool offload_parse(const char *list, uint32_t *offloads);

#define OFFLOAD_TEXT 96u

/*
 * Says who does what is `wanted`, if the port does `done`: "ipv4-cksum (tx port, rx software)". "":
 * nothing is wanted. OFFLOAD_AUTO names what the port does: "auto: ipv4-cksum (tx port, rx port)",
 * or "auto: none".
 */
void offload_describe(uint32_t wanted, uint32_t done, char text[OFFLOAD_TEXT]);

#endif
