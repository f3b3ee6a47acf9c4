/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of an embedding program: direct calls instead of a socket. */
#ifndef ENGINE_CARRIER_DIRECT_H
#define ENGINE_CARRIER_DIRECT_H

struct engine;

/* The libibverbs.so.1 of this process lists the engine from now on. 0 or a negative errno. */
int carrier_direct_register(struct engine *e);
void carrier_direct_unregister(struct engine *e);

#endif
