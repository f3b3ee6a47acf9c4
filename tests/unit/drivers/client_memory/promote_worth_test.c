/* SPDX-License-Identifier: BSD-3-Clause */
/* With UROCE_PROMOTE=auto, the default, memory is promoted only if it is worth it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "drivers/client_memory/promote.h"
#include "drivers/client_memory/promote_private.h"
#include "users.h"

#define MIB    ((size_t)1 << 20)
#define PARTS  16u
#define ROUNDS 300u

static uint8_t *memory;

static void open_memory(void)
{
	setenv("UROCE_PROMOTE", "auto", 1);
	memory = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(memory, MAP_FAILED);
	memset(memory, 7, 4 * MIB);
}

TestSuite(promote_worth, .init = open_memory, .timeout = 60);

static bool register_octets(uint8_t *p, size_t octets)
{
	struct mr_backing b[PARTS];
	uint32_t count = promote_range(p, octets, b, PARTS);

	promote_release(b, count);
	return count != 0;
}

static bool register_once(uint8_t *p)
{
	return register_octets(p, MIB);
}

static void require_promotion(void)
{
	if (!register_once(memory + 3 * MIB))
		cr_skip_test("this kernel or user may not use userfaultfd");
}

/*
 * What all ranges together may lose is a time, and a slow machine reaches it within one of these
 * tests. An hour later the same loss is a small part of the program's time.
 */
static void an_hour_passes_since_the_losses(void)
{
	promote_state.vainly.since -= (int64_t)3600 * 1000000000;
}

Test(promote_worth, a_region_for_each_transfer_is_not_promoted)
{
	uint32_t promoted = 0;

	require_promotion();
	for (uint32_t i = 0; i < ROUNDS; i++)
		promoted += register_once(memory);
	cr_assert_leq(promoted, 4, "it was promoted %u times of %u", promoted, ROUNDS);
	for (size_t i = 0; i < 4 * MIB; i++)
		cr_assert_eq(memory[i], 7);
}

Test(promote_worth, another_region_is_still_promoted)
{
	struct mr_backing b[PARTS];
	uint32_t count;

	require_promotion();
	for (uint32_t i = 0; i < ROUNDS; i++)
		register_once(memory);
	an_hour_passes_since_the_losses();
	count = promote_range(memory + 2 * MIB, MIB, b, PARTS);
	cr_assert_eq(count, 1);
	promote_release(b, count);
}

/* All ranges are different, so none is remembered, but together they cost too much. */
Test(promote_worth, many_regions_of_one_transfer_each)
{
	uint32_t promoted = 0;

	require_promotion();
	while (promoted < 500 && register_octets(memory + promoted * PAGE, 2 * MIB))
		promoted++;
	cr_assert_lt(promoted, 500, "all were promoted");
}

/* As if all promoted memory had been promoted an hour earlier. */
static void an_hour_passes(void)
{
	for (uint32_t i = 0; i < promote_state.parts; i++)
		promote_state.part[i].promoted_at -= (int64_t)3600 * 1000000000;
}

Test(promote_worth, a_long_lived_region_is_promoted_each_time)
{
	require_promotion();
	for (uint32_t i = 0; i < 10; i++) {
		struct mr_backing b[PARTS];

		cr_assert_eq(promote_range(memory, MIB, b, PARTS), 1, "time %u", i);
		an_hour_passes();
		promote_release(b, 1);
	}
}

Test(promote_worth, on_promotes_always)
{
	require_promotion();
	setenv("UROCE_PROMOTE", "on", 1);
	for (uint32_t i = 0; i < 20; i++)
		cr_assert(register_once(memory), "time %u", i);
}

/* As if the kernel had walked the page tables of a large program for so long. */
static void look_for(int64_t ms)
{
	promote_looked(promote_work_now() - ms * 1000000);
}

Test(promote_worth, looks_that_take_long_end)
{
	struct mr_backing all[PARTS], b[PARTS];

	require_promotion();
	an_hour_passes_since_the_losses();
	look_for(LIMIT_PROMOTE_LOOKS / 2);
	cr_assert_eq(promote_range(memory, MIB, all, PARTS), 1, "there is time left");
	look_for(LIMIT_PROMOTE_LOOKS);
	cr_expect_eq(promote_range(memory + MIB, MIB, b, PARTS), 0);
	cr_expect_eq(promote_range(memory, MIB, b, PARTS), 1, "it is there already");
	promote_release(b, 1);
	promote_release(all, 1);
	promote_state.looked.since -=
		(int64_t)LIMIT_PROMOTE_LOOKS * LIMIT_PROMOTE_LOSS_SHARE * 1000000;
	cr_expect(register_once(memory), "a part of its time is granted");
	look_for((int64_t)LIMIT_PROMOTE_LOOKS * LIMIT_PROMOTE_LOSS_SHARE);
	cr_expect_not(register_once(memory + 2 * MIB));
	setenv("UROCE_PROMOTE", "on", 1);
	cr_expect(register_once(memory + 2 * MIB), "on counts nothing");
}

/*
 * Pages that are promoted for another region are used, even if promoting this range is remembered
 * as not worth it.
 */
Test(promote_worth, promoted_memory_of_another_region_is_used)
{
	struct mr_backing all[PARTS], b[PARTS];
	uint32_t count;

	require_promotion();
	for (uint32_t i = 0; i < 8; i++)
		register_once(memory);
	an_hour_passes_since_the_losses();
	count = promote_range(memory, 2 * MIB, all, PARTS);
	cr_assert_geq(count, 1);
	cr_assert_eq(promote_range(memory, MIB, b, PARTS), 1);
	cr_assert_eq(b[0].file_offset, all[0].file_offset);
	promote_release(b, 1);
	promote_release(all, count);
}

static bool anybody_may_hold_system_calls(void)
{
	FILE *f = fopen("/proc/sys/vm/unprivileged_userfaultfd", "re");
	bool may = f != NULL && getc(f) == '1';

	if (f != NULL)
		fclose(f);
	return may;
}

/*
 * In a program without privilege, writers in system calls cannot be held, and those calls would
 * fail. So a program of many threads is only promoted if it asks for it. Criterion's processes have
 * two threads.
 */
Test(promote_worth, who_has_no_privilege_says_so)
{
	expect_root();
	require_promotion();
	be_nobody();
	cr_expect_eq(register_once(memory), anybody_may_hold_system_calls());
	setenv("UROCE_PROMOTE", "on", 1);
	cr_expect(register_once(memory));
	cr_expect_eq(memory[MIB / 2], 7);
}
