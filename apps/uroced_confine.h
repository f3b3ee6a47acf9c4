/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroced gives up what it does not need once its port is open: capabilities, new privileges by
 * execve(2), and system calls that no engine makes. docs/security.md lists both.
 */
#ifndef APPS_UROCED_CONFINE_H
#define APPS_UROCED_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct confine_needs {
	bool port; /* it sends and receives frames: network capabilities stay */
	bool physical; /* DPDK gives physical addresses to a device: it looks up those of new memory */
};

/*
 * Confines every thread of the process, and so every thread that is made later. Call it before
 * threads exist that block signals (the engine's do): capabilities are a thread's own, and each
 * thread drops its own in a signal handler.
 *
 * 0, or an errno and one line in `why`. A step that fails does not keep the others from being taken.
 * Threads: the main one, once.
 */
int confine(const struct confine_needs *needs, char *why, size_t why_size);

/* The capabilities that stay, of those that the process has: a mask of their bits. */
uint64_t confine_capabilities(const struct confine_needs *needs);

/* The names of the system calls that fail from then on, up to a NULL. */
extern const char *const confine_forbidden[];

#endif
