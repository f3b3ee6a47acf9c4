/* SPDX-License-Identifier: BSD-3-Clause */
/* The marks of promoted memory are found, wherever it is, and no other mapping is touched. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "drivers/client_memory/promote.h"
#include "drivers/client_memory/promote_private.h"
#include "users.h"

#define MIB   ((size_t)1 << 20)
#define PARTS 16u
#define LOW   0x10000u /* addresses that promote_marks.c tries */
#define LOWS  16u

static void end_as_root(void)
{
	if (getuid() == 0)
		be_root();
}

TestSuite(marks, .init = expect_root, .fini = end_as_root, .timeout = 60);

static struct mr_backing backing[PARTS];

static uint8_t *promoted(void)
{
	uint8_t *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	memset(p, 3, MIB);
	if (promote_range(p, MIB, backing, PARTS) != 1)
		cr_skip_test("this kernel may not use userfaultfd");
	return p;
}

/* The mapping at this address as smaps shows it, by an independent reader. */
static struct mapping expected(const uint8_t *p)
{
	struct mapping m;

	cr_assert_eq(maps_read((uintptr_t)p, (uintptr_t)p + 1, true, &m, 1), 1);
	return m;
}

static void expect_marks(const uint8_t *p, uint32_t marks)
{
	struct mapping m = expected(p), read = m;

	cr_assert_eq(m.marks, marks, "smaps says %x", m.marks);
	read.marks = ~m.marks;
	cr_assert(promote_read_marks(&read));
	cr_expect_eq(read.marks, m.marks);
	cr_expect_eq(read.special, m.special);
	cr_expect(read.start == m.start && read.end == m.end);
}

static bool is_mapped(uintptr_t at)
{
	struct mapping m;

	return maps_read(at, at + PAGE, false, &m, 1) == 1;
}

static void expect_nothing_low(void)
{
	for (uint32_t i = 1; i <= LOWS; i++)
		cr_expect_not(is_mapped((uintptr_t)i * LOW), "%u", i);
}

Test(marks, each_is_found)
{
	static const struct {
		int advice;
		uint32_t mark;
	} rows[] = {
		{ MADV_DONTFORK, MARK_DONTFORK },
		{ MADV_DONTDUMP, MARK_DONTDUMP },
		{ MADV_SEQUENTIAL, MARK_SEQUENTIAL },
		{ MADV_RANDOM, MARK_RANDOM },
	};
	uint8_t *p = promoted();
	uint32_t marks = 0;

	expect_marks(p, 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cr_assert_eq(madvise(p, MIB, rows[i].advice), 0);
		marks &= rows[i].mark == MARK_RANDOM ? ~(uint32_t)MARK_SEQUENTIAL : ~UINT32_C(0);
		expect_marks(p, marks |= rows[i].mark);
	}
	cr_assert_eq(madvise(p + MIB / 2, MIB / 2, MADV_DODUMP), 0);
	expect_marks(p + MIB / 2, marks & ~(uint32_t)MARK_DONTDUMP);
	expect_nothing_low();
	for (size_t i = 0; i < MIB; i++)
		cr_assert_eq(p[i], 3);
}

/* If a program has mapped something there, that mapping stays, and the long way is taken. */
Test(marks, where_the_program_has_the_low_addresses)
{
	uint8_t *p = promoted(), *low[LOWS];

	for (uint32_t i = 0; i < LOWS; i++) {
		low[i] = mmap((void *)((uintptr_t)(i + 1) * LOW), PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		cr_assert_eq((uintptr_t)low[i], (uintptr_t)(i + 1) * LOW);
		memset(low[i], (int)i, PAGE);
	}
	cr_assert_eq(madvise(p, MIB, MADV_DONTDUMP), 0);
	expect_marks(p, MARK_DONTDUMP);
	for (uint32_t i = 0; i < LOWS; i++)
		cr_expect(low[i][0] == i && low[i][PAGE - 1] == i);
}

/* A second mapping of locked memory is locked, too, and may be one page too much. */
Test(marks, at_the_limit_of_locked_memory)
{
	uint8_t *p = promoted();
	struct rlimit limit = { MIB, MIB };

	cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	be_nobody();
	cr_assert_eq(syscall(SYS_mlock, p, MIB), 0);
	expect_marks(p, MARK_LOCKED);
	expect_nothing_low();
}

Test(marks, what_is_gone_has_none)
{
	uint8_t *p = promoted();
	struct mapping m = expected(p);

	cr_assert_eq(munmap(p, MIB), 0);
	cr_expect_not(promote_read_marks(&m));
	cr_assert_neq(mmap(p, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		      MAP_FAILED);
	cr_expect_not(promote_read_marks(&m), "it is another mapping");
	expect_nothing_low();
}
