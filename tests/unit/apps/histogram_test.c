/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "histogram.h"

static struct histogram h;

static void prepare(void)
{
	histogram_init(&h);
}

TestSuite(histogram, .init = prepare);

Test(histogram, empty_has_no_percentile)
{
	cr_assert_eq(histogram_percentile(&h, 50), 0);
	cr_assert_eq(h.count, 0);
}

Test(histogram, small_values_are_exact)
{
	for (uint64_t v = 1; v <= 200; v++)
		histogram_add(&h, v);
	cr_assert_eq(histogram_percentile(&h, 50), 100);
	cr_assert_eq(histogram_percentile(&h, 99), 198);
	cr_assert_eq(histogram_percentile(&h, 100), 200);
	cr_assert_eq(histogram_percentile(&h, 0.001), 1);
	cr_assert_eq(h.min, 1);
	cr_assert_eq(h.max, 200);
}

/* A single value is returned exactly: the end of its slot is larger, but the maximum is not. */
Test(histogram, one_value)
{
	histogram_add(&h, 123456789);
	cr_assert_eq(histogram_percentile(&h, 50), 123456789);
}

/* Around every power of two a percentile is at least the value and at most 1/128 larger. */
Test(histogram, precision_over_the_whole_range)
{
	for (unsigned int bit = 0; bit < HISTOGRAM_MAX_BITS; bit++) {
		for (int d = -1; d <= 1; d++) {
			uint64_t v = (UINT64_C(1) << bit) + (uint64_t)d, p;

			histogram_init(&h);
			histogram_add(&h, v);
			histogram_add(&h, UINT64_C(1) << 45);
			p = histogram_percentile(&h, 50);
			cr_assert(p >= v && p - v <= v / HISTOGRAM_STEPS, "%lu became %lu", v, p);
		}
	}
}

Test(histogram, beyond_the_range_counts_as_largest)
{
	histogram_add(&h, UINT64_MAX);
	histogram_add(&h, 10);
	cr_assert_eq(histogram_percentile(&h, 50), 10);
	cr_assert_eq(h.max, UINT64_MAX);
	cr_assert_eq(h.slot[HISTOGRAM_SLOTS - 1], 1);
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Compared with the sorted values. */
Test(histogram, agrees_with_sorting)
{
	enum {
		N = 20000
	};
	static uint64_t value[N];
	uint64_t x = 88172645463325252;

	for (int i = 0; i < N; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		value[i] = x >> (x % 40 + 24);
		histogram_add(&h, value[i]);
	}
	qsort(value, N, sizeof(value[0]), ascending);
	for (int percent = 1; percent <= 100; percent++) {
		uint64_t exact = value[N * percent / 100 - 1];
		uint64_t p = histogram_percentile(&h, percent);

		cr_assert(p >= exact && p - exact <= exact / HISTOGRAM_STEPS,
			  "p%d: %lu instead of %lu", percent, p, exact);
	}
}
