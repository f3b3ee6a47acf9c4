/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of each outcome, so that faulty_test.py can check how they are reported. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

static void expects(void)
{
	cr_expect_eq(1, 2, "an expectation of .fini");
}

static void asserts(void)
{
	cr_assert_eq(1, 2, "an assertion of .fini");
}

static void leaves(void)
{
	_exit(0);
}

static void crashes(void)
{
	abort();
}

static void hangs(void)
{
	for (;;)
		pause();
}

static void skips(void)
{
	cr_skip_test("not here: %s", "the moon is new");
}

Test(good, plain)
{
}

Test(good, second)
{
}

Test(body, fails)
{
	cr_expect_eq(1, 2, "an expectation of the body");
}

Test(body, crashes)
{
	crashes();
}

Test(fini, expects, .fini = expects)
{
}

Test(fini, asserts, .fini = asserts)
{
}

Test(fini, leaves, .fini = leaves)
{
}

Test(fini, crashes, .fini = crashes)
{
}

/* On a busy machine a test may need a second to begin. If its time is over by then, Criterion waits for ever. */
Test(fini, hangs, .fini = hangs, .timeout = 3)
{
}

TestSuite(of_suite, .fini = asserts);

Test(of_suite, fails)
{
}

Test(skipped, in_body)
{
	skips();
}

Test(skipped, in_init, .init = skips)
{
}

Test(skipped, disabled, .disabled = true)
{
}
