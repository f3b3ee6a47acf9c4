/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Promoted memory of a program of many threads without privilege. Such memory was promoted while the
 * program had one thread; Criterion's processes have two, so a test promotes as root, in any case.
 */
#ifndef TESTS_CLIENT_MEMORY_USERS_H
#define TESTS_CLIENT_MEMORY_USERS_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NOBODY 65534

static inline void expect_root(void)
{
	if (geteuid() != 0)
		cr_skip_test("only root may change its user");
}

static inline void be_root(void)
{
	cr_assert_eq(seteuid(0), 0);
	setenv("UROCE_PROMOTE", "on", 1);
}

static inline void be_nobody(void)
{
	cr_assert_eq(seteuid(NOBODY), 0);
	prctl(PR_SET_DUMPABLE, 1); /* changing the user resets it */
	setenv("UROCE_PROMOTE", "auto", 1);
}

#endif
