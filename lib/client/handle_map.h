/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the handle in a completion to the queue pair: a small hash of the queue pairs of one CQ.
 * Open addressing, at most half full; everything under the lock of its CQ.
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
 * Room for one more entry. Allocates, so it is called without the lock: returns memory that
 * handle_map_grow takes under the lock (NULL: no memory).
 */
struct handle_slot *handle_map_prepare(uint32_t slots);
/* Slots that the map should have to take one more; equal to map->slots if it need not grow. */
uint32_t handle_map_wanted(const struct handle_map *map);
/* Moves into `slot` (of `slots` entries, zeroed); returns the old memory, to be freed. */
struct handle_slot *handle_map_grow(struct handle_map *map, struct handle_slot *slot,
				    uint32_t slots);
void handle_map_put(struct handle_map *map, uint32_t handle, void *object);
void *handle_map_get(const struct handle_map *map, uint32_t handle);
void handle_map_remove(struct handle_map *map, uint32_t handle);

#endif
