/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any Ethernet frame that raw queue pairs send or receive: its layers, its checksums, and whether
 * it may leave. The functions accept any octets.
 */
#ifndef LCORE_RAW_FRAME_H
#define LCORE_RAW_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/flow_key.h"

struct raw_frame {
	uint32_t layers; /* enum flow_layer: layers whose headers are complete */
	uint16_t vlan_tags; /* number of tags */
	uint16_t l3; /* offsets of headers in octets; valid if the frame has that layer */
	uint16_t l4;
	uint16_t end; /* end of the IP packet: Ethernet padding may follow */
	bool fragment; /* it is a fragment of an IP packet ... */
	bool later_fragment; /* ... and not the first one, so it has no layer 4 header */
	bool cut; /* the frame ends, or stops making sense, inside its IP or UDP headers */
	struct flow_key key;
};

void raw_frame_parse(struct raw_frame *f, const uint8_t *frame, size_t length);

/* Parses layers 3 and 4 only. The IP header is at l3 <= length. */
void raw_frame_parse_ip(struct raw_frame *f, const uint8_t *octets, size_t l3, size_t length);

/*
 * Whether a raw queue pair must not send the frame. Forbidden is UDP to the RoCE port, over IPv4 or
 * IPv6, with any number of VLAN tags, options or extension headers, as a whole packet or a first
 * fragment. A frame whose headers end before the port is also forbidden. Such frames could pass for
 * packets of other programs' queue pairs, because RC packets carry no source queue pair.
 */
bool raw_frame_is_roce(const struct raw_frame *f, const uint8_t *frame, size_t length);

/* Writes the IPv4 header checksum and, in a whole packet, the checksum of TCP or UDP. */
void raw_frame_fill_checksums(const struct raw_frame *f, uint8_t *frame);

/* ibv_poll_cq(3), IBV_WC_IP_CSUM_OK: IPv4 with TCP or UDP, both checksums right. */
bool raw_frame_checksums_right(const struct raw_frame *f, const uint8_t *frame);

static inline bool raw_frame_is_multicast(const uint8_t *frame)
{
	return (frame[0] & 1) != 0;
}

#endif
