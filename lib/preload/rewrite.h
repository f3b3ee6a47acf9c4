/* SPDX-License-Identifier: BSD-3-Clause */
/* Which paths mean the device's files, and where those are. */
#ifndef PRELOAD_REWRITE_H
#define PRELOAD_REWRITE_H

#include <stddef.h>

#define REWRITE_ROOM 512

/*
 * /sys/class/infiniband, /sys/class/infiniband_verbs, /dev/infiniband and what is in them: *path
 * becomes the same place under `root`, in `room`. Any other path, and NULL, stays as it is; so does
 * a path that leaves the place again by "..". 0, or ENAMETOOLONG.
 */
int rewrite(const char *root, const char **path, char room[REWRITE_ROOM]);

#endif
