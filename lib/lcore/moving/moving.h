/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs for movers (moving.c). Used by place.c, hold.c, tx.c and the control path. */
#ifndef LCORE_MOVING_H
#define LCORE_MOVING_H

#include "base/bits.h"
#include "drivers/client_memory/peer_atomic.h"
#include "lcore/lcore.h"

struct mover_batch;

/* A received packet whose copies are not made yet. */
struct pending_ticket {
	struct engine_qp *qp; /* NULL: it was detached meanwhile */
	uint64_t ticket;
	struct rte_mbuf *mbuf; /* holds the source until the copy is made */
	union {
		uint64_t value; /* ... or this is the source: an atomic's result */
		struct peer_atomic atomic; /* ... or nothing is copied: an atomic is executed */
	};
	uint32_t first, count; /* copies */
	bool is_atomic;
};

/*
 * Copies of an rx round. The lcore makes them, or, for a program with a mover, the mover does in a
 * job.
 */
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
	/*
	 * Acquire, because the control thread may give a client a mover at any time. It never takes
	 * one away.
	 */
	return __atomic_load_n(&c->mover, __ATOMIC_ACQUIRE);
}

struct moving *moving_create(void);
/* Jobs that a thread still holds are never freed. */
void moving_destroy(struct moving *m);
/* Jobs are with movers, or about to go there; a returning job wakes the lcore. */
bool moving_under_way(const struct lcore *l);

/*
 * Receiving. Returns a job of the client's with room for one more packet, and keeps it open until
 * moving_flush sends it off. NULL: the client gets no job before others are back.
 */
struct copy_batch *moving_open(struct lcore *l, struct client *c, nanotime now);
void moving_flush(struct lcore *l, nanotime now);
/* The job that moving_open gave, for this packet's copies. */
struct copy_batch *moving_opened(const struct lcore *l, const struct client *c);

/* Whether a program with a mover may have a job to send with. */
bool moving_may_send(const struct lcore *l, const struct client *c);
/* Sending. False: queue pairs of this program must wait for jobs (moving_starve). */
static inline bool moving_can_send(const struct lcore *l, const struct client *c)
{
	return client_mover(c) == NULL || moving_may_send(l, c);
}

/* The queue pair gets no turn until a job is back. */
void moving_starve(struct lcore *l, struct engine_qp *q);
/* How far gather_count may grow in a turn of this client's queue pair. */
static inline uint32_t moving_room(const struct lcore *l, const struct client *c)
{
	if (client_mover(c) == NULL)
		return LIMIT_GATHER;
	return MIN_OF(l->gather_count + LIMIT_JOB_COPIES, LIMIT_GATHER);
}

/*
 * Visits the queue pairs that have no turn for now: their frames are with a mover, or they wait for
 * jobs.
 */
void moving_each_sender(const struct lcore *l, void (*visit)(struct engine_qp *q, void *arg),
			void *arg);
/*
 * Sends the staged frames [first, end), all of one client, as jobs. Those that get no job are kept
 * in the stage from index `kept` on. Returns the new `kept`.
 */
uint32_t moving_frames(struct lcore *l, uint32_t first, uint32_t end, uint32_t kept, nanotime now);

/*
 * Atomics of queue pairs without a mover, on peer memory. If the stripe of an atomic is taken, the
 * lcore tries it again, as a job of its own. Packets of its queue pair are held until it is done.
 * Called only after moving_can_try, for the same packet.
 */
bool moving_can_try(const struct lcore *l, const struct client *c);
void moving_try_again(struct lcore *l, struct engine_qp *q, const struct peer_memory *m,
		      uint64_t address, uint64_t ticket, const struct peer_atomic *a);
/* Some atomics must be tried again soon. */
bool moving_tries(const struct lcore *l);

/*
 * By lcore_call: movers no longer write to direct memory of this region (NULL: of any region of the
 * client). A mover that has begun may still write: see client_memory_revoke.
 */
void moving_revoke(struct lcore *l, const struct client *c, const struct region *r);

/*
 * By lcore_call: from now on, movers write to the client's direct memory for which `left` is true
 * as peer memory. A mover that has begun may still write directly: see client_memory_leave.
 */
void moving_leave(struct lcore *l, const struct client *c,
		  bool (*left)(const struct client *c, const void *at));

/* The number of this lcore's newest job. Later jobs have greater numbers. */
uint64_t moving_newest(const struct lcore *l);
/* The client's jobs under way on this lcore, with numbers up to `newest`. */
uint32_t moving_jobs_of(const struct lcore *l, const struct client *c, uint64_t newest);
/* Such jobs of other clients' queue pairs, from or to this client's memory. */
uint32_t moving_jobs_into(const struct lcore *l, const struct client *c, uint64_t newest);
void moving_forget(struct lcore *l, struct engine_qp *q);
/* Takes back finished jobs and resumes what waited for them. Returns how many. */
uint32_t moving_collect(struct lcore *l, nanotime now);
/* The program is detached from the lcore. Jobs still under way come back later. */
void moving_detach(struct lcore *l, struct client *c);
/* All jobs of the program have come back: the lcore has nothing of it any more. */
bool moving_left(struct lcore *l, const struct client *c);

/* place.c: reports one ticket by the result of its copies, and frees its buffer. */
void ticket_settle(struct lcore *l, struct pending_ticket *t, const struct peer_copy *copy,
		   nanotime now);

#endif
