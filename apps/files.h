/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a program sees the device in /sys/class/infiniband, /sys/class/infiniband_verbs and
 * /dev/infiniband: the engine keeps files beside its socket, and this puts them there for the
 * program that this process is about to become, and for nobody else. Nothing is left to clean up:
 * mounts end with the last process that has them, and the files are the engine's.
 */
#ifndef APPS_FILES_H
#define APPS_FILES_H

#include "locate.h"

enum files_way {
	FILES_AUTO, /* mounts as root, the preload library otherwise */
	FILES_MOUNTS, /* a mount namespace; not as root: in a user namespace */
	FILES_PRELOAD, /* a library that leads libc's calls there */
	FILES_NONE,
};

#define FILES_LIBRARY "liburoce-files.so"

const char *files_way_name(enum files_way way);
/* 0, or -1: there is no such way. */
int files_way_of(const char *name, enum files_way *way);

/*
 * Does it, environment included; the folder of FILES_LIBRARY must be in LD_LIBRARY_PATH. Returns
 * the way that was taken. FILES_NONE and `why`: the engine has no files here, or the way that was
 * asked for cannot be had.
 */
enum files_way files_show(enum files_way wanted, const struct engine_place *where,
			  const struct reply_device *device, char *why, size_t why_size);

/* ---- mounts.c ---- */

/*
 * A mount namespace of this process's own. `user`: within a user namespace, where the user stays
 * who he is. 0 or an errno.
 */
int mounts_begin(bool user);

/*
 * Puts the folder `source` at `parent`/`name`, read-only, covering `parent` with all that it has
 * where there is no such folder. `overlay`: by an overlay, else with a mount for each thing in it.
 * 0 or an errno; then the place is as it was.
 */
int mounts_put(const char *source, const char *parent, const char *name, bool overlay);

#endif
