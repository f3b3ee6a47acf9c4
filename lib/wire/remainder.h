/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the sums of fold.c and short_sum.c end with: 128 bits become a CRC-32 without leaving the registers. Only on
 * processors with AVX and PCLMULQDQ.
 */
#ifndef WIRE_REMAINDER_H
#define WIRE_REMAINDER_H

#ifdef __x86_64__

#include <stdint.h>

#include <immintrin.h>

/*
 * The sum of 16 octets that begins with zero instead of ones: the remainder modulo P of the state times x^32, inverted.
 * Two steps of 32 bits, and then Barrett's reduction (Gopal and others, as in fold.c). Bits are reflected.
 */
static inline __attribute__((always_inline, target("avx,pclmul"))) uint32_t remainder_sum(
	__m128i state)
{
	const __m128i even = _mm_setr_epi32(-1, 0, -1, 0);
	const __m128i by =
		_mm_set_epi64x(INT64_C(0x163cd6124), INT64_C(0x0ccaa009e)); /* x^64, x^96 */
	const __m128i p =
		_mm_set_epi64x(INT64_C(0x1f7011641), INT64_C(0x1db710641)); /* x^64 / P, P */
	__m128i t;

	t = _mm_clmulepi64_si128(state, by, 0x00);
	state = _mm_xor_si128(_mm_srli_si128(state, 8), t);
	t = _mm_clmulepi64_si128(_mm_and_si128(state, even), by, 0x10);
	state = _mm_xor_si128(_mm_srli_si128(state, 4), t);
	t = _mm_clmulepi64_si128(_mm_and_si128(state, even), p, 0x10);
	t = _mm_clmulepi64_si128(_mm_and_si128(t, even), p, 0x00);
	return ~(uint32_t)_mm_extract_epi32(_mm_xor_si128(state, t), 1);
}

#endif
#endif
