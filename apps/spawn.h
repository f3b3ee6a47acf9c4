/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting a same-host engine for one user. */
#ifndef APPS_SPAWN_H
#define APPS_SPAWN_H

#include <stdbool.h>
#include <stddef.h>

#include "locate.h"

/*
 * Starts the user's own engine at its place and waits until it answers. Two of these at once
 * start one engine. Returns 0 and fills `where` and `device` (`started`: it was not there
 * before), or an errno and `why`. The engine is no child of the caller.
 */
int spawn_engine(struct engine_place *where, struct reply_device *device, bool *started, char *why,
		 size_t why_size);

#endif
