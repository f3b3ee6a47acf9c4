/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "control/control.h"

static int object[8];

Test(handle, is_never_zero_and_finds_its_object)
{
	struct handle_table t;
	uint32_t a, b;

	cr_assert_eq(handle_table_init(&t, 4), 0);
	a = handle_reserve(&t);
	b = handle_reserve(&t);
	cr_assert(a != 0 && b != 0 && a != b);
	cr_assert_null(handle_find(&t, a), "reserved, not published");
	handle_publish(&t, a, &object[0]);
	handle_publish(&t, b, &object[1]);
	cr_assert_eq(handle_find(&t, a), &object[0]);
	cr_assert_eq(handle_find(&t, b), &object[1]);
	cr_assert_null(handle_find(&t, 0));
	cr_assert_null(handle_find(&t, 5));
	cr_assert_null(handle_find(&t, UINT32_MAX));
	handle_table_destroy(&t);
}

Test(handle, quota_is_exact_and_comes_back)
{
	struct handle_table t;
	uint32_t h[4];

	cr_assert_eq(handle_table_init(&t, 4), 0);
	for (int round = 0; round < 1000; round++) {
		for (int i = 0; i < 4; i++) {
			h[i] = handle_reserve(&t);
			cr_assert(h[i] >= 1 && h[i] <= 4);
			handle_publish(&t, h[i], &object[i]);
		}
		cr_assert_eq(handle_reserve(&t), 0, "a fifth of four");
		for (int i = 0; i < 4; i++) {
			cr_assert_eq(handle_find(&t, h[i]), &object[i]);
			handle_withdraw(&t, h[i]);
			handle_free(&t, h[i]);
			cr_assert_null(handle_find(&t, h[i]));
		}
	}
	cr_assert_eq(t.count, 0);
	handle_table_destroy(&t);
}

/* hostile H-113: a number that comes again; H-116: objects that are on their way out. */
Test(handle, rests_before_it_is_used_again)
{
	struct handle_table t;
	uint32_t first;

	cr_assert_eq(handle_table_init(&t, 1000), 0);
	first = handle_reserve(&t);
	handle_free(&t, first);
	for (int i = 0; i < 50; i++) {
		uint32_t h = handle_reserve(&t);

		cr_assert_neq(h, first, "used again after %d others", i);
		handle_free(&t, h);
	}
	handle_table_destroy(&t);
}
