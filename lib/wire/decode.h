/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a frame to a packet, or to the reason why not. Any bytes are accepted: every length is
 * checked before anything is read or computed from it, in the order
 *
 *	Ethernet, tag -> IP -> UDP -> BTH -> opcode table -> minimum length -> extended headers -> ICRC
 *
 * and the end of the packet is found from the UDP length, never from the frame's. Nothing is
 * allocated; the packet's payload points into the frame and lives as long as it does.
 */
#ifndef WIRE_DECODE_H
#define WIRE_DECODE_H

#include <stddef.h>

#include "base/reason.h"
#include "wire/packet.h"

struct decode_options {
	bool check_icrc; /* false only for frames that never left the engine */
	uint16_t
		vlan; /* the VLAN id that is accepted; 0: only untagged (and priority-tagged) frames */
};

/*
 * Returns REASON_NONE and fills *p, or why the frame is not one of RoCEv2's; REASON_NOT_ROCE
 * means that it belongs to somebody else (ARP, ND, ICMP, other UDP ports).
 */
enum reason packet_decode(struct packet *p, const uint8_t *frame, size_t length,
			  const struct decode_options *options);

#define GRH_LENGTH 40u

/*
 * Writes into the frame that `p` was decoded from, over headers that are not needed any more, the
 * 40 octets that a UD receiver finds in front of the payload: they end where p->payload begins.
 * An IPv6 header as it came, or 20 zero octets and the IPv4 header (ibv_post_recv(3)).
 */
void packet_make_grh(uint8_t *frame, const struct packet *p);

#endif
