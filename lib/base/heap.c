/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/heap.h"

#include <assert.h>

static bool earlier(const struct heap_node *a, const struct heap_node *b)
{
	return a->at != b->at ? a->at < b->at : (int32_t)(a->order - b->order) < 0;
}

static void set(struct heap *h, uint32_t index, struct heap_node *n)
{
	h->node[index] = n;
	n->position = index + 1;
}

static void rise(struct heap *h, struct heap_node *n, uint32_t index)
{
	while (index > 0 && earlier(n, h->node[(index - 1) / 2])) {
		set(h, index, h->node[(index - 1) / 2]);
		index = (index - 1) / 2;
	}
	set(h, index, n);
}

static void sink(struct heap *h, struct heap_node *n, uint32_t index)
{
	for (;;) {
		uint32_t child = 2 * index + 1;

		if (child + 1 < h->count && earlier(h->node[child + 1], h->node[child]))
			child++;
		if (child >= h->count || !earlier(h->node[child], n))
			break;
		set(h, index, h->node[child]);
		index = child;
	}
	set(h, index, n);
}

void heap_put(struct heap *h, struct heap_node *n, nanotime at)
{
	assert(h->count < h->room && "its owner keeps room for all of its nodes");
	assert(n->position == 0 && "a node is in one heap, once");
	n->at = at;
	n->order = h->order++;
	rise(h, n, h->count++);
}

void heap_remove(struct heap *h, struct heap_node *n)
{
	uint32_t index = n->position - 1;
	struct heap_node *last;

	assert(index < h->count && h->node[index] == n);
	last = h->node[--h->count];
	n->position = 0;
	if (last == n)
		return;
	rise(h, last, index);
	sink(h, last, last->position - 1);
}
