/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queue/cancel.h"
#include "client/log.h"

/* Each line is one write(2), so that lines of several threads and processes do not mix. */
static void say(const char *format, va_list arguments)
{
	char line[512];
	int n = snprintf(line, sizeof(line), "uroce: ");
	int m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, arguments);
	int cancel;

	if (m < 0)
		return;
	n += m;
	if ((size_t)n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	cancel = cancel_off(); /* the caller may hold a lock */
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		n = 0; /* there is nowhere else to report it */
	cancel_restore(cancel);
}

void client_warn(const char *format, ...)
{
	int saved = errno;
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
	errno = saved;
}

void client_info(const char *format, ...)
{
	const char *level = getenv("UROCE_LOG");
	int saved = errno;
	va_list arguments;

	if (level == NULL || (strcmp(level, "info") != 0 && strcmp(level, "debug") != 0))
		return;
	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
	errno = saved;
}
