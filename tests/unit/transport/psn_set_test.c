/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of PSNs against a list of booleans, across the wrap and across the places of the set. */
#include <criterion/criterion.h>

#include <string.h>

#include "transport/psn_set.h"

static const uint32_t begins[] = { 0, 1, 63, 64, 255, 256, 0x7fffff, 0xffff00, 0xffff81, 0xffffff };
static const uint32_t counts[] = { 0, 1, 2, 63, 64, 65, 128, 200, LIMIT_WINDOW - 1, LIMIT_WINDOW };
static const uint32_t windows[] = { LIMIT_WINDOW, LIMIT_WINDOW_MOST };
static uint64_t bits[3][LIMIT_WINDOW_MOST / 64];

static struct psn_set set(uint32_t number, uint32_t window)
{
	memset(bits[number], 0, sizeof(bits[number]));
	return (struct psn_set){ .word = bits[number], .words = window / 64 };
}

static uint32_t members(struct psn_set s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < psn_set_window(s); i++)
		n += psn_set_has(s, i);
	return n;
}

static void range(uint32_t window, uint32_t from, uint32_t n)
{
	struct psn_set s = set(0, window);

	cr_assert_eq(psn_set_would_fill(s, from, n, NULL, 0), n > 0);
	cr_assert_eq(psn_set_fill(s, from, n, NULL, 0), n > 0);
	cr_assert_not(psn_set_would_fill(s, from, n, NULL, 0), "they are in it");
	cr_assert_not(psn_set_fill(s, from, n, NULL, 0), "they are in it");
	cr_assert_eq(members(s), n, "%06x, %u", from, n);
	cr_assert_eq(psn_set_first(s, from, n), 0);
	cr_assert_eq(psn_set_gap(s, from, n), n);
	for (uint32_t k = 0; k < n; k++)
		cr_assert(psn_set_has(s, psn_add(from, k)));
	for (uint32_t k = 0; k < 64; k++)
		cr_assert_eq(psn_set_bits(s, psn_add(from, n)) >> k & 1,
			     psn_set_has(s, psn_add(from, n + k)), "%06x, %u, %u", from, n, k);
	psn_set_clear(s, from, n / 2);
	cr_assert_eq(psn_set_first(s, from, n), n / 2);
	cr_assert_eq(members(s), n - n / 2);
	psn_set_clear(s, psn_add(from, n / 2), n - n / 2);
	cr_assert_eq(members(s), 0);
	cr_assert_eq(psn_set_first(s, from, n), n);
}

Test(psn_set, ranges)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(begins); i++) {
		for (uint32_t w = 0; w < ARRAY_SIZE(windows); w++) {
			for (uint32_t j = 0; j < ARRAY_SIZE(counts); j++)
				range(windows[w], begins[i], counts[j]);
			range(windows[w], begins[i], windows[w] - 1);
			range(windows[w], begins[i], windows[w]);
		}
	}
}

Test(psn_set, exceptions_and_moves)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(begins); i++) {
		uint32_t window = windows[i % ARRAY_SIZE(windows)], from = begins[i];
		struct psn_set s = set(0, window), except = set(1, window), to = set(2, window);

		for (uint32_t k = 0; k < 100; k += 3)
			psn_set_add(except, psn_add(from, k));
		cr_assert(psn_set_would_fill(s, from, 100, &except, 1));
		cr_assert_eq(members(s), 0, "it was only a question");
		cr_assert(psn_set_fill(s, from, 100, &except, 1));
		cr_assert_eq(members(s), 66);
		cr_assert_eq(psn_set_first(s, from, 100), 1);
		cr_assert_eq(psn_set_gap(s, psn_add(from, 1), 99), 2);
		psn_set_remove(except, psn_add(from, 3));
		psn_set_add(except, psn_add(from, 4));
		cr_assert(psn_set_would_move(s, from, 50, except));
		cr_assert(psn_set_move(to, s, from, 50, except));
		cr_assert_eq(members(to), 32);
		cr_assert_eq(members(s), 34);
		cr_assert(psn_set_has(s, psn_add(from, 4)), "excepted");
		cr_assert_not(psn_set_would_move(s, from, 4, except));
		cr_assert_not(psn_set_move(to, s, from, 4, except));
	}
}
