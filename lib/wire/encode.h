/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a packet to a frame, in two steps, because the payload is usually gathered from memory
 * that only the engine reaches:
 *
 *	n = packet_encode(frame, flow, packet, identification)	envelope, BTH, extended headers
 *	copy payload_length octets to frame + n
 *	total = packet_seal(frame, flow, n, payload_length)	pad, ICRC
 *
 * The buffer holds at least PACKET_HEADER_MAX + payload + 3 + ICRC_LENGTH octets.
 */
#ifndef WIRE_ENCODE_H
#define WIRE_ENCODE_H

#include <stddef.h>

#include "wire/envelope.h"
#include "wire/icrc.h"
#include "wire/packet.h"

/* Octets of envelope and headers that were written: where the payload goes. The opcode is defined. */
size_t packet_encode(uint8_t *frame, const struct flow *flow, const struct packet *p,
		     uint16_t identification);

/* Writes pad octets (zero) and the ICRC behind a payload that is in place. Returns the frame's octets. */
size_t packet_seal(uint8_t *frame, const struct flow *flow, size_t header_length,
		   size_t payload_length);

/*
 * The same where the payload was summed while it was copied: `sum` is icrc_begin() over the
 * headers continued over the payload (not the pad).
 */
size_t packet_seal_summed(uint8_t *frame, const struct flow *flow, size_t header_length,
			  size_t payload_length, uint32_t sum);

/* Pad and a zero ICRC, for frames that never leave the engine. */
size_t packet_seal_unsummed(uint8_t *frame, size_t header_length, size_t payload_length);

#endif
