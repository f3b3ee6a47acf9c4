/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce stat --cycles: where the time of an engine's lcores goes. */
#ifndef APPS_STAT_CYCLES_H
#define APPS_STAT_CYCLES_H

#include <stdbool.h>
#include <stddef.h>

/* Measures for this long, and prints the result. 0 or an errno. */
int stat_cycles(int fd, double seconds, bool json, char *why, size_t why_size);

#endif
