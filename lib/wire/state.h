/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a CRC-32 that is made with carry-less multiplications, in the registers of processors with AVX and
 * PCLMULQDQ (fold.c, short_sum.c).
 *
 * The octets are the coefficients of a polynomial over bits, and the sum is its remainder modulo P. The state
 * is a polynomial of 128 bits with the same remainder as all octets so far. Multiplied by x^8n, which
 * moves it over the next n octets, it is added to them; multiplications of 64 by 64 bits with x^k mod P
 * do that and reduce it to its width (Gopal and others, "Fast CRC Computation for Generic Polynomials Using
 * PCLMULQDQ Instruction", Intel 2009). Bits are reflected.
 */
#ifndef WIRE_STATE_H
#define WIRE_STATE_H

#ifdef __x86_64__

#include <stddef.h>
#include <stdint.h>

#include <immintrin.h>

#define STATE_OCTETS 16u
#define STATE_INLINE static inline __attribute__((always_inline, target("avx,pclmul")))

/*
 * [n]: x^(8n - 32) mod P. Over n octets the lower half of a state is multiplied by [n + 8], and the upper one, which
 * is nearer to them, by [n].
 */
static const uint64_t state_power[8 + STATE_OCTETS + 1] = {
	0x0b66b1fa6, 0x03f036dc2, 0x1ae24a6b0, 0x0cacf972a, 0x100000000, 0x001000000, 0x000010000,
	0x000000100, 0x1db710640, 0x077073096, 0x1c26a3700, 0x1dab36c76, 0x163cd6124, 0x03d6029b0,
	0x1102dd5e4, 0x0a6770bb4, 0x0ccaa009e, 0x1cc0a1202, 0x0efc26b3e, 0x0c18edfc0, 0x140d44a2e,
	0x106e7dfc4, 0x09d0fe176, 0x0b9fbdbe8, 0x1751997d0,
};

/* Read from [n] on: a mask that leaves the last n octets of 16. */
static const uint8_t state_last_octets[2 * STATE_OCTETS] = {
	[STATE_OCTETS... 2 * STATE_OCTETS - 1] = 0xff,
};

STATE_INLINE __m128i state_load(const uint8_t *from)
{
	return _mm_loadu_si128((const __m128i *)from);
}

/* The state moves over `octets`, at most 16, which are the last ones of `next`; the others of `next` are zero. */
STATE_INLINE __m128i state_over(__m128i state, size_t octets, __m128i next)
{
	__m128i by_low = _mm_loadl_epi64((const __m128i *)&state_power[octets + 8]);
	__m128i by_high = _mm_loadl_epi64((const __m128i *)&state_power[octets]);
	__m128i low = _mm_clmulepi64_si128(state, by_low, 0x00);
	__m128i high = _mm_clmulepi64_si128(state, by_high, 0x01);

	return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* ... over the last `left` octets before `end`, 1 to 16. The 16 octets before `end` can be read. */
STATE_INLINE __m128i state_over_last(__m128i state, size_t left, const uint8_t *end)
{
	__m128i mask = state_load(state_last_octets + left);

	return state_over(state, left, _mm_and_si128(state_load(end - STATE_OCTETS), mask));
}

/*
 * The sum: the remainder modulo P of a polynomial of 96 bits, inverted, in Barrett's way: its upper 64 bits times x^96 / P
 * give the quotient, and that times P the multiple to take off. Ones were added to the first four octets, because a
 * sum begins with them.
 */
STATE_INLINE uint32_t state_reduce(__m128i polynomial)
{
	/* x^96 / P without its last bit, which has no part in the quotient; P */
	const __m128i by =
		_mm_set_epi64x(INT64_C(0x1db710641), (int64_t)UINT64_C(0xb4e5b025f7011641));
	__m128i quotient = _mm_clmulepi64_si128(polynomial, by, 0x00);
	__m128i multiple = _mm_clmulepi64_si128(quotient, by, 0x10);

	return ~(uint32_t)_mm_extract_epi32(_mm_xor_si128(polynomial, multiple), 2);
}

/* ... of a state, times x^32: its first 64 bits are multiplied by x^96. */
STATE_INLINE uint32_t state_sum(__m128i state)
{
	const __m128i by = _mm_set_epi64x(0, INT64_C(0x0ccaa009e));
	__m128i first = _mm_clmulepi64_si128(state, by, 0x00);

	return state_reduce(_mm_xor_si128(_mm_srli_si128(state, 8), first));
}

/* What short_sum_ipv4() or short_sum_ipv6() (short_sum.h) would make a sum of, for octets that follow. */
__m128i short_state(const uint8_t *l3, size_t n);

#endif
#endif
