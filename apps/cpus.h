/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of CPUs as the kernel and EAL write them: "0-1,4". */
#ifndef APPS_CPUS_H
#define APPS_CPUS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* Writes as much of the list as fits. */
void cpus_write(const cpu_set_t *set, char *text, size_t size);

/* False: this is not such a list. An empty text is the empty set. */
bool cpus_read(const char *text, cpu_set_t *set);

#endif
