/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A secret permutation of the 24-bit numbers: a Feistel network over two halves of twelve bits. Its
 * round functions are tables that SipHash fills from a secret. A table lookup costs as much as a
 * few arithmetic instructions, and the entries of a table are unrelated to each other.
 *
 * Why six rounds: four rounds of independent random functions make a permutation that looks random
 * (Luby and Rackoff 1988). But these halves are short: the tables of four rounds, and of five, can
 * be worked out from many images (Biryukov, Leurent and Perrin 2015). No practical way is known for
 * six. An image tells nothing about others, but there are only 2^24 of them to try.
 */
#ifndef MEMORY_PERMUTATION_H
#define MEMORY_PERMUTATION_H

#include <assert.h>
#include <stdint.h>

#define PERMUTATION_BITS   24
#define PERMUTATION_ROUNDS 6 /* even: each half ends where it began */
#define PERMUTATION_HALF   (PERMUTATION_BITS / 2)
#define PERMUTATION_MASK   ((1u << PERMUTATION_HALF) - 1)

struct permutation {
	uint16_t round[PERMUTATION_ROUNDS][1u << PERMUTATION_HALF];
};

/* `secret`: 16 octets of a cryptographic generator. */
void permutation_init(struct permutation *p, const uint8_t secret[16]);

static inline uint32_t permutation_image(const struct permutation *p, uint32_t number)
{
	uint32_t left = number >> PERMUTATION_HALF, right = number & PERMUTATION_MASK;

	assert(number < 1u << PERMUTATION_BITS);
	for (uint32_t i = 0; i < PERMUTATION_ROUNDS; i += 2) {
		left ^= p->round[i][right];
		right ^= p->round[i + 1][left];
	}
	return left << PERMUTATION_HALF | right;
}

/* The number that has this image. Goes through the rounds in reverse. */
static inline uint32_t permutation_number(const struct permutation *p, uint32_t image)
{
	uint32_t left = image >> PERMUTATION_HALF, right = image & PERMUTATION_MASK;

	for (uint32_t i = PERMUTATION_ROUNDS; i > 0; i -= 2) {
		right ^= p->round[i - 1][left];
		left ^= p->round[i - 2][right];
	}
	return left << PERMUTATION_HALF | right;
}

#endif
