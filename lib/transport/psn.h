/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet sequence numbers: 24 bits, compared in half the circle (IBTA 9.7.2). */
#ifndef TRANSPORT_PSN_H
#define TRANSPORT_PSN_H

#include <stdbool.h>
#include <stdint.h>

#define PSN_MASK 0xffffffu

static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & PSN_MASK;
}

/* How far a is ahead of b: -2^23 .. 2^23 - 1. */
static inline int32_t psn_distance(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* a comes after b: (a - b) mod 2^24 in 1 .. 2^23 - 1 */
static inline bool psn_after(uint32_t a, uint32_t b)
{
	return psn_distance(a, b) > 0;
}

/* Whether psn is in [first, first + count); count is at most 2^23. */
static inline bool psn_within(uint32_t psn, uint32_t first, uint32_t count)
{
	return ((psn - first) & PSN_MASK) < count;
}

#endif
