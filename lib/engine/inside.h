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
 * Copies a struct that begins with its size, as the program's header has it. Members that the
 * program does not know become zero. False, and a line in `why`: the size is invalid, or the
 * program sets a member that this library does not know.
 */
bool struct_take(void *to, size_t known, const void *from, const char *name, char *why,
		 size_t why_size);

/* ---- options.c ---- */

/* 0, or EINVAL and a line in `why`: EAL is not initialised, or an option is wrong. */
int engine_options_check(const struct uroce_options *o, char *why, size_t why_size);

/* ---- live.c: the engines of this process ---- */

/*
 * Reserves a place, which is closed and busy until live_open() and live_leave(). ENOSPC: there are
 * LIMIT_EMBEDDED_ENGINES already.
 */
int live_add(struct engine *e);
void live_remove(const struct engine *e);
/*
 * A call looks into the engine until live_part(), by the same thread: the engine is not freed meanwhile. Any thread.
 * Engine NULL: the pointer is not, or no longer, an engine, or its end has begun; live_part() must
 * not be called.
 */
struct visit {
	struct engine *engine;
	uint32_t *inside; /* private to live.c */
};

struct visit live_visit(const struct uroce_engine *u);
void live_part(struct visit v);
/* No call comes in any more. False: one was still inside at `until`. */
bool live_close(const struct engine *e, nanotime until);
/* Calls come in, for the first time or again: takes live_close() back. */
void live_open(const struct engine *e);
/* The right to start, stop, register or destroy it, until live_leave(). 0, EINVAL or EBUSY. */
int live_enter(struct uroce_engine *u, struct engine **e);
void live_leave(const struct engine *e);

/* ---- running.c ---- */

/* Ends the threads of uroce_start(). */
void running_stop(struct engine *e);
/*
 * The engine has no thread and no service any more, and no call is in it or enters it. False: a call
 * or a service core did not leave within LIMIT_LEAVE_POLL, and everything runs on.
 */
bool running_end(struct engine *e);

#endif
