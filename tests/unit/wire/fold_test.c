/* SPDX-License-Identifier: BSD-3-Clause */
/* The sums that fold 32 and 64 octets at a time. */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "wire/fold.h"
#include "wire/fold_width.h"
#include "wire/icrc.h"

#define MOST 5000u

TestSuite(fold, .timeout = 120);

#ifdef __x86_64__
#define TARGET __attribute__((target("avx")))

static uint8_t from[MOST + 64], to[MOST + 128];

static const struct width {
	uint32_t octets;
	uint32_t (*add)(__m128i first, const uint8_t *octets, size_t length);
	uint32_t (*copy)(__m128i first, uint8_t *to, const uint8_t *from, size_t length);
} widths[] = { { 32, fold_add_256, fold_copy_256 }, { 64, fold_add_512, fold_copy_512 } };

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

static bool runs(const struct width *w)
{
	if (!__builtin_cpu_supports("vpclmulqdq"))
		return false;
	return w->octets == 64 ? __builtin_cpu_supports("avx512f") : __builtin_cpu_supports("avx2");
}

static void prepare(const struct width *w)
{
	uint32_t x = 2463534242u;

	if (!runs(w))
		cr_skip_test("this processor does not multiply polynomials %u octets at a time",
			     w->octets);
	for (size_t i = 0; i < sizeof(from); i++) {
		x = x * 1664525 + 1013904223;
		from[i] = (uint8_t)(x >> 24);
	}
}

static TARGET uint32_t add(const struct width *w, uint32_t sum, const uint8_t *octets, size_t n)
{
	return w->add(_mm_cvtsi32_si128((int)~sum), octets, n);
}

static TARGET uint32_t copy(const struct width *w, uint32_t sum, uint8_t *t, const uint8_t *f,
			    size_t n)
{
	return w->copy(_mm_cvtsi32_si128((int)~sum), t, f, n);
}

static void at_every_length(const struct width *w)
{
	prepare(w);
	for (size_t n = FOLD_LEAST; n <= MOST; n += n < 1200 ? 1 : 53) {
		const uint8_t *f = from + n % 64;
		uint8_t *t = to + 1 + n % 37;
		uint32_t sum = crc_by_bits((uint32_t)n, f, n);

		cr_assert_eq(add(w, (uint32_t)n, f, n), sum, "%zu octets", n);
		memset(to, 0xee, sizeof(to));
		cr_assert_eq(copy(w, (uint32_t)n, t, f, n), sum, "%zu octets copied", n);
		cr_assert_arr_eq(t, f, n);
		cr_assert_eq(t[-1], 0xee, "an octet before the copy");
		cr_assert_eq(t[n], 0xee, "an octet behind the copy");
	}
}

Test(fold, sums_and_copies_32_octets_at_a_time_at_every_length)
{
	at_every_length(&widths[0]);
}

Test(fold, sums_and_copies_64_octets_at_a_time_at_every_length)
{
	at_every_length(&widths[1]);
}

/* Sums that others publish for zeros and for ones (crc32 of zlib), and each single bit. */
static void known_answers(const struct width *w)
{
	uint8_t octets[1024];
	uint32_t zeros;

	prepare(w);
	memset(octets, 0, sizeof(octets));
	zeros = add(w, 0, octets, sizeof(octets));
	cr_expect_eq(zeros, 0xefb5af2e);
	memset(octets, 0xff, sizeof(octets));
	cr_expect_eq(add(w, 0, octets, sizeof(octets)), 0xb83afff4);
	memset(octets, 0, sizeof(octets));
	for (size_t bit = 0; bit < 8 * sizeof(octets); bit++) {
		octets[bit / 8] = (uint8_t)(1u << bit % 8);
		cr_assert_neq(add(w, 0, octets, sizeof(octets)), zeros, "bit %zu", bit);
		octets[bit / 8] = 0;
	}
}

Test(fold, known_answers_32_octets_at_a_time)
{
	known_answers(&widths[0]);
}

Test(fold, known_answers_64_octets_at_a_time)
{
	known_answers(&widths[1]);
}

/* What the engine calls takes the widest one that the processor has. */
Test(fold, continues_a_sum)
{
	if (!fold_works())
		cr_skip_test("this processor multiplies no polynomials 32 octets at a time");
	prepare(&widths[0]);
	for (size_t cut = FOLD_LEAST; cut + FOLD_LEAST <= 1000; cut++) {
		uint32_t sum = fold_copy(fold_add(0, from, cut), to, from + cut, 1000 - cut);

		cr_assert_eq(sum, crc_by_bits(0, from, 1000), "%zu and %zu octets", cut,
			     1000 - cut);
	}
}

/* The headers' variant fields count as ones, as in the sum by copies, whatever they hold. */
static void headers(uint8_t version, size_t least, size_t most)
{
	if (!fold_works())
		cr_skip_test("this processor multiplies no polynomials 32 octets at a time");
	prepare(&widths[0]);
	from[0] = (uint8_t)(version << 4 | (from[0] & 15));
	for (size_t h = least; h <= most; h++)
		for (size_t n = FOLD_LEAST; n < FOLD_LEAST + 300; n += 41) {
			const uint8_t *payload = from + 1000 + n % 64;
			uint32_t sum = crc_by_bits(icrc_begin_anywhere(from, h), payload, n);

			cr_assert_eq(fold_headers_add(from, h, payload, n), sum,
				     "%zu octets of headers, %zu of payload", h, n);
			memset(to, 0xee, sizeof(to));
			cr_assert_eq(fold_headers_copy(from, h, to + 1, payload, n), sum,
				     "%zu octets of headers, %zu of payload copied", h, n);
			cr_assert_arr_eq(to + 1, payload, n);
			cr_assert_eq(to[0], 0xee, "an octet before the copy");
			cr_assert_eq(to[1 + n], 0xee, "an octet behind the copy");
		}
}

Test(fold, payload_behind_ipv4_headers)
{
	headers(4, 40, 140);
}

Test(fold, payload_behind_ipv6_headers)
{
	headers(6, 60, 140);
}
#endif

Test(fold, is_used_where_the_processor_has_it)
{
#ifdef __x86_64__
	cr_expect_eq(fold_works(), runs(&widths[0]));
#else
	cr_expect_not(fold_works());
#endif
}
