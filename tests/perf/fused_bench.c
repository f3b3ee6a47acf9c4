/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fused-bench: copy and sum in one pass, or in blocks, against memcpy and ISA-L's sum in turn. The ways take turns in one
 * process; the figures are medians of the ratios of neighbouring turns: above 1 the way is faster.
 * Buffers walk through areas that fit L1, L2, L3 or none of them.
 */
#include <isa-l/crc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "wire/fold.h"
#include "wire/icrc.h"

#define MOST   (64u << 20)
#define ROUNDS 41
#define OCTETS (1u << 20) /* that a turn copies */

typedef uint32_t copy_sum(uint32_t sum, void *to, const void *from, size_t n);

static uint8_t *from, *to;
static volatile uint32_t result;

/* As icrc_copy() does it without fold.h. */
static __attribute__((noinline)) uint32_t by_isal(uint32_t sum, void *t, const void *f, size_t n)
{
	memcpy(t, f, n);
	sum = crc32_gzip_refl(sum, f, n);
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroupper" ::: "memory");
#endif
	return sum;
}

static uint32_t over_copy(uint32_t sum, void *t, const void *f, size_t n)
{
	memcpy(t, f, n);
	return crc32_gzip_refl(sum, t, n);
}

static uint32_t in_blocks(uint32_t sum, uint8_t *t, const uint8_t *f, size_t n, size_t block)
{
	for (size_t at = 0; at < n; at += block)
		sum = by_isal(sum, t + at, f + at, MIN_OF(block, n - at));
	return sum;
}

static uint32_t blocks_512(uint32_t sum, void *t, const void *f, size_t n)
{
	return in_blocks(sum, t, f, n, 512);
}

static uint32_t blocks_1024(uint32_t sum, void *t, const void *f, size_t n)
{
	return in_blocks(sum, t, f, n, 1024);
}

/* As the engine does it: fused from FOLD_LEAST octets on, where the processor can. */
static uint32_t engine(uint32_t sum, void *t, const void *f, size_t n)
{
	return icrc_copy(sum, t, f, n);
}

/* The faster sum without fusing. */
static uint32_t in_turn(uint32_t sum, void *t, const void *f, size_t n)
{
	memcpy(t, f, n);
	return icrc_add(sum, f, n);
}

static const struct {
	const char *name;
	copy_sum *f;
} ways[] = { { "over the copy", over_copy },
	     { "by 512", blocks_512 },
	     { "by 1024", blocks_1024 },
	     { "fused", engine },
	     { "fold in turn", in_turn } };

static double turn(copy_sum *f, size_t n, size_t area)
{
	static size_t at;
	struct timespec a, b;
	uint32_t sum = 0;

	clock_gettime(CLOCK_MONOTONIC, &a);
	for (size_t done = 0; done < OCTETS; done += n) {
		at = at + 2 * n > area ? 0 : at + n;
		sum = f(sum, to + at, from + at, n);
	}
	clock_gettime(CLOCK_MONOTONIC, &b);
	result = sum;
	return ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) /
	       (double)(OCTETS / n);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *x)
{
	qsort(x, ROUNDS, sizeof(*x), compare);
	return x[ROUNDS / 2];
}

static void row(size_t n, size_t area)
{
	double ratio[ARRAY_SIZE(ways)][ROUNDS], base[ROUNDS];

	for (int r = -1; r < ROUNDS; r++)
		for (size_t w = 0; w < ARRAY_SIZE(ways); w++) {
			double b = turn(by_isal, n, area), x = turn(ways[w].f, n, area);

			if (r < 0)
				continue; /* the caches fill */
			ratio[w][r] = b / x;
			base[r] = b;
		}
	printf("%7zu KiB %6zu %9.1f", area >> 10, n, median(base));
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++)
		printf(" %13.2f", median(ratio[w]));
	printf("\n");
}

int main(void)
{
	static const size_t areas[] = { 8u << 10, 128u << 10, 4u << 20, MOST };
	static const size_t sizes[] = { 64, 256, 512, 1024, 4096 };

	from = malloc(MOST);
	to = malloc(MOST);
	if (from == NULL || to == NULL) {
		fprintf(stderr, "fused-bench: no memory\n");
		return 1;
	}
	for (size_t i = 0; i < MOST; i++)
		from[i] = (uint8_t)(i * 2654435761u >> 13);
	memset(to, 1, MOST);
	printf("this processor folds many octets at a time: %s\n", fold_works() ? "yes" : "no");
	printf("%11s %6s %9s", "area", "octets", "ns");
	for (size_t w = 0; w < ARRAY_SIZE(ways); w++)
		printf(" %13s", ways[w].name);
	printf("\n");
	for (size_t a = 0; a < ARRAY_SIZE(areas); a++)
		for (size_t s = 0; s < ARRAY_SIZE(sizes); s++)
			row(sizes[s], areas[a]);
	free(from);
	free(to);
	return 0;
}
