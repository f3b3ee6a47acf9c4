/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/bits.h"
#include "wire/alike.h"
#include "wire/header.h"
#include "wire/opcode.h"

/* The fields that a packet in the middle of a message has come before this one. */
#define MIDDLE_FIELDS offsetof(struct packet, original)

static_assert(sizeof(((struct alike *)0)->header) == ENVELOPE_MAX + BTH_LENGTH, "up to the BTH");

/* Words are compared, the last of which may overlap the one before it. */
static inline bool octets_are_same(const uint8_t *a, const uint8_t *b, size_t n)
{
	uint64_t differ = 0, x, y;

	for (size_t at = 0; at + 8 <= n; at += 8) {
		memcpy(&x, a + at, 8);
		memcpy(&y, b + at, 8);
		differ |= x ^ y;
	}
	memcpy(&x, a + n - 8, 8);
	memcpy(&y, b + n - 8, 8);
	return (differ | (x ^ y)) == 0;
}

bool alike_is(const struct alike *a, const uint8_t *frame, size_t length)
{
	return length == a->length && length > 0 && octets_are_same(frame, a->header, a->same);
}

enum reason alike_decode(struct alike *a, struct packet *p, const uint8_t *frame,
			 struct stage_watch *stages)
{
	uint32_t headers = a->same + 4, word = load_be32(frame + a->same), sum, length;
	uint32_t l3 = a->packet.ip_header;

	memcpy(p, &a->packet, MIDDLE_FIELDS);
	p->ack_req = (word >> 24 & BTH_ACK_REQ) != 0;
	p->psn = word & 0xffffff;
	p->payload = frame + headers;
	stage_switch(stages, STAGE_COPY_SUM);
	if (!a->summed)
		a->pattern = icrc_pattern(a->header + l3, headers - l3);
	a->summed = true;
	length = p->payload_length + p->pad;
	sum = icrc_pattern_add(&a->pattern, frame + l3, headers - l3, length);
	return icrc_load(p->payload + length) == sum ? REASON_NONE : REASON_ICRC;
}

void alike_remember(struct alike *a, const struct packet *p, const uint8_t *frame, size_t length)
{
	uint32_t headers = (uint32_t)(p->payload - frame);

	if (!opcode_is_middle(p->opcode) || headers > sizeof(a->header) ||
	    opcode_table[p->opcode].header_length != BTH_LENGTH)
		return;
	a->length = (uint32_t)length;
	a->same = headers - 4;
	a->summed = false;
	memcpy(&a->packet, p, MIDDLE_FIELDS);
	memcpy(a->header, frame, headers);
}
