/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/ring.h"

#include <assert.h>
#include <stdio.h>

#include <rte_ring.h>

static_assert(offsetof(struct rte_ring, prod) == 128, "the layout in ring.h is rte_ring's");
static_assert(offsetof(struct rte_ring, cons) == 256, "the layout in ring.h is rte_ring's");
static_assert(offsetof(struct rte_ring, prod.tail) == RING_PRODUCER_TAIL, "ring.h reads it");
static_assert(offsetof(struct rte_ring, cons.tail) == RING_CONSUMER_TAIL, "ring.h reads it");
static_assert(sizeof(struct rte_ring) == RING_SLOTS, "slots follow the header");

size_t ring_bytes(uint32_t size, uint32_t stride)
{
	return (sizeof(struct rte_ring) + (size_t)size * stride + 63) & ~(size_t)63;
}

void ring_format(void *memory, uint32_t size, bool many_producers)
{
	struct rte_ring *r = memory;

	assert(size >= 2 && (size & (size - 1)) == 0 && "the caller rounds sizes up");
	snprintf(r->name, sizeof(r->name), "uroce");
	r->flags = RING_F_SC_DEQ | (many_producers ? 0 : RING_F_SP_ENQ);
	r->memzone = NULL;
	r->size = size;
	r->mask = size - 1;
	r->capacity = size - 1;
	r->prod.head = r->prod.tail = 0;
	r->cons.head = r->cons.tail = 0;
	r->prod.sync_type = many_producers ? RTE_RING_SYNC_MT : RTE_RING_SYNC_ST;
	r->cons.sync_type = RTE_RING_SYNC_ST;
}

void ring_side_init(struct ring_side *s, void *memory, uint32_t size, uint32_t stride)
{
	s->shared = memory;
	s->slots = (uint8_t *)memory + sizeof(struct rte_ring);
	s->size = size;
	s->stride = stride;
	s->cursor = 0;
}
