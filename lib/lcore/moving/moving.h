/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs for movers, see moving.c. Between place.c, hold.c, tx.c and the control path. */
#ifndef LCORE_MOVING_H
#define LCORE_MOVING_H

#include "base/bits.h"
#include "drivers/client_memory/peer_atomic.h"
#include "lcore/lcore.h"

struct mover_batch;

/* A received packet whose copies are not made yet. */
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

/* Copies of an rx round: made by the lcore, or, for one program, by a mover in a job. */
struct copy_batch {
	uint32_t copies;
	uint32_t tickets;
	struct peer_copy *copy;
	struct pending_ticket *pending;
};

/*
 * The most that one packet adds to a batch: copies, and tickets (a SEND with invalidate takes two).
 */
#define PACKET_COPIES  LIMIT_SPANS
#define PACKET_TICKETS 2u

static inline struct mover *client_mover(const struct client *c)
{
	/* The control thread may give a client a mover at any time, and never takes one away. */
	return __atomic_load_n(&c->mover, __ATOMIC_ACQUIRE);
}

struct moving *moving_create(void);
/* Jobs that a thread still holds are never freed. */
void moving_destroy(struct moving *m);
/* Jobs are with movers, or about to go there; a returning job wakes the lcore. */
bool moving_under_way(const struct lcore *l);

/*
 * Receiving. A job of the client's with room for one more packet, or NULL: none before others are
 * back. The job stays open until moving_flush sends it off.
 */
struct copy_batch *moving_open(struct lcore *l, struct client *c, nanotime now);
void moving_flush(struct lcore *l, nanotime now);
/* The job that moving_open gave, for the packet's copies. */
struct copy_batch *moving_opened(const struct lcore *l, const struct client *c);

/* Whether there is a job to send with, for a program with a mover. */
bool moving_may_send(const struct lcore *l, const struct client *c);
/* Sending. False: queue pairs of this program must wait for jobs (moving_starve). */
static inline bool moving_can_send(const struct lcore *l, const struct client *c)
{
	return client_mover(c) == NULL || moving_may_send(l, c);
}

/* The queue pair has no turn until a job is back. */
void moving_starve(struct lcore *l, struct engine_qp *q);
/* How far gather_count may grow in a turn of this client's queue pair. */
static inline uint32_t moving_room(const struct lcore *l, const struct client *c)
{
	if (client_mover(c) == NULL)
		return LIMIT_GATHER;
	return MIN_OF(l->gather_count + LIMIT_JOB_COPIES, LIMIT_GATHER);
}

/* The queue pairs without a turn for now: their frames are with a mover, or they wait for jobs. */
void moving_each_sender(const struct lcore *l, void (*visit)(struct engine_qp *q, void *arg),
			void *arg);
/*
 * Staged frames [first, end), of one client, leave with jobs; those that cannot are kept in the
 * stage from index `kept` on. Returns the new `kept`.
 */
uint32_t moving_frames(struct lcore *l, uint32_t first, uint32_t end, uint32_t kept, nanotime now);

/*
 * Atomics of queue pairs without a mover, on peer memory. The lcore tries an atomic again whose
 * stripe is taken, as a job of its own; packets of its queue pair are held until it is done. Called
 * only after moving_can_try, for the same packet.
 */
bool moving_can_try(const struct lcore *l, const struct client *c);
void moving_try_again(struct lcore *l, struct engine_qp *q, const struct peer_memory *m,
		      uint64_t address, uint64_t ticket, const struct peer_atomic *a);
/* Some atomics must be tried again soon. */
bool moving_tries(const struct lcore *l);

/*
 * By lcore_call: movers no longer write to direct memory of this region (NULL: of any region of the
 * client). A mover may be about to: see client_memory_revoke.
 */
void moving_revoke(struct lcore *l, const struct client *c, const struct region *r);

/*
 * By lcore_call: from now on movers write as peer memory to the client's direct memory for which
 * `left` is true. A mover may be about to write it: see client_memory_leave.
 */
void moving_leave(struct lcore *l, const struct client *c,
		  bool (*left)(const struct client *c, const void *at));

/* The newest job of this lcore: later jobs have greater numbers. */
uint64_t moving_newest(const struct lcore *l);
/* Jobs of this client, up to that one, under way on this lcore. */
uint32_t moving_jobs_of(const struct lcore *l, const struct client *c, uint64_t newest);
/* Jobs of other clients' queue pairs, from or to this client's memory. */
uint32_t moving_jobs_into(const struct lcore *l, const struct client *c, uint64_t newest);
void moving_forget(struct lcore *l, struct engine_qp *q);
/* Takes back finished jobs and resumes what waited for them. Returns how many. */
uint32_t moving_collect(struct lcore *l, nanotime now);
/* The program is detached from the lcore. Its jobs under way are still taken back. */
void moving_detach(struct lcore *l, struct client *c);
/* All its jobs were taken back: the lcore has nothing of the program any more. */
bool moving_left(struct lcore *l, const struct client *c);

/* place.c: reports one ticket by the result of its copies, and frees its buffer. */
void ticket_settle(struct lcore *l, struct pending_ticket *t, const struct peer_copy *copy,
		   nanotime now);

#endif
