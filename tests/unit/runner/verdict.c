/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linked into every test program. Criterion 2.4 gives its verdict before a test's .fini runs: what
 * fails there is printed, and the test passes. Before the numbers are told we judge once more. And we
 * name what was skipped, with its reason: Criterion says that only if it is asked to say everything.
 */
#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <criterion/options.h>
#include <stdio.h>
#include <stdlib.h>

/* The linker drops a library of which a program uses nothing (differences.c). */
int git_diff_buffers(void);
static int (*const keeps_differences)(void) __attribute__((used)) = git_diff_buffers;

static struct criterion_test_stats **finished; /* whose .fini came to its end */
static size_t n_finished;

static bool has_finished(const struct criterion_test_stats *test)
{
	for (size_t i = 0; i < n_finished; i++)
		if (finished[i] == test)
			return true;
	return false;
}

ReportHook(POST_FINI)(struct criterion_test_stats *test)
{
	struct criterion_test_stats **more;

	more = realloc(finished, (n_finished + 1) * sizeof(struct criterion_test_stats *));
	if (more == NULL)
		abort();
	finished = more;
	finished[n_finished++] = test;
}

static void say(const char *verdict, const struct criterion_test_stats *test, const char *why)
{
	fprintf(stderr, "[%s] %s::%s: %s\n", verdict, test->test->category, test->test->name, why);
}

static void fail(struct criterion_test_stats *test, const char *why)
{
	test->test_status = CR_STATUS_FAILED;
	say("FAIL", test, why);
}

static void judge(struct criterion_test_stats *test)
{
	if (test->test_status != CR_STATUS_PASSED)
		return;
	if (test->failed_asserts > 0)
		fail(test, "its .fini failed");
	else if (!has_finished(test))
		fail(test, "its .fini did not come to its end");
}

/* With a pattern on the command line, those that do not match it are disabled: it asked for that. */
static void name_skipped(const struct criterion_suite_stats *suite,
			 const struct criterion_test_stats *test)
{
	const struct criterion_test_extra_data *data = suite->suite->data;
	const bool disabled = test->test->data->disabled || (data != NULL && data->disabled);

	if (test->test_status != CR_STATUS_SKIPPED)
		return;
	if (!disabled)
		say("SKIP", test, test->message != NULL ? test->message : "no reason is given");
	else if (criterion_options.pattern == NULL)
		say("SKIP", test, "its source disables it");
}

static void judge_suite(struct criterion_suite_stats *suite)
{
	suite->tests_passed = 0;
	suite->tests_failed = 0;
	for (struct criterion_test_stats *test = suite->tests; test != NULL; test = test->next) {
		judge(test);
		name_skipped(suite, test);
		suite->tests_passed += test->test_status == CR_STATUS_PASSED;
		suite->tests_failed += test->test_status == CR_STATUS_FAILED;
	}
}

ReportHook(POST_ALL)(struct criterion_global_stats *all)
{
	all->tests_passed = 0;
	all->tests_failed = 0;
	for (struct criterion_suite_stats *s = all->suites; s != NULL; s = s->next) {
		judge_suite(s);
		all->tests_passed += s->tests_passed;
		all->tests_failed += s->tests_failed;
	}
	free(finished);
}
