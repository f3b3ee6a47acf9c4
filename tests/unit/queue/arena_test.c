/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/arena.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

Test(arena, a_shared_arena_is_a_sealed_file_that_both_sides_map)
{
	struct arena *a = arena_create_shared("uroce-test");
	uint64_t offset;
	uint8_t *other;
	struct stat st;

	cr_assert_not_null(a);
	cr_assert_eq(fstat(arena_fd(a), &st), 0);
	cr_assert_eq((uint64_t)st.st_size, LIMIT_ARENA_BYTES);
	cr_assert_lt(ftruncate(arena_fd(a), 4096), 0);
	cr_assert_eq(errno, EPERM);
	offset = arena_allocate(a, 10000);
	cr_assert_neq(offset, 0);
	other = mmap(NULL, LIMIT_ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		     arena_fd(a), 0);
	cr_assert_neq(other, MAP_FAILED);
	strcpy(arena_at(a, offset), "seen by both");
	cr_assert_str_eq((char *)other + offset, "seen by both");
	munmap(other, LIMIT_ARENA_BYTES);
	arena_destroy(a);
}

#define RANGES 2000u

/*
 * Ranges of all sizes, allocated and freed in a fixed random order, never overlap and are zeroed.
 */
static void exercise(struct arena *a)
{
	static uint64_t offset[RANGES];
	static size_t octets[RANGES];
	uint64_t x = 88172645463325252u;

	memset(offset, 0, sizeof(offset));
	for (uint32_t step = 0; step < 4 * RANGES; step++) {
		uint32_t i;
		uint8_t *p;

		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		i = (uint32_t)(x % RANGES);
		if (offset[i] != 0) {
			p = arena_at(a, offset[i]);
			cr_assert_eq(p[0], (uint8_t)i, "another range overlaps range %u", i);
			cr_assert_eq(p[octets[i] - 1], (uint8_t)i);
			arena_free(a, offset[i], octets[i]);
			offset[i] = 0;
			continue;
		}
		octets[i] = 1 + (x >> 32) % ((x >> 60) < 12 ? 3000 : 200000);
		offset[i] = arena_allocate(a, octets[i]);
		cr_assert_geq(offset[i], 4096, "the client page is not handed out");
		cr_assert_eq(offset[i] % (octets[i] < 4096 ? 64 : 4096), 0);
		p = arena_at(a, offset[i]);
		cr_assert_eq(p[0] | p[octets[i] / 2] | p[octets[i] - 1], 0);
		memset(p, (uint8_t)i, octets[i]);
	}
	for (uint32_t i = 0; i < RANGES; i++)
		if (offset[i] != 0)
			arena_free(a, offset[i], octets[i]);
	/* all of it was merged again: the largest free block is half the arena */
	cr_assert_eq(arena_allocate(a, LIMIT_ARENA_BYTES), 0);
	offset[0] = arena_allocate(a, LIMIT_ARENA_BYTES / 2);
	cr_assert_neq(offset[0], 0);
	cr_assert_eq(arena_allocate(a, LIMIT_ARENA_BYTES / 2), 0);
	arena_free(a, offset[0], LIMIT_ARENA_BYTES / 2);
}

Test(arena, ranges_do_not_overlap_and_are_freed_completely)
{
	struct arena *a = arena_create_shared("uroce-test");

	exercise(a);
	arena_destroy(a);
	a = arena_create_private();
	cr_assert_eq(arena_fd(a), -1);
	exercise(a);
	arena_destroy(a);
}

static uint64_t pages_in_use(const struct arena *a)
{
	struct stat st;

	cr_assert_eq(fstat(arena_fd(a), &st), 0);
	return (uint64_t)st.st_blocks / 8; /* of 512 octets */
}

/* Huge pages would be in use as a whole. */
static bool counts_small_pages(void)
{
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "re");
	char modes[100] = "[never]"; /* of a kernel without huge pages */

	if (f != NULL && fgets(modes, sizeof(modes), f) == NULL)
		modes[0] = '\0';
	if (f != NULL)
		fclose(f);
	return sysconf(_SC_PAGESIZE) == 4096 &&
	       (strstr(modes, "[never]") != NULL || strstr(modes, "[advise]") != NULL);
}

/* The next object of a program needs no new page, however many it had: the others are given back. */
Test(arena, one_page_for_each_small_size_stays)
{
	enum {
		MANY = 100
	};
	uint64_t before, offset[MANY];
	struct arena *a;

	if (!counts_small_pages())
		cr_skip_test("pages of this machine are not of 4096 octets");
	a = arena_create_shared("uroce-test");
	before = pages_in_use(a);
	for (size_t octets = 64; octets <= 2048; octets *= 2) {
		for (uint32_t i = 0; i < MANY; i++) {
			offset[i] = arena_allocate(a, octets);
			cr_assert_neq(offset[i], 0);
		}
		for (uint32_t i = 0; i < MANY; i++)
			arena_free(a, offset[i], octets);
		cr_expect_eq(pages_in_use(a), ++before, "%zu octets", octets);
		offset[0] = arena_allocate(a, octets);
		memset(arena_at(a, offset[0]), 1, octets);
		arena_free(a, offset[0], octets);
		offset[1] = arena_allocate(a, octets);
		cr_expect_eq(offset[1], offset[0]);
		cr_expect_eq(((uint8_t *)arena_at(a, offset[1]))[octets - 1], 0);
		arena_free(a, offset[1], octets);
	}
	arena_destroy(a);
}

Test(arena, nonsense_is_refused)
{
	struct arena *a = arena_create_private();

	cr_assert_eq(arena_allocate(a, 0), 0);
	cr_assert_eq(arena_allocate(a, SIZE_MAX), 0);
	arena_free(a, 0, 4096);
	arena_destroy(a);
}
