/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariant CRC of RoCEv2 (IBTA A17.3.3). It is the Ethernet CRC-32 over eight octets of ones,
 * the IP and UDP headers and the BTH with their variant fields replaced by ones, and all that
 * follows up to the ICRC itself. It is sent least significant octet first.
 *
 * A sum is the plain CRC-32 value (initially 0, as zlib's crc32(0, ...) takes and returns it), so
 * it can be continued over further octets. Any thread.
 */
#ifndef WIRE_ICRC_H
#define WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* With at most this many octets behind the UDP header, icrc_begin is one call on any processor. */
#define ICRC_ONE_CALL 44u

/*
 * Begins a sum over the masked headers. `l3` points to the IP header. `header_length`: octets from
 * there to the end of the extended headers, at least IP + UDP + BTH.
 */
uint32_t icrc_begin(const uint8_t *l3, size_t header_length);
/* ... with a masked copy of the headers, where short_sum.h does not work. */
uint32_t icrc_begin_anywhere(const uint8_t *l3, size_t header_length);

/* Continues a sum over plain octets. */
uint32_t icrc_add(uint32_t sum, const void *octets, size_t length);

/* Copies, and continues the sum over the copied octets. The areas do not overlap. */
uint32_t icrc_copy(uint32_t sum, void *to, const void *from, size_t length);

/* icrc_begin(), and then icrc_copy(). */
uint32_t icrc_begin_copy(const uint8_t *l3, size_t header_length, void *to, const void *from,
			 size_t length);

/*
 * The headers of frames that differ in the last four octets of the BTH (AckReq, PSN) and in their payloads alone, as the
 * middles of a message do. The sum over what they have in common is made once.
 */
struct icrc_pattern {
	uint8_t state[16]; /* of all headers (state.h) */
	uint32_t last; /* the last four octets, as they stand there */
	bool works; /* false: they do not end with the BTH, or the processor has no such way */
};

/* The headers of a frame. `l3` and `header_length`: as for icrc_begin(). */
struct icrc_pattern icrc_pattern(const uint8_t *l3, size_t header_length);

/* The same as icrc_begin_copy(), for a frame with such headers at `l3`. */
uint32_t icrc_pattern_copy(const struct icrc_pattern *pattern, const uint8_t *l3,
			   size_t header_length, void *to, const void *from, size_t length);

/* icrc_begin() and icrc_add() for such a frame, whose payload follows the headers. */
uint32_t icrc_pattern_add(const struct icrc_pattern *pattern, const uint8_t *l3,
			  size_t header_length, size_t length);

/*
 * Copies up to COPY_SHORT octets inline, as two copies that may overlap. Used for what follows the
 * headers of a short frame.
 */
#define COPY_SHORT 32u

static inline void copy_short(void *to, const void *from, size_t n)
{
	uint8_t *t = to;
	const uint8_t *f = from;

	if (n >= 16) {
		memcpy(t, f, 16);
		memcpy(t + n - 16, f + n - 16, 16);
	} else if (n >= 8) {
		memcpy(t, f, 8);
		memcpy(t + n - 8, f + n - 8, 8);
	} else if (n >= 4) {
		memcpy(t, f, 4);
		memcpy(t + n - 4, f + n - 4, 4);
	} else {
		memcpy(t, f, n);
	}
}

/*
 * Write and read the four octets on the wire, least significant octet first (IBTA 7.8.1). The host
 * is little-endian.
 */
static inline void icrc_store(uint8_t *at, uint32_t sum)
{
	memcpy(at, &sum, sizeof(sum));
}

static inline uint32_t icrc_load(const uint8_t *at)
{
	uint32_t sum;

	memcpy(&sum, at, sizeof(sum));
	return sum;
}

#endif
