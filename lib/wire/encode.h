/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encodes a packet into a frame, in two steps, because the caller gathers the payload from memory
 * that lib/wire cannot reach:
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

/*
 * Writes the envelope and the headers, and returns their length in octets: the payload follows
 * there. p->opcode must be defined. `identification`: the IPv4 field. Any thread may call these
 * functions.
 */
size_t packet_encode(uint8_t *frame, const struct flow *flow, const struct packet *p,
		     uint16_t identification);

/*
 * The same headers as those of the frame `before`, but for the PSN. The packet does not ask for an acknowledgement. `flow_length`:
 * octets of the envelope. The payload is as long as that of `before`, and at least 256 octets. The identification is the same,
 * too: no router divides the frame (RFC 6864 4.1).
 */
void packet_encode_alike(uint8_t *frame, const uint8_t *before, size_t flow_length, uint32_t psn);

/* Writes the pad octets (zero) and the ICRC after the payload. Returns the length of the frame. */
size_t packet_seal(uint8_t *frame, const struct flow *flow, size_t header_length,
		   size_t payload_length);

/*
 * The same for a payload that was summed while it was copied: `sum` is icrc_begin() over the
 * headers, continued over the payload but not the pad.
 */
size_t packet_seal_summed(uint8_t *frame, const struct flow *flow, size_t header_length,
			  size_t payload_length, uint32_t sum);

/* The same with an ICRC of 0, for frames that never leave the engine. */
size_t packet_seal_unsummed(uint8_t *frame, size_t header_length, size_t payload_length);

#endif
