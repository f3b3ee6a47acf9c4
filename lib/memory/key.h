/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys. The upper 24 bits of a key are the image of a dense slot number under a secret permutation,
 * so that keys seen on the wire do not tell the next one. The low eight bits are a random variant,
 * so that a reused slot does not honour an old key.
 *
 * Only the control path writes the table; lcores read it without locks. The control path stores the
 * pointer of a slot with release order, after the region is complete. A region that was taken out
 * may still be read until every lcore has passed a quiescent state.
 */
#ifndef MEMORY_KEY_H
#define MEMORY_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "base/stage.h"
#include "memory/permutation.h"
#include "memory/region.h"

/*
 * The slots of recently looked up images. Entries stay true, because the permutation of a table
 * never changes. Whether a key is valid is looked up in the table each time. Only one thread uses a
 * memo.
 */
#define KEY_MEMO 64u /* entries, a power of two */

struct key_memo {
	struct {
		uint32_t image, slot;
	} entry[KEY_MEMO]; /* by the low bits of the image */
};

struct key_table {
	const struct region **slot; /* `slots` pointers, in the memory given to key_table_init */
	uint32_t slots; /* at most 2^24 */
	/* The free slots. Only the control path uses the next four. */
	uint32_t used; /* slots from this one on were never taken: they go first */
	uint32_t first_free;
	uint32_t *next_free; /* FIFO of freed slots, to reuse each late */
	uint32_t last_free;
	struct permutation *permutation; /* of the slots */
	struct key_memo *memo; /* NULL: there is none */
	struct stage_watch *stages; /* of the reader; NULL: not measured */
};

/* The octets of `memory` that key_table_init needs for that many slots. */
size_t key_table_size(uint32_t slots);

/*
 * `memory`: all zero. Large tables get memory that the kernel has cleared, of which only the parts in use take pages.
 * `secret`: 16 octets of a cryptographic generator, from which the permutation is made.
 */
void key_table_init(struct key_table *t, void *memory, uint32_t slots, const uint8_t secret[16]);

/* The same table for a thread that only reads it. Initialises *memo, for that thread alone. */
struct key_table key_table_reader(const struct key_table *t, struct key_memo *memo);

/*
 * Takes a free slot and returns its key, with the given variant in the low eight bits. Returns 0 if
 * the table is full; no key is ever 0. The slot stays empty until key_publish.
 */
uint32_t key_allocate(struct key_table *t, uint8_t variant);
void key_publish(struct key_table *t, uint32_t key, const struct region *r);
/* Takes the region out and returns it; the caller retires it. The slot stays taken. */
const struct region *key_withdraw(struct key_table *t, uint32_t key);
/* From now on the slot may be reused. Call this after the grace period. */
void key_free(struct key_table *t, uint32_t key);

/* The slot of a key, whatever its variant. A result of `slots` or more means that there is none. */
static inline uint32_t key_slot(const struct key_table *t, uint32_t key)
{
	uint32_t image = key >> 8, i = image % KEY_MEMO;

	if (t->memo == NULL)
		return permutation_number(t->permutation, image);
	if (t->memo->entry[i].image != image) {
		t->memo->entry[i].image = image;
		t->memo->entry[i].slot = permutation_number(t->permutation, image);
	}
	return t->memo->entry[i].slot;
}

/* The region with exactly this key, or NULL. */
static inline const struct region *key_find(const struct key_table *t, uint32_t key)
{
	uint32_t slot = key_slot(t, key);
	const struct region *r;

	if (slot >= t->slots)
		return NULL;
	/* Pairs with the release store in key_publish. */
	r = __atomic_load_n(&t->slot[slot], __ATOMIC_ACQUIRE);
	return r != NULL && r->key == key ? r : NULL;
}

#endif
