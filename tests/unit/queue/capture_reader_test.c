/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reader of copied frames alone: the records are put into the file by hand, octet by octet as
 * capture_ring.h draws them.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "queue/capture_ring.h"

#define SIZE  4096u
#define RINGS 2u
#define INDEX 1u

static uint8_t *file;
static struct capture_reader reader;

static struct capture_shared *shared(void)
{
	return &((struct capture_page *)(void *)file)->ring[INDEX];
}

static void open_reader(void)
{
	file = aligned_alloc(4096, capture_octets(RINGS, SIZE));
	cr_assert_not_null(file);
	memset(file, 0xee, capture_octets(RINGS, SIZE));
	memset(file, 0, CAPTURE_PAGE_OCTETS);
	capture_reader_init(&reader, file, INDEX, SIZE);
}

static void close_reader(void)
{
	free(file);
}

TestSuite(capture_reader, .init = open_reader, .fini = close_reader, .timeout = 30);

/* An octet at this position of the second ring. */
static void put(uint64_t position, const void *octets, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		file[CAPTURE_PAGE_OCTETS + INDEX * SIZE + (position + i) % SIZE] =
			((const uint8_t *)octets)[i];
}

/* A record with its octets, all `fill`. Returns the position behind it. */
static uint64_t put_record(uint64_t at, uint32_t length, uint8_t fill)
{
	struct capture_record r = { .length = length, .whole = length, .at = fill };

	put(at, &r, sizeof(r));
	for (uint32_t i = 0; i < length; i++)
		put(at + sizeof(r) + i, &fill, 1);
	return at + sizeof(r) + (length + 7) / 8 * 8;
}

/* As if everything before this position had been written and read. */
static void begin_at(uint64_t position)
{
	reader.tail = position;
	shared()->tail = shared()->head = position;
}

static void expect(uint32_t length, uint8_t fill)
{
	struct capture_record r;
	uint8_t octets[SIZE];

	cr_assert(capture_reader_peek(&reader, &r));
	cr_expect_eq(r.length, length);
	cr_expect_eq(r.at, fill);
	capture_reader_take(&reader, &r, octets, sizeof(octets));
	for (uint32_t i = 0; i < length; i++)
		cr_assert_eq(octets[i], fill, "octet %u of %u", i, length);
}

Test(capture_reader, an_empty_ring_has_no_record)
{
	struct capture_record r;

	cr_expect_not(capture_reader_peek(&reader, &r));
	begin_at(SIZE - 8);
	cr_expect_not(capture_reader_peek(&reader, &r));
}

/*
 * A look takes nothing; octets that were taken belong to the lcore again, up to the next multiple
 * of 8.
 */
Test(capture_reader, room_is_given_back_when_a_record_is_taken)
{
	struct capture_record r;
	uint64_t end = put_record(0, 61, 'a');

	shared()->head = end;
	cr_expect(capture_reader_peek(&reader, &r));
	cr_expect(capture_reader_peek(&reader, &r));
	cr_expect_eq(shared()->tail, 0);
	expect(61, 'a');
	cr_expect_eq(shared()->tail, end);
	cr_expect_eq(end % 8, 0);
	cr_expect_not(capture_reader_peek(&reader, &r));
}

/* The end of the ring in each of the record's octets, and positions beyond 32 bits. */
Test(capture_reader, a_record_goes_round_the_end)
{
	static const uint64_t laps[] = { 0, UINT64_C(1) << 20, (UINT64_C(1) << 32) - SIZE };

	for (uint32_t lap = 0; lap < ARRAY_SIZE(laps); lap++)
		for (uint32_t back = 8; back <= 104; back += 8) {
			uint64_t at = laps[lap] + SIZE - back;
			uint64_t end = put_record(at, 70, (uint8_t)back);

			begin_at(at);
			shared()->head = end;
			expect(70, (uint8_t)back);
			cr_expect_eq(shared()->tail, end);
		}
}

/* A reader with less room gets as many octets as fit, and the next record is whole. */
Test(capture_reader, a_record_is_cut_to_the_room_for_it)
{
	uint64_t second = put_record(0, 100, 'l');
	struct capture_record r;
	uint8_t octets[16];

	shared()->head = put_record(second, 24, 's');
	memset(octets, 0x55, sizeof(octets));
	cr_assert(capture_reader_peek(&reader, &r));
	capture_reader_take(&reader, &r, octets, 10);
	cr_expect_eq(octets[9], 'l');
	cr_expect_eq(octets[10], 0x55, "behind the room that there is");
	expect(24, 's');
}

Test(capture_reader, what_was_lost_is_the_lcores_count)
{
	shared()->lost = 7;
	cr_expect_eq(capture_reader_lost(&reader), 7);
}
