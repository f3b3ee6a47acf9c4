/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that copies to and from the memory of one client, for copies that may block: the lcores
 * hand batches in and take them back later; they never wait.
 *
 *	lcore   mover_submit  -->  ring of batches  -->  thread: peer_memory_copy
 *	lcore   mover_poll    <--  ring per lcore   <--
 *
 * A lcore that sleeps is woken for what comes back.
 */
#ifndef CLIENT_MEMORY_MOVER_H
#define CLIENT_MEMORY_MOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "drivers/client_memory/peer.h"

#define MOVER_BATCHES 2048u /* under way at most */

/*
 * Copies and atomics are made in their order. The caller may put MOVER_REVOKED in place of
 * copy.direct at any time (an atomic store): once mover_leaves_direct returned nobody is there.
 */
#define MOVER_REVOKED ((void *)(uintptr_t)1)

/*
 * The caller owns it again when mover_poll returned it; until then neither it nor the memory that
 * its copies name may be touched.
 */
struct mover_batch {
	struct peer_copy *copy;
	uint32_t count;
	uint32_t lcore; /* who polls for it */
	void *owner; /* the caller's */
};

struct mover;

/* How a lcore is woken, as by everybody else: it sets the flag, fences, and polls once more. */
struct mover_bell {
	const uint32_t *sleeping; /* atomic */
	int fd; /* eventfd */
};

/*
 * Copies the peer's descriptor, so the original may be closed at any time; memory that a copy
 * names itself must last until its batch is back. peer NULL: every copy names its memory.
 * bell: one of each lcore, which last until mover_close returns; NULL: none of them sleeps. NULL
 * with errno.
 */
struct mover *mover_create(const struct peer_memory *peer, const struct mover_bell *bell,
			   uint32_t lcores);

/* False: MOVER_BATCHES are under way. Any lcore. */
bool mover_submit(struct mover *m, struct mover_batch *batch);
/* The next batch of this lcore that is done, or NULL. That lcore only. */
struct mover_batch *mover_poll(struct mover *m, uint32_t lcore);

/* Waits until the thread has passed the one place where it may touch memory that we map. */
void mover_leaves_direct(const struct mover *m);

/*
 * Nothing is copied any more: what waits comes back by mover_poll, as failed. Never waits; the batch
 * that the thread has in its hands comes back when its copy ends, if ever; no other copy of it is made.
 * Control thread.
 */
void mover_stop(struct mover *m);
/*
 * The caller leaves. A thread that is still in a copy frees the mover when that ends; its batch, and
 * what the batch names, must last until then, which is for ever if the caller cannot know. No lcore
 * is touched from here on, and none may use the mover. Never waits. Control thread.
 */
void mover_close(struct mover *m);

#endif
