/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/heap.h"

#include <assert.h>

static bool earlier(const struct heap_node *a, const struct heap_node *b)
{
	return a->at != b->at ? a->at < b->at : (int32_t)(a->order - b->order) < 0;
}

static void set(struct heap *h, uint32_t place, struct heap_node *n)
{
	h->node[place] = n;
	n->place = place + 1;
}

static void rise(struct heap *h, struct heap_node *n, uint32_t place)
{
	while (place > 0 && earlier(n, h->node[(place - 1) / 2])) {
		set(h, place, h->node[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	set(h, place, n);
}

static void sink(struct heap *h, struct heap_node *n, uint32_t place)
{
	for (;;) {
		uint32_t child = 2 * place + 1;

		if (child + 1 < h->count && earlier(h->node[child + 1], h->node[child]))
			child++;
		if (child >= h->count || !earlier(h->node[child], n))
			break;
		set(h, place, h->node[child]);
		place = child;
	}
	set(h, place, n);
}

void heap_put(struct heap *h, struct heap_node *n, nanotime at)
{
	assert(h->count < h->room && "its owner keeps room for all of its nodes");
	assert(n->place == 0 && "a node is in one heap, once");
	n->at = at;
	n->order = h->order++;
	rise(h, n, h->count++);
}

void heap_remove(struct heap *h, struct heap_node *n)
{
	uint32_t place = n->place - 1;
	struct heap_node *last;

	assert(place < h->count && h->node[place] == n);
	last = h->node[--h->count];
	n->place = 0;
	if (last == n)
		return;
	rise(h, last, place);
	sink(h, last, last->place - 1);
}
