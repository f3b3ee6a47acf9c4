/* SPDX-License-Identifier: BSD-3-Clause */
/* The first and last page of a region from malloc. */
#include <criterion/criterion.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "drivers/client_memory/maps.h"
#include "drivers/client_memory/promote.h"
#include "drivers/client_memory/promote_private.h"

#define OCTETS ((size_t)1 << 20)
#define PARTS  16u

TestSuite(promote_edge, .timeout = 60);

static bool is_shared(const void *p)
{
	struct mapping m;

	cr_assert_eq(maps_read((uintptr_t)p, (uintptr_t)p + 1, false, &m, 1), 1);
	return m.shared;
}

static void assert_all(const uint8_t *p, uint8_t value)
{
	for (size_t i = 0; i < OCTETS; i++)
		cr_assert_eq(p[i], value, "octet %zu", i);
}

static uint32_t promote(uint8_t *p, size_t octets, struct mr_backing *b)
{
	uint32_t count = promote_range(p, octets, b, PARTS);

	if (count == 0)
		cr_skip_test("this kernel or user may not use userfaultfd");
	return count;
}

static void assert_whole(uint8_t *p)
{
	struct mr_backing b[PARTS];
	uint32_t count;

	memset(p, 5, OCTETS);
	count = promote(p, OCTETS, b);
	cr_assert_eq(count, 1);
	cr_assert_eq(b[0].offset, 0, "its first page is not promoted");
	cr_assert_eq(b[0].length, OCTETS, "its last page is not promoted");
	cr_assert_eq(b[0].file_offset % PAGE, (uintptr_t)p % PAGE);
	cr_assert(is_shared(p));
	cr_assert(is_shared(p + OCTETS - 1));
	assert_all(p, 5);
	promote_release(b, count);
	cr_assert_not(is_shared(p));
	cr_assert_not(is_shared(p + OCTETS - 1));
	assert_all(p, 5);
}

/* An allocation with its own pages, at the usual offset in the first one or aligned. */
Test(promote_edge, edges_of_an_allocation_with_its_own_pages)
{
	uint8_t *p = malloc(OCTETS);
	void *q;

	cr_assert_eq((uintptr_t)p % PAGE, 16, "this is not glibc's malloc");
	/* before a free changes the size from which on such allocations are made */
	cr_assert_eq(posix_memalign(&q, 256, OCTETS), 0);
	assert_whole(p);
	assert_whole(q);
	free(p);
	free(q);
}

Test(promote_edge, edges_of_an_allocation_that_grows)
{
	uint8_t *p = malloc(OCTETS), *more;
	struct mr_backing b[PARTS];
	uint32_t count;

	memset(p, 5, OCTETS);
	count = promote(p, OCTETS, b);
	more = realloc(p, 4 * OCTETS);
	cr_assert_not_null(more);
	assert_all(more, 5);
	memset(more + OCTETS, 6, 3 * OCTETS);
	promote_release(b, count);
	cr_assert_not(is_shared(more));
	assert_all(more, 5);
	assert_all(more + OCTETS, 6);
	assert_all(more + 3 * OCTETS, 6);
	free(more);
}

/* There are other data in those pages. */
Test(promote_edge, edges_of_an_allocation_that_shares_its_pages)
{
	struct mr_backing b[PARTS];
	uint8_t *p, *next;
	uint32_t count;

	mallopt(M_MMAP_THRESHOLD, 64 * OCTETS);
	p = malloc(OCTETS);
	next = malloc(64);
	memset(p, 5, OCTETS);
	memset(next, 9, 64);
	count = promote(p, OCTETS, b);
	cr_assert_gt(b[0].offset, 0);
	cr_assert_not(is_shared(p));
	cr_assert_not(is_shared(p + OCTETS - 1));
	promote_release(b, count);
	assert_all(p, 5);
	cr_assert_eq(next[63], 9);
	free(next);
	free(p);
}

/*
 * The octets that glibc writes before a block of 16 pages at `block`: those that alignment left
 * unused, and the size with its flags.
 */
static bool owns(uint8_t *block, uint64_t before, uint64_t size, uint64_t length)
{
	uint64_t header[2] = { before, size };

	memcpy(block + before, header, sizeof(header));
	return promote_owns_edges((uintptr_t)block + before + sizeof(header), length);
}

/* Only a block of whole pages that malloc mapped for one allocation, and that holds the region. */
Test(promote_edge, what_does_not_look_like_pages_of_its_own)
{
	const uint64_t mapped = 2, size = 16 * PAGE, room = size - 16;
	uint8_t *block =
		mmap(NULL, 17 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(block, MAP_FAILED);
	cr_assert(owns(block, 0, size | mapped, room));
	cr_assert(owns(block, 240, (size - 240) | mapped, room - 240));
	cr_assert_not(owns(block, 0, size | mapped, room + 1), "it ends in a page of others");
	cr_assert_not(owns(block, 0, size, room), "a part of the heap");
	cr_assert_not(owns(block, 0, size | 1, room), "a part of the heap, behind one in use");
	cr_assert_not(owns(block, 0, size | mapped | 4, room), "of another arena");
	cr_assert_not(owns(block, 0, (size + 16) | mapped, room), "no whole pages");
	cr_assert_not(owns(block, PAGE, (size - PAGE) | mapped, 64), "more than a page before it");
	munmap(block, 17 * PAGE);
}

/* A page that two regions share stays promoted until both are gone. */
Test(promote_edge, a_page_that_two_regions_share)
{
	uint8_t *p = malloc(OCTETS);
	size_t half = OCTETS / 2;
	struct mr_backing a[PARTS], b[PARTS];
	uint32_t in_a, in_b;

	memset(p, 5, OCTETS);
	in_a = promote(p, half, a);
	cr_assert_eq(a[0].length, half);
	in_b = promote(p + half, half, b);
	cr_assert_eq(b[0].offset, 0, "the page that they share is promoted already");
	cr_assert_eq(b[0].file_offset, a[0].file_offset + half);
	promote_release(a, in_a);
	cr_assert_not(is_shared(p));
	cr_assert(is_shared(p + half));
	promote_release(b, in_b);
	cr_assert_not(is_shared(p + half));
	assert_all(p, 5);
	free(p);
}
