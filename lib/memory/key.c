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

/* [address, address + length) inside the region; a sum could wrap (protocol-map 150). */
static inline bool range_in_region(const struct region *r, uint64_t address, uint64_t length)
{
	return address >= r->iova && range_inside(address - r->iova, length, r->length);
}

#define REMOTE                                                                                   \
	(ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH_GLOBAL | \
	 ACCESS_FLUSH_PERSISTENT)

static inline bool kind_allows(const struct region *r, struct key_user user, uint32_t access)
{
	if (r->kind == REGION_MEMORY)
		return true;
	if (r->kind == REGION_NULL)
		return (access & REMOTE) == 0;
	return (access & REMOTE) != 0 && (r->window_qpn == 0 || r->window_qpn == user.qpn);
}

enum reason key_check(const struct key_table *t, uint32_t key, struct key_user user,
		      uint32_t access, uint64_t address, uint64_t length,
		      const struct region **found)
{
	const struct region *r = key_find(t, key);

	if (r == NULL)
		return REASON_KEY_UNKNOWN;
	if (r->pd != user.pd)
		return REASON_KEY_PD;
	if ((access & ~r->access) != 0 || !kind_allows(r, user, access))
		return REASON_KEY_ACCESS;
	if (!range_in_region(r, address, length))
		return REASON_KEY_RANGE;
	*found = r;
	return REASON_NONE;
}

/* The piece that holds this offset of the region. */
static uint32_t piece_at(const struct region *r, uint64_t offset)
{
	uint32_t low = 0, high = r->pieces;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (r->piece[middle].offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void span_append(struct span_list *l, const struct region *r, const struct region_piece *p,
			uint64_t offset, uint32_t length)
{
	uint64_t into = offset - p->offset;
	struct span *s = &l->span[l->count++];

	s->length = length;
	s->client = r->client;
	s->peer_address = p->peer_address + into;
	s->direct = NULL;
	if (p->direct != NULL)
		s->direct = (char *)p->direct + into;
	else
		l->has_peer = true;
	l->length += length;
}

static bool nobody_append(struct span_list *l, uint32_t length)
{
	if (l->count == LIMIT_SPANS)
		return false;
	l->span[l->count++] = (struct span){ .client = SPAN_NOBODY, .length = length };
	l->has_peer = true;
	l->length += length;
	return true;
}

/* The range is inside the region. False: more spans than a list holds. */
static bool spans_append(struct span_list *l, const struct region *r, uint64_t offset,
			 uint32_t length)
{
	uint32_t i;

	if (r->kind == REGION_NULL)
		return length == 0 || nobody_append(l, length);
	if (r->kind == REGION_WINDOW) {
		offset += r->parent_offset;
		r = r->parent;
	}
	for (i = r->pieces == 1 ? 0 : piece_at(r, offset); length > 0; i++) {
		uint64_t end = i + 1 < r->pieces ? r->piece[i + 1].offset : r->length;
		uint32_t n = (uint32_t)MIN_OF(end - offset, length);

		if (l->count == LIMIT_SPANS)
			return false;
		span_append(l, r, &r->piece[i], offset, n);
		offset += n;
		length -= n;
	}
	return true;
}

enum reason key_spans(const struct key_table *t, uint32_t key, struct key_user user,
		      uint32_t access, uint64_t address, uint32_t length, struct span_list *spans)
{
	const struct region *r;
	enum reason why = key_check(t, key, user, access, address, length, &r);

	if (why != REASON_NONE)
		return why;
	return spans_append(spans, r, address - r->iova, length) ? REASON_NONE
								 : REASON_MEMORY_FAULT;
}

enum reason key_spans_of_list(const struct key_table *t, const struct work_sge *sge,
			      uint32_t num_sge, struct key_user user, uint32_t access,
			      uint64_t offset, uint32_t length, struct span_list *spans)
{
	for (uint32_t i = 0; i < num_sge && length > 0; i++) {
		uint32_t n;
		enum reason why;

		if (offset >= sge[i].length) { /* wholly before the range, or empty */
			offset -= sge[i].length;
			continue;
		}
		n = (uint32_t)MIN_OF(sge[i].length - offset, length);
		/* addr + offset may wrap, and then lies before the region or is out of range. */
		why = key_spans(t, sge[i].lkey, user, access, sge[i].addr + offset, n, spans);
		if (why != REASON_NONE)
			return why;
		offset = 0;
		length -= n;
	}
	return length == 0 ? REASON_NONE : REASON_KEY_RANGE;
}

enum reason key_check_invalidate(const struct key_table *t, uint32_t key, struct key_user user)
{
	const struct region *r = key_find(t, key);

	if (r == NULL)
		return REASON_KEY_UNKNOWN;
	if (r->pd != user.pd)
		return REASON_KEY_PD;
	return r->kind == REGION_WINDOW && r->window_qpn == user.qpn ? REASON_NONE
								     : REASON_KEY_ACCESS;
}
