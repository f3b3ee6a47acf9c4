/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in the place of Criterion's header of this name, and has the parts that our tests use, with the same
 * meaning. Criterion's own header and those that it includes have 200 KB, and 20 macros call each other at each of
 * 11,000 assertions: that was a sixth of what a test takes to compile. Here an assertion is one macro, and a failure
 * is one call of a function (assertion.c). Assertions that pass are not reported one by one: --full-stats has no
 * effect. What Criterion's types.h says of a test stays Criterion's. cr_log_info() is in <criterion/logging.h>.
 */
#ifndef RUNNER_CRITERION_H
#define RUNNER_CRITERION_H

#include <criterion/abort.h>
#include <criterion/types.h>
#include <string.h>

/* Parts of libcriterion that its own header declares. */
void criterion_internal_test_setup(void);
void criterion_internal_test_main(void (*body)(void));
void criterion_internal_test_teardown(void);
void cri_asserts_passed_incr(void);
int criterion_run_all_tests(struct criterion_test_set *tests);

/*
 * Report it with what the test says, which begins with a character that is left out, or with `text`. The first ends
 * the test, after the second it goes on.
 */
__attribute__((noreturn, format(printf, 4, 5))) void assertion_failed(const char *file,
								      unsigned line,
								      const char *text,
								      const char *said, ...);
__attribute__((format(printf, 4, 5))) void expectation_failed(const char *file, unsigned line,
							      const char *text, const char *said,
							      ...);

/* The text of an assertion of strings that fails; it stays allocated. */
const char *strings_are(const char *text, const char *actual, const char *expected);

#define RUNNER_TEST(Suite, Name, ...)                                                           \
	static void Suite##_##Name##_impl(void);                                                \
	static void Suite##_##Name##_jmp(void)                                                  \
	{                                                                                       \
		criterion_internal_test_setup();                                                \
		criterion_internal_test_main(Suite##_##Name##_impl);                            \
		criterion_internal_test_teardown();                                             \
	}                                                                                       \
	static struct criterion_test_extra_data Suite##_##Name##_extra = {                      \
		.compiler_ = CR_COMP_GCC,                                                       \
		.identifier_ = #Suite "/" #Name,                                                \
		.file_ = __FILE__,                                                              \
		.line_ = __LINE__,                                                              \
		__VA_ARGS__                                                                     \
	};                                                                                      \
	static struct criterion_test Suite##_##Name##_meta = { #Name, #Suite,                   \
							       Suite##_##Name##_jmp,            \
							       &Suite##_##Name##_extra };       \
	__attribute__((used,                                                                    \
		       section("cr_tst"))) static struct criterion_test *Suite##_##Name##_ptr = \
		&Suite##_##Name##_meta;                                                         \
	static void Suite##_##Name##_impl(void)
#define Test(Suite, Name, ...) RUNNER_TEST(Suite, Name, __VA_ARGS__)

#define TestSuite(Name, ...)                                                                   \
	static struct criterion_test_extra_data suite_##Name##_extra = { .file_ = __FILE__,    \
									 __VA_ARGS__ };        \
	static struct criterion_suite suite_##Name##_meta = { #Name, &suite_##Name##_extra };  \
	__attribute__((used,                                                                   \
		       section("cr_sts"))) static struct criterion_suite *suite_##Name##_ptr = \
		&suite_##Name##_meta

#define RUNNER_CHECK(Failed, Condition, Text, ...)                         \
	do {                                                               \
		if (Condition)                                             \
			cri_asserts_passed_incr();                         \
		else                                                       \
			Failed(__FILE__, __LINE__, Text, "x" __VA_ARGS__); \
	} while (0)
#define RUNNER_FALSE(Failed, Condition, Text, ...) \
	RUNNER_CHECK(Failed, Condition, "The expression " Text " is false.", __VA_ARGS__)
#define RUNNER_COMPARES(Failed, A, Op, B, ...) \
	RUNNER_FALSE(Failed, (A)Op(B), "(" #A ") " #Op " (" #B ")", __VA_ARGS__)
#define RUNNER_STRINGS(Failed, A, Op, B, ...)                                              \
	do {                                                                               \
		const char *actual_ = (A), *expected_ = (B);                               \
                                                                                           \
		RUNNER_CHECK(Failed,                                                       \
			     actual_ != NULL && expected_ != NULL &&                       \
				     strcmp(actual_, expected_) Op 0,                      \
			     strings_are("(" #A ") " #Op " (" #B ")", actual_, expected_), \
			     __VA_ARGS__);                                                 \
	} while (0)
#define RUNNER_BYTES(Failed, A, B, Size, ...)                                                   \
	RUNNER_FALSE(Failed, memcmp(A, B, Size) == 0, "(" #A ")[0..Size] == (" #B ")[0..Size]", \
		     __VA_ARGS__)

#define cr_assert(Condition, ...) RUNNER_FALSE(assertion_failed, Condition, #Condition, __VA_ARGS__)
#define cr_expect(Condition, ...) \
	RUNNER_FALSE(expectation_failed, Condition, #Condition, __VA_ARGS__)
#define cr_assert_not(Condition, ...) \
	RUNNER_FALSE(assertion_failed, !(Condition), "!(" #Condition ")", __VA_ARGS__)
#define cr_expect_not(Condition, ...) \
	RUNNER_FALSE(expectation_failed, !(Condition), "!(" #Condition ")", __VA_ARGS__)
#define cr_assert_eq(A, B, ...)	 RUNNER_COMPARES(assertion_failed, A, ==, B, __VA_ARGS__)
#define cr_expect_eq(A, B, ...)	 RUNNER_COMPARES(expectation_failed, A, ==, B, __VA_ARGS__)
#define cr_assert_neq(A, B, ...) RUNNER_COMPARES(assertion_failed, A, !=, B, __VA_ARGS__)
#define cr_expect_neq(A, B, ...) RUNNER_COMPARES(expectation_failed, A, !=, B, __VA_ARGS__)
#define cr_assert_lt(A, B, ...)	 RUNNER_COMPARES(assertion_failed, A, <, B, __VA_ARGS__)
#define cr_expect_lt(A, B, ...)	 RUNNER_COMPARES(expectation_failed, A, <, B, __VA_ARGS__)
#define cr_assert_leq(A, B, ...) RUNNER_COMPARES(assertion_failed, A, <=, B, __VA_ARGS__)
#define cr_expect_leq(A, B, ...) RUNNER_COMPARES(expectation_failed, A, <=, B, __VA_ARGS__)
#define cr_assert_gt(A, B, ...)	 RUNNER_COMPARES(assertion_failed, A, >, B, __VA_ARGS__)
#define cr_expect_gt(A, B, ...)	 RUNNER_COMPARES(expectation_failed, A, >, B, __VA_ARGS__)
#define cr_assert_geq(A, B, ...) RUNNER_COMPARES(assertion_failed, A, >=, B, __VA_ARGS__)
#define cr_expect_geq(A, B, ...) RUNNER_COMPARES(expectation_failed, A, >=, B, __VA_ARGS__)
#define cr_assert_null(P, ...) \
	RUNNER_CHECK(assertion_failed, (P) == NULL, #P " is not null.", __VA_ARGS__)
#define cr_expect_null(P, ...) \
	RUNNER_CHECK(expectation_failed, (P) == NULL, #P " is not null.", __VA_ARGS__)
#define cr_assert_not_null(P, ...) \
	RUNNER_CHECK(assertion_failed, (P) != NULL, #P " is null.", __VA_ARGS__)
#define cr_expect_not_null(P, ...) \
	RUNNER_CHECK(expectation_failed, (P) != NULL, #P " is null.", __VA_ARGS__)
#define cr_assert_str_eq(A, B, ...)	  RUNNER_STRINGS(assertion_failed, A, ==, B, __VA_ARGS__)
#define cr_expect_str_eq(A, B, ...)	  RUNNER_STRINGS(expectation_failed, A, ==, B, __VA_ARGS__)
#define cr_assert_str_neq(A, B, ...)	  RUNNER_STRINGS(assertion_failed, A, !=, B, __VA_ARGS__)
#define cr_expect_str_neq(A, B, ...)	  RUNNER_STRINGS(expectation_failed, A, !=, B, __VA_ARGS__)
#define cr_expect_str_empty(A, ...)	  RUNNER_STRINGS(expectation_failed, A, ==, "", __VA_ARGS__)
#define cr_expect_str_not_empty(A, ...)	  RUNNER_STRINGS(expectation_failed, A, !=, "", __VA_ARGS__)
#define cr_assert_arr_eq(A, B, Size, ...) RUNNER_BYTES(assertion_failed, A, B, Size, __VA_ARGS__)
#define cr_expect_arr_eq(A, B, Size, ...) RUNNER_BYTES(expectation_failed, A, B, Size, __VA_ARGS__)
#define cr_expect_float_eq(A, B, Epsilon, ...)                                             \
	RUNNER_FALSE(expectation_failed, (B) - (A) <= (Epsilon) && (A) - (B) <= (Epsilon), \
		     "(" #A ") == (" #B ") within (" #Epsilon ")", __VA_ARGS__)
#define cr_assert_fail(...)                                                                  \
	RUNNER_CHECK(assertion_failed, 0, "The conditions for this assertion were not met.", \
		     __VA_ARGS__)
#define cr_expect_fail(...)                                                                    \
	RUNNER_CHECK(expectation_failed, 0, "The conditions for this assertion were not met.", \
		     __VA_ARGS__)
#define cr_skip_test(...) criterion_skip_test("" __VA_ARGS__)

#endif
