/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics on registered memory.
 *
 * Memory that the engine maps: the CPU's. Peer memory: read, compute, write, under one of the
 * stripes that all memories of one user share; the stripe follows from the offset in the page, as
 * two programs may share a page. It is atomic among those (IBV_ATOMIC_HCA), not against the
 * program's own CPU, and not against programs of other users: what they do cannot delay anybody.
 *
 * The copies may block for ever, with the stripe held. So nobody waits for a stripe in here. Who
 * finds it taken tries again, and takes it over if one and the same holder, of another program, has
 * it for PEER_PATIENCE. A holder looks before it writes whether the stripe is still its own.
 */
#ifndef CLIENT_MEMORY_PEER_ATOMIC_H
#define CLIENT_MEMORY_PEER_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/time.h"

#define PEER_PATIENCE (20 * TIME_MS)

struct peer_memory;
struct peer_locks;

struct peer_atomic {
	bool compare_swap; /* stores `value` if the octets equal `compare`; else adds `value` */
	uint64_t compare;
	uint64_t value;
	uint64_t original; /* out */
	/* between two tries: who had the stripe, and since when as far as we know; begin with 0 */
	uint64_t holder;
	nanotime since;
};

/* The stripes of this user's memories; NULL: out of memory. Any thread. */
struct peer_locks *peer_locks_get(uid_t user);
struct peer_locks *peer_locks_share(struct peer_locks *locks);
void peer_locks_put(struct peer_locks *locks);

/* 0, or EFAULT; EBUSY: somebody has the stripe, nothing was done, try again with the same *a. */
int peer_memory_atomic(const struct peer_memory *m, uint64_t address, struct peer_atomic *a,
		       nanotime now);

/* False: `at` is not a multiple of eight; the CPU has no atomic for that. */
bool direct_atomic(void *at, struct peer_atomic *a);

#endif
