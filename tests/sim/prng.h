/* SPDX-License-Identifier: BSD-3-Clause */
/* xoshiro256**, seeded by splitmix64: a seed gives the same numbers on every machine. */
#ifndef SIM_PRNG_H
#define SIM_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct prng {
	uint64_t s[4];
};

static inline uint64_t splitmix(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static inline void prng_seed(struct prng *p, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		p->s[i] = splitmix(&seed);
}

static inline uint64_t prng_rotate(uint64_t x, int k)
{
	return x << k | x >> (64 - k);
}

static inline uint64_t prng_next(struct prng *p)
{
	uint64_t *s = p->s;
	uint64_t result = prng_rotate(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = prng_rotate(s[3], 45);
	return result;
}

/* 0 .. below - 1 */
static inline uint32_t prng_below(struct prng *p, uint32_t below)
{
	return (uint32_t)((prng_next(p) >> 32) * below >> 32);
}

/* low .. high */
static inline uint32_t prng_between(struct prng *p, uint32_t low, uint32_t high)
{
	return low + prng_below(p, high - low + 1);
}

/* True with this probability; draws no number if it is 0. */
static inline bool prng_chance(struct prng *p, double probability)
{
	return probability > 0 &&
	       (double)(prng_next(p) >> 11) < probability * (double)(UINT64_C(1) << 53);
}

#endif
