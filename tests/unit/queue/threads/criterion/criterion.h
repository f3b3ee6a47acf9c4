/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Criterion keeps an arena at a fixed address, which the thread sanitizer needs for itself. So in a
 * build with -Db_sanitize=thread the tests of lib/queue use this header instead of Criterion's. It
 * runs all tests in one process, one after the other, and stops at the first failure. It has only
 * the parts that those tests use.
 */
#ifndef THREADS_CRITERION_H
#define THREADS_CRITERION_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct threads_test {
	const char *name;
	void (*run)(void);
	struct threads_test *next;
};

static struct threads_test *threads_tests;
static bool threads_skipped;

#define Test(suite, test, ...)                                                               \
	static void suite##_##test(void);                                                    \
	__attribute__((constructor)) static void suite##_##test##_enter(void)                \
	{                                                                                    \
		static struct threads_test me = { #suite "::" #test, suite##_##test, NULL }; \
                                                                                             \
		me.next = threads_tests;                                                     \
		threads_tests = &me;                                                         \
	}                                                                                    \
	static void suite##_##test(void)

#define THREADS_CHECK(condition, ...)                                                   \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			__VA_OPT__(fprintf(stderr, __VA_ARGS__);)                       \
			abort();                                                        \
		}                                                                       \
	} while (0)

#define cr_assert(condition, ...)     THREADS_CHECK(condition, __VA_ARGS__)
#define cr_assert_not(condition, ...) THREADS_CHECK(!(condition), __VA_ARGS__)
#define cr_assert_null(p, ...)	      THREADS_CHECK((p) == NULL, __VA_ARGS__)
#define cr_assert_not_null(p, ...)    THREADS_CHECK((p) != NULL, __VA_ARGS__)
#define cr_assert_eq(a, b, ...)	      THREADS_CHECK((a) == (b), __VA_ARGS__)
#define cr_assert_neq(a, b, ...)      THREADS_CHECK((a) != (b), __VA_ARGS__)
#define cr_assert_lt(a, b, ...)	      THREADS_CHECK((a) < (b), __VA_ARGS__)
#define cr_assert_leq(a, b, ...)      THREADS_CHECK((a) <= (b), __VA_ARGS__)
#define cr_assert_gt(a, b, ...)	      THREADS_CHECK((a) > (b), __VA_ARGS__)
#define cr_assert_geq(a, b, ...)      THREADS_CHECK((a) >= (b), __VA_ARGS__)
#define cr_expect_eq(a, b, ...)	      THREADS_CHECK((a) == (b), __VA_ARGS__)
#define cr_skip_test(...)                     \
	do {                                  \
		fprintf(stderr, __VA_ARGS__); \
		threads_skipped = true;       \
		return;                       \
	} while (0)
#define cr_assert_str_eq(a, b, ...) THREADS_CHECK(strcmp(a, b) == 0, __VA_ARGS__)

int main(void)
{
	for (struct threads_test *t = threads_tests; t != NULL; t = t->next) {
		alarm(200); /* a test that hangs fails */
		threads_skipped = false;
		t->run();
		printf("%s %s\n", threads_skipped ? "skipped" : "ok", t->name);
	}
	return threads_tests == NULL;
}

#endif
