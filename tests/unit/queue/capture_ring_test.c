/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings of copied frames: in order, across the end, never more than there is room for. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "queue/capture_ring.h"

#define SIZE 4096u

static struct capture_ring ring;
static struct capture_reader reader;
static void *memory;

static void open_ring(void)
{
	memory = aligned_alloc(4096, capture_octets(2, SIZE));
	memset(memory, 0, capture_octets(2, SIZE));
	capture_ring_init(&ring, memory, 1, SIZE);
	capture_reader_init(&reader, memory, 1, SIZE);
}

static void close_ring(void)
{
	free(memory);
}

TestSuite(capture_ring, .init = open_ring, .fini = close_ring, .timeout = 30);

/* A frame of `length` octets, each `seed` and counting, appended in two parts. */
static bool put(uint32_t length, uint8_t seed)
{
	struct capture_record r = { .length = length, .whole = length + 1, .at = seed, .way = 2 };
	uint8_t octets[SIZE];

	for (uint32_t i = 0; i < length; i++)
		octets[i] = (uint8_t)(seed + i);
	if (!capture_ring_begin(&ring, &r))
		return false;
	capture_ring_append(&ring, octets, length / 3);
	capture_ring_append(&ring, octets + length / 3, length - length / 3);
	capture_ring_end(&ring);
	return true;
}

static void expect(uint32_t length, uint8_t seed)
{
	struct capture_record r;
	uint8_t octets[SIZE];

	cr_assert(capture_reader_peek(&reader, &r));
	cr_assert_eq(r.length, length);
	cr_assert_eq(r.whole, length + 1);
	cr_assert_eq(r.at, seed);
	cr_assert_eq(r.way, 2);
	capture_reader_take(&reader, &r, octets, sizeof(octets));
	for (uint32_t i = 0; i < length; i++)
		cr_assert_eq(octets[i], (uint8_t)(seed + i));
}

Test(capture_ring, frames_arrive_in_order_across_the_end)
{
	struct capture_record r;

	cr_expect_not(capture_reader_peek(&reader, &r));
	for (uint32_t round = 0; round < 1000; round++) {
		uint32_t length = round * 37 % 1500;

		cr_assert(put(length, (uint8_t)round));
		cr_assert(put(64, (uint8_t)(round + 1)));
		expect(length, (uint8_t)round);
		expect(64, (uint8_t)(round + 1));
	}
	cr_expect_not(capture_reader_peek(&reader, &r));
	cr_expect_eq(capture_reader_lost(&reader), 0);
}

Test(capture_ring, what_finds_no_room_is_counted)
{
	uint32_t n = 0;

	while (put(1000, (uint8_t)n))
		n++;
	cr_expect_eq(n, 4, "4 records of 1024 octets fit into 4096");
	cr_expect_not(put(1000, 99));
	cr_expect_eq(capture_reader_lost(&reader), 2);
	for (uint32_t i = 0; i < n; i++)
		expect(1000, (uint8_t)i);
	cr_expect(put(1000, 7));
	expect(1000, 7);
}

/* The reader writes what it likes: the ring counts as full, and nothing outside is written. */
Test(capture_ring, an_impossible_tail_is_a_full_ring)
{
	static const uint64_t tails[] = { 1, SIZE, UINT64_C(1) << 63, -(uint64_t)SIZE - 1 };

	for (uint32_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		__atomic_store_n(&ring.shared->tail, tails[i], __ATOMIC_RELEASE);
		cr_expect_not(put(64, 1), "tail %llu", (unsigned long long)tails[i]);
	}
	__atomic_store_n(&ring.shared->tail, 0, __ATOMIC_RELEASE);
	cr_expect(put(64, 1));
}
