/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#include "client/handle_map.h"

#define FIRST_SLOTS 8u

static uint32_t home_of(const struct handle_map *map, uint32_t handle)
{
	return (handle * UINT32_C(2654435769)) >> 7 & (map->slots - 1);
}

struct handle_slot *handle_map_prepare(uint32_t slots)
{
	return calloc(slots, sizeof(struct handle_slot));
}

uint32_t handle_map_wanted(const struct handle_map *map)
{
	if (map->slots == 0)
		return FIRST_SLOTS;
	return 2 * (map->used + 1) > map->slots ? 2 * map->slots : map->slots;
}

struct handle_slot *handle_map_grow(struct handle_map *map, struct handle_slot *slot,
				    uint32_t slots)
{
	struct handle_map old = *map;

	map->slot = slot;
	map->slots = slots;
	map->used = 0;
	for (uint32_t i = 0; i < old.slots; i++) {
		if (old.slot[i].handle != 0)
			handle_map_put(map, old.slot[i].handle, old.slot[i].object);
	}
	return old.slot;
}

void handle_map_put(struct handle_map *map, uint32_t handle, void *object)
{
	uint32_t i;

	assert(handle != 0 && 2 * (map->used + 1) <= map->slots && "the caller made room");
	for (i = home_of(map, handle); map->slot[i].handle != 0; i = (i + 1) & (map->slots - 1)) {
		if (map->slot[i].handle == handle)
			break;
	}
	if (map->slot[i].handle == 0)
		map->used++;
	map->slot[i].handle = handle;
	map->slot[i].object = object;
}

void *handle_map_get(const struct handle_map *map, uint32_t handle)
{
	if (map->slots == 0 || handle == 0)
		return NULL;
	for (uint32_t i = home_of(map, handle); map->slot[i].handle != 0;
	     i = (i + 1) & (map->slots - 1)) {
		if (map->slot[i].handle == handle)
			return map->slot[i].object;
	}
	return NULL;
}

/* Shifts an entry into the hole if the hole lies between the entry's home slot and the entry. */
static void close_hole(struct handle_map *map, uint32_t hole)
{
	uint32_t mask = map->slots - 1;

	for (uint32_t i = (hole + 1) & mask; map->slot[i].handle != 0; i = (i + 1) & mask) {
		uint32_t home = home_of(map, map->slot[i].handle);

		if (((i - home) & mask) >= ((i - hole) & mask)) {
			map->slot[hole] = map->slot[i];
			hole = i;
		}
	}
	map->slot[hole].handle = 0;
	map->slot[hole].object = NULL;
}

void handle_map_remove(struct handle_map *map, uint32_t handle)
{
	if (map->slots == 0 || handle == 0)
		return;
	for (uint32_t i = home_of(map, handle); map->slot[i].handle != 0;
	     i = (i + 1) & (map->slots - 1)) {
		if (map->slot[i].handle == handle) {
			close_hole(map, i);
			map->used--;
			return;
		}
	}
}
