/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue of moments, the earliest first. Of equal moments the one that was put first comes first.
 * It is a binary heap: the children of index i are 2i + 1 and 2i + 2. Its nodes are parts of their
 * owners' structs. The owner of the heap also provides the room for pointers to the nodes.
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"

struct heap_node {
	nanotime at;
	uint32_t order;
	uint32_t position; /* index in heap.node, plus 1; 0: the node is not in a heap */
};

struct heap {
	struct heap_node **node;
	uint32_t count, room;
	uint32_t order; /* of the next node; it wraps */
};

/* The heap must have room, and the node must not be in any heap. */
void heap_put(struct heap *h, struct heap_node *n, nanotime at);
/* The node must be in this heap. */
void heap_remove(struct heap *h, struct heap_node *n);

static inline bool heap_holds(const struct heap_node *n)
{
	return n->position != 0;
}

/* NULL: the heap is empty. */
static inline struct heap_node *heap_first(const struct heap *h)
{
	return h->count > 0 ? h->node[0] : NULL;
}

/* The earliest moment, or TIME_NEVER. */
static inline nanotime heap_next(const struct heap *h)
{
	return h->count > 0 ? h->node[0]->at : TIME_NEVER;
}

#endif
