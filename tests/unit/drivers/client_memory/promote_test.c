/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/client_memory/promote.h"
#include "drivers/client_memory/direct.h"
#include "drivers/client_memory/maps.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE  ((size_t)4096)
#define MIB   ((size_t)1 << 20)
#define PARTS 16u

static uint8_t *new_memory(size_t octets)
{
	void *p = mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	return p;
}

static bool is_shared(const void *p)
{
	struct mapping m;

	cr_assert_eq(maps_read((uintptr_t)p, (uintptr_t)p + 1, false, &m, 1), 1);
	return m.shared;
}

static struct direct_map engine_side(const struct mr_backing *b)
{
	struct direct_map d;

	cr_assert_geq(promote_file(), 0);
	cr_assert_eq(direct_open(&d, promote_file(), b->file_offset, b->length, true), 0);
	return d;
}

static uint64_t pages_of_file(void)
{
	struct stat st;

	cr_assert_eq(fstat(promote_file(), &st), 0);
	return (uint64_t)st.st_blocks * 512 / PAGE;
}

static uint64_t engine_octets(const struct direct_map *d, const struct mr_backing *b, uint64_t at)
{
	const uint8_t *p = direct_at(d, b->file_offset + at - b->offset, 1);

	cr_assert_not_null(p);
	return *p;
}

static void require(uint32_t count)
{
	if (count == 0)
		cr_skip_test("this kernel or user may not use userfaultfd");
}

Test(promote, contents_stay_the_same_and_the_engine_sees_them)
{
	uint8_t *p = new_memory(MIB);
	struct mr_backing b[PARTS];
	struct direct_map d;
	uint32_t count;

	for (size_t i = 0; i < MIB / PAGE; i += 3)
		memset(p + i * PAGE, (int)(i % 200 + 1), PAGE);
	count = promote_range(p + 100, MIB - 200, b, PARTS);
	require(count);
	cr_assert_eq(count, 1);
	cr_assert_eq(b[0].offset, PAGE - 100, "whole pages inside the region");
	cr_assert_eq(b[0].length, MIB - 2 * PAGE);
	cr_assert_eq(b[0].fd, BACKING_PROMOTED);
	cr_assert(is_shared(p + PAGE));
	cr_assert_not(is_shared(p));
	d = engine_side(b);
	for (size_t i = 0; i < MIB / PAGE; i++) {
		uint8_t expected = i % 3 == 0 ? (uint8_t)(i % 200 + 1) : 0;

		cr_assert_eq(p[i * PAGE + 17], expected, "page %zu", i);
		if (i > 0 && i < MIB / PAGE - 1)
			cr_assert_eq(engine_octets(&d, b, i * PAGE + 17 - 100), expected);
	}
	p[5 * PAGE] = 0xaa;
	cr_assert_eq(engine_octets(&d, b, 5 * PAGE - 100), 0xaa);
	*(uint8_t *)direct_at(&d, b[0].file_offset + 8 * PAGE, 1) = 0xbb;
	cr_assert_eq(p[9 * PAGE], 0xbb);
	promote_release(b, count);
	cr_assert_not(is_shared(p + PAGE));
	for (size_t i = 10; i < MIB / PAGE; i++)
		cr_assert_eq(p[i * PAGE + 17], i % 3 == 0 ? (uint8_t)(i % 200 + 1) : 0);
	cr_assert_eq(p[9 * PAGE], 0xbb);
	cr_assert_eq(p[5 * PAGE], 0xaa);
	direct_close(&d);
}

struct writer {
	uint64_t *word; /* one in each page */
	size_t pages;
	uint32_t stop;
	uint64_t rounds;
};

/* Increments a word of every page; a lost write leaves a word that is not its round's number. */
static void *hammer(void *arg)
{
	struct writer *w = arg;

	for (w->rounds = 1; !__atomic_load_n(&w->stop, __ATOMIC_RELAXED); w->rounds++)
		for (size_t i = 0; i < w->pages; i++) {
			volatile uint64_t *word = w->word + i * PAGE / 8;

			if (*word != w->rounds - 1)
				return (void *)(i + 1);
			*word = w->rounds;
		}
	return NULL;
}

Test(promote, no_write_is_lost_during_promotion, .timeout = 100)
{
	uint8_t *p = new_memory(MIB);
	struct writer w = { .word = (uint64_t *)(void *)p, .pages = MIB / PAGE };
	struct mr_backing b[PARTS];
	pthread_t thread;
	uint32_t count = 0;
	void *lost;

	setenv("UROCE_PROMOTE", "on", 1);
	/* every other page does not exist at first */
	cr_assert_eq(pthread_create(&thread, NULL, hammer, &w), 0);
	for (int i = 0; i < 40; i++) {
		uint64_t before = *(volatile uint64_t *)(void *)p;

		count = promote_range(p, MIB, b, PARTS);
		if (count == 0)
			break;
		while (*(volatile uint64_t *)(void *)p < before + 3)
			sched_yield();
		promote_release(b, count);
		while (*(volatile uint64_t *)(void *)p < before + 6)
			sched_yield();
	}
	__atomic_store_n(&w.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, &lost);
	require(count);
	cr_assert_null(lost, "a write to page %zu was lost", (size_t)lost - 1);
	cr_assert_not(is_shared(p));
}

/* ---- another thread discards pages ---- */

#define DISCARDED (4 * MIB)

static uint32_t stop_discarding;

/* From the end to the beginning, towards the copy. */
static void *discard(void *memory)
{
	uint8_t *p = memory;

	while (!__atomic_load_n(&stop_discarding, __ATOMIC_RELAXED))
		for (size_t at = DISCARDED; at > 0; at -= 4 * PAGE)
			madvise(p + at - 4 * PAGE, 4 * PAGE, MADV_DONTNEED);
	return NULL;
}

/* Returns the first octet that nobody has written. */
static void *promote_often(void *memory)
{
	struct mr_backing b[PARTS];
	uint8_t *p = memory;

	for (int round = 0; round < 8; round++) {
		uint32_t count;

		memset(p, 1, DISCARDED);
		count = promote_range(p, DISCARDED, b, PARTS);
		for (size_t i = 0; i < DISCARDED; i += 64)
			if (p[i] > 1)
				return p + i;
		promote_release(b, count);
	}
	return NULL;
}

Test(promote, pages_that_are_discarded_meanwhile_are_not_waited_for, .timeout = 200)
{
	uint8_t *p = new_memory(DISCARDED);
	pthread_t discarding, promoting;
	struct mr_backing b[PARTS];
	struct timespec until;
	uint32_t count;
	void *wrong;

	count = promote_range(p, DISCARDED, b, PARTS);
	require(count);
	promote_release(b, count);
	cr_assert_eq(pthread_create(&discarding, NULL, discard, p), 0);
	cr_assert_eq(pthread_create(&promoting, NULL, promote_often, p), 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 100;
	cr_assert_eq(pthread_timedjoin_np(promoting, &wrong, &until), 0,
		     "the registration did not return");
	__atomic_store_n(&stop_discarding, 1, __ATOMIC_RELAXED);
	pthread_join(discarding, NULL);
	cr_expect_null(wrong, "octet %zu", (size_t)((uint8_t *)wrong - p));
}

Test(promote, regions_that_overlap_share_their_pages)
{
	uint8_t *p = new_memory(MIB);
	struct mr_backing a[PARTS], b[PARTS];
	uint32_t in_a, in_b;

	memset(p, 7, MIB);
	in_a = promote_range(p, MIB / 2, a, PARTS);
	require(in_a);
	in_b = promote_range(p + MIB / 4, MIB / 2, b, PARTS);
	cr_assert_geq(in_b, 1);
	cr_assert_eq(b[0].file_offset, a[0].file_offset + MIB / 4);
	promote_release(a, in_a);
	cr_assert_not(is_shared(p));
	cr_assert(is_shared(p + MIB / 4), "the other region still needs it");
	cr_assert(is_shared(p + MIB / 2));
	p[MIB / 4] = 9;
	promote_release(b, in_b);
	cr_assert_not(is_shared(p + MIB / 4));
	cr_assert_not(is_shared(p + MIB / 2));
	cr_assert_eq(p[MIB / 4], 9);
	cr_assert_eq(p[MIB / 4 + 1], 7);
	cr_assert_eq(p[0], 7);
}

/* The end of a mapping becomes private again, its beginning stays: each at its place. */
Test(promote, of_regions_that_overlap_the_later_one_may_go_first)
{
	uint8_t *p = new_memory(MIB);
	struct mr_backing a[PARTS], b[PARTS];
	uint32_t in_a, in_b;

	for (size_t i = 0; i < MIB; i++)
		p[i] = (uint8_t)(i / PAGE);
	in_a = promote_range(p, 3 * MIB / 4, a, PARTS);
	require(in_a);
	in_b = promote_range(p + MIB / 2, MIB / 2, b, PARTS);
	cr_assert_geq(in_b, 1);
	promote_release(b, in_b);
	cr_assert(is_shared(p), "the other region still needs it");
	cr_assert(is_shared(p + 3 * MIB / 4 - PAGE), "the other region still needs it");
	cr_assert_not(is_shared(p + 3 * MIB / 4));
	promote_release(a, in_a);
	cr_assert_not(is_shared(p));
	for (size_t i = 0; i < MIB; i++)
		cr_assert_eq(p[i], (uint8_t)(i / PAGE), "octet %zu", i);
}

/* ... and in pages that the program has moved. */
Test(promote, pages_that_the_program_moved_become_private_where_they_are)
{
	uint8_t *p = new_memory(MIB), *to = new_memory(MIB / 4);
	struct mr_backing b[PARTS];
	uint32_t count;

	for (size_t i = 0; i < MIB; i++)
		p[i] = (uint8_t)(i / PAGE);
	count = promote_range(p, MIB, b, PARTS);
	require(count);
	cr_assert_eq(mremap(p + MIB / 2, MIB / 4, MIB / 4, MREMAP_MAYMOVE | MREMAP_FIXED, to), to);
	cr_assert(is_shared(to));
	promote_release(b, count);
	cr_expect_not(is_shared(p));
	cr_expect_not(is_shared(p + MIB - PAGE));
	cr_expect_not(is_shared(to));
	cr_expect_not(is_shared(to + MIB / 4 - PAGE));
	for (size_t i = 0; i < MIB / 4; i++)
		cr_assert_eq(to[i], (uint8_t)((MIB / 2 + i) / PAGE), "octet %zu", i);
	cr_expect_eq(p[MIB - 1], (uint8_t)((MIB - 1) / PAGE));
}

/* The program has enlarged promoted memory; regions of it use parts of the file with a gap between. */
Test(promote, parts_that_are_not_adjacent_are_counted_each)
{
	uint8_t *p = new_memory(MIB);
	struct mr_backing a[PARTS], b[PARTS], c[PARTS];
	uint32_t in_a, in_b, in_c;

	munmap(p + MIB / 2, MIB / 2);
	memset(p, 3, MIB / 2);
	in_a = promote_range(p, MIB / 2, a, PARTS);
	require(in_a);
	if (mremap(p, MIB / 2, MIB, 0) == MAP_FAILED)
		cr_skip_test("something else was mapped behind it meanwhile");
	memset(p + MIB / 2, 4, MIB / 2);
	in_c = promote_range(p + 3 * MIB / 4, MIB / 4, c, PARTS);
	in_b = promote_range(p, MIB, b, PARTS);
	cr_assert_eq(in_c, 1);
	cr_assert_geq(in_b, 1);
	promote_release(c, in_c);
	cr_expect(is_shared(p + 3 * MIB / 4), "the whole region still needs it");
	promote_release(a, in_a);
	cr_expect(is_shared(p), "the whole region still needs it");
	promote_release(b, in_b);
	for (size_t at = 0; at < MIB; at += MIB / 4)
		cr_expect_not(is_shared(p + at), "at %zu", at);
	cr_expect_eq(p[0], 3);
	cr_expect_eq(p[MIB - 1], 4);
}

/* hostile H-101: memory that goes away. */
Test(promote, a_forks_child_has_its_own_copy, .timeout = 100)
{
	uint8_t *p = new_memory(MIB);
	struct mr_backing b[PARTS];
	uint32_t count;
	int status, go[2];
	pid_t pid;
	char octet;

	memset(p, 1, MIB / 2);
	count = promote_range(p, MIB, b, PARTS);
	require(count);
	cr_assert_eq(pipe(go), 0);
	pid = fork();
	if (pid == 0) {
		bool good = read(go[0], &octet, 1) == 1;

		for (size_t i = 0; i < MIB; i++)
			good = good && p[i] == (i < MIB / 2 ? 1 : 0);
		memset(p, 3, MIB);
		good = good && promote_range(p, MIB, b, PARTS) == 1 && p[MIB - 1] == 3;
		_exit(good ? 0 : 1);
	}
	memset(p, 2, MIB);
	cr_assert_eq(write(go[1], "g", 1), 1);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		  "the child saw the parent's writes");
	for (size_t i = 0; i < MIB; i++)
		cr_assert_eq(p[i], 2, "the child wrote into the parent's memory");
	cr_assert(is_shared(p));
	promote_release(b, count);
	cr_assert_eq(p[MIB - 1], 2);
}

Test(promote, what_must_not_be_promoted_is_not)
{
	uint8_t stack[128 * 1024], *p = new_memory(MIB);
	struct mr_backing b[PARTS];

	memset(stack, 1, sizeof(stack));
	memset(p, 1, MIB);
	cr_assert_eq(promote_range(stack, sizeof(stack), b, PARTS), 0);
	cr_assert_eq(promote_range(p + 1, 2 * PAGE - 2, b, PARTS), 0, "no whole page");
	cr_assert_eq(promote_range(p, MIB, b, 0), 0);
	cr_assert_eq(promote_range((void *)(uintptr_t)PAGE, MIB, b, PARTS), 0, "not mapped");
	/* the system call, because the sanitizer's mlock() does nothing */
	cr_assert_eq(syscall(SYS_mlock, p, MIB), 0);
	cr_assert_eq(promote_range(p, MIB, b, PARTS), 0, "locked");
	syscall(SYS_munlock, p, MIB);
	madvise(p, MIB, MADV_DONTFORK);
	cr_assert_eq(promote_range(p, MIB, b, PARTS), 0, "not forked");
	madvise(p, MIB, MADV_DOFORK);
	mprotect(p, MIB, PROT_READ);
	cr_assert_eq(promote_range(p, MIB, b, PARTS), 0, "read only");
	cr_assert_eq(p[MIB - 1], 1);
	cr_assert_not(is_shared(p));
}

/* Later small regions are not promoted, even if the first ones are gone. */
Test(promote, only_the_first_small_regions_are_promoted)
{
	uint8_t *p = new_memory(MIB);
	struct mr_backing b[PARTS];
	uint32_t count;

	memset(p, 1, MIB);
	for (uint32_t i = 0; i < LIMIT_PROMOTE_SMALLS; i++) {
		count = promote_range(p + 2 * PAGE * i + 100, 2 * PAGE, b, PARTS);
		require(count);
		cr_assert_eq(count, 1);
		cr_assert_eq(b[0].offset, PAGE - 100);
		cr_assert_eq(b[0].length, PAGE);
		cr_assert(is_shared(p + 2 * PAGE * i + PAGE));
		cr_assert_not(is_shared(p + 2 * PAGE * i));
		if (i % 2 == 0)
			promote_release(b, count);
	}
	cr_assert_eq(promote_range(p + MIB - 2 * PAGE, 2 * PAGE, b, PARTS), 0);
	cr_assert_eq(promote_range(p + MIB / 2, LIMIT_PROMOTE_SMALL - 1, b, PARTS), 0);
	count = promote_range(p, MIB, b, PARTS);
	cr_assert_gt(count, 0, "large ones still are");
	for (size_t i = 0; i < MIB; i++)
		cr_assert_eq(p[i], 1);
}

Test(promote, it_can_be_turned_off)
{
	uint8_t *p = new_memory(MIB);
	struct mr_backing b[PARTS];

	setenv("UROCE_PROMOTE", "off", 1);
	cr_assert_eq(promote_range(p, MIB, b, PARTS), 0);
	cr_assert_eq(promote_file(), -1);
}

/*
 * A part of a region that cannot be promoted is left out; what follows it is not.
 * hostile H-100: pieces of any length.
 */
Test(promote, a_region_in_pieces)
{
	uint8_t *p = new_memory(MIB);
	struct mr_backing b[PARTS];
	uint32_t count;

	memset(p, 1, MIB);
	mprotect(p + MIB / 2, PAGE, PROT_READ);
	count = promote_range(p, MIB, b, PARTS);
	require(count);
	cr_assert_eq(count, 2);
	cr_assert_eq(b[0].length, MIB / 2);
	cr_assert_eq(b[1].offset, MIB / 2 + PAGE);
	cr_assert_eq(b[1].length, MIB / 2 - PAGE);
	cr_assert_not(is_shared(p + MIB / 2));
	promote_release(b, count);
	cr_assert_not(is_shared(p));
	cr_assert_eq(p[MIB - 1], 1);
}

/* New memory at the address of promoted memory that the program unmapped is not changed. */
Test(promote, memory_that_the_program_replaced_is_not_changed)
{
	uint8_t *p = new_memory(MIB);
	struct mr_backing b[PARTS];
	uint32_t count;

	memset(p, 1, MIB);
	count = promote_range(p, MIB, b, PARTS);
	require(count);
	cr_assert_eq(mmap(p, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			  -1, 0),
		     p);
	memset(p, 5, MIB);
	promote_release(b, count);
	cr_assert_eq(p[0], 5);
	cr_assert_eq(p[MIB - 1], 5);
	count = promote_range(p, MIB, b, PARTS);
	cr_assert_eq(count, 1);
	cr_assert_eq(pages_of_file(), MIB / PAGE, "its part of the file was free again");
	cr_assert_eq(p[MIB - 1], 5);
	promote_release(b, count);
}

/* No descriptor is free: the memory must stay unchanged. */
Test(promote, a_failure_leaves_the_memory_as_it_was)
{
	uint8_t *p = new_memory(MIB);
	struct mr_backing b[PARTS];
	struct rlimit none, old;

	memset(p, 1, MIB);
	require(promote_file() >= 0);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	for (rlim_t left = 0; left <= 3; left++) {
		int next = dup(0);

		cr_assert_geq(next, 0);
		close(next);
		none = (struct rlimit){ (rlim_t)next + left, old.rlim_max };
		cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
		if (left < 3)
			cr_assert_eq(promote_range(p, MIB, b, PARTS), 0);
		setrlimit(RLIMIT_NOFILE, &old);
		if (left < 3)
			cr_assert_not(is_shared(p));
		memset(p, 1 + (int)left, MIB);
		cr_assert_eq(p[MIB - 1], 1 + left);
	}
}
