/* SPDX-License-Identifier: BSD-3-Clause */
/* Four lanes at a time (fold_loop.h). */
#include "wire/fold_width.h"

#ifdef __x86_64__

#include "wire/state.h"

#define TARGET __attribute__((target("avx512f,pclmul,vpclmulqdq")))
#define WIDTH  64u
/* x^(8n + 32) and x^(8n - 32) mod P, bits reflected, for the halves of a lane. */
#define BY(n)  _mm512_set4_epi64(high[n], low[n], high[n], low[n])

typedef __m512i vector;

static const int64_t low[] = { 0, 0x154442bd4, 0x1e88ef372, 0x1821d8bc0, 0x11542778a };
static const int64_t high[] = { 0, 0x1c6e41596, 0x14a7fe880, 0x12e958ac4, 0x1322d1430 };

#include "wire/fold_loop.h"

INLINE vector vector_take(uint8_t *to, const uint8_t *from)
{
	vector octets = _mm512_loadu_si512(from);

	if (to != NULL)
		_mm512_storeu_si512(to, octets);
	return octets;
}

INLINE vector vector_over(vector state, vector by, vector next)
{
	vector l = _mm512_clmulepi64_epi128(state, by, 0x00);
	vector h = _mm512_clmulepi64_epi128(state, by, 0x11);

	return _mm512_ternarylogic_epi64(l, h, next, 0x96); /* all three added */
}

INLINE vector vector_add_first(vector v, __m128i state)
{
	return _mm512_xor_si512(v, _mm512_zextsi128_si512(state));
}

INLINE __m128i vector_state(vector v)
{
	/* The first three lanes move over 48, 32 and 16 octets. */
	const vector by = _mm512_set_epi64(0, 0, 0x0ccaa009e, 0x1751997d0, 0x15a546366, 0x0f1da05aa,
					   0x174359406, 0x03db1ecdc);
	vector moved = vector_over(v, by, _mm512_setzero_si512());
	__m256i two = _mm256_xor_si256(_mm512_castsi512_si256(moved),
				       _mm512_extracti64x4_epi64(moved, 1));
	__m128i one = _mm_xor_si128(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));

	return _mm_xor_si128(one, _mm512_extracti32x4_epi32(v, 3));
}

TARGET uint32_t fold_add_512(__m128i first, const uint8_t *octets, size_t length)
{
	return fold(first, NULL, octets, length);
}

TARGET uint32_t fold_copy_512(__m128i first, uint8_t *to, const uint8_t *from, size_t length)
{
	return fold(first, to, from, length);
}

#endif
