/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress of a long measurement: one line that changes; nothing if stderr is not a terminal.
 */
#ifndef APPS_PERF_PROGRESS_H
#define APPS_PERF_PROGRESS_H

#include <stdint.h>

/* So many steps will come. */
void progress_begin(uint32_t steps);
/* The next one begins: what it is. */
void progress_step(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Removes the line. */
void progress_end(void);

#endif
