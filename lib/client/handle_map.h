/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the queue pair of a completion: a hash table from the handles of a CQ's queue pairs. Open
 * addressing, at most half full. The caller holds the CQ's lock for all but handle_map_prepare.
 */
#ifndef CLIENT_HANDLE_MAP_H
#define CLIENT_HANDLE_MAP_H

#include <stdint.h>

struct handle_map {
	uint32_t used;
	uint32_t slots; /* a power of two, or 0 while empty */
	struct handle_slot {
		uint32_t handle; /* 0: free */
		void *object;
	} * slot;
};

/*
 * Allocates `slots` free slots for handle_map_grow; NULL: no memory. Called without the lock,
 * because it allocates.
 */
struct handle_slot *handle_map_prepare(uint32_t slots);
/* How many slots the map needs for one more entry; equal to map->slots if it need not grow. */
uint32_t handle_map_wanted(const struct handle_map *map);
/*
 * Rehashes into `slot`, which has `slots` free slots. Returns the old memory for the caller to
 * free.
 */
struct handle_slot *handle_map_grow(struct handle_map *map, struct handle_slot *slot,
				    uint32_t slots);
void handle_map_put(struct handle_map *map, uint32_t handle, void *object);
void *handle_map_get(const struct handle_map *map, uint32_t handle);
void handle_map_remove(struct handle_map *map, uint32_t handle);

#endif
