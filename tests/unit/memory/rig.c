/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "rig.h"

struct key_table table;
static void *table_memory;

void make_table(uint32_t slots, uint8_t seed)
{
	uint8_t random[16];

	for (uint32_t i = 0; i < 16; i++)
		random[i] = (uint8_t)(seed * 31 + i * 89);
	table_memory = calloc(1, key_table_size(slots));
	key_table_init(&table, table_memory, slots, random);
}

void drop_table(void)
{
	free(table_memory);
	table_memory = NULL;
}

struct region *make_region(uint32_t pieces, uint64_t iova, uint64_t length, uint32_t access)
{
	struct region *r = calloc(1, sizeof(struct region) + pieces * sizeof(struct region_piece));

	r->key = key_allocate(&table, 0x42);
	r->pd = PD;
	r->access = access;
	r->client = 9;
	r->iova = iova;
	r->length = length;
	r->pieces = pieces;
	key_publish(&table, r->key, r);
	return r;
}

/* protocol-map 156, 157, 160: the window's range and rights count, the parent's pieces are used. */
struct region *make_window(struct region *parent, uint64_t offset, uint64_t length, uint32_t access,
			   uint32_t qpn)
{
	struct region *w = make_region(0, parent->iova + offset, length, access);

	w->kind = REGION_WINDOW;
	w->window_qpn = qpn;
	w->parent = parent;
	w->parent_offset = offset;
	return w;
}
