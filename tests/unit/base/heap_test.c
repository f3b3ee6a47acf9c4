/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "base/heap.h"

#define NODES 500u

static struct heap_node *room[NODES];
static struct heap heap;
static struct heap_node node[NODES];

static void begin(void)
{
	heap = (struct heap){ .node = room, .room = NODES };
	memset(node, 0, sizeof(node));
}

TestSuite(heap, .init = begin);

static struct heap_node *take_first(void)
{
	struct heap_node *n = heap_first(&heap);

	heap_remove(&heap, n);
	return n;
}

Test(heap, an_empty_one_has_no_next)
{
	cr_expect_null(heap_first(&heap));
	cr_expect_eq(heap_next(&heap), TIME_NEVER);
}

Test(heap, the_earliest_comes_first)
{
	for (uint32_t i = 0; i < NODES; i++)
		heap_put(&heap, &node[i], i * 7919u % NODES); /* each moment once */
	for (uint32_t i = 0; i < NODES; i++) {
		cr_assert_eq(heap_next(&heap), i);
		cr_assert_eq(take_first()->at, i);
	}
	cr_expect_null(heap_first(&heap));
}

/* Few nodes, put in each order that there is. */
Test(heap, a_few_come_in_their_order_however_they_were_put)
{
	enum {
		FEW = 5
	};

	for (uint32_t order = 0; order < 5 * 4 * 3 * 2; order++) {
		uint32_t left[FEW] = { 1, 2, 3, 4, 5 }, rest = order;

		for (uint32_t n = FEW; n > 0; n--) {
			uint32_t i = rest % n;

			rest /= n;
			heap_put(&heap, &node[n], left[i]);
			left[i] = left[n - 1];
		}
		for (uint32_t at = 1; at <= FEW; at++)
			cr_assert_eq(take_first()->at, at, "order %u", order);
	}
}

Test(heap, equal_moments_come_in_the_order_in_which_they_were_put)
{
	heap.order = UINT32_MAX - 50; /* it wraps on the way */
	for (uint32_t i = 0; i < 100; i++)
		heap_put(&heap, &node[i], 5);
	for (uint32_t i = 0; i < 100; i++)
		cr_assert_eq(take_first(), &node[i]);
}

Test(heap, any_node_can_be_taken_out)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < NODES; i++)
		heap_put(&heap, &node[i], i * 7919u % NODES);
	for (uint32_t i = 0; i < NODES; i += 3) {
		heap_remove(&heap, &node[i]);
		cr_assert_not(heap_holds(&node[i]));
	}
	for (nanotime last = 0; heap_first(&heap) != NULL; left++) {
		struct heap_node *n = take_first();

		cr_assert_geq(n->at, last);
		cr_assert_neq((n - node) % 3, 0, "it was taken out");
		last = n->at;
	}
	cr_expect_eq(left, NODES - (NODES + 2) / 3);
}

Test(heap, a_node_that_was_taken_out_can_be_put_again)
{
	heap_put(&heap, &node[0], 10);
	heap_put(&heap, &node[1], 20);
	heap_remove(&heap, &node[0]);
	heap_put(&heap, &node[0], 30);
	cr_expect_eq(take_first(), &node[1]);
	cr_expect_eq(take_first(), &node[0]);
}
