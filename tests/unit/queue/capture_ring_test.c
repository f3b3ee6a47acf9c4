/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings of copied frames: in order, across the end, never more than there is room for. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
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

Test(capture_ring, frames_arrive_in_order_across_the_end, .timeout = 60)
{
	struct capture_record r;

	open_ring();
	cr_assert_not(capture_reader_peek(&reader, &r));
	for (uint32_t round = 0; round < 1000; round++) {
		uint32_t length = round * 37 % 1500;

		cr_assert(put(length, (uint8_t)round));
		cr_assert(put(64, (uint8_t)(round + 1)));
		expect(length, (uint8_t)round);
		expect(64, (uint8_t)(round + 1));
	}
	cr_assert_not(capture_reader_peek(&reader, &r));
	cr_assert_eq(capture_reader_lost(&reader), 0);
	close_ring();
}

Test(capture_ring, what_finds_no_room_is_counted, .timeout = 60)
{
	uint32_t n = 0;

	open_ring();
	while (put(1000, (uint8_t)n))
		n++;
	cr_assert_eq(n, 4, "4 records of 1024 octets fit into 4096");
	cr_assert_not(put(1000, 99));
	cr_assert_eq(capture_reader_lost(&reader), 2);
	for (uint32_t i = 0; i < n; i++)
		expect(1000, (uint8_t)i);
	cr_assert(put(1000, 7));
	expect(1000, 7);
	close_ring();
}

Test(capture_ring, a_record_is_seen_when_it_is_whole, .timeout = 60)
{
	const struct capture_record half = { .length = 64 };
	struct capture_record r;

	open_ring();
	cr_assert(capture_ring_begin(&ring, &half));
	cr_assert_not(capture_reader_peek(&reader, &r));
	for (uint32_t i = 0; i < 64; i += 32) {
		capture_ring_append(&ring, "not more than half of this frame", 32);
		cr_assert_not(capture_reader_peek(&reader, &r));
	}
	capture_ring_end(&ring);
	cr_assert(capture_reader_peek(&reader, &r));
	close_ring();
}

/* Whatever the reader writes, the ring counts as full, and no octet outside is written. */
Test(capture_ring, an_impossible_tail_is_a_full_ring, .timeout = 60)
{
	static const uint64_t tails[] = { 1, SIZE, UINT64_C(1) << 63, -(uint64_t)SIZE - 1 };

	open_ring();
	for (uint32_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
		__atomic_store_n(&ring.shared->tail, tails[i], __ATOMIC_RELEASE);
		cr_assert_not(put(64, 1), "tail %llu", (unsigned long long)tails[i]);
	}
	__atomic_store_n(&ring.shared->tail, 0, __ATOMIC_RELEASE);
	cr_assert(put(64, 1));
	close_ring();
}

#define FRAMES 60000u

static uint32_t written; /* atomic: all of them, or lost */

/* Derived from a frame's number: all sizes up to a fifth of the ring. */
static uint32_t length_of(uint64_t number)
{
	return (uint32_t)(number * 2654435761u >> 7) % 800;
}

/* The lcore: each frame has its number in front, and again in each octet. */
static void *write_frames(void *none)
{
	uint8_t octets[800];

	for (uint64_t n = 0; n < FRAMES; n++) {
		struct capture_record r = { .length = length_of(n), .whole = (uint32_t)n, .at = n };

		memset(octets, (int)(n & 0xff), r.length);
		if (!capture_ring_begin(&ring, &r)) {
			sched_yield(); /* it is lost; a reader without a processor would get few */
			continue;
		}
		capture_ring_append(&ring, octets, r.length / 2);
		capture_ring_append(&ring, octets, r.length - r.length / 2);
		capture_ring_end(&ring);
	}
	__atomic_store_n(&written, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* The number of the next frame, whose octets are all its own; FRAMES: there is none now. */
static uint64_t read_frame(void)
{
	struct capture_record r;
	uint8_t octets[800];

	if (!capture_reader_peek(&reader, &r))
		return FRAMES;
	cr_assert_lt(r.at, FRAMES);
	cr_assert_eq(r.whole, r.at);
	cr_assert_eq(r.length, length_of(r.at));
	capture_reader_take(&reader, &r, octets, sizeof(octets));
	for (uint32_t i = 0; i < r.length; i++)
		cr_assert_eq(octets[i], (uint8_t)r.at);
	return r.at;
}

/* Each frame is read whole and once, in order, or is counted as lost. */
Test(capture_ring, a_reader_beside_the_lcore_sees_whole_frames, .timeout = 120)
{
	uint64_t next = 0, seen = 0, number;
	bool last_look = false;
	pthread_t lcore;

	open_ring();
	cr_assert_eq(pthread_create(&lcore, NULL, write_frames, NULL), 0);
	for (;;) {
		number = read_frame();
		if (number == FRAMES) {
			if (last_look)
				break;
			last_look = __atomic_load_n(&written, __ATOMIC_ACQUIRE) != 0;
			sched_yield();
			continue;
		}
		cr_assert_geq(number, next, "%lu after %lu", number, next);
		next = number + 1;
		seen++;
	}
	pthread_join(lcore, NULL);
	cr_assert_gt(seen, 0);
	cr_assert_eq(seen + capture_reader_lost(&reader), FRAMES);
	close_ring();
}
