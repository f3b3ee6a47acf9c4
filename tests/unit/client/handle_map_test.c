/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "client/handle_map.h"

#define HANDLES 3000u

static void put(struct handle_map *map, uint32_t handle, void *object)
{
	uint32_t wanted = handle_map_wanted(map);

	if (wanted != map->slots)
		free(handle_map_grow(map, handle_map_prepare(wanted), wanted));
	handle_map_put(map, handle, object);
}

Test(handle_map, an_empty_map_finds_nothing)
{
	struct handle_map map = { 0 };

	cr_assert_null(handle_map_get(&map, 1));
	handle_map_remove(&map, 1);
	cr_assert_eq(map.used, 0);
}

Test(handle_map, handle_zero_is_never_found)
{
	struct handle_map map = { 0 };
	int object;

	put(&map, 5, &object);
	cr_assert_null(handle_map_get(&map, 0));
	free(map.slot);
}

/* The map holds exactly the handles from, from + step .. HANDLES, each with its own object. */
static void expect_exactly(const struct handle_map *map, const char *there, const int *objects)
{
	for (uint32_t h = 1; h < HANDLES; h++) {
		const void *found = handle_map_get(map, h);

		cr_assert_eq(found, there[h] ? (const void *)&objects[h] : NULL, "handle %u", h);
	}
}

Test(handle_map, keeps_the_others_through_growth_and_removal)
{
	static int objects[HANDLES];
	static char there[HANDLES];
	struct handle_map map = { 0 };
	uint32_t random = 12345;

	for (uint32_t h = 1; h < HANDLES; h++) {
		put(&map, h, &objects[h]);
		there[h] = 1;
	}
	expect_exactly(&map, there, objects);
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t h;

		random = random * 1664525u + 1013904223u;
		h = 1 + (random >> 8) % (HANDLES - 1);
		if (there[h])
			handle_map_remove(&map, h);
		else
			put(&map, h, &objects[h]);
		there[h] ^= 1;
		if (i % 2000 == 0)
			expect_exactly(&map, there, objects);
	}
	expect_exactly(&map, there, objects);
	free(map.slot);
}

/* Handles with few home slots: 64 in a row have the same one; half of them lie before the end. */
static uint32_t crowded(uint32_t n)
{
	return (2 * n - 601u) * 340573321u;
}

Test(handle_map, keeps_the_others_where_it_is_crowded)
{
	enum {
		CROWD = 600
	};
	static int objects[CROWD];
	static char there[CROWD];
	struct handle_map map = { 0 };
	uint32_t random = 99;

	for (uint32_t i = 0; i < 5000; i++) {
		uint32_t n;

		random = random * 1664525u + 1013904223u;
		n = 1 + (random >> 8) % (CROWD - 1);
		if (there[n])
			handle_map_remove(&map, crowded(n));
		else
			put(&map, crowded(n), &objects[n]);
		there[n] ^= 1;
		for (uint32_t k = 1; i % 50 == 0 && k < CROWD; k++)
			cr_assert_eq(handle_map_get(&map, crowded(k)),
				     there[k] ? (const void *)&objects[k] : NULL, "%u", k);
	}
	free(map.slot);
}

Test(handle_map, entries_with_the_same_home_slot_are_kept_apart)
{
	static int objects[8];
	struct handle_map map = { 0 };
	uint32_t handle[4];
	uint32_t n = 0;

	/* 8 slots hold four entries; of 4,000 handles many have the same home slot */
	put(&map, 1, &objects[0]);
	cr_assert_eq(map.slots, 8);
	handle[n++] = 1;
	for (uint32_t h = 2; h < 4000 && n < 4; h++) {
		if ((h * UINT32_C(2654435769) >> 7 & 7) == (1 * UINT32_C(2654435769) >> 7 & 7)) {
			put(&map, h, &objects[n]);
			handle[n++] = h;
		}
	}
	cr_assert_eq(n, 4);
	handle_map_remove(&map, handle[1]);
	cr_assert_eq(handle_map_get(&map, handle[0]), &objects[0]);
	cr_assert_null(handle_map_get(&map, handle[1]));
	cr_assert_eq(handle_map_get(&map, handle[2]), &objects[2]);
	cr_assert_eq(handle_map_get(&map, handle[3]), &objects[3]);
	free(map.slot);
}
