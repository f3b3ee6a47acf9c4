/* SPDX-License-Identifier: BSD-3-Clause */
/* The sum that folds 32 octets at a time, also on processors where ISA-L is faster. */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "wire/fold.h"

#define MOST 5000u

TestSuite(fold, .timeout = 120);

#ifdef __x86_64__
static uint8_t from[MOST + 64], to[MOST + 128];

/* The definition, bit by bit. */
static uint32_t crc_by_bits(uint32_t sum, const uint8_t *p, size_t n)
{
	sum = ~sum;
	while (n--) {
		sum ^= *p++;
		for (int i = 0; i < 8; i++)
			sum = sum >> 1 ^ (sum & 1 ? 0xedb88320 : 0);
	}
	return ~sum;
}

static void prepare(void)
{
	uint32_t x = 2463534242u;

	if (!__builtin_cpu_supports("vpclmulqdq") || !__builtin_cpu_supports("avx2"))
		cr_skip_test("this processor does not multiply polynomials 32 octets at a time");
	for (size_t i = 0; i < sizeof(from); i++) {
		x = x * 1664525 + 1013904223;
		from[i] = (uint8_t)(x >> 24);
	}
}

Test(fold, sums_and_copies_at_every_length)
{
	prepare();
	for (size_t n = FOLD_LEAST; n <= MOST; n += n < 1200 ? 1 : 53) {
		const uint8_t *f = from + n % 64;
		uint8_t *t = to + 1 + n % 37;
		uint32_t sum = crc_by_bits((uint32_t)n, f, n);

		cr_assert_eq(fold_add((uint32_t)n, f, n), sum, "%zu octets", n);
		memset(to, 0xee, sizeof(to));
		cr_assert_eq(fold_copy((uint32_t)n, t, f, n), sum, "%zu octets copied", n);
		cr_assert_arr_eq(t, f, n);
		cr_assert_eq(t[-1], 0xee, "an octet before the copy");
		cr_assert_eq(t[n], 0xee, "an octet behind the copy");
	}
}

/* Sums that others publish for zeros and for ones (crc32 of zlib), and each single bit. */
Test(fold, known_answers)
{
	uint8_t octets[1024];
	uint32_t zeros;

	prepare();
	memset(octets, 0, sizeof(octets));
	zeros = fold_add(0, octets, sizeof(octets));
	cr_expect_eq(zeros, 0xefb5af2e);
	memset(octets, 0xff, sizeof(octets));
	cr_expect_eq(fold_add(0, octets, sizeof(octets)), 0xb83afff4);
	memset(octets, 0, sizeof(octets));
	for (size_t bit = 0; bit < 8 * sizeof(octets); bit++) {
		octets[bit / 8] = (uint8_t)(1u << bit % 8);
		cr_assert_neq(fold_add(0, octets, sizeof(octets)), zeros, "bit %zu", bit);
		octets[bit / 8] = 0;
	}
}
#endif

/* The engine uses it only where it exists and ISA-L has no wider code. */
Test(fold, is_not_used_with_avx_512)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("vpclmulqdq"))
		cr_expect_not(fold_is_faster());
	else
		cr_expect_eq(fold_is_faster(), !!__builtin_cpu_supports("avx2"));
#else
	cr_expect_not(fold_is_faster());
#endif
}
