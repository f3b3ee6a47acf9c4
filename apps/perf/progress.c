/* SPDX-License-Identifier: BSD-3-Clause */
#include "progress.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static uint32_t done, steps;
static bool shown;

void progress_begin(uint32_t n)
{
	done = 0;
	steps = n;
	shown = isatty(STDERR_FILENO);
}

void progress_step(const char *format, ...)
{
	va_list args;

	done++;
	if (!shown)
		return;
	fprintf(stderr, "\r\33[K%u of %u: ", done, steps);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fflush(stderr);
}

void progress_end(void)
{
	if (shown)
		fputs("\r\33[K", stderr);
	shown = false;
}
