/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What precedes the octets is added to the first 16 of them: the ones that a sum begins with or
 * continues with, or the state of the headers moved there.
 */
#include "wire/fold.h"

#ifdef __x86_64__

#include "wire/fold_width.h"
#include "wire/short_sum.h"
#include "wire/state.h"

#define TARGET __attribute__((target("avx,pclmul")))

static inline bool wide(void)
{
	return __builtin_cpu_supports("avx512f");
}

/* The other places of a sum of earlier octets are zero. */
static inline TARGET __m128i behind_sum(uint32_t sum)
{
	return _mm_cvtsi32_si128((int)~sum);
}

static inline TARGET __m128i behind_state(__m128i state)
{
	return state_over(state, STATE_OCTETS, _mm_setzero_si128());
}

static inline TARGET __m128i behind_headers(const uint8_t *l3, size_t header_length)
{
	return behind_state(short_state(l3, header_length));
}

static inline TARGET uint32_t add(__m128i first, const void *octets, size_t length)
{
	return wide() ? fold_add_512(first, octets, length) : fold_add_256(first, octets, length);
}

static inline TARGET uint32_t copy(__m128i first, void *to, const void *from, size_t length)
{
	return wide() ? fold_copy_512(first, to, from, length)
		      : fold_copy_256(first, to, from, length);
}

TARGET uint32_t fold_add(uint32_t sum, const void *octets, size_t length)
{
	return add(behind_sum(sum), octets, length);
}

TARGET uint32_t fold_copy(uint32_t sum, void *to, const void *from, size_t length)
{
	return copy(behind_sum(sum), to, from, length);
}

TARGET uint32_t fold_headers_add(const uint8_t *l3, size_t header_length, const void *octets,
				 size_t length)
{
	return add(behind_headers(l3, header_length), octets, length);
}

TARGET uint32_t fold_headers_copy(const uint8_t *l3, size_t header_length, void *to,
				  const void *from, size_t length)
{
	return copy(behind_headers(l3, header_length), to, from, length);
}

TARGET void fold_headers_state(const uint8_t *l3, size_t header_length, uint8_t state[16])
{
	_mm_storeu_si128((__m128i *)state, short_state(l3, header_length));
}

/* The last octets of the headers are those of the state, which has moved over nothing since. */
static inline TARGET __m128i behind_changed(const uint8_t state[16], uint32_t change)
{
	return behind_state(_mm_xor_si128(state_load(state), _mm_setr_epi32(0, 0, 0, (int)change)));
}

TARGET uint32_t fold_state_add(const uint8_t state[16], uint32_t change, const void *octets,
			       size_t length)
{
	return add(behind_changed(state, change), octets, length);
}

TARGET uint32_t fold_state_copy(const uint8_t state[16], uint32_t change, void *to,
				const void *from, size_t length)
{
	return copy(behind_changed(state, change), to, from, length);
}

#endif
