/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/ring.h"
#include "queue/ring_client.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define SIZE   8u
#define STRIDE 64u

static void *new_ring(uint32_t size, uint32_t stride, bool many)
{
	void *memory = aligned_alloc(64, ring_bytes(size, stride));

	cr_assert_not_null(memory);
	memset(memory, 0, ring_bytes(size, stride));
	ring_format(memory, size, many);
	return memory;
}

Test(ring, the_client_sees_an_rte_ring)
{
	struct rte_ring *r = new_ring(SIZE, STRIDE, false);

	cr_assert_eq(rte_ring_get_size(r), SIZE);
	cr_assert_eq(rte_ring_get_capacity(r), SIZE - 1);
	cr_assert(rte_ring_empty(r));
	cr_assert_eq(rte_ring_get_prod_sync_type(r), RTE_RING_SYNC_ST);
	cr_assert_eq(rte_ring_get_cons_sync_type(r), RTE_RING_SYNC_ST);
	free(r);
}

Test(ring, requests_arrive_in_order_across_the_wrap)
{
	struct rte_ring *r = new_ring(SIZE, STRIDE, false);
	struct ring_side s;
	uint32_t next = 0, expected = 0;

	ring_side_init(&s, r, SIZE, STRIDE);
	/* positions cross 2^32 as well */
	r->prod.head = r->prod.tail = r->cons.head = r->cons.tail = s.cursor = UINT32_MAX - 20;
	for (uint32_t round = 0; round < 30; round++) {
		uint32_t n = 1 + round % (SIZE - 1), ready;

		for (uint32_t i = 0; i < n; i++) {
			uint32_t *slot = ring_client_reserve(r, STRIDE);

			cr_assert_not_null(slot);
			*slot = next++;
			ring_client_publish(r);
		}
		ready = ring_readable(&s);
		cr_assert_eq(ready, n);
		for (uint32_t i = 0; i < ready; i++)
			cr_assert_eq(*(const uint32_t *)ring_read_slot(&s, i), expected++);
		ring_consume(&s, ready);
		cr_assert_eq(ring_readable(&s), 0);
	}
	free(r);
}

Test(ring, a_full_ring_takes_nothing_and_an_unpublished_slot_is_forgotten)
{
	struct rte_ring *r = new_ring(SIZE, STRIDE, false);
	struct ring_side s;
	void *slot;

	ring_side_init(&s, r, SIZE, STRIDE);
	slot = ring_client_reserve(r, STRIDE);
	cr_assert_eq(ring_client_reserve(r, STRIDE), slot);
	cr_assert_eq(ring_readable(&s), 0);
	for (uint32_t i = 0; i < SIZE - 1; i++) {
		cr_assert_not_null(ring_client_reserve(r, STRIDE));
		ring_client_publish(r);
	}
	cr_assert_null(ring_client_reserve(r, STRIDE));
	cr_assert_eq(ring_readable(&s), SIZE - 1);
	ring_consume(&s, 1);
	cr_assert_not_null(ring_client_reserve(r, STRIDE));
	free(r);
}

Test(ring, a_client_that_has_room_does_not_look_at_the_engine_s_tail)
{
	struct rte_ring *r = new_ring(SIZE, STRIDE, false);
	uint32_t read = 0;

	for (uint32_t i = 0; i < SIZE - 1; i++) {
		r->cons.tail = i;
		cr_assert_not_null(ring_client_reserve_seen(r, STRIDE, &read));
		cr_assert_eq(read, 0);
		ring_client_publish(r);
	}
	cr_assert_not_null(ring_client_reserve_seen(r, STRIDE, &read));
	cr_assert_eq(read, SIZE - 2, "the ring seemed full");
	ring_client_publish(r);
	r->cons.tail = SIZE - 1;
	for (uint32_t i = 0; i < SIZE - 2; i++) {
		cr_assert_not_null(ring_client_reserve_seen(r, STRIDE, &read));
		ring_client_publish(r);
	}
	cr_assert_null(ring_client_reserve_seen(r, STRIDE, &read), "now it is");
	free(r);
}

Test(ring, the_engine_produces_and_the_client_peeks)
{
	struct rte_ring *r = new_ring(SIZE, STRIDE, false);
	struct ring_side s;

	ring_side_init(&s, r, SIZE, STRIDE);
	cr_assert_null(ring_client_peek(r, STRIDE));
	cr_assert_eq(ring_writable(&s), SIZE - 1);
	for (uint32_t i = 0; i < SIZE - 1; i++)
		*(uint32_t *)ring_write_slot(&s, i) = i;
	ring_publish(&s, SIZE - 1);
	cr_assert_eq(ring_writable(&s), 0);
	cr_assert_eq(*(const uint32_t *)ring_client_peek(r, STRIDE), 0);
	cr_assert_eq(*(const uint32_t *)ring_client_peek(r, STRIDE), 0);
	ring_client_release(r, 1);
	cr_assert_eq(*(const uint32_t *)ring_client_peek(r, STRIDE), 1);
	ring_client_release(r, 3);
	cr_assert_eq(*(const uint32_t *)ring_client_peek(r, STRIDE), 4);
	cr_assert_eq(ring_writable(&s), 4);
	free(r);
}

/*
 * Whatever a client writes to the tail is either a count within the ring or reported as broken.
 * hostile H-90: forged positions in a ring; H-146: endless rings.
 */
Test(ring, a_forged_tail_is_a_count_or_broken)
{
	static const uint32_t cursors[] = {
		0, 1, SIZE - 1, SIZE, 0x7fffffff, 0x80000000, UINT32_MAX
	};
	static const uint32_t steps[] = {
		0,	    1,		SIZE - 1,   SIZE,	SIZE + 1,
		0x7fffffff, 0x80000000, 0x80000001, UINT32_MAX, UINT32_MAX - SIZE
	};
	struct rte_ring *r = new_ring(SIZE, STRIDE, false);
	struct ring_side s;

	ring_side_init(&s, r, SIZE, STRIDE);
	for (size_t c = 0; c < sizeof(cursors) / sizeof(cursors[0]); c++)
		for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
			s.cursor = cursors[c];
			r->prod.tail = s.cursor + steps[i];
			cr_assert_eq(ring_readable(&s), steps[i] < SIZE ? steps[i] : RING_BROKEN);
			r->cons.tail = s.cursor - steps[i];
			cr_assert_eq(ring_writable(&s),
				     steps[i] < SIZE ? SIZE - 1 - steps[i] : RING_BROKEN);
			for (uint32_t slot = 0; slot < SIZE; slot++) {
				uint8_t *at = ring_slot(&s, slot);

				cr_assert(at >= s.slots && at + STRIDE <= s.slots + SIZE * STRIDE);
			}
		}
	free(r);
}

/* hostile H-90: forged positions in a ring; H-149: a ring that claims to be larger. */
Test(ring, forged_size_mask_and_mode_do_not_reach_the_engine)
{
	struct rte_ring *r = new_ring(SIZE, STRIDE, false);
	struct ring_side s;

	ring_side_init(&s, r, SIZE, STRIDE);
	for (uint32_t i = 0; i < 3; i++) {
		*(uint32_t *)ring_client_reserve(r, STRIDE) = i;
		ring_client_publish(r);
	}
	r->size = r->mask = r->capacity = UINT32_MAX;
	r->prod.sync_type = RTE_RING_SYNC_MT_HTS;
	r->cons.sync_type = RTE_RING_SYNC_MT;
	r->prod.head = r->cons.head = 0x1234567;
	r->cons.tail = 77;
	cr_assert_eq(ring_readable(&s), 3);
	cr_assert_eq(*(const uint32_t *)ring_read_slot(&s, 2), 2);
	ring_consume(&s, 3);
	cr_assert_eq(ring_readable(&s), 0);
	cr_assert_eq(r->cons.tail, 3);
	free(r);
}

#define MESSAGES 100000u

static void *produce(void *arg)
{
	struct rte_ring *r = arg;

	for (uint32_t i = 0; i < MESSAGES;) {
		uint32_t *slot = ring_client_reserve(r, STRIDE);

		if (slot == NULL) {
			sched_yield();
			continue;
		}
		for (uint32_t w = 0; w < STRIDE / 4; w++)
			slot[w] = i + w;
		ring_client_publish(r);
		i++;
	}
	return NULL;
}

/* hostile H-133: both sides at once. */
Test(ring, two_threads_lose_nothing, .timeout = 200)
{
	struct rte_ring *r = new_ring(64, STRIDE, false);
	struct ring_side s;
	pthread_t thread;
	uint32_t expected = 0;

	ring_side_init(&s, r, 64, STRIDE);
	cr_assert_eq(pthread_create(&thread, NULL, produce, r), 0);
	while (expected < MESSAGES) {
		uint32_t n = ring_readable(&s);

		cr_assert_neq(n, RING_BROKEN);
		for (uint32_t i = 0; i < n; i++, expected++)
			for (uint32_t w = 0; w < STRIDE / 4; w++)
				cr_assert_eq(((const uint32_t *)ring_read_slot(&s, i))[w],
					     expected + w);
		ring_consume(&s, n);
		if (n == 0)
			sched_yield();
	}
	pthread_join(thread, NULL);
	free(r);
}
