/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs for movers, see moving.c. Between place.c, tx.c and the control path. */
#ifndef ENGINE_MOVING_H
#define ENGINE_MOVING_H

#include "engine/engine.h"

struct mover_batch;

/* A received packet's copies that are not made yet. */
struct pending_ticket {
	struct engine_qp *qp; /* NULL: detached meanwhile */
	uint64_t ticket;
	struct rte_mbuf *mbuf; /* holds the source until the copy is made */
	uint64_t value; /* ... or here it is: an atomic's result */
	uint32_t first, count; /* peer copies */
};

struct moving *moving_create(void);
void moving_destroy(struct moving *m);
/* Jobs are with movers, who wake nobody: the lcore must not sleep. */
bool moving_under_way(const struct lcore *l);
/* False: too few jobs are left for a packet of a client with a mover. */
bool moving_can_receive(const struct lcore *l);
/* How far gather_count may grow in a turn of this client's queue pair. */
uint32_t moving_room(const struct lcore *l, struct client *c);
/*
 * Staged frames [first, end), of one client, leave with jobs; those that cannot are kept in the
 * stage from index `kept` on. Returns the new `kept`.
 */
uint32_t moving_frames(struct lcore *l, uint32_t first, uint32_t end, uint32_t kept, nanotime now);
/* n tickets of one client and their copies leave with jobs. */
void moving_tickets(struct lcore *l, struct pending_ticket *t, uint32_t n, struct peer_copy *copy,
		    nanotime now);
/* Jobs of this client that are under way on this lcore. */
uint32_t moving_jobs_of(const struct lcore *l, const struct client *c);
/* ... and of other clients' queue pairs, from or to this client's memory. */
uint32_t moving_jobs_into(const struct lcore *l, const struct client *c);
void moving_forget(struct lcore *l, struct engine_qp *q);
/* By lcore_call: a batch that mover_destroy returned to the control thread. */
void moving_give_back(struct lcore *l, struct mover_batch *b, nanotime now);

/* place.c: reports one ticket, by what became of its copies, and lets its buffer go. */
void ticket_settle(struct lcore *l, struct pending_ticket *t, const struct peer_copy *copy,
		   nanotime now);

static inline struct mover *client_mover(const struct client *c)
{
	/* The control thread may give a slow client a mover at any time; it takes none away. */
	return __atomic_load_n(&c->mover, __ATOMIC_ACQUIRE);
}

#endif
