/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands before Criterion's header of this name, and replaces its macro under all assertions. Criterion's
 * writes what a failure does at each assertion. There are 11,000, and they were two fifths of what some tests
 * took to compile. Here a failure is one call of a function (assertion.c). Assertions that pass are not
 * reported one by one: --full-stats has no effect.
 */
#ifndef RUNNER_CRITERION_H
#define RUNNER_CRITERION_H

#include_next <criterion/criterion.h>

/* Reports it with what the test says, which begins with a character that is left out, or with `condition`. */
__attribute__((format(printf, 4, 5))) void assertion_failed(const char *file, unsigned line,
							    char *condition, const char *said, ...);

/* ... is what Criterion's has: a name without use, the kind of the condition, its text, what the test says. */
#undef cr_assert_impl
#define cr_assert_impl(Fail, Condition, ...)                                           \
	do {                                                                           \
		if (!(Condition)) {                                                    \
			CR_EXPAND(assertion_failed(                                    \
				__FILE__, __LINE__,                                    \
				CR_TRANSLATE_DEF_MSG_(CR_VA_TAIL(__VA_ARGS__)),        \
				"x" CR_VA_TAIL(CR_VA_TAIL(CR_VA_TAIL(__VA_ARGS__))))); \
			Fail();                                                        \
		} else                                                                 \
			cri_asserts_passed_incr();                                     \
	} while (0)

#endif
