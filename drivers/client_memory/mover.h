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

#define MOVER_BATCHES 1024u /* under way at most */

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
 * bell: one of each lcore, which last until mover_destroy returns; NULL: none of them sleeps. NULL
 * with errno.
 */
struct mover *mover_create(const struct peer_memory *peer, const struct mover_bell *bell,
			   uint32_t lcores);

/* False: MOVER_BATCHES are under way. Any lcore. */
bool mover_submit(struct mover *m, struct mover_batch *batch);
/* The next batch of this lcore that is done, or NULL. That lcore only. */
struct mover_batch *mover_poll(struct mover *m, uint32_t lcore);

/*
 * Control thread, when no lcore uses the mover any more. What waits is not copied (ok = false).
 * Batches that were not polled go back to the caller by `give_back`, in its thread. A thread that
 * is still stuck in a copy after timeout_ms is left behind: then the batch that it holds is
 * returned, and that one and its memory must stay as they are for ever. NULL: the thread ended.
 */
struct mover_batch *mover_destroy(struct mover *m, uint32_t timeout_ms,
				  void (*give_back)(struct mover_batch *batch, void *arg),
				  void *arg);

#endif
