/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is taken back without holding any thread back: deregistration in a program of many
 * threads without privilege. For its fork see forks_test.c.
 */
#include "drivers/client_memory/promote.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/client_memory/promote_private.h"
#include "users.h"

#define MIB   ((size_t)1 << 20)
#define PARTS 16u

/* A leak sanitizer looks at the process in the end. */
static void end_as_root(void)
{
	if (getuid() == 0)
		be_root();
}

TestSuite(take_back, .init = expect_root, .fini = end_as_root, .timeout = 60);

static uint8_t *new_memory(size_t octets)
{
	void *p = mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	return p;
}

static void promote(uint8_t *p, size_t octets, struct mr_backing *b)
{
	be_root();
	if (promote_range(p, octets, b, PARTS) != 1)
		cr_skip_test("this kernel may not use userfaultfd");
	be_nobody();
}

static bool is_shared(const void *at)
{
	struct mapping m;

	cr_assert_eq(maps_read((uintptr_t)at, (uintptr_t)at + 1, false, &m, 1), 1);
	return m.shared;
}

static uint64_t octets_of_file(void)
{
	struct stat st;

	cr_assert_eq(fstat(promote_file(), &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* jemalloc expects zeros in memory that it has discarded, and calloc hands it out. */
Test(take_back, what_is_discarded_after_deregistration_is_zero)
{
	struct mr_backing b[PARTS], again[PARTS];
	uint8_t *p = new_memory(MIB), *q = new_memory(MIB);

	memset(p, 3, MIB / 2);
	memset(q, 4, MIB);
	promote(p, MIB, b);
	promote_release(b, 1);
	cr_assert_not(is_shared(p));
	cr_expect_eq(octets_of_file(), 0, "nothing is there twice");
	for (size_t i = 0; i < MIB; i++)
		cr_assert_eq(p[i], i < MIB / 2 ? 3 : 0, "octet %zu", i);
	promote(q, MIB, again);
	cr_expect_neq(again[0].file_offset, b[0].file_offset);
	cr_assert_eq(madvise(p, MIB, MADV_DONTNEED), 0);
	for (size_t i = 0; i < MIB; i++)
		cr_assert_eq(p[i], 0, "octet %zu", i);
	memset(p, 5, MIB);
	promote_release(again, 1);
	for (size_t i = 0; i < MIB; i++)
		cr_assert(p[i] == 5 && q[i] == 4);
}

/* Pages that are touched later are also in the file, until the library is called the next time. */
Test(take_back, touched_holes_do_not_stay_in_the_file)
{
	struct mr_backing b[PARTS];
	struct promote_region r = { .length = 1 };
	uint8_t *p = new_memory(MIB);

	promote(p, MIB, b);
	promote_release(b, 1);
	memset(p, 6, MIB);
	cr_assert_eq(munmap(p + MIB / 2, MIB / 2), 0);
	r.start = (uintptr_t)p;
	r.backing = b;
	promote_enter(&r, PARTS, true);
	cr_expect_eq(octets_of_file(), 0);
	promote_leave(&r);
	for (size_t i = 0; i < MIB / 2; i++)
		cr_assert_eq(p[i], 6);
}

Test(take_back, protection_stays)
{
	struct mr_backing b[PARTS];
	uint8_t *p = new_memory(MIB);
	struct mapping m;

	memset(p, 3, MIB);
	promote(p, MIB, b);
	cr_assert_eq(mprotect(p, MIB / 2, PROT_READ), 0);
	cr_assert_eq(madvise(p + MIB / 2, MIB / 2, MADV_DONTDUMP), 0);
	promote_release(b, 1);
	cr_assert_eq(maps_read((uintptr_t)p, (uintptr_t)p + 1, true, &m, 1), 1);
	cr_expect(!m.shared && m.readable && !m.writable && m.end == (uintptr_t)p + MIB / 2);
	cr_assert_eq(maps_read((uintptr_t)p + MIB / 2, (uintptr_t)p + MIB, true, &m, 1), 1);
	cr_expect(!m.shared && m.writable && (m.marks & MARK_DONTDUMP));
	cr_expect_eq(octets_of_file(), 0);
	for (size_t i = 0; i < MIB; i++)
		cr_assert_eq(p[i], 3);
}

/* One of two overlapping regions goes. The rest of the other one may be enlarged into its place. */
Test(take_back, a_part_of_a_range)
{
	struct mr_backing a[PARTS], b[PARTS];
	uint8_t *p = new_memory(MIB), *moved;

	memset(p, 3, MIB / 2);
	promote(p, MIB, a);
	promote(p, MIB / 2, b);
	promote_release(a, 1);
	cr_expect(is_shared(p));
	cr_expect_not(is_shared(p + MIB / 2));
	moved = mremap(p, MIB / 2, MIB, MREMAP_MAYMOVE);
	cr_assert_neq(moved, MAP_FAILED);
	for (size_t i = 0; i < MIB; i++)
		cr_assert_eq(moved[i], i < MIB / 2 ? 3 : 0);
	memset(moved, 7, MIB);
	for (size_t i = MIB / 2; i < MIB; i++)
		cr_assert_eq(p[i], 0, "octet %zu is that of another mapping", i);
	promote_release(b, 1);
	for (size_t i = 0; i < MIB; i++)
		cr_assert_eq(moved[i], 7);
}

/* ---- while threads write ---- */

static uint32_t stop;

static void *write_by_reads(void *memory)
{
	volatile uint64_t *word = memory;
	int ends[2];

	if (pipe(ends) != 0)
		return (void *)1;
	for (uint64_t i = 1; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		if (*word != i - 1)
			return (void *)2; /* the last write is lost */
		if (write(ends[1], &i, sizeof(i)) != sizeof(i) ||
		    read(ends[0], memory, sizeof(i)) != sizeof(i))
			return (void *)3;
	}
	close(ends[0]);
	close(ends[1]);
	return NULL;
}

Test(take_back, no_write_is_lost_and_no_call_fails)
{
	for (int round = 0; round < 100; round++) {
		uint8_t *p = new_memory(MIB);
		struct mr_backing b[PARTS];
		pthread_t thread;
		void *failed;

		promote(p, MIB, b);
		__atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
		cr_assert_eq(pthread_create(&thread, NULL, write_by_reads, p + MIB / 2), 0);
		while (*(volatile uint64_t *)(void *)(p + MIB / 2) < 3)
			sched_yield();
		promote_release(b, 1);
		cr_assert_not(is_shared(p));
		__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
		cr_assert_eq(pthread_join(thread, &failed), 0);
		cr_assert_null(failed, "%ld", (long)failed);
		munmap(p, MIB);
	}
}

/* ---- slots ---- */

Test(take_back, without_a_slot_nothing_is_promoted)
{
	struct mr_backing b[PARTS];
	uint8_t *p = new_memory(MIB);

	memset(p, 3, MIB);
	promote(p, MIB, b);
	promote_release(b, 1);
	memset(promote_state.left, 0xff, sizeof(promote_state.left));
	p = new_memory(MIB);
	memset(p, 4, MIB);
	be_root();
	cr_expect_eq(promote_range(p, MIB, b, PARTS), 0);
	promote_state.left[100] &= ~UINT64_C(8);
	cr_expect_eq(promote_range(p, MIB, b, PARTS), 1);
	cr_expect_eq(b[0].file_offset, UINT64_C(6403) << PROMOTE_SLOT_SHIFT);
	for (size_t i = 0; i < MIB; i++)
		cr_assert_eq(p[i], 4);
}

/* A daemon closes all descriptors, and opens a file of its own that gets the number of ours. */
Test(take_back, the_file_of_somebody_else_is_left_alone)
{
	struct mr_backing b[PARTS], c[PARTS];
	struct promote_region r = { .length = 1, .backing = c };
	uint8_t *p = new_memory(MIB), octets[8192];
	int file, fd;

	memset(p, 3, MIB);
	promote(p, MIB, b);
	promote_release(b, 1); /* there is a slot to tidy up */
	p = new_memory(MIB);
	memset(p, 4, MIB);
	promote(p, MIB, b);
	fd = promote_file();
	file = memfd_create("another", MFD_CLOEXEC);
	memset(octets, 9, sizeof(octets));
	cr_assert_eq(write(file, octets, sizeof(octets)), sizeof(octets));
	cr_assert_eq(dup2(file, fd), fd);
	r.start = (uintptr_t)new_memory(MIB);
	promote_enter(&r, PARTS, false);
	promote_leave(&r);
	promote_release(b, 1);
	for (size_t i = 0; i < MIB; i++)
		cr_assert_eq(p[i], 4);
	cr_assert_eq(pread(file, octets, sizeof(octets), 0), sizeof(octets));
	for (size_t i = 0; i < sizeof(octets); i++)
		cr_assert_eq(octets[i], 9);
}
