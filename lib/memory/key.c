/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>

#include "base/bits.h"
#include "memory/key.h"

#define INDEX_BITS 24
#define HALF_BITS  12
#define HALF_MASK  0xfffu
#define NO_SLOT	   UINT32_MAX

/*
 * The permutation of the 24-bit index: a Feistel network of four rounds over two halves of twelve
 * bits, a 32-bit secret a round. It is its own inverse with the rounds in the other order, needs
 * no table, and a neighbour's key does not follow from one's own.
 */
static inline uint32_t round_function(uint32_t half, uint32_t secret)
{
	return ((half + secret) * 0x9e3779b1u) >> (32 - HALF_BITS);
}

static uint32_t index_of_slot(const struct key_table *t, uint32_t slot)
{
	uint32_t left = slot >> HALF_BITS, right = slot & HALF_MASK;

	left ^= round_function(right, t->secret[0]);
	right ^= round_function(left, t->secret[1]);
	left ^= round_function(right, t->secret[2]);
	right ^= round_function(left, t->secret[3]);
	return left << HALF_BITS | right;
}

static inline uint32_t slot_of_index(const struct key_table *t, uint32_t index)
{
	uint32_t left = index >> HALF_BITS, right = index & HALF_MASK;

	right ^= round_function(left, t->secret[3]);
	left ^= round_function(right, t->secret[2]);
	right ^= round_function(left, t->secret[1]);
	left ^= round_function(right, t->secret[0]);
	return left << HALF_BITS | right;
}

uint32_t key_slot(const struct key_table *t, uint32_t key)
{
	return slot_of_index(t, key >> 8);
}

size_t key_table_size(uint32_t slots)
{
	return slots * (sizeof(const struct region *) + sizeof(uint32_t));
}

void key_table_init(struct key_table *t, void *memory, uint32_t slots, const uint8_t random[16])
{
	assert(slots >= 1 && slots <= 1u << INDEX_BITS && "an index has 24 bits");
	t->slot = memory;
	t->slots = slots;
	t->next_free = (uint32_t *)(t->slot + slots);
	memset(memory, 0, key_table_size(slots));
	for (uint32_t i = 0; i < slots; i++)
		t->next_free[i] = i + 1 < slots ? i + 1 : NO_SLOT;
	t->first_free = 0;
	t->last_free = slots - 1;
	memcpy(t->secret, random, sizeof(t->secret));
}

static void free_slot_append(struct key_table *t, uint32_t slot)
{
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

	if (slot != NO_SLOT)
		t->first_free = t->next_free[slot];
	return slot;
}

uint32_t key_allocate(struct key_table *t, uint8_t variant)
{
	uint32_t slot = free_slot_take(t), key;

	if (slot == NO_SLOT)
		return 0;
	key = index_of_slot(t, slot) << 8 | variant;
	if (key != 0)
		return key;
	/* One slot in 2^24 has index 0, and with variant 0 it would make key 0: the next one then. */
	free_slot_append(t, slot);
	slot = free_slot_take(t);
	key = index_of_slot(t, slot) << 8 | variant;
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

	/* Relaxed: who still reads the old pointer is what the grace period is for. */
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

const struct region *key_find(const struct key_table *t, uint32_t key)
{
	uint32_t slot = key_slot(t, key);
	const struct region *r;

	if (slot >= t->slots)
		return NULL;
	r = __atomic_load_n(&t->slot[slot], __ATOMIC_ACQUIRE);
	return r != NULL && r->key == key ? r : NULL;
}
