/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shows a program the device in /sys/class/infiniband, /sys/class/infiniband_verbs and
 * /dev/infiniband. The engine keeps such files beside its socket; this makes them visible to the
 * program that this process is about to execute, and to no other process. Nothing has to be cleaned
 * up: mounts end with the last process in their namespace, and the files are the engine's.
 */
#ifndef APPS_FILES_H
#define APPS_FILES_H

#include "locate.h"

enum files_way {
	FILES_AUTO, /* mounts as root, otherwise the preload library */
	FILES_MOUNTS, /* a mount namespace; unless root inside a user namespace */
	FILES_PRELOAD, /* a library that redirects calls of libc */
	FILES_NONE,
};

#define FILES_LIBRARY "liburoce-files.so"

const char *files_way_name(enum files_way way);
/* 0, or -1: no such way. */
int files_way_of(const char *name, enum files_way *way);

/*
 * Makes the files visible and sets the environment; the folder of FILES_LIBRARY must be in
 * LD_LIBRARY_PATH. Returns the way that was taken. FILES_NONE and `why`: the engine has no files
 * here, or the requested way is not available.
 */
enum files_way files_show(enum files_way wanted, const struct engine_place *where,
			  const struct reply_device *device, char *why, size_t why_size);

/* ---- mounts.c ---- */

/*
 * Enters a new mount namespace. `user`: inside a user namespace that keeps the user's ids. 0 or an
 * errno.
 */
int mounts_begin(bool user);

/*
 * Shows the folder `source` read-only at `parent`/`name`. If `parent` has no such folder, `parent`
 * is covered by a copy that has it. `overlay`: the copy is an overlay, otherwise a mount for each
 * entry. 0, or an errno and nothing is changed.
 */
int mounts_put(const char *source, const char *parent, const char *name, bool overlay);

#endif
