/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs for movers, see moving.c. Between place.c, hold.c, tx.c and the control path. */
#ifndef LCORE_MOVING_H
#define LCORE_MOVING_H

#include "drivers/client_memory/peer_atomic.h"
#include "lcore/lcore.h"

struct mover_batch;

/* A received packet's copies that are not made yet. */
struct pending_ticket {
	struct engine_qp *qp; /* NULL: detached meanwhile */
	uint64_t ticket;
	struct rte_mbuf *mbuf; /* holds the source until the copy is made */
	union {
		uint64_t value; /* ... or here it is: an atomic's result */
		struct peer_atomic atomic; /* ... or no copy is made, but an atomic */
	};
	uint32_t first, count; /* copies */
	bool is_atomic;
};

/* Copies of an rx round that gather: the lcore's own, or those of one client in a job. */
struct copy_batch {
	uint32_t copies;
	uint32_t tickets;
	struct peer_copy *copy;
	struct pending_ticket *pending;
};

/* What one packet may add to a batch: copies, and tickets (a SEND with invalidate takes two). */
#define PACKET_COPIES  LIMIT_SPANS
#define PACKET_TICKETS 2u

struct moving *moving_create(void);
/* Jobs that a thread still holds stay where they are for ever. */
void moving_destroy(struct moving *m);
/* Jobs are with movers, or about to go there; what comes back wakes the lcore. */
bool moving_under_way(const struct lcore *l);

/*
 * Receiving. A job of the client's that has room for one more packet, or NULL: none may be had
 * before others are back. It stays there until moving_flush sends it off.
 */
struct copy_batch *moving_open(struct lcore *l, struct client *c, nanotime now);
void moving_flush(struct lcore *l, nanotime now);
/* That job, for what the packet brings. */
struct copy_batch *moving_opened(const struct lcore *l, const struct client *c);

/* Sending: false: the queue pairs of this client must wait for jobs, see moving_starve. */
bool moving_can_send(const struct lcore *l, const struct client *c);
/* The queue pair leaves the ready list until a job is back. */
void moving_starve(struct lcore *l, struct engine_qp *q);
void moving_unstarve(struct lcore *l, struct engine_qp *q);
/* How far gather_count may grow in a turn of this client's queue pair. */
uint32_t moving_room(const struct lcore *l, const struct client *c);
/* The queue pairs that have no turn for now: their frames are with a mover, or they wait for jobs. */
void moving_each_sender(const struct lcore *l, void (*visit)(struct engine_qp *q, void *arg),
			void *arg);
/*
 * Staged frames [first, end), of one client, leave with jobs; those that cannot are kept in the
 * stage from index `kept` on. Returns the new `kept`.
 */
uint32_t moving_frames(struct lcore *l, uint32_t first, uint32_t end, uint32_t kept, nanotime now);

/*
 * Atomics of queue pairs without a mover, on peer memory: one whose stripe is taken is tried again
 * by the lcore, as a job of its own; packets of its queue pair are held until it is done. It is
 * called only behind moving_can_try, for the same packet.
 */
bool moving_can_try(const struct lcore *l, const struct client *c);
void moving_try_again(struct lcore *l, struct engine_qp *q, const struct peer_memory *m,
		      uint64_t address, uint64_t ticket, const struct peer_atomic *a);
/* Atomics are to be tried again soon. */
bool moving_tries(const struct lcore *l);

/*
 * By lcore_call: what movers are to write to direct memory of this region is not written any more
 * (NULL: of any region of the client). A mover may be about to: see client_memory_revoke.
 */
void moving_revoke(struct lcore *l, const struct client *c, const struct region *r);

/* The newest job of this lcore: those that begin later have greater numbers. */
uint64_t moving_newest(const struct lcore *l);
/* Jobs of this client up to that one that are under way on this lcore. */
uint32_t moving_jobs_of(const struct lcore *l, const struct client *c, uint64_t newest);
/* ... and of other clients' queue pairs, from or to this client's memory. */
uint32_t moving_jobs_into(const struct lcore *l, const struct client *c, uint64_t newest);
void moving_forget(struct lcore *l, struct engine_qp *q);
/* Takes back what movers are done with, and goes on with it. Returns how much. */
uint32_t moving_collect(struct lcore *l, nanotime now);
/* The client is detached from the lcore; jobs of it that are under way will be taken back all the same. */
void moving_detach(struct lcore *l, struct client *c);
/* They all were: the lcore knows nothing of the client any more. */
bool moving_left(struct lcore *l, const struct client *c);

/* place.c: reports one ticket, by what became of its copies, and lets its buffer go. */
void ticket_settle(struct lcore *l, struct pending_ticket *t, const struct peer_copy *copy,
		   nanotime now);

static inline struct mover *client_mover(const struct client *c)
{
	/* The control thread may give a slow client a mover at any time; it takes none away. */
	return __atomic_load_n(&c->mover, __ATOMIC_ACQUIRE);
}

#endif
