/* SPDX-License-Identifier: BSD-3-Clause */
/* A program, as lcores see it: an attached process, or the program that embeds the engine. */
#ifndef LCORE_CLIENT_H
#define LCORE_CLIENT_H

#include "lcore/queue_pair.h"
#include "queue/arena.h"

struct client_objects;
struct engine;
struct peer_memory;

struct client {
	struct engine *engine;
	uint32_t number; /* index in engine.client */
	uint32_t user; /* the same number for all programs of one user, below LIMIT_CLIENTS */
	bool embedded;
	bool dying; /* (control) */
	struct arena *arena;
	struct client_page *page;
	struct ring_side bell[LIMIT_LCORES]; /* bell[i]: lcore i's */
	struct engine_qp **qp; /* by handle, LIMIT_QPS + 1 slots; lcores read it */
	struct engine_ah **ah; /* by handle, LIMIT_AHS + 1 slots; lcores read it */
	struct peer_memory *memory; /* how its memory is reached; NULL: embedded */
	struct mover *mover; /* copies run there instead of on the lcore; NULL: none */
	bool shares; /* others' queue pairs may name its memory: it has or had a shared PD; atomic */
	uint32_t async_owed; /* atomic: an object of it owes asynchronous events */
	/* (control): tables of the other objects, socket, pidfd: control.h */
	struct client_objects *objects;
};

/* Whether other programs' queue pairs may copy from or to its memory. Any thread. */
static inline bool client_shares(const struct client *c)
{
	return __atomic_load_n(&c->shares, __ATOMIC_RELAXED);
}

/* The program's address handle; NULL: none. Valid until the lcore's next quiescent state. */
static inline const struct engine_ah *ah_find(const struct client *c, uint32_t handle)
{
	/* Acquire: the control path publishes a handle when it is complete. */
	return handle <= LIMIT_AHS ? __atomic_load_n(&c->ah[handle], __ATOMIC_ACQUIRE) : NULL;
}

#endif
