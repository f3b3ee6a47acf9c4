/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decodes a frame into a packet, or says why it cannot. The input may be any octets. Every length
 * is checked before anything is read or computed from it, in this order:
 *
 *	Ethernet, tag -> IP -> UDP -> BTH -> opcode table -> minimum length -> extended headers -> ICRC
 *
 * The end of the packet follows from the UDP length, never from the frame's. Nothing is allocated.
 * The packet's payload points into the frame and is valid as long as the frame is.
 */
#ifndef WIRE_DECODE_H
#define WIRE_DECODE_H

#include <stddef.h>

#include "base/reason.h"
#include "base/stage.h"
#include "wire/packet.h"

/* What the device that received a frame says about the IPv4 header's checksum. */
enum header_sum {
	HEADER_SUM_UNKNOWN, /* nothing: it is checked here */
	HEADER_SUM_RIGHT,
	HEADER_SUM_WRONG,
};

struct decode_options {
	bool check_icrc; /* false only for frames that never left the engine */
	uint16_t vlan; /* the VLAN id to accept; 0: only untagged and priority-tagged frames */
	struct stage_watch *stages; /* STAGE_COPY_SUM for the ICRC; NULL: not measured */
};

/*
 * Returns REASON_NONE and fills in *p, or the reason why the frame is refused. REASON_NOT_ROCE: the
 * frame is of another protocol (ARP, ND, ICMP, other UDP ports). Any thread.
 */
enum reason packet_decode(struct packet *p, const uint8_t *frame, size_t length,
			  const struct decode_options *options);

/*
 * The same for a frame about whose IPv4 header the port has said something. packet_decode(), which
 * most ports use, is a separate function, so that it need not look at `said`.
 */
enum reason packet_decode_said(struct packet *p, const uint8_t *frame, size_t length,
			       const struct decode_options *options, enum header_sum said);

#define GRH_LENGTH 40u

/*
 * Writes the 40 octets that a UD receiver finds before the payload (ibv_post_recv(3)): the IPv6
 * header, or 20 zero octets and the IPv4 header. p was decoded from `frame`, whose headers are
 * overwritten up to p->payload.
 */
void packet_make_grh(uint8_t *frame, const struct packet *p);

#endif
