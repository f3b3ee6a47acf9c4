/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Headers are masked as they are loaded. Either the state (state.h) moves over 16 octets at a time, which is one
 * multiplication after another. Or, with VPCLMULQDQ, each 64 bits move over all octets behind them at once: they are
 * multiplied by the power of x that their distance from the end of the frame asks for, and the products are added.
 *
 *	    | LRH | IP, UDP, BTH ...                     | ICRC
 *	  first: 64 octets    |    last: 64 octets       |
 *	     nothing is added for octets before the LRH
 */
#include "wire/short_sum.h"

#ifdef __x86_64__

#include "wire/header.h"
#include "wire/state.h"

#define TARGET	   __attribute__((target("avx,pclmul")))
#define INLINE	   static inline TARGET __attribute__((always_inline))
#define TARGET_512 __attribute__((target("avx512f,avx512bw,pclmul,vpclmulqdq")))
#define INLINE_512 static inline TARGET_512 __attribute__((always_inline))
#define TARGET_256 __attribute__((target("avx2,pclmul,vpclmulqdq")))
#define INLINE_256 static inline TARGET_256 __attribute__((always_inline))

#define BLOCK	    STATE_OCTETS
#define WIDTH	    64u
#define LRH_LENGTH  8u /* in its place there are eight octets of ones */
#define IPV4_BLOCKS ((LRH_LENGTH + IPV4_LENGTH + UDP_LENGTH + BTH_LENGTH) / BLOCK)
/* The last four octets of the BTH are left, and nothing in them is variant. */
#define IPV6_BLOCKS ((LRH_LENGTH + IPV6_LENGTH + UDP_LENGTH + BTH_LENGTH) / BLOCK)

/*
 * Ones for the LRH and for the variant fields (icrc.c), between zeros for what lies around the headers. The first
 * four octets of the LRH are zero, because a sum begins with ones there, which are added.
 */
#define MASK_LRH  (2 * WIDTH)
#define MASK_L3	  (MASK_LRH + LRH_LENGTH)
#define AT(octet) [MASK_L3 + (octet)]
#define LRH	  AT(-4) = 0xff, AT(-3) = 0xff, AT(-2) = 0xff, AT(-1) = 0xff

static const uint8_t ipv4_mask[MASK_L3 + SHORT_SUM_WIDE_MOST] __attribute__((aligned(BLOCK))) = {
	LRH,
	AT(IPV4_TOS) = 0xff,
	AT(IPV4_TTL) = 0xff,
	AT(IPV4_CHECKSUM) = 0xff,
	AT(IPV4_CHECKSUM + 1) = 0xff,
	AT(IPV4_LENGTH + UDP_CHECKSUM) = 0xff,
	AT(IPV4_LENGTH + UDP_CHECKSUM + 1) = 0xff,
	AT(IPV4_LENGTH + UDP_LENGTH + BTH_CONGESTION) = 0xff,
};

static const uint8_t ipv6_mask[MASK_L3 + SHORT_SUM_WIDE_MOST] __attribute__((aligned(BLOCK))) = {
	LRH,
	AT(0) = 0x0f,
	AT(1) = 0xff,
	AT(2) = 0xff,
	AT(3) = 0xff,
	AT(IPV6_HOP_LIMIT) = 0xff,
	AT(IPV6_LENGTH + UDP_CHECKSUM) = 0xff,
	AT(IPV6_LENGTH + UDP_CHECKSUM + 1) = 0xff,
	AT(IPV6_LENGTH + UDP_LENGTH + BTH_CONGESTION) = 0xff,
};

/* ---- one step after another ---- */

INLINE __m128i masked(__m128i octets, const uint8_t *mask)
{
	return _mm_or_si128(octets, *(const __m128i *)mask);
}

/* Compiled for either mask. */
INLINE __m128i state_of(const uint8_t *l3, size_t n, const uint8_t *mask, size_t blocks)
{
	const uint8_t *end = l3 + n;
	size_t left = LRH_LENGTH + n - blocks * BLOCK;
	__m128i state = masked(_mm_slli_si128(state_load(l3), LRH_LENGTH), mask + MASK_LRH);

#pragma GCC unroll 4
	for (size_t at = BLOCK; at < blocks * BLOCK; at += BLOCK)
		state = state_over(state, BLOCK,
				   masked(state_load(l3 + at - LRH_LENGTH), mask + MASK_LRH + at));
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

/* ---- at once, 128 octets that end where the frame ends ---- */

#define WHOLE (2 * WIDTH)

/* x^(64 k + 32) mod P, bits reflected, for k = 15 to 0, which is that of the last 64 bits */
static const uint64_t power[WHOLE / 8] __attribute__((aligned(WIDTH))) = {
	0x14a7fe880, 0x1ea89367e, 0x1d7cfc6ac, 0x0df068dc2, 0x18cb44e58, 0x1c7569e54,
	0x0ae0b5394, 0x154442bd4, 0x1c6e41596, 0x03db1ecdc, 0x174359406, 0x0f1da05aa,
	0x15a546366, 0x1751997d0, 0x0ccaa009e, 0x1db710640,
};

static inline const uint8_t *mask_of(const uint8_t *l3)
{
	return (l3[0] >> 4 == 6 ? ipv6_mask : ipv4_mask) + MASK_L3;
}

INLINE_256 uint32_t reduced(__m256i products)
{
	return state_reduce(_mm_xor_si128(_mm256_castsi256_si128(products),
					  _mm256_extracti128_si256(products, 1)));
}

/* The last `n` of 64 octets, at most 64, and zeros before them, which are not read; masked. */
INLINE_512 __m512i masked_last(const uint8_t *octets, size_t n, const uint8_t *mask)
{
	__mmask64 which = n > 0 ? UINT64_MAX << (WIDTH - n) : 0;

	return _mm512_or_si512(_mm512_maskz_loadu_epi8(which, octets), _mm512_loadu_si512(mask));
}

/* Each 64 bits multiplied; the products of two neighbours are added. */
INLINE_512 __m512i products_512(__m512i octets, const uint64_t *by)
{
	__m512i b = _mm512_load_si512(by);

	return _mm512_xor_si512(_mm512_clmulepi64_epi128(octets, b, 0x00),
				_mm512_clmulepi64_epi128(octets, b, 0x11));
}

TARGET_512 uint32_t short_sum_512(const uint8_t *l3, size_t n)
{
	const uint8_t *last = l3 + n - WIDTH, *mask = mask_of(l3) + n - WIDTH;
	__m512i sum;

	if (n + LRH_LENGTH <= WIDTH) {
		sum = products_512(masked_last(last, n, mask), power + WIDTH / 8);
	} else {
		size_t in_first = n > WIDTH ? n - WIDTH : 0;
		__m512i first = masked_last(last - WIDTH, in_first, mask - WIDTH);

		sum = products_512(masked_last(last, n - in_first, mask), power + WIDTH / 8);
		sum = _mm512_xor_si512(sum, products_512(first, power));
	}
	return reduced(
		_mm256_xor_si256(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1)));
}

/* Read from [n / 4] on: a mask of 128 octets whose last n are those of the frame. */
static const int32_t of_frame[2 * WHOLE / 4] = { [WHOLE / 4 ... 2 * WHOLE / 4 - 1] = -1 };

/* Of 32 octets, the first of which is the one at `at` of the 128. Those before the frame are not read. */
INLINE_256 __m256i products_256(const uint8_t *l3, size_t n, const uint8_t *mask, size_t at)
{
	ptrdiff_t from = (ptrdiff_t)(n + at) - (ptrdiff_t)WHOLE; /* most often before the frame */
	__m256i which = _mm256_loadu_si256((const __m256i *)(of_frame + (n + at) / 4));
	__m256i octets = _mm256_or_si256(_mm256_maskload_epi32((const int *)(l3 + from), which),
					 _mm256_loadu_si256((const __m256i *)(mask + from)));
	__m256i by = _mm256_load_si256((const __m256i *)(power + at / 8));

	return _mm256_xor_si256(_mm256_clmulepi64_epi128(octets, by, 0x00),
				_mm256_clmulepi64_epi128(octets, by, 0x11));
}

TARGET_256 uint32_t short_sum_256(const uint8_t *l3, size_t n)
{
	const uint8_t *mask = mask_of(l3);
	__m256i sum = _mm256_xor_si256(products_256(l3, n, mask, WIDTH),
				       products_256(l3, n, mask, WIDTH + 32));

	if (n + LRH_LENGTH > WIDTH) {
		sum = _mm256_xor_si256(sum, products_256(l3, n, mask, 0));
		sum = _mm256_xor_si256(sum, products_256(l3, n, mask, 32));
	}
	return reduced(sum);
}

#endif
