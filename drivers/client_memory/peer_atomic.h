/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics on registered memory.
 *
 * On memory that the engine maps they are atomics of the CPU. On peer memory they are a read, a
 * computation and a write, under a lock. Each user has a set of locks ("stripes"). The offset in
 * the page chooses the stripe, because two programs may share a page. So atomics on peer memory are
 * atomic among the memories of one user (IBV_ATOMIC_HCA), but neither against the program's own CPU
 * nor against programs of other users, which therefore cannot delay each other.
 *
 * The copies may block for ever while the stripe is held, so no function here waits for a stripe. A
 * caller that finds it taken tries again. Once the same holder, of another program, has had the
 * stripe for LIMIT_ATOMIC_WAIT, the caller takes it over. A holder checks that the stripe is still
 * its own before it writes.
 */
#ifndef CLIENT_MEMORY_PEER_ATOMIC_H
#define CLIENT_MEMORY_PEER_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/time.h"

struct peer_memory;
struct peer_locks;

struct peer_atomic {
	bool compare_swap; /* stores `value` if the octets equal `compare`; else adds `value` */
	uint64_t compare;
	uint64_t value;
	uint64_t original; /* out */
	/*
	 * Between two tries: the holder of the stripe, and since when it is known to be the holder.
	 * Initially 0.
	 */
	uint64_t holder;
	nanotime since;
};

/*
 * Returns the stripes of this user, with a reference. peer_locks_share adds a reference, and
 * peer_locks_put gives one back. NULL: no memory. Any thread.
 */
struct peer_locks *peer_locks_get(uid_t user);
struct peer_locks *peer_locks_share(struct peer_locks *locks);
void peer_locks_put(struct peer_locks *locks);

/*
 * Until peer_locks_let_go, no atomics on this user's peer memory begin (EBUSY). Used when memory
 * changes from direct to peer, because its atomics of both kinds must not meet. Not nested. Atomics
 * that are under way on memory that was peer memory before may go on. Any thread.
 */
void peer_locks_hold(struct peer_locks *locks);
void peer_locks_let_go(struct peer_locks *locks);

/*
 * 0; EFAULT: the memory is not accessible; EBUSY: the stripe is taken and nothing was done, so try
 * again with the same *a. May block in the copies.
 */
int peer_memory_atomic(const struct peer_memory *m, uint64_t address, struct peer_atomic *a,
		       nanotime now);

/* False: `at` is not a multiple of eight, for which the CPU has no atomics. */
bool direct_atomic(void *at, struct peer_atomic *a);

#endif
