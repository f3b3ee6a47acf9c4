/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "base/siphash.h"
#include "memory/permutation.h"

#define ALL (1u << PERMUTATION_BITS)

static struct permutation p, q;

static void start(void)
{
	static const uint8_t secret[16] = "0123456789abcdef", other[16] = "0123456789abcdeg";

	permutation_init(&p, secret);
	permutation_init(&q, other);
}

TestSuite(permutation, .init = start, .timeout = 120);

/* The vector of SipHash's authors for the key 00 01 .. 0f and the message 00 .. 07. */
Test(permutation, siphash_known_answers)
{
	static const uint64_t key[2] = { UINT64_C(0x0706050403020100),
					 UINT64_C(0x0f0e0d0c0b0a0908) };

	cr_expect_eq(siphash(key, UINT64_C(0x0706050403020100)), UINT64_C(0x93f5f5799a932462));
}

Test(permutation, each_number_has_an_image_of_its_own_and_is_found_again)
{
	uint8_t *seen = calloc(ALL, 1);
	uint32_t repeated = 0, lost = 0;

	for (uint32_t i = 0; i < ALL; i++) {
		uint32_t image = permutation_image(&p, i);

		cr_assert_lt(image, ALL);
		repeated += seen[image]++ != 0;
		lost += permutation_number(&p, image) != i;
	}
	cr_expect_eq(repeated, 0);
	cr_expect_eq(lost, 0);
	free(seen);
}

/* hostile H-56: numbers that tell of the next. */
Test(permutation, a_bit_of_the_number_turns_each_bit_of_the_image_half_of_the_time)
{
	enum {
		TRIES = 4096
	};

	for (uint32_t in = 0; in < PERMUTATION_BITS; in++) {
		uint32_t turned[PERMUTATION_BITS] = { 0 };

		for (uint32_t i = 0; i < TRIES; i++) {
			uint32_t number = i * 0x9e3779b1u >> 8;
			uint32_t change = permutation_image(&p, number) ^
					  permutation_image(&p, number ^ 1u << in);

			for (uint32_t out = 0; out < PERMUTATION_BITS; out++)
				turned[out] += change >> out & 1;
		}
		/* Five standard deviations of 32 on either side. */
		for (uint32_t out = 0; out < PERMUTATION_BITS; out++)
			cr_expect(abs((int)turned[out] - TRIES / 2) < 160,
				  "bit %u turns bit %u %u times of %u", in, out, turned[out],
				  TRIES);
	}
}

static int in_order(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/*
 * How two numbers differ does not tell how their images do. Of 10000 random differences in 2^24,
 * about three are equal to another.
 * hostile H-56: numbers that tell of the next.
 */
Test(permutation, differences_of_images_do_not_repeat)
{
	enum {
		PAIRS = 10000
	};
	static uint32_t difference[PAIRS];

	for (uint32_t bit = 0; bit < PERMUTATION_BITS; bit++) {
		uint32_t equal = 0;

		for (uint32_t i = 0; i < PAIRS; i++) {
			uint32_t number = i * 0x9e3779b1u >> 8;

			difference[i] = permutation_image(&p, number) ^
					permutation_image(&p, number ^ 1u << bit);
		}
		qsort(difference, PAIRS, sizeof(difference[0]), in_order);
		for (uint32_t i = 1; i < PAIRS; i++)
			equal += difference[i] == difference[i - 1];
		cr_expect(equal < 16, "bit %u: %u differences come again", bit, equal);
	}
}

Test(permutation, one_bit_of_the_secret_makes_another)
{
	uint32_t same = 0;

	for (uint32_t i = 0; i < ALL; i += 16)
		same += permutation_image(&p, i) == permutation_image(&q, i);
	cr_expect(same < 10, "%u of 2^20 numbers have the same image", same);
}
