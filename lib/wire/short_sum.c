/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The octets are the coefficients of a polynomial over bits, and the sum is its remainder modulo P. The state
 * is a polynomial of 128 bits with the same remainder as all octets so far. Multiplied by x^128, which
 * moves it over the next 16 octets, it is added to them; multiplications of 64 by 64 bits with x^n mod P
 * do that and reduce it to its width, as in fold.c. The last octets are fewer than 16, or 16.
 */
#include "wire/short_sum.h"

#ifdef __x86_64__

#include <immintrin.h>

#include "wire/header.h"
#include "wire/remainder.h"

#define TARGET __attribute__((target("avx,pclmul")))
#define INLINE static inline TARGET __attribute__((always_inline))

#define BLOCK	    16u /* octets */
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

/*
 * power[n]: x^(8n - 32) mod P, bits reflected. Over n octets the lower half of a state is multiplied by
 * power[n + 8], and the upper one, which is nearer to them, by power[n].
 */
static const uint64_t power[8 + BLOCK + 1] = {
	0x0b66b1fa6, 0x03f036dc2, 0x1ae24a6b0, 0x0cacf972a, 0x100000000, 0x001000000, 0x000010000,
	0x000000100, 0x1db710640, 0x077073096, 0x1c26a3700, 0x1dab36c76, 0x163cd6124, 0x03d6029b0,
	0x1102dd5e4, 0x0a6770bb4, 0x0ccaa009e, 0x1cc0a1202, 0x0efc26b3e, 0x0c18edfc0, 0x140d44a2e,
	0x106e7dfc4, 0x09d0fe176, 0x0b9fbdbe8, 0x1751997d0,
};

/* Read from [n] on: a mask that leaves the last n octets of 16. */
static const uint8_t last_octets[2 * BLOCK] = { [BLOCK... 2 * BLOCK - 1] = 0xff };

INLINE __m128i load(const uint8_t *from)
{
	return _mm_loadu_si128((const __m128i *)from);
}

INLINE __m128i over(__m128i state, size_t octets, __m128i next)
{
	__m128i by_low = _mm_loadl_epi64((const __m128i *)&power[octets + 8]);
	__m128i by_high = _mm_loadl_epi64((const __m128i *)&power[octets]);
	__m128i low = _mm_clmulepi64_si128(state, by_low, 0x00);
	__m128i high = _mm_clmulepi64_si128(state, by_high, 0x01);

	return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

INLINE __m128i masked(__m128i octets, const uint8_t *mask)
{
	return _mm_or_si128(octets, *(const __m128i *)mask);
}

/* Compiled for either mask. */
INLINE uint32_t short_sum(const uint8_t *l3, size_t n, const uint8_t *mask, size_t blocks)
{
	const uint8_t *end = l3 + n;
	size_t left = LRH_LENGTH + n - blocks * BLOCK;
	__m128i state = masked(_mm_slli_si128(load(l3), LRH_LENGTH), mask);

#pragma GCC unroll 4
	for (size_t at = BLOCK; at < blocks * BLOCK; at += BLOCK)
		state = over(state, BLOCK, masked(load(l3 + at - LRH_LENGTH), mask + at));
	for (; left > BLOCK; left -= BLOCK)
		state = over(state, BLOCK, load(end - left));
	return remainder_sum(
		over(state, left, _mm_and_si128(load(end - BLOCK), load(last_octets + left))));
}

TARGET uint32_t short_sum_ipv4(const uint8_t *l3, size_t n)
{
	return short_sum(l3, n, ipv4_mask, IPV4_BLOCKS);
}

TARGET uint32_t short_sum_ipv6(const uint8_t *l3, size_t n)
{
	return short_sum(l3, n, ipv6_mask, IPV6_BLOCKS);
}

#endif
