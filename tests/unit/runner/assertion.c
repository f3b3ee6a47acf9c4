/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked into every test program: what an assertion that fails does. */
#include <criterion/criterion.h>
#include <stdarg.h>

void assertion_failed(const char *file, unsigned line, char *condition, const char *said, ...)
{
	struct criterion_assert_stats failure = { .message = condition,
						  .file = file,
						  .line = line };
	char *text = NULL;
	va_list more;

	va_start(more, said);
	cr_vasprintf(&text, said, more);
	va_end(more);
	if (text != NULL && text[0] != '\0' && text[1] != '\0')
		failure.message = text + 1;
	criterion_send_assert(&failure);
	cr_asprintf_free(text);
	cr_asprintf_free(condition);
}
