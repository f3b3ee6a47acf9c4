/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts a same-host engine for one user. */
#ifndef APPS_SPAWN_H
#define APPS_SPAWN_H

#include <stdbool.h>
#include <stddef.h>

#include "locate.h"

/*
 * Starts the user's own engine at its place and waits until it answers. Concurrent calls start one
 * engine. Returns 0 and fills `where` and `device` (`started`: it did not run before), or an errno
 * and `why`. The engine is not a child of the caller.
 */
int spawn_engine(struct engine_place *where, struct reply_device *device, bool *started, char *why,
		 size_t why_size);

#endif
