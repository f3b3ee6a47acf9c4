/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that blocks for ever: a mapping of a file of a FUSE file system whose daemon answers
 * everything but READ. A thread that accesses the mapping waits for the daemon and cannot be killed
 * meanwhile. It keeps the address space of the mapping, which therefore outlives its program.
 *
 * The daemon is a separate process and lives as long as some process holds the other end of `life`.
 * When it ends, Linux fails what waits for it.
 */
#ifndef TESTS_VERBS_MUTE_FUSE_H
#define TESTS_VERBS_MUTE_FUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Called in a separate process, to which it gives a mount namespace, and a user namespace unless it
 * is root. life: the reading end of a pipe. NULL with errno: FUSE is not available.
 */
uint8_t *mute_fuse_map(size_t octets, int life);

/* Whether a thread waits for that memory now, or does so within this many seconds. */
bool mute_fuse_is_waited_for(int seconds);

#endif
