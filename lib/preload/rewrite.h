/* SPDX-License-Identifier: BSD-3-Clause */
/* Recognises paths of the device's files and says where those files are. */
#ifndef PRELOAD_REWRITE_H
#define PRELOAD_REWRITE_H

#include <stddef.h>

#define REWRITE_ROOM 512

/*
 * /sys/class/infiniband, /sys/class/infiniband_verbs, /dev/infiniband and everything below them:
 *path becomes the same path under `root`, stored in `room`. Other paths, NULL, and paths that
 * leave these folders through ".." are unchanged. 0, or ENAMETOOLONG.
 */
int rewrite(const char *root, const char **path, char room[REWRITE_ROOM]);

#endif
