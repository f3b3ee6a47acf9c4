/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that finds nothing to do gives its processor away only if it has few of them. Runs with an
 * engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <sched.h>
#include <string.h>

#include "rig/endpoint.h"

#define POLLS 1000
#define MANY  32u /* processors: more than an engine, a program and its peer use */

static uint32_t own,
	others; /* processors that this process has, and those that any other one has */
static uint32_t yields;

/* The library's calls come here, as the program's symbols precede libc's. */
__attribute__((visibility("default"))) int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	memset(set, 0, size);
	for (uint32_t i = 0; i < (pid == 0 ? own : others); i++)
		CPU_SET(i, set);
	return 0;
}

__attribute__((visibility("default"))) int sched_yield(void)
{
	__atomic_fetch_add(&yields, 1, __ATOMIC_RELAXED);
	return 0;
}

/* No lcore waits for this thread's processor: client/offer_test.c. */
__attribute__((visibility("default"))) int sched_getcpu(void)
{
	return -1;
}

TestSuite(crowded, .timeout = 60);

static uint32_t yields_of_polls(void)
{
	struct endpoint e;
	struct ibv_wc wc;
	uint32_t before;

	endpoint_open(&e);
	before = yields;
	for (uint32_t i = 0; i < POLLS; i++)
		cr_assert_eq(ibv_poll_cq(e.cq, 1, &wc), 0);
	before = yields - before;
	endpoint_close(&e);
	return before;
}

Test(crowded, a_program_with_few_processors_gives_its_own_away)
{
	own = 2;
	others = MANY;
	cr_expect_gt(yields_of_polls(), 0);
}

Test(crowded, a_program_with_enough_of_them_does_not)
{
	own = MANY;
	others = 2;
	cr_expect_eq(yields_of_polls(), 0);
}
