/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>

#include "base/bits.h"
#include "memory/key.h"

#define NO_SLOT UINT32_MAX

size_t key_table_size(uint32_t slots)
{
	return slots * (sizeof(const struct region *) + sizeof(uint32_t)) +
	       sizeof(struct permutation);
}

void key_table_init(struct key_table *t, void *memory, uint32_t slots, const uint8_t secret[16])
{
	assert(slots >= 1 && slots <= 1u << PERMUTATION_BITS && "an index has 24 bits");
	assert((uintptr_t)memory % sizeof(void *) == 0 && "pointers come first");
	t->slot = memory;
	t->slots = slots;
	t->next_free = (uint32_t *)(t->slot + slots);
	t->used = 0;
	t->first_free = t->last_free = NO_SLOT;
	t->permutation = (struct permutation *)(void *)(t->next_free + slots);
	permutation_init(t->permutation, secret);
	t->memo = NULL;
	t->stages = NULL;
}

struct key_table key_table_reader(const struct key_table *t, struct key_memo *memo)
{
	struct key_table reader = *t;

	for (uint32_t i = 0; i < KEY_MEMO; i++) {
		memo->entry[i].image = i;
		memo->entry[i].slot = permutation_number(t->permutation, i);
	}
	reader.memo = memo;
	return reader;
}

static void free_slot_append(struct key_table *t, uint32_t slot)
{
	assert(slot < t->slots);
	t->next_free[slot] = NO_SLOT;
	if (t->first_free == NO_SLOT)
		t->first_free = slot;
	else
		t->next_free[t->last_free] = slot;
	t->last_free = slot;
}

static uint32_t free_slot_take(struct key_table *t)
{
	uint32_t slot = t->first_free;

	if (t->used < t->slots)
		slot = t->used++;
	else if (slot != NO_SLOT)
		t->first_free = t->next_free[slot];
	assert((slot == NO_SLOT || t->slot[slot] == NULL) && "no region is in a free slot");
	return slot;
}

uint32_t key_allocate(struct key_table *t, uint8_t variant)
{
	uint32_t slot = free_slot_take(t), key;

	if (slot == NO_SLOT)
		return 0;
	key = permutation_image(t->permutation, slot) << 8 | variant;
	if (key != 0)
		return key;
	/*
	 * With variant 0, the one slot whose image is 0 would give key 0. The next slot is taken
	 * instead.
	 */
	free_slot_append(t, slot);
	slot = free_slot_take(t);
	key = permutation_image(t->permutation, slot) << 8 | variant;
	if (key == 0)
		free_slot_append(t, slot);
	return key;
}

void key_publish(struct key_table *t, uint32_t key, const struct region *r)
{
	uint32_t slot = key_slot(t, key);

	assert(slot < t->slots && r->key == key && "the key is one that key_allocate returned");
	/* Pairs with the acquire load in key_find: the region is complete before it is seen. */
	__atomic_store_n(&t->slot[slot], r, __ATOMIC_RELEASE);
}

const struct region *key_withdraw(struct key_table *t, uint32_t key)
{
	const struct region *r = key_find(t, key);

	/* Relaxed: lcores may still read the old pointer, which is what the grace period is for. */
	if (r != NULL)
		__atomic_store_n(&t->slot[key_slot(t, key)], NULL, __ATOMIC_RELAXED);
	return r;
}

void key_free(struct key_table *t, uint32_t key)
{
	uint32_t slot = key_slot(t, key);

	assert(slot < t->slots && t->slot[slot] == NULL && "the region was withdrawn before");
	free_slot_append(t, slot);
}
