/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/bits.h"
#include "memory/key.h"
#include "rig.h"

TestSuite(key, .fini = drop_table, .timeout = 400);

/* All 2^24 slots: every index once, and each found again. */
Test(key, every_slot_has_a_key_of_its_own)
{
	enum {
		ALL = 1 << 24
	};
	uint8_t *seen = calloc(ALL, 1);
	static struct region r;
	uint32_t repeated = 0, zero = 0;

	make_table(ALL, 1);
	for (uint32_t i = 0; i < ALL; i++) {
		uint32_t key = key_allocate(&table, 1);

		zero += key == 0;
		repeated += seen[key >> 8]++ != 0;
	}
	cr_assert_eq(zero, 0);
	cr_assert_eq(repeated, 0, "%u indices came twice", repeated);
	cr_assert_eq(key_allocate(&table, 1), 0, "the table is full");
	for (uint32_t i = 0; i < ALL; i += 4099) {
		r.key = i << 8 | 1;
		key_publish(&table, r.key, &r);
		cr_assert_eq(key_find(&table, r.key), &r);
		cr_assert_eq(key_withdraw(&table, r.key), &r);
		cr_assert_null(key_find(&table, r.key));
	}
	free(seen);
}

/* hostile H-33: keys are guessed; H-56: numbers that tell of the next. */
Test(key, neighbours_tell_nothing_of_each_other)
{
	uint32_t small = 0, last = 0;

	make_table(10000, 7);
	for (uint32_t i = 0; i < 10000; i++) {
		uint32_t index = key_allocate(&table, 0) >> 8;
		uint32_t step = index > last ? index - last : last - index;

		small += step < 1 << 16;
		last = index;
	}
	/* Of random steps in 2^24 fewer than 1 in 100 are so small. */
	cr_assert(small < 200, "%u of 10000 steps are small", small);
}

/* hostile H-33: keys are guessed. */
Test(key, no_key_is_zero_and_none_is_lost)
{
	for (uint8_t seed = 0; seed < 16; seed++) {
		uint32_t got = 0;

		make_table(1 << 16, seed);
		for (uint32_t key; (key = key_allocate(&table, 0)) != 0;)
			got++;
		cr_assert(got == 1 << 16 || got == (1 << 16) - 1);
		drop_table();
	}
	make_table(1, 0);
}

/* ... not even the only one, if it has the index that makes the key zero. */
Test(key, the_only_slot_stays_for_another_variant)
{
	make_table(1, 0);
	memset(table.permutation, 0, sizeof(*table.permutation));
	cr_assert_eq(key_allocate(&table, 0), 0);
	cr_expect_eq(key_allocate(&table, 1), 1);
}

Test(key, a_slot_is_reused_last)
{
	uint32_t first, key;

	make_table(100, 3);
	first = key_allocate(&table, 1);
	key_free(&table, first);
	for (uint32_t i = 0; i < 99; i++) {
		key = key_allocate(&table, 2);
		cr_assert_neq(key >> 8, first >> 8, "after %u allocations", i);
	}
	key = key_allocate(&table, 2);
	cr_assert_eq(key >> 8, first >> 8);
	cr_assert_eq(key_allocate(&table, 2), 0);
}

/* hostile H-33: an lcore remembers only the slot of a key. */
Test(key, a_reader_that_remembers_finds_what_the_table_has)
{
	enum {
		KEYS = 1000
	};
	static struct region r[KEYS];
	static struct key_memo memo;
	struct key_table reader;

	make_table(KEYS, 5);
	reader = key_table_reader(&table, &memo);
	for (uint32_t i = 0; i < 2 * KEY_MEMO; i++)
		cr_assert_eq(key_slot(&reader, i << 8), key_slot(&table, i << 8), "image %u", i);
	for (uint32_t i = 0; i < KEYS; i++) {
		r[i].key = key_allocate(&table, 1);
		cr_assert_null(key_find(&reader, r[i].key), "not published");
		key_publish(&table, r[i].key, &r[i]);
	}
	/* Many share an entry: each takes it from the one before, and is found twice in a row. */
	for (uint32_t i = 0; i < KEYS; i++) {
		cr_assert_eq(key_find(&reader, r[i].key), &r[i]);
		cr_assert_eq(key_find(&reader, r[i].key), &r[i]);
		cr_assert_null(key_find(&reader, r[i].key ^ 3), "another variant");
		cr_assert_null(key_find(&reader, r[i].key ^ 1u << 31), "another image");
		key_withdraw(&table, r[i].key);
		cr_assert_null(key_find(&reader, r[i].key), "withdrawn");
		r[i].key ^= 3;
		key_publish(&table, r[i].key, &r[i]);
		cr_assert_eq(key_find(&reader, r[i].key), &r[i], "the slot's next key");
		cr_assert_null(key_find(&reader, r[i].key ^ 3), "its last one");
	}
}

/* In the order in which they were given back. */
Test(key, a_table_that_was_full_has_all_its_slots_again)
{
	static const uint32_t order[] = { 5, 0, 7, 2, 1, 6, 3, 4 };
	uint32_t key[ARRAY_SIZE(order)];

	make_table(ARRAY_SIZE(order), 3);
	for (uint32_t i = 0; i < ARRAY_SIZE(order); i++)
		cr_assert_neq(key[i] = key_allocate(&table, 1), 0);
	cr_assert_eq(key_allocate(&table, 1), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(order); i++)
		key_free(&table, key[order[i]]);
	for (uint32_t i = 0; i < ARRAY_SIZE(order); i++)
		cr_expect_eq(key_allocate(&table, 2) >> 8, key[order[i]] >> 8, "%u", i);
	cr_expect_eq(key_allocate(&table, 2), 0);
}
