/* SPDX-License-Identifier: BSD-3-Clause */
/* Two lanes at a time (fold_loop.h). */
#include "wire/fold_width.h"

#ifdef __x86_64__

#include "wire/state.h"

#define TARGET __attribute__((target("avx2,pclmul,vpclmulqdq")))
#define WIDTH  32u
/* x^(8n + 32) and x^(8n - 32) mod P, bits reflected, for the halves of a lane. */
#define BY(n)  _mm256_set_epi64x(high[n], low[n], high[n], low[n])

typedef __m256i vector;

static const int64_t low[] = { 0, 0x0f1da05aa, 0x154442bd4, 0x0df068dc2, 0x1e88ef372 };
static const int64_t high[] = { 0, 0x15a546366, 0x1c6e41596, 0x18cb44e58, 0x14a7fe880 };

#include "wire/fold_loop.h"

INLINE vector vector_take(uint8_t *to, const uint8_t *from)
{
	vector octets;

	/* Without a copy, gcc would load 16 octets twice, store them, and wait for that. */
	if (to == NULL)
		return _mm256_lddqu_si256((const vector *)from);
	octets = _mm256_loadu_si256((const vector *)from);
	_mm256_storeu_si256((vector *)to, octets);
	return octets;
}

INLINE vector vector_over(vector state, vector by, vector next)
{
	vector l = _mm256_clmulepi64_epi128(state, by, 0x00);
	vector h = _mm256_clmulepi64_epi128(state, by, 0x11);

	return _mm256_xor_si256(_mm256_xor_si256(l, h), next);
}

INLINE vector vector_add_first(vector v, __m128i state)
{
	return _mm256_xor_si256(v, _mm256_zextsi128_si256(state));
}

INLINE __m128i vector_state(vector v)
{
	return state_over(_mm256_castsi256_si128(v), STATE_OCTETS, _mm256_extracti128_si256(v, 1));
}

TARGET uint32_t fold_add_256(__m128i first, const uint8_t *octets, size_t length)
{
	return fold(first, NULL, octets, length);
}

TARGET uint32_t fold_copy_256(__m128i first, uint8_t *to, const uint8_t *from, size_t length)
{
	return fold(first, to, from, length);
}

#endif
