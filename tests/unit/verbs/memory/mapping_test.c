/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs/memory/mapping.h"

#define PAGE  4096u
#define PAGES 6u

/* Pages: read-write, read-only, read-write, hole, none, read-write. */
static char *make_range(void)
{
	char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	cr_assert_neq(p, MAP_FAILED);
	mprotect(p + 1 * PAGE, PAGE, PROT_READ);
	munmap(p + 3 * PAGE, PAGE);
	mprotect(p + 4 * PAGE, PAGE, PROT_NONE);
	return p;
}

/* hostile H-97: memory of another program. */
Test(mapping, tells_what_the_pages_allow)
{
	static const struct {
		const char *what;
		size_t offset, length;
		int to_read, to_write;
	} cases[] = {
		{ "a whole page", 0, PAGE, 0, 0 },
		{ "an octet", 17, 1, 0, 0 },
		{ "a read-only page", PAGE, PAGE, 0, EFAULT },
		{ "into a read-only page by one octet", 0, PAGE + 1, 0, EFAULT },
		{ "from a read-only page by one octet", 2 * PAGE - 1, 2, 0, EFAULT },
		{ "several mappings", 0, 3 * PAGE, 0, EFAULT },
		{ "the last octet before a hole", 3 * PAGE - 1, 1, 0, 0 },
		{ "into a hole", 3 * PAGE - 1, 2, EFAULT, EFAULT },
		{ "in a hole", 3 * PAGE + 5, 1, EFAULT, EFAULT },
		{ "over a hole", 2 * PAGE, 3 * PAGE, EFAULT, EFAULT },
		{ "no access at all", 4 * PAGE, 1, EFAULT, EFAULT },
		{ "behind all that", 5 * PAGE, PAGE, 0, 0 },
	};
	char *p = make_range();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uintptr_t at = (uintptr_t)p + cases[i].offset;

		cr_expect_eq(mapping_check(at, cases[i].length, false), cases[i].to_read,
			     "%s, to read", cases[i].what);
		cr_expect_eq(mapping_check(at, cases[i].length, true), cases[i].to_write,
			     "%s, to write", cases[i].what);
	}
}

Test(mapping, finds_its_way_through_thousands_of_mappings)
{
	enum {
		MANY = 3000
	};
	char *p =
		mmap(NULL, MANY * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (uint32_t i = 0; i < MANY; i += 2)
		mprotect(p + i * PAGE, PAGE, PROT_READ);
	cr_assert_eq(mapping_check((uintptr_t)p, MANY * PAGE, false), 0);
	cr_assert_eq(mapping_check((uintptr_t)p + (MANY - 1) * PAGE, PAGE, true), 0);
	cr_assert_eq(mapping_check((uintptr_t)p + (MANY - 2) * PAGE, PAGE, true), EFAULT);
}

/* ---- while another thread replaces it ---- */

#define REPLACED 30u /* pages */
#define CHECKS	 5000u

static uint32_t stop;

/* As demotion does it: a copy replaces some pages. */
static void *replace_pages(void *range)
{
	char *p = range;

	for (uint32_t i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		size_t length = (1 + i % 8) * PAGE;
		char *copy = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);
		char *to = p + i * 7 % (REPLACED - 8) * PAGE;

		memset(copy, 1, length); /* pages take time to move */
		if (mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED)
			abort();
	}
	return NULL;
}

Test(mapping, what_is_replaced_just_then_is_there)
{
	char *p = mmap(NULL, REPLACED * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	uint32_t faults = 0;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, replace_pages, p), 0);
	for (uint32_t i = 0; i < CHECKS; i++)
		faults += mapping_check((uintptr_t)p, REPLACED * PAGE, true) != 0;
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	cr_assert_eq(faults, 0, "%u of %u", faults, CHECKS);
}

Test(mapping, address_zero_and_the_end_of_memory_are_faults)
{
	cr_assert_eq(mapping_check(0, 1, false), EFAULT);
	cr_assert_eq(mapping_check(UINTPTR_MAX - 4095, 4095, false), EFAULT);
}

/* Without /proc, as behind chroot(2), nobody tells what the pages allow. They must be there. */
Test(mapping, without_proc_tells_what_is_mapped)
{
	char empty[] = "/tmp/uroce-empty-XXXXXX", *p = make_range();
	uintptr_t at = (uintptr_t)p;

	if (geteuid() != 0)
		cr_skip_test("only root may call chroot");
	cr_assert_not_null(mkdtemp(empty), "%m");
	cr_assert_eq(chdir(empty), 0);
	cr_assert_eq(rmdir(empty), 0);
	cr_assert_eq(chroot("."), 0, "%m");
	cr_expect_eq(mapping_check(at, 3 * PAGE, true), 0);
	cr_expect_eq(mapping_check(at + 17, PAGE, true), 0);
	cr_expect_eq(mapping_check(at + 3 * PAGE - 1, 2, true), EFAULT);
	cr_expect_eq(mapping_check(at + 3 * PAGE, 1, false), EFAULT);
	cr_expect_eq(mapping_check(at + 2 * PAGE, 3 * PAGE, false), EFAULT);
	cr_expect_eq(mapping_check(UINTPTR_MAX - 17, 17, false), EFAULT);
}
