/* SPDX-License-Identifier: BSD-3-Clause */
/* 24-bit arithmetic as tables across the wrap. */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "transport/psn.h"

Test(psn, distance_across_the_wrap)
{
	static const struct {
		uint32_t a, b;
		int32_t distance;
	} rows[] = {
		{ 0, 0, 0 },
		{ 1, 0, 1 },
		{ 0, 1, -1 },
		{ 0, 0xffffff, 1 },
		{ 0xffffff, 0, -1 },
		{ 5, 0xfffffb, 10 },
		{ 0xfffffb, 5, -10 },
		{ 0x7fffff, 0, 0x7fffff },
		{ 0x800000, 0, -0x800000 }, /* half the circle is behind */
		{ 0x800001, 0, -0x7fffff },
		{ 0, 0x7fffff, -0x7fffff },
		{ 0, 0x800000, -0x800000 },
		{ 0, 0x800001, 0x7fffff },
		{ 0x7ffffe, 0xffffff, 0x7fffff },
		{ 0x7fffff, 0xffffff, -0x800000 },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cr_expect_eq(psn_distance(rows[i].a, rows[i].b), rows[i].distance, "row %u", i);
		cr_expect_eq(psn_after(rows[i].a, rows[i].b), rows[i].distance > 0, "row %u", i);
	}
}

Test(psn, add_and_within_across_the_wrap)
{
	static const struct {
		uint32_t first, count, psn;
		bool within;
	} rows[] = {
		{ 0, 0, 0, false },
		{ 0, 1, 0, true },
		{ 0, 1, 1, false },
		{ 0xfffffe, 4, 0xfffffd, false },
		{ 0xfffffe, 4, 0xfffffe, true },
		{ 0xfffffe, 4, 0, true },
		{ 0xfffffe, 4, 1, true },
		{ 0xfffffe, 4, 2, false },
		{ 0x10, 0x800000, 0x80000f, true },
		{ 0x10, 0x800000, 0x800010, false },
		{ 0x10, 0x800000, 0xf, false },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++)
		cr_expect_eq(psn_within(rows[i].psn, rows[i].first, rows[i].count), rows[i].within,
			     "row %u", i);
	cr_expect_eq(psn_add(0xffffff, 1), 0);
	cr_expect_eq(psn_add(0xfffff0, 0x20), 0x10);
	cr_expect_eq(psn_add(0, PSN_MASK), 0xffffff, "adding the mask goes back by one");
}
