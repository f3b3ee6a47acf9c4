/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory regions and windows of a node. */
#include <assert.h>
#include <stdlib.h>

#include "base/bits.h"
#include "must.h"
#include "node.h"

uint32_t node_register(struct node *n, size_t offset, size_t length, uint64_t iova, uint32_t pd,
		       uint32_t access, uint32_t pieces)
{
	struct region *r;
	size_t step = length / pieces;
	uint32_t key = key_allocate(&n->keys, (uint8_t)prng_next(&n->prng));

	assert(key != 0 && n->regions < NODE_REGIONS && range_inside(offset, length, n->size));
	r = must(calloc(1, sizeof(*r) + pieces * sizeof(r->piece[0])));
	*r = (struct region){ .key = key,
			      .pd = pd,
			      .access = access,
			      .iova = iova,
			      .length = length,
			      .pieces = pieces };
	for (uint32_t i = 0; i < pieces; i++) {
		r->piece[i].offset = i * step;
		r->piece[i].peer_address = offset + i * step;
		r->piece[i].direct = i % 2 == 0 ? n->memory + offset + i * step : NULL;
	}
	n->region[n->regions++] = r;
	key_publish(&n->keys, key, r);
	return key;
}

const struct region *node_region(const struct node *n, uint32_t key)
{
	return key_find(&n->keys, key);
}

static void window_publish(struct node *n, struct region *r, uint32_t key,
			   const struct region *parent, uint64_t offset, uint64_t length,
			   uint32_t access, uint32_t qpn)
{
	assert(key != 0 && range_inside(offset, length, parent->length));
	*r = (struct region){ .key = key,
			      .pd = parent->pd,
			      .access = access,
			      .iova = parent->iova + offset,
			      .length = length,
			      .kind = REGION_WINDOW,
			      .window_qpn = qpn,
			      .parent = parent,
			      .parent_offset = offset };
	key_publish(&n->keys, key, r);
}

/* A region descriptor that lives until node_free. */
static struct region *region_new(struct node *n)
{
	assert(n->regions < NODE_REGIONS);
	n->region[n->regions] = must(calloc(1, sizeof(struct region)));
	return n->region[n->regions++];
}

uint32_t node_window_in(struct node *n, struct region *window, uint32_t region_key, uint64_t offset,
			uint64_t length, uint32_t access, uint32_t qpn)
{
	uint32_t key = key_allocate(&n->keys, (uint8_t)prng_next(&n->prng));

	window_publish(n, window, key, node_region(n, region_key), offset, length, access, qpn);
	return key;
}

uint32_t node_window(struct node *n, uint32_t region_key, uint64_t offset, uint64_t length,
		     uint32_t access, uint32_t qpn)
{
	return node_window_in(n, region_new(n), region_key, offset, length, access, qpn);
}

/* The region's memory stays until node_free, because a simulation ends before any grace period. */
void node_deregister(struct node *n, uint32_t key)
{
	key_withdraw(&n->keys, key);
	key_free(&n->keys, key);
}

void node_bind(struct node *n, const struct key_operation *o)
{
	const struct region *parent = node_region(n, o->region_key);

	key_withdraw(&n->keys, o->key);
	if (o->length > 0)
		window_publish(n, region_new(n), o->new_key, parent, o->address - parent->iova,
			       o->length, o->access, o->user.qpn);
}

uint8_t *node_at(const struct node *n, const struct span *s)
{
	return s->direct != NULL ? s->direct : n->memory + s->peer_address;
}
