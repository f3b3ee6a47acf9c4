/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/pointers.h"

#include <criterion/criterion.h>
#include <rte_ring.h>
#include <stdlib.h>

#define SIZE 8u /* slots, of which one stays free */

static struct rte_ring *ring;

static void open_ring(void)
{
	ring = aligned_alloc(64, (size_t)rte_ring_get_memsize(SIZE));
	cr_assert_eq(rte_ring_init(ring, "test", SIZE, RING_F_SP_ENQ | RING_F_SC_DEQ), 0);
}

static void close_ring(void)
{
	free(ring);
}

TestSuite(pointers, .init = open_ring, .fini = close_ring);

/* What finds no room stays with the caller; the oldest come out first, across the end of the ring, too. */
Test(pointers, a_burst_is_cut_and_keeps_its_order)
{
	int value[3 * SIZE];
	void *in[3 * SIZE], *out[3 * SIZE];

	for (uint32_t i = 0; i < 3 * SIZE; i++)
		in[i] = &value[i];
	for (int turn = 0; turn < 5; turn++) {
		cr_assert_eq(pointers_put(ring, in, 3), 3);
		cr_assert_eq(pointers_put(ring, in + 3, 3 * SIZE - 3), SIZE - 1 - 3);
		cr_assert_eq(pointers_put(ring, in, 1), 0);
		cr_assert_eq(pointers_take(ring, out, 2), 2);
		cr_assert_eq(pointers_take(ring, out + 2, 3 * SIZE), SIZE - 1 - 2);
		cr_assert_arr_eq(out, in, (SIZE - 1) * sizeof(in[0]));
		cr_assert_eq(pointers_take(ring, out, 1), 0);
	}
}

Test(pointers, one_at_a_time)
{
	int value[SIZE];
	void *p = NULL;

	cr_assert_not(pointer_take(ring, &p), "the ring is empty");
	for (uint32_t i = 0; i < SIZE - 1; i++)
		cr_assert(pointer_put(ring, &value[i]));
	cr_assert_not(pointer_put(ring, &value[SIZE - 1]), "the ring is full");
	for (uint32_t i = 0; i < SIZE - 1; i++) {
		cr_assert(pointer_take(ring, &p));
		cr_assert_eq(p, &value[i]);
	}
	cr_assert_not(pointer_take(ring, &p));
}
