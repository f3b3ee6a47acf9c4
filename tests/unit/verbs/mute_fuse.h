/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that blocks for ever: a mapping of a file of a FUSE file system whose daemon answers everything
 * but READ. Whoever touches the mapping waits for the daemon, cannot be killed meanwhile, and holds on
 * to the address space that the mapping is in, which therefore outlives its program.
 *
 * The daemon is a process of its own, which lives as long as somebody holds the other end of `life`.
 * When it ends Linux fails what waits for it.
 */
#ifndef TESTS_VERBS_MUTE_FUSE_H
#define TESTS_VERBS_MUTE_FUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Called in a process of its own: gives it a mount namespace (as root), or one with a user namespace.
 * life: the reading end of a pipe. NULL with errno: this machine has no FUSE for us.
 */
uint8_t *mute_fuse_map(size_t octets, int life);

/* Whether somebody waits for that memory now, or does so within so many seconds. */
bool mute_fuse_is_waited_for(int seconds);

#endif
