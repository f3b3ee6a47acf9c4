/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that hold up the thread that closes them: a socket that lingers, a file of a file
 * system whose daemon does not answer, and much memory. A test passes them to an engine.
 */
#ifndef TESTS_ENGINE_HOLDING_H
#define TESTS_ENGINE_HOLDING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/command.h"

/*
 * Each returns a descriptor, or -1 if it cannot be made here. Closing the last one of a lingering socket
 * waits for a peer that never reads; closing a mute file waits for its daemon; closing the memory frees
 * 1 GiB. The file is in a mount namespace that becomes the caller's.
 */
int lingering_socket(void);
int mute_file(void);
int filled_memory(void);

/*
 * Called before the process forks that makes mute files: both know their daemons then. A daemon ends
 * with daemons_end(), or after 40 s.
 */
void daemons_share(void);
void daemons_end(void);

/* A command of that length, with `times` copies of the descriptor beside it. The answer is not awaited. */
void send_with_descriptor(int fd, enum command what, size_t length, int passed, uint32_t times);

#endif
