/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked into every test program: what an assertion that fails does. */
#include <criterion/criterion.h>
#include <criterion/event.h>
#include <criterion/stats.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void report(const char *file, unsigned line, const char *text, const char *said,
		   va_list more)
{
	struct criterion_assert_stats failure = { .message = text, .file = file, .line = line };
	char *own = NULL;

	if (vasprintf(&own, said, more) < 0)
		own = NULL;
	if (own != NULL && own[0] != '\0' && own[1] != '\0')
		failure.message = own + 1;
	criterion_send_assert(&failure);
	free(own);
}

void assertion_failed(const char *file, unsigned line, const char *text, const char *said, ...)
{
	va_list more;

	va_start(more, said);
	report(file, line, text, said, more);
	va_end(more);
	criterion_abort_test();
}

void expectation_failed(const char *file, unsigned line, const char *text, const char *said, ...)
{
	va_list more;

	va_start(more, said);
	report(file, line, text, said, more);
	va_end(more);
	criterion_continue_test();
}

const char *strings_are(const char *text, const char *actual, const char *expected)
{
	char *all = NULL;

	if (asprintf(&all, "The expression (as strings) %s is false: actual=`%s` expected=`%s`.",
		     text, actual == NULL ? "NULL" : actual,
		     expected == NULL ? "NULL" : expected) < 0)
		return text;
	return all;
}
