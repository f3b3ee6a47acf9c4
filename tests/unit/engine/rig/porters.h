/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes beside an engine that read what has descriptors. */
#ifndef TESTS_ENGINE_PORTERS_H
#define TESTS_ENGINE_PORTERS_H

#include <sys/types.h>

/*
 * Called before the engine is opened: then their parent is a child of ours, and we learn when it ends.
 */
void porters_adopt(void);
/* Their parent, as soon as it has begun. Fails if none begins. */
pid_t porters_parent(void);

#endif
