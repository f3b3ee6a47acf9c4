/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frames in the middle of a message have the same headers but for AckReq and PSN, if the sender makes them as
 * packet_encode_alike() does. What was decoded of one holds for those that follow it, too: only these two and the
 * ICRC are looked at.
 */
#ifndef WIRE_ALIKE_H
#define WIRE_ALIKE_H

#include "base/bits.h"
#include "base/reason.h"
#include "base/stage.h"
#include "wire/envelope.h"
#include "wire/icrc.h"
#include "wire/packet.h"

#define ALIKE_LEAST 256u /* octets: shorter frames and payloads are not worth a look */

/* One thread uses it. All zero: no frame is like it. */
struct alike {
	uint32_t length; /* octets of the frame; 0: there is none */
	uint32_t same; /* octets of its headers that others have, too: all but the last four */
	bool summed; /* `pattern` was made */
	struct icrc_pattern pattern;
	struct packet packet;
	uint8_t header[ENVELOPE_MAX + 12]; /* up to the BTH */
};

/* Whether alike_decode() decodes the frame: never one of another length than a->length. */
bool alike_is(const struct alike *a, const uint8_t *frame, size_t length);

/* ... and its packet has the PSN behind this one. */
static inline bool alike_is_next(const struct alike *a, const uint8_t *frame, size_t length,
				 uint32_t psn)
{
	return alike_is(a, frame, length) &&
	       ((load_be32(frame + a->same) ^ (psn + 1)) & 0xffffff) == 0;
}

/* The same as packet_decode() (decode.h), with the options with which the frame before was decoded. */
enum reason alike_decode(struct alike *a, struct packet *p, const uint8_t *frame,
			 struct stage_watch *stages);

/* packet_decode() has decoded this frame, and checked its ICRC. It is remembered if it is in the middle of a message. */
void alike_remember(struct alike *a, const struct packet *p, const uint8_t *frame, size_t length);

#endif
