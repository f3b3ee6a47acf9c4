/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a porters' parent may give up. With REPLACES this program has a function of libc of its own, with LAZY it
 * looks for functions when it calls them first: then the parent gives up nothing.
 */
#include "drivers/client_memory/porter_code.h"

#include <criterion/criterion.h>
#include <gnu/libc-version.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "drivers/client_memory/maps.h"

TestSuite(porter_code, .timeout = 60);

#ifdef REPLACES
__attribute__((visibility("default"))) unsigned int alarm(unsigned int seconds)
{
	return seconds;
}
#endif

#if defined(REPLACES) || defined(LAZY)
Test(porter_code, everything_stays)
{
	cr_expect_not(porter_code_find());
}
#else
static bool is_foreign(uintptr_t address)
{
	struct mapping m;

	cr_assert_eq(maps_read(address, address + 1, false, &m, 1), 1);
	return porter_code_is_foreign(&m);
}

Test(porter_code, libraries_that_porters_do_not_call_are_foreign)
{
	cr_assert(porter_code_find());
	cr_expect(is_foreign((uintptr_t)criterion_run_all_tests), "Criterion");
	cr_expect_not(is_foreign((uintptr_t)gnu_get_libc_version), "libc");
	cr_expect_not(is_foreign((uintptr_t)is_foreign), "this program");
	cr_expect_not(is_foreign((uintptr_t)getauxval(AT_BASE)), "the dynamic linker");
	cr_expect_not(is_foreign((uintptr_t)getauxval(AT_SYSINFO_EHDR)), "the kernel's functions");
}

Test(porter_code, memory_is_not)
{
	int here;

	cr_assert(porter_code_find());
	cr_expect_not(is_foreign((uintptr_t)&here));
}
#endif
