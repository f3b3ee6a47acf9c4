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

Test(assertions, say)
{
	const char *none = NULL;
	char here[] = "here", there[] = "there";

	cr_expect_eq(here[0], there[0]);
	cr_expect_eq(here[0], there[0], "%u%% of %s", 50u, here);
	cr_expect_str_eq(here, there);
	cr_expect_not_null(none);
	cr_expect_arr_eq(here, there, sizeof(here));
	cr_expect(here[0] == 'h', "not said");
	cr_expect_fail("a failure");
	cr_assert(here[0] == 't');
	cr_expect_fail("not reached");
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
