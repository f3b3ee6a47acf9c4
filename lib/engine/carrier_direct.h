/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct calls of an embedding program, instead of a socket. */
#ifndef ENGINE_CARRIER_DIRECT_H
#define ENGINE_CARRIER_DIRECT_H

struct engine;

/* Lists the engine in this process's libibverbs.so.1. 0, or a positive errno: ENOENT, EEXIST. */
int carrier_direct_register(struct engine *e);
void carrier_direct_unregister(struct engine *e);
/* The engine ends: contexts of this process that are still open get ENODEV from here on. */
void carrier_direct_orphan(struct engine *e);

#endif
