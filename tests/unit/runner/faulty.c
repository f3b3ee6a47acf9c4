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

/* Each assertion of both families takes what is at the edge. */
#define ALL_PASS(kind)                                   \
	do {                                             \
		kind(one == 1, "%d", one);               \
		kind##_not(one == 2);                    \
		kind##_eq(one, 1);                       \
		kind##_neq(one, 2);                      \
		kind##_lt(one, 2);                       \
		kind##_leq(one, 1);                      \
		kind##_leq(one, 2);                      \
		kind##_gt(one, 0);                       \
		kind##_geq(one, 1);                      \
		kind##_geq(one, 0);                      \
		kind##_null(none);                       \
		kind##_not_null(text);                   \
		kind##_str_eq(text, "text");             \
		kind##_str_neq(text, "texts");           \
		kind##_arr_eq(text, "text and more", 4); \
	} while (0)

Test(good, every_assertion)
{
	const char *none = NULL, *text = "text";
	int one = 1;

	ALL_PASS(cr_assert);
	ALL_PASS(cr_expect);
	cr_expect_str_empty("");
	cr_expect_str_not_empty(text);
	cr_expect_float_eq(1.0, 1.5, 0.5);
	cr_expect_float_eq(1.5, 1.0, 0.5);
}

/* ... and what each refuses. A test of the suite `ends` reaches no second assertion. */
#define REFUSES(name, kind, ...)                         \
	Test(ends, name)                                 \
	{                                                \
		const char *none = NULL, *text = "text"; \
		int one = 1;                             \
                                                         \
		cr_assert##kind(__VA_ARGS__);            \
		cr_expect_fail("not reached");           \
		(void)none;                              \
		(void)text;                              \
		(void)one;                               \
	}                                                \
	Test(goes_on, name)                              \
	{                                                \
		const char *none = NULL, *text = "text"; \
		int one = 1;                             \
                                                         \
		cr_expect##kind(__VA_ARGS__);            \
		cr_expect_fail("reached");               \
		(void)none;                              \
		(void)text;                              \
		(void)one;                               \
	}
REFUSES(condition, , one == 2)
REFUSES(not, _not, one == 1)
REFUSES(eq, _eq, one, 2)
REFUSES(neq, _neq, one, 1)
REFUSES(lt, _lt, one, 1)
REFUSES(leq, _leq, one, 0)
REFUSES(gt, _gt, one, 1)
REFUSES(geq, _geq, one, 2)
REFUSES(null, _null, text)
REFUSES(not_null, _not_null, none)
REFUSES(str_eq, _str_eq, text, "texts")
REFUSES(str_eq_null, _str_eq, text, none)
REFUSES(str_neq, _str_neq, text, "text")
REFUSES(str_neq_null, _str_neq, none, "text")
REFUSES(arr_eq, _arr_eq, text, "tent", 4)
REFUSES(fail, _fail, "refused")

Test(refused, by_expectations)
{
	cr_expect_str_empty("a", "one");
	cr_expect_str_not_empty("", "two");
	cr_expect_float_eq(1.0, 1.75, 0.5, "three");
	cr_expect_float_eq(1.75, 1.0, 0.5, "four");
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
