/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SipHash-2-4 (Aumasson and Bernstein 2012) of eight octets. Without the secret, its result cannot
 * be told from a random number.
 */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include <stdint.h>

static inline uint64_t siphash_rotate(uint64_t x, unsigned int by)
{
	return x << by | x >> (64 - by);
}

static inline void siphash_rounds(uint64_t v[4], unsigned int n)
{
	while (n-- > 0) {
		v[0] += v[1];
		v[1] = siphash_rotate(v[1], 13) ^ v[0];
		v[0] = siphash_rotate(v[0], 32);
		v[2] += v[3];
		v[3] = siphash_rotate(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = siphash_rotate(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = siphash_rotate(v[1], 17) ^ v[2];
		v[2] = siphash_rotate(v[2], 32);
	}
}

/* `secret`: sixteen octets, as two little-endian words. `word`: the message, as one such word. */
static inline uint64_t siphash(const uint64_t secret[2], uint64_t word)
{
	const uint64_t length = UINT64_C(8) << 56;
	uint64_t v[4] = {
		secret[0] ^ UINT64_C(0x736f6d6570736575),
		secret[1] ^ UINT64_C(0x646f72616e646f6d),
		secret[0] ^ UINT64_C(0x6c7967656e657261),
		secret[1] ^ UINT64_C(0x7465646279746573),
	};

	v[3] ^= word;
	siphash_rounds(v, 2);
	v[0] ^= word;
	v[3] ^= length;
	siphash_rounds(v, 2);
	v[0] ^= length;
	v[2] ^= 0xff;
	siphash_rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
