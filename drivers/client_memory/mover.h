/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mover is a thread that copies to and from the memory of one client, where copies may block. The
 * lcores submit batches and poll for them later; they never wait.
 *
 *	lcore   mover_submit  -->  ring of batches  -->  thread: peer_memory_copy
 *	lcore   mover_poll    <--  ring per lcore   <--
 *
 * A sleeping lcore is woken when a batch comes back.
 */
#ifndef CLIENT_MEMORY_MOVER_H
#define CLIENT_MEMORY_MOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "drivers/client_memory/peer.h"

/*
 * The copies and atomics of a batch are made in order. To revoke memory that the engine maps, the
 * caller stores MOVER_REVOKED in copy.direct (atomically, at any time), and then calls
 * mover_leaves_direct. When that returns, the thread no longer accesses the memory. If the caller
 * stores NULL (release) instead, the copy is made in the peer memory of copy.memory, which the
 * caller may set before.
 */
#define MOVER_REVOKED ((void *)(uintptr_t)1)

/*
 * A batch belongs to the mover from mover_submit until mover_poll returns it. Meanwhile the caller
 * accesses neither the batch nor the memory that its copies name.
 */
struct mover_batch {
	struct peer_copy *copy;
	uint32_t count;
	uint32_t lcore; /* the lcore that polls for it */
	void *owner; /* for the caller */
};

struct mover;

/* How an lcore is woken. Before it sleeps it sets the flag, fences, and polls once more. */
struct mover_bell {
	const uint32_t *sleeping; /* atomic */
	int fd; /* eventfd */
};

/*
 * Creates a mover. `peer`: the memory of copies that do not name one. Its descriptor is duplicated,
 * so the caller may close it at any time. NULL: every copy names its memory, which must last until
 * its batch is back. `bell`: one for each lcore, valid until mover_close returns. NULL: no lcore
 * sleeps. Returns NULL with errno on failure. Control thread.
 */
struct mover *mover_create(const struct peer_memory *peer, const struct mover_bell *bell,
			   uint32_t lcores);

/* False: LIMIT_MOVER_BATCHES are under way, and nothing was submitted. Any lcore. */
bool mover_submit(struct mover *m, struct mover_batch *batch);
/* The next finished batch of this lcore, or NULL. Only that lcore calls it. */
struct mover_batch *mover_poll(struct mover *m, uint32_t lcore);

/* Waits until the thread is not writing memory that the engine maps. Bounded. Control thread. */
void mover_leaves_direct(const struct mover *m);

/*
 * Stops copying. Waiting batches come back by mover_poll as failed. The batch on which the thread
 * is working comes back when its current copy ends, if ever, without further copies. Never waits.
 * Control thread.
 */
void mover_stop(struct mover *m);
/*
 * Gives up the mover, which no lcore may use any more. If its thread is in a copy, the thread frees
 * the mover when that copy ends. The thread's batch and what the batch names must last until then.
 * The caller may not learn when that is, and must then keep them for ever. No lcore is woken after
 * this. Waits only for steps that cannot block. Control thread.
 */
void mover_close(struct mover *m);

#endif
