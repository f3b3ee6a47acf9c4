/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "frames.h"
#include "wire/opcode.h"
#include "wire/short_sum.h"

/* The definition, bit by bit: reflected polynomial 0xEDB88320, initial and final value all ones. */
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

static void fill(uint8_t *p, size_t n)
{
	uint32_t x = 2463534242u;

	for (size_t i = 0; i < n; i++) {
		x = x * 1664525 + 1013904223;
		p[i] = (uint8_t)(x >> 24);
	}
}

Test(icrc, sums_as_the_definition_says_at_every_length)
{
	static uint8_t octets[5000];
	const size_t all[] = { 639,  640,  641,	 767,  768,  1023, 1024,
			       1025, 1500, 2048, 4095, 4096, 4097 };

	fill(octets, sizeof(octets));
	for (size_t n = 0; n < 600; n++)
		cr_assert_eq(icrc_add(0, octets + n % 7, n), crc_by_bits(0, octets + n % 7, n),
			     "%zu octets", n);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		cr_assert_eq(icrc_add(77, octets, all[i]), crc_by_bits(77, octets, all[i]));
}

Test(icrc, a_copy_is_exact_and_sums_the_same_whatever_the_alignment)
{
	static uint8_t from[5000], to[5200];

	fill(from, sizeof(from));
	for (size_t n = 0; n <= 4200; n = n < 300 || (n > 500 && n < 800) ? n + 1 : n + 61)
		for (size_t shift = 0; shift < 66; shift += 13) {
			memset(to, 0xee, sizeof(to));
			cr_assert_eq(icrc_copy(n, to + 64 + shift / 2, from + shift, n),
				     crc_by_bits((uint32_t)n, from + shift, n), "%zu octets", n);
			cr_assert_arr_eq(to + 64 + shift / 2, from + shift, n);
			cr_assert_eq(to[63 + shift / 2], 0xee, "an octet before the copy");
			cr_assert_eq(to[64 + shift / 2 + n], 0xee, "an octet behind the copy");
		}
}

Test(icrc, can_be_continued_anywhere)
{
	uint8_t octets[300];
	uint32_t whole;

	fill(octets, sizeof(octets));
	whole = icrc_add(0, octets, sizeof(octets));
	for (size_t cut = 0; cut <= sizeof(octets); cut++)
		cr_assert_eq(icrc_add(icrc_add(0, octets, cut), octets + cut, 300 - cut), whole);
}

/* Behaviours 16 to 20: the sum leaves out the variant fields and nothing else. */
static void expect_variant(int ipv6, const uint8_t *variant_bits, size_t headers)
{
	struct address_vector av = address_of(ipv6, 0);
	uint8_t frame[FRAME_MAX], payload[64];
	struct packet p = packet_of(OPCODE(SERVICE_RC, OPB_WRITE_ONLY), payload, sizeof(payload));
	size_t n, covered;
	uint32_t sum;

	fill(payload, sizeof(payload));
	n = frame_of(frame, &av, &p);
	covered = n - 14 - 4;
	sum = icrc_begin(frame + 14, covered);
	for (size_t i = 4; i < covered * 8; i++) { /* the IP version decides what is masked */
		size_t at = i / 8;
		uint8_t bit = (uint8_t)(0x80 >> i % 8);
		bool variant = at < headers && (variant_bits[at] & bit) != 0;

		frame[14 + at] ^= bit;
		cr_expect_eq(icrc_begin(frame + 14, covered) == sum, variant, "octet %zu bit %#x",
			     at, bit);
		frame[14 + at] ^= bit;
	}
}

Test(icrc, leaves_out_the_variant_fields_of_ipv4)
{
	static const uint8_t variant[40] = { [1] = 0xff,  [8] = 0xff,  [10] = 0xff, [11] = 0xff,
					     [26] = 0xff, [27] = 0xff, [32] = 0xff };

	expect_variant(0, variant, sizeof(variant));
}

Test(icrc, leaves_out_the_variant_fields_of_ipv6)
{
	static const uint8_t variant[60] = { [0] = 0x0f, [1] = 0xff,  [2] = 0xff,  [3] = 0xff,
					     [7] = 0xff, [46] = 0xff, [47] = 0xff, [52] = 0xff };

	expect_variant(1, variant, sizeof(variant));
}

/* All ways to sum that this processor has. */
static void expect_begin(const uint8_t *l3, const uint8_t *masked, size_t n)
{
	uint32_t sum = crc_by_bits(0, masked, n + 8);

	if (short_sum_works() && n <= SHORT_SUM_MOST)
		cr_assert_eq(l3[0] >> 4 == 6 ? short_sum_ipv6(l3, n) : short_sum_ipv4(l3, n), sum,
			     "%zu octets, one step after the other", n);
	if (short_sum_512_works() && n <= SHORT_SUM_WIDE_MOST)
		cr_assert_eq(short_sum_512(l3, n), sum, "%zu octets at once", n);
	if (short_sum_256_works() && n <= SHORT_SUM_WIDE_MOST && n % 4 == 0)
		cr_assert_eq(short_sum_256(l3, n), sum, "%zu octets at once with AVX2", n);
	cr_assert_eq(icrc_begin(l3, n), sum, "%zu octets", n);
	cr_assert_eq(icrc_begin_anywhere(l3, n), sum, "%zu octets with a masked copy", n);
}

Test(icrc, begin_equals_the_masked_headers_summed_by_bits_at_every_length)
{
	uint8_t l3[600], masked[608];

	fill(l3, sizeof(l3));
	for (size_t n = 40; n <= 590; n++) {
		l3[0] = 0x45;
		memset(masked, 0xff, 8);
		memcpy(masked + 8, l3, n);
		masked[8 + 1] = masked[8 + 8] = masked[8 + 10] = masked[8 + 11] = 0xff;
		masked[8 + 26] = masked[8 + 27] = masked[8 + 32] = 0xff;
		expect_begin(l3, masked, n);
	}
	for (size_t n = 60; n <= 590; n++) {
		l3[0] = 0x65;
		memcpy(masked + 8, l3, n);
		masked[8] = 0x6f;
		masked[8 + 1] = masked[8 + 2] = masked[8 + 3] = masked[8 + 7] = 0xff;
		masked[8 + 46] = masked[8 + 47] = masked[8 + 52] = 0xff;
		expect_begin(l3, masked, n);
	}
}

/* Frames whose headers differ in the last four octets of the BTH: each sum is that of the whole frame. */
static void expect_pattern(uint8_t version, size_t headers, size_t payload)
{
	static uint8_t octets[2048], to[2048];
	uint8_t l3[128];
	struct icrc_pattern pattern;

	fill(l3, sizeof(l3));
	fill(octets, sizeof(octets));
	l3[0] = (uint8_t)(version << 4 | 5);
	pattern = icrc_pattern(l3, headers);
	for (uint32_t i = 0; i < 40; i++) {
		uint32_t sum = icrc_add(icrc_begin_anywhere(l3, headers), octets + i, payload);

		cr_assert_eq(icrc_begin_copy(l3, headers, to, octets + i, payload), sum,
			     "version %u, %zu octets of headers, %zu of payload", version, headers,
			     payload);
		memset(to, 0xee, sizeof(to));
		cr_assert_eq(icrc_pattern_copy(&pattern, l3, headers, to, octets + i, payload), sum,
			     "version %u, %zu octets of headers, %zu of payload", version, headers,
			     payload);
		cr_assert_arr_eq(to, octets + i, payload);
		cr_assert_eq(to[payload], 0xee, "an octet behind the copy");
		fill(l3 + headers - 4, 3);
		l3[headers - 1] = (uint8_t)(i * 37);
	}
}

Test(icrc, of_headers_that_differ_in_their_last_four_octets)
{
	for (size_t payload = 1; payload < 1100; payload += 73) {
		expect_pattern(4, 40, payload);
		expect_pattern(4, 44, payload); /* more than the BTH: summed as any other */
		expect_pattern(6, 60, payload);
		expect_pattern(6, 64, payload);
	}
}

static void expect_begin_256(const uint8_t *l3, size_t n)
{
	if (short_sum_256_works() && n <= SHORT_SUM_WIDE_MOST && n % 4 == 0)
		cr_assert_eq(short_sum_256(l3, n), icrc_begin_anywhere(l3, n), "%zu octets", n);
}

/* No octet outside of what is summed is read: the page behind it, and the one before it, may not be. */
Test(icrc, begin_reads_nothing_around_the_octets)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(at, MAP_FAILED);
	at += page;
	cr_assert_eq(mprotect(at, page, PROT_READ | PROT_WRITE), 0);
	fill(at, page);
	for (size_t n = 60; n <= 590; n++)
		for (uint32_t version = 4; version <= 6; version += 2) {
			at[0] = at[page - n] = (uint8_t)(version << 4 | 5);
			cr_assert_eq(icrc_begin(at, n), icrc_begin_anywhere(at, n), "%zu octets",
				     n);
			cr_assert_eq(icrc_begin(at + page - n, n),
				     icrc_begin_anywhere(at + page - n, n), "%zu octets", n);
			expect_begin_256(at, n);
			expect_begin_256(at + page - n, n);
		}
}

/* Behaviour 15. */
Test(icrc, least_significant_octet_goes_first)
{
	uint8_t at[4];

	icrc_store(at, 0x11223344);
	cr_expect_arr_eq(at, "\x44\x33\x22\x11", 4);
	cr_expect_eq(icrc_load(at), 0x11223344);
}
