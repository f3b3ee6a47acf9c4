/* SPDX-License-Identifier: BSD-3-Clause */
/* Headers are masked as they are loaded, and the state (state.h) moves over 16 octets at a time. */
#include "wire/short_sum.h"

#ifdef __x86_64__

#include "wire/header.h"
#include "wire/state.h"

#define TARGET __attribute__((target("avx,pclmul")))
#define INLINE static inline TARGET __attribute__((always_inline))

#define BLOCK	    STATE_OCTETS
#define LRH_LENGTH  8u /* in its place there are eight octets of ones */
#define IPV4_BLOCKS ((LRH_LENGTH + IPV4_LENGTH + UDP_LENGTH + BTH_LENGTH) / BLOCK)
/* The last four octets of the BTH are left, and nothing in them is variant. */
#define IPV6_BLOCKS ((LRH_LENGTH + IPV6_LENGTH + UDP_LENGTH + BTH_LENGTH) / BLOCK)

/*
 * Ones for the LRH and for the variant fields (icrc.c). The first four octets are zero, because a sum
 * begins with ones there, which are added.
 */
static const uint8_t ipv4_mask[IPV4_BLOCKS * BLOCK] __attribute__((aligned(BLOCK))) = {
	[4] = 0xff,
	[5] = 0xff,
	[6] = 0xff,
	[7] = 0xff,
	[LRH_LENGTH + IPV4_TOS] = 0xff,
	[LRH_LENGTH + IPV4_TTL] = 0xff,
	[LRH_LENGTH + IPV4_CHECKSUM] = 0xff,
	[LRH_LENGTH + IPV4_CHECKSUM + 1] = 0xff,
	[LRH_LENGTH + IPV4_LENGTH + UDP_CHECKSUM] = 0xff,
	[LRH_LENGTH + IPV4_LENGTH + UDP_CHECKSUM + 1] = 0xff,
	[LRH_LENGTH + IPV4_LENGTH + UDP_LENGTH + BTH_CONGESTION] = 0xff,
};

static const uint8_t ipv6_mask[IPV6_BLOCKS * BLOCK] __attribute__((aligned(BLOCK))) = {
	[4] = 0xff,
	[5] = 0xff,
	[6] = 0xff,
	[7] = 0xff,
	[LRH_LENGTH + 0] = 0x0f,
	[LRH_LENGTH + 1] = 0xff,
	[LRH_LENGTH + 2] = 0xff,
	[LRH_LENGTH + 3] = 0xff,
	[LRH_LENGTH + IPV6_HOP_LIMIT] = 0xff,
	[LRH_LENGTH + IPV6_LENGTH + UDP_CHECKSUM] = 0xff,
	[LRH_LENGTH + IPV6_LENGTH + UDP_CHECKSUM + 1] = 0xff,
	[LRH_LENGTH + IPV6_LENGTH + UDP_LENGTH + BTH_CONGESTION] = 0xff,
};

INLINE __m128i masked(__m128i octets, const uint8_t *mask)
{
	return _mm_or_si128(octets, *(const __m128i *)mask);
}

/* Compiled for either mask. */
INLINE __m128i state_of(const uint8_t *l3, size_t n, const uint8_t *mask, size_t blocks)
{
	const uint8_t *end = l3 + n;
	size_t left = LRH_LENGTH + n - blocks * BLOCK;
	__m128i state = masked(_mm_slli_si128(state_load(l3), LRH_LENGTH), mask);

#pragma GCC unroll 4
	for (size_t at = BLOCK; at < blocks * BLOCK; at += BLOCK)
		state = state_over(state, BLOCK,
				   masked(state_load(l3 + at - LRH_LENGTH), mask + at));
	for (; left > BLOCK; left -= BLOCK)
		state = state_over(state, BLOCK, state_load(end - left));
	return left == 0 ? state : state_over_last(state, left, end);
}

TARGET uint32_t short_sum_ipv4(const uint8_t *l3, size_t n)
{
	return state_sum(state_of(l3, n, ipv4_mask, IPV4_BLOCKS));
}

TARGET uint32_t short_sum_ipv6(const uint8_t *l3, size_t n)
{
	return state_sum(state_of(l3, n, ipv6_mask, IPV6_BLOCKS));
}

TARGET __m128i short_state(const uint8_t *l3, size_t n)
{
	return l3[0] >> 4 == 6 ? state_of(l3, n, ipv6_mask, IPV6_BLOCKS)
			       : state_of(l3, n, ipv4_mask, IPV4_BLOCKS);
}

#endif
