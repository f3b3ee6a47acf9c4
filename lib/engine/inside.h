/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the parts of liburoce, private to them. */
#ifndef ENGINE_INSIDE_H
#define ENGINE_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/control.h"
#include "engine/port.h"

/*
 * Copies a struct that begins with its size, as the program's header has it. What the program does
 * not know becomes zero. False, and a line in `why`: the size is none, or the program sets what this
 * library does not know.
 */
bool struct_take(void *to, size_t known, const void *from, const char *name, char *why,
		 size_t why_size);

/* ---- live.c: the engines of this process ---- */

/* ENOSPC: there are LIMIT_EMBEDDED_ENGINES. */
int live_add(struct engine *e);
void live_remove(const struct engine *e);
/* NULL: the pointer is no engine, or not any more. Any thread. */
struct engine *live_find(const struct uroce_engine *u);
/* The right to start, stop, register or destroy it, until live_leave(). 0, EINVAL or EBUSY. */
int live_enter(struct uroce_engine *u, struct engine **e);
void live_leave(const struct engine *e);

/* ---- running.c ---- */

/* Ends the threads of uroce_start(). */
void running_stop(struct engine *e);
/*
 * Nobody polls it any more, and it has no service. False: somebody did not leave within
 * LIMIT_LEAVE_POLL.
 */
bool running_ended(struct engine *e);

#endif
