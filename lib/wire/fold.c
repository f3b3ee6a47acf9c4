/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state is a polynomial of four times 256 bits. Each step multiplies it by x^1024, which moves
 * it over the next 128 octets, and then adds those octets. To multiply and to keep the state's
 * width, each half of 64 bits is multiplied by x^n mod P (Gopal and others, "Fast CRC Computation
 * for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009). In the end 16 octets are left
 * whose sum is that of all of them. ISA-L adds the remaining octets to that sum.
 */
#include "wire/fold.h"

#ifdef __x86_64__

#include <immintrin.h>
#include <isa-l/crc.h>
#include <string.h>

#include "wire/remainder.h"

#define STEP   128u /* octets */
#define PARTS  4u /* of 32 octets */
#define TARGET __attribute__((target("avx2,pclmul,vpclmulqdq")))
#define INLINE static inline TARGET __attribute__((always_inline))

/*
 * x^n mod P, bits reflected, for the two halves of 128 bits: STEP moves them over 128 octets, PART
 * over 16.
 */
#define STEP_LOW  INT64_C(0x1e88ef372) /* n = 1024 + 32 */
#define STEP_HIGH INT64_C(0x14a7fe880) /* 1024 - 32 */
#define PART_LOW  INT64_C(0x1751997d0) /* 128 + 32 */
#define PART_HIGH INT64_C(0x0ccaa009e) /* 128 - 32 */

INLINE __m256i over_step(__m256i state, __m256i next)
{
	const __m256i k = _mm256_set_epi64x(STEP_HIGH, STEP_LOW, STEP_HIGH, STEP_LOW);
	__m256i low = _mm256_clmulepi64_epi128(state, k, 0x00);
	__m256i high = _mm256_clmulepi64_epi128(state, k, 0x11);

	return _mm256_xor_si256(_mm256_xor_si256(low, high), next);
}

INLINE __m128i over_16(__m128i state, __m128i next)
{
	const __m128i k = _mm_set_epi64x(PART_HIGH, PART_LOW);
	__m128i low = _mm_clmulepi64_si128(state, k, 0x00);
	__m128i high = _mm_clmulepi64_si128(state, k, 0x11);

	return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

INLINE __m256i take(uint8_t *to, const uint8_t *from)
{
	__m256i octets = _mm256_loadu_si256((const __m256i *)from);

	if (to != NULL)
		_mm256_storeu_si256((__m256i *)to, octets);
	return octets;
}

/* Reduces the state to 16 octets with the same sum, and computes it. Ones were added to the first octets. */
INLINE uint32_t sum_of(const __m256i *state)
{
	__m128i all = _mm256_castsi256_si128(state[0]);

	all = over_16(all, _mm256_extracti128_si256(state[0], 1));
	for (uint32_t i = 1; i < PARTS; i++) {
		all = over_16(all, _mm256_castsi256_si128(state[i]));
		all = over_16(all, _mm256_extracti128_si256(state[i], 1));
	}
	return remainder_sum(all);
}

/* `to`: NULL as a constant at compile time, or where to copy the octets. */
INLINE uint32_t fold(uint32_t sum, uint8_t *to, const uint8_t *from, size_t n)
{
	__m256i state[PARTS];
	size_t at;

	for (uint32_t i = 0; i < PARTS; i++)
		state[i] = take(to != NULL ? to + 32 * i : NULL, from + 32 * i);
	state[0] = _mm256_xor_si256(state[0], _mm256_zextsi128_si256(_mm_cvtsi32_si128((int)~sum)));
	for (at = STEP; n - at >= STEP; at += STEP)
		for (uint32_t i = 0; i < PARTS; i++)
			state[i] = over_step(state[i], take(to != NULL ? to + at + 32 * i : NULL,
							    from + at + 32 * i));
	sum = sum_of(state);
	if (at == n)
		return sum;
	if (to != NULL)
		memcpy(to + at, from + at, n - at);
	return crc32_gzip_refl(sum, from + at, n - at);
}

TARGET uint32_t fold_add(uint32_t sum, const void *octets, size_t length)
{
	return fold(sum, NULL, octets, length);
}

TARGET uint32_t fold_copy(uint32_t sum, void *to, const void *from, size_t length)
{
	return fold(sum, to, from, length);
}

#endif
