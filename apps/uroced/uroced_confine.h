/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Once its port is open uroced gives up what it does not need: capabilities, new privileges by
 * execve(2), and system calls that no engine makes. docs/security.md lists both.
 */
#ifndef APPS_UROCED_CONFINE_H
#define APPS_UROCED_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct confine_needs {
	bool port; /* it sends and receives frames, and keeps network capabilities */
	bool physical; /* a device uses physical addresses, so they must be looked up */
};

/*
 * Confines every thread of the process, including threads created later. Call it before threads
 * exist that block signals (the engine's do): each thread drops its own capabilities in a signal
 * handler.
 *
 * 0, or an errno and one line in `why`. After a failed step the others are still taken. Threads:
 * call it once, in the main thread.
 */
int confine(const struct confine_needs *needs, char *why, size_t why_size);

/* A mask of the capabilities to keep, as far as the process has them. */
uint64_t confine_capabilities(const struct confine_needs *needs);

/* The names of the system calls that fail afterwards; ends with NULL. */
extern const char *const confine_forbidden[];

#endif
