/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies from and to programs whose memory may block. They go as jobs to the program's mover thread
 * and come back later. A job owns everything that its copies name (packet buffers, frames), so
 * nothing has to wait for the job:
 *
 *	placing		tickets of received packets stay unsettled; the core withholds what depends on
 *			them. A client's packets of one rx round share a job, which is open until the
 *			round's end.
 *	gathering	frames of one queue pair's turn; it gets no next turn until they were sent
 *
 *	free -- moving_open --> open -- moving_flush --> busy (at the mover) -- place_poll --> free
 *
 * A job may write memory that the engine maps, in order with its other copies. Before such memory
 * goes away, the control path takes it out of all jobs (moving_revoke), because jobs may be stuck
 * for ever. If the program takes the memory back but the region stays, the copies go there as peer
 * memory (moving_leave).
 *
 * An lcore has a fixed number of jobs. A user may have as many as are left for others. So a user
 * whose copies are stuck has at most half of them, however many programs the user runs; the next
 * user has at most half of the rest. A few are kept for users who have none. Programs of one user
 * share in the same way. A packet without a free job is held (hold.c). A queue pair that wants to
 * send waits until a job is back.
 *
 * A program may end while its jobs are stuck. Its struct client stays until the jobs are back
 * (settle.c).
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "base/bits.h"
#include "drivers/client_memory/mover.h"
#include "lcore/inside.h"
#include "lcore/moving/hold.h"
#include "lcore/moving/moving.h"

static_assert(LIMIT_JOBS * LIMIT_LCORES <= LIMIT_MOVER_BATCHES,
	      "a mover has room for all jobs there are");
static_assert(LIMIT_JOB_COPIES >= PACKET_COPIES && LIMIT_JOB_TICKETS >= PACKET_TICKETS,
	      "one packet fits");

struct moving_job {
	struct mover_batch batch; /* first */
	LIST_ENTRY(moving_job) link;
	struct client *client;
	uint64_t serial; /* number of the job, in this lcore's order */
	struct copy_batch tickets;
	uint32_t frames;
	bool tried; /* an atomic that the lcore itself tries again; no mover has the job */
	struct pending_ticket pending[LIMIT_JOB_TICKETS];
	struct staged_frame frame[LIMIT_TURN];
	struct peer_copy copy[LIMIT_JOB_COPIES];
};

LIST_HEAD(job_list, moving_job);

struct moving {
	struct job_list free; /* given back */
	uint32_t untouched; /* the first job that was never taken, so that it has no memory yet */
	struct job_list open; /* of this rx round, at most one of each client */
	struct job_list busy;
	uint32_t free_count;
	uint64_t serial; /* of the newest job */
	uint8_t jobs_of[LIMIT_CLIENTS]; /* jobs that are not free, by the client's number */
	uint8_t jobs_of_user[LIMIT_CLIENTS]; /* ... and by the user's */
	uint32_t leaving_count; /* detached clients with jobs */
	struct client *leaving[LIMIT_CLIENTS];
	uint32_t tries; /* jobs that are atomics to be tried again */
	bool came_back; /* a job came back since the waiting queue pairs were last looked at */
	struct ready_list starved;
	struct moving_job job[LIMIT_JOBS];
};

struct moving *moving_create(void)
{
	struct moving *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->free_count = LIMIT_JOBS;
	TAILQ_INIT(&m->starved);
	return m;
}

void moving_destroy(struct moving *m)
{
	if (m != NULL && LIST_EMPTY(&m->busy))
		free(m);
}

bool moving_under_way(const struct lcore *l)
{
	return !LIST_EMPTY(&l->moving->busy) || !LIST_EMPTY(&l->moving->open);
}

/* The jobs left for the program's user must be more than `share` times those of the program. */
static bool may_take(const struct moving *m, const struct client *c, uint32_t share)
{
	uint32_t of_user = m->jobs_of_user[c->user], room = 0;

	if (of_user == 0)
		return m->free_count > 0;
	if (m->free_count > LIMIT_JOBS_KEPT + of_user)
		room = m->free_count - LIMIT_JOBS_KEPT - of_user;
	return share * m->jobs_of[c->number] < room;
}

/*
 * Sending may take half of what receiving may, so that arriving packets do not wait for outgoing
 * ones.
 */
bool moving_may_send(const struct lcore *l, const struct client *c)
{
	return may_take(l->moving, c, 2);
}

static struct moving_job *next_free(struct moving *m)
{
	struct moving_job *j = LIST_FIRST(&m->free);

	if (j == NULL) {
		assert(m->untouched < LIMIT_JOBS);
		return &m->job[m->untouched++];
	}
	LIST_REMOVE(j, link);
	return j;
}

static struct moving_job *job_take(struct lcore *l, struct client *c, struct job_list *to)
{
	struct moving *m = l->moving;
	struct moving_job *j;

	if (m->free_count == 0)
		return NULL;
	j = next_free(m);
	LIST_INSERT_HEAD(to, j, link);
	m->free_count--;
	l->has_jobs = true;
	m->jobs_of[c->number]++;
	m->jobs_of_user[c->user]++;
	j->client = c;
	j->serial = ++m->serial;
	j->frames = 0;
	j->tried = false;
	j->tickets = (struct copy_batch){ .copy = j->copy, .pending = j->pending };
	j->batch = (struct mover_batch){ .copy = j->copy, .lcore = l->index, .owner = j };
	return j;
}

static void job_free(struct lcore *l, struct moving_job *j)
{
	struct moving *m = l->moving;

	LIST_REMOVE(j, link);
	LIST_INSERT_HEAD(&m->free, j, link);
	m->free_count++;
	m->jobs_of[j->client->number]--;
	m->jobs_of_user[j->client->user]--;
	m->came_back = true;
	copy_over(l->engine);
}

/* Counts copies into memory that the engine maps, for each program. */
static void count_direct(struct lcore *l, const struct moving_job *j, int32_t by)
{
	for (uint32_t i = 0; i < j->tickets.copies; i++)
		if (j->copy[i].direct != NULL && j->copy[i].direct != MOVER_REVOKED)
			__atomic_fetch_add(&l->engine->direct_moves[j->copy[i].owner], (uint32_t)by,
					   __ATOMIC_RELAXED);
}

static void tickets_settle(struct lcore *l, struct moving_job *j, nanotime now)
{
	for (uint32_t i = 0; i < j->tickets.tickets; i++)
		ticket_settle(l, &j->pending[i], j->copy, now);
}

static void frames_finish(struct lcore *l, struct moving_job *j, nanotime now)
{
	struct engine_qp *q = j->frame[0].qp;

	if (q == NULL) { /* the queue pair was detached meanwhile */
		for (uint32_t i = 0; i < j->frames; i++)
			rte_pktmbuf_free(j->frame[i].mbuf);
		return;
	}
	for (uint32_t i = 0; i < j->frames; i++) {
		frame_seal(&j->frame[i], j->copy);
		qp_left(q->core, &j->frame[i].packet, now);
	}
	q->gather_pending = false;
	frames_send(l, j->frame, j->frames, now);
	qp_settled(l, q, now);
}

static void job_done(struct lcore *l, struct moving_job *j, nanotime now)
{
	if (j->frames > 0)
		frames_finish(l, j, now);
	count_direct(l, j, -1);
	tickets_settle(l, j, now);
	job_free(l, j);
}

/*
 * A job without copies is submitted, too. Its tickets, of direct memory, must not be settled before
 * those of an earlier job under way, and the mover returns jobs in order.
 */
static void job_submit(struct lcore *l, struct moving_job *j, nanotime now)
{
	struct mover *mover = client_mover(j->client);

	if (mover != NULL && mover_submit(mover, &j->batch))
		return;
	/* The program is ending: its copies count as failed, and their queue pairs fail. */
	for (uint32_t i = 0; i < j->batch.count; i++)
		j->copy[i].ok = false;
	job_done(l, j, now);
}

static void job_close(struct lcore *l, struct moving_job *j, nanotime now)
{
	if (j->tickets.tickets == 0) {
		job_free(l, j);
		return;
	}
	LIST_REMOVE(j, link);
	LIST_INSERT_HEAD(&l->moving->busy, j, link);
	j->batch.count = j->tickets.copies;
	count_direct(l, j, 1);
	job_submit(l, j, now);
}

static struct moving_job *find_open(const struct moving *m, const struct client *c)
{
	struct moving_job *j;

	LIST_FOREACH(j, &m->open, link)
	{
		if (j->client == c)
			return j;
	}
	return NULL;
}

struct copy_batch *moving_open(struct lcore *l, struct client *c, nanotime now)
{
	struct moving *m = l->moving;
	struct moving_job *j = find_open(m, c);

	if (j != NULL && (j->tickets.tickets + PACKET_TICKETS > LIMIT_JOB_TICKETS ||
			  j->tickets.copies + PACKET_COPIES > LIMIT_JOB_COPIES)) {
		job_close(l, j, now);
		j = NULL;
	}
	if (j == NULL && may_take(m, c, 1))
		j = job_take(l, c, &m->open);
	return j != NULL ? &j->tickets : NULL;
}

struct copy_batch *moving_opened(const struct lcore *l, const struct client *c)
{
	struct moving_job *j = find_open(l->moving, c);

	return j != NULL ? &j->tickets : NULL;
}

void moving_flush(struct lcore *l, nanotime now)
{
	struct moving_job *j;

	while ((j = LIST_FIRST(&l->moving->open)) != NULL)
		job_close(l, j, now);
}

uint32_t moving_frames(struct lcore *l, uint32_t first, uint32_t end, uint32_t kept, nanotime now)
{
	while (first < end) {
		struct engine_qp *q = l->stage[first].qp;
		struct moving_job *j = job_take(l, q->client, &l->moving->busy);
		bool full = false;

		/* Without a job the turn is undone: the frames count as never sent. */
		for (; first < end && l->stage[first].qp == q; first++) {
			struct staged_frame *s = &l->stage[first];

			/*
			 * If the mover is new, the turn may be from before it, and hold more than
			 * one job does.
			 */
			full |= j != NULL && (j->frames == LIMIT_TURN ||
					      j->batch.count + s->peer_count > LIMIT_JOB_COPIES);
			if (j == NULL || full) {
				s->unsent = true;
				l->stage[kept++] = *s;
				continue;
			}
			memcpy(&j->copy[j->batch.count], &l->gather_copy[s->peer_first],
			       s->peer_count * sizeof(j->copy[0]));
			j->frame[j->frames] = *s;
			j->frame[j->frames++].peer_first = (uint16_t)j->batch.count;
			j->batch.count += s->peer_count;
		}
		if (j == NULL)
			continue;
		q->gather_pending = true;
		ready_remove(l, q);
		job_submit(l, j, now);
	}
	return kept;
}

/* ---- coming back ---- */

static uint32_t collect_of(struct lcore *l, const struct client *c, nanotime now)
{
	struct mover *m = client_mover(c);
	struct mover_batch *b;
	uint32_t n = 0;

	while (m != NULL && n < LIMIT_JOBS && (b = mover_poll(m, l->index)) != NULL) {
		job_done(l, b->owner, now);
		n++;
	}
	return n;
}

uint32_t moving_collect(struct lcore *l, nanotime now)
{
	struct moving *m = l->moving;
	uint32_t work = 0;

	if (LIST_EMPTY(&m->busy))
		return 0;
	for (uint32_t i = 0; i < l->clients; i++)
		work += collect_of(l, l->client[i], now);
	for (uint32_t i = 0; i < m->leaving_count; i++)
		work += collect_of(l, m->leaving[i], now);
	return work;
}

void moving_detach(struct lcore *l, struct client *c)
{
	/* The client's queue pairs may still hand in jobs. They are detached later. */
	if (client_mover(c) != NULL)
		l->moving->leaving[l->moving->leaving_count++] = c;
}

static void leave(struct moving *m, const struct client *c)
{
	for (uint32_t i = 0; i < m->leaving_count; i++) {
		if (m->leaving[i] != c)
			continue;
		m->leaving[i] = m->leaving[--m->leaving_count];
		return;
	}
}

bool moving_left(struct lcore *l, const struct client *c)
{
	if (l->moving->jobs_of[c->number] > 0)
		return false;
	leave(l->moving, c);
	return true;
}

void moving_starve(struct lcore *l, struct engine_qp *q)
{
	turns_leave(&l->turns, q);
	TAILQ_INSERT_TAIL(&l->moving->starved, q, ready_link);
	q->stands_in = &l->moving->starved;
}

/* Each waiting queue pair tries again. The list is seldom long. */
static void starved_feed(struct lcore *l)
{
	turns_return(&l->turns, &l->moving->starved);
}

void moving_each_sender(const struct lcore *l, void (*visit)(struct engine_qp *q, void *arg),
			void *arg)
{
	const struct moving_job *j;
	struct engine_qp *q;

	LIST_FOREACH(j, &l->moving->busy, link)
	if (j->frames > 0 && j->frame[0].qp != NULL)
		visit(j->frame[0].qp, arg);
	TAILQ_FOREACH(q, &l->moving->starved, ready_link)
	visit(q, arg);
}

/* ---- atomics that are tried again ---- */

bool moving_can_try(const struct lcore *l, const struct client *c)
{
	return may_take(l->moving, c, 1);
}

bool moving_tries(const struct lcore *l)
{
	return l->moving->tries > 0;
}

void moving_try_again(struct lcore *l, struct engine_qp *q, const struct peer_memory *m,
		      uint64_t address, uint64_t ticket, const struct peer_atomic *a)
{
	struct moving_job *j = job_take(l, q->client, &l->moving->busy);

	assert(j != NULL && "packet_fits has asked moving_can_try");
	j->tried = true;
	j->pending[0] = (struct pending_ticket){
		.qp = q, .ticket = ticket, .atomic = *a, .count = 1, .is_atomic = true
	};
	j->copy[0] = (struct peer_copy){ .peer_address = address, .memory = m };
	j->tickets.tickets = j->batch.count = 1;
	l->moving->tries++;
	q->last_ticket = ticket;
	q->atomic_waits = true;
}

/* Forgets the request if its queue pair is gone or in ERR. */
static int try_atomic(struct lcore *l, struct moving_job *j, nanotime now)
{
	struct pending_ticket *t = &j->pending[0];
	const struct peer_copy *c = &j->copy[0];

	if (t->qp == NULL || qp_state(t->qp->core) == QP_STATE_RESET ||
	    qp_state(t->qp->core) == QP_STATE_ERR)
		return ECANCELED;
	return peer_memory_atomic(c->memory, c->peer_address, &t->atomic, now);
}

static uint32_t try_all(struct lcore *l, nanotime now)
{
	struct moving_job *j, *next;
	uint32_t work = 0;

	for (j = LIST_FIRST(&l->moving->busy); j != NULL; j = next) {
		int error;

		next = LIST_NEXT(j, link);
		if (!j->tried)
			continue;
		error = try_atomic(l, j, now);
		if (error == EBUSY)
			continue;
		l->moving->tries--;
		j->copy[0].ok = error == 0;
		if (j->pending[0].qp != NULL)
			j->pending[0].qp->atomic_waits = false;
		job_done(l, j, now);
		work++;
	}
	return work;
}

uint32_t place_poll(struct lcore *l, nanotime now)
{
	struct moving *m = l->moving;
	uint32_t work = moving_collect(l, now);

	if (m->tries > 0)
		work += try_all(l, now);
	if (!m->came_back)
		return work;
	starved_feed(l);
	m->came_back = hold_release(l, &work, now);
	place_flush(l, now);
	qps_settle(l, now);
	l->has_jobs = m->came_back || m->free_count < LIMIT_JOBS;
	return work;
}

void moving_forget(struct lcore *l, struct engine_qp *q)
{
	struct moving_job *j;

	LIST_FOREACH(j, &l->moving->busy, link)
	{
		for (uint32_t i = 0; i < j->tickets.tickets; i++)
			if (j->pending[i].qp == q)
				j->pending[i].qp = NULL;
		if (j->frames > 0 && j->frame[0].qp == q)
			j->frame[0].qp = NULL;
	}
	q->gather_pending = false;
}

/* ---- memory that is given back ---- */

static bool is_of_region(const struct region *r, const void *at)
{
	for (uint32_t i = 0; i < r->pieces; i++) {
		const struct region_piece *p = &r->piece[i];
		uint64_t end = i + 1 < r->pieces ? r->piece[i + 1].offset : r->length;

		if (p->direct != NULL && (uintptr_t)at - (uintptr_t)p->direct < end - p->offset)
			return true;
	}
	return false;
}

static void job_revoke(struct lcore *l, struct moving_job *j, const struct client *c,
		       const struct region *r)
{
	for (uint32_t i = 0; i < j->tickets.copies; i++) {
		struct peer_copy *copy = &j->copy[i];

		if (copy->direct == NULL || copy->direct == MOVER_REVOKED ||
		    copy->owner != c->number || (r != NULL && !is_of_region(r, copy->direct)))
			continue;
		__atomic_store_n(&copy->direct, MOVER_REVOKED, __ATOMIC_RELAXED);
		__atomic_fetch_sub(&l->engine->direct_moves[c->number], 1, __ATOMIC_RELAXED);
	}
}

void moving_revoke(struct lcore *l, const struct client *c, const struct region *r)
{
	struct moving_job *j;

	/* No job is open between bursts, so the busy ones are all. */
	LIST_FOREACH(j, &l->moving->busy, link)
	job_revoke(l, j, c, r);
}

static void job_leave(struct lcore *l, struct moving_job *j, const struct client *c,
		      bool (*left)(const struct client *c, const void *at))
{
	for (uint32_t i = 0; i < j->tickets.copies; i++) {
		struct peer_copy *copy = &j->copy[i];

		if (copy->direct == NULL || copy->direct == MOVER_REVOKED ||
		    copy->owner != c->number || !left(c, copy->direct))
			continue;
		copy->memory = j->client != c ? c->memory : NULL;
		/*
		 * Release: pairs with the mover's acquire. A mover that sees NULL also sees
		 * `memory`.
		 */
		__atomic_store_n(&copy->direct, NULL, __ATOMIC_RELEASE);
		__atomic_fetch_sub(&l->engine->direct_moves[c->number], 1, __ATOMIC_RELAXED);
	}
}

void moving_leave(struct lcore *l, const struct client *c,
		  bool (*left)(const struct client *c, const void *at))
{
	struct moving_job *j;

	LIST_FOREACH(j, &l->moving->busy, link)
	job_leave(l, j, c, left);
}

static bool names_memory(const struct moving_job *j, const struct peer_memory *m)
{
	for (uint32_t i = 0; i < j->batch.count; i++)
		if (j->copy[i].memory == m)
			return true;
	return false;
}

uint64_t moving_newest(const struct lcore *l)
{
	return l->moving->serial;
}

uint32_t moving_jobs_of(const struct lcore *l, const struct client *c, uint64_t newest)
{
	const struct moving_job *j;
	uint32_t n = 0;

	LIST_FOREACH(j, &l->moving->busy, link)
	n += j->client == c && j->serial <= newest;
	return n;
}

uint32_t moving_jobs_into(const struct lcore *l, const struct client *c, uint64_t newest)
{
	const struct moving_job *j;
	uint32_t n = 0;

	if (c->memory == NULL)
		return 0;
	LIST_FOREACH(j, &l->moving->busy, link)
	n += j->serial <= newest && names_memory(j, c->memory);
	return n;
}
