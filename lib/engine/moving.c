/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies from and to clients whose memory may block (another user's, or one that was slow): they
 * travel as jobs to the client's mover thread and come back later. A job holds everything that the
 * copies name (packet buffers, frames), so nothing has to wait for it:
 *
 *	placing		tickets of received packets stay unsettled; the core withholds what depends on them
 *	gathering	frames of one queue pair's turn; it gets no next turn until they were sent
 *
 * A lcore has a fixed number of jobs. When they run out, packets of such clients are dropped before
 * they reach the core, as on a full receive ring, and their queue pairs get no turn.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/client_memory/mover.h"
#include "engine/engine.h"
#include "engine/moving.h"

#define JOBS	     64u
#define JOB_COPIES   256u
#define JOB_TICKETS  LIMIT_BURST
#define JOBS_RESERVE 8u /* what one rx round of one lcore may need */

struct moving_job {
	struct mover_batch batch; /* first */
	LIST_ENTRY(moving_job) link;
	struct client *client;
	uint32_t tickets;
	uint32_t frames;
	struct pending_ticket pending[JOB_TICKETS];
	struct staged_frame frame[LIMIT_TURN];
	struct peer_copy copy[JOB_COPIES];
};

LIST_HEAD(job_list, moving_job);

struct moving {
	struct job_list free;
	struct job_list busy;
	uint32_t free_count;
	struct moving_job job[JOBS];
};

struct moving *moving_create(void)
{
	struct moving *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	for (uint32_t i = 0; i < JOBS; i++)
		LIST_INSERT_HEAD(&m->free, &m->job[i], link);
	m->free_count = JOBS;
	return m;
}

void moving_destroy(struct moving *m)
{
	free(m);
}

bool moving_under_way(const struct lcore *l)
{
	return !LIST_EMPTY(&l->moving->busy);
}

bool moving_can_receive(const struct lcore *l)
{
	return l->moving->free_count > JOBS_RESERVE;
}

uint32_t moving_room(const struct lcore *l, struct client *c)
{
	if (client_mover(c) == NULL)
		return GATHER_MAX;
	if (l->moving->free_count <= JOBS_RESERVE)
		return 0;
	return MIN_OF(l->gather_count + JOB_COPIES, GATHER_MAX);
}

static struct moving_job *job_take(struct lcore *l, struct client *c)
{
	struct moving_job *j = LIST_FIRST(&l->moving->free);

	if (j == NULL)
		return NULL;
	LIST_REMOVE(j, link);
	LIST_INSERT_HEAD(&l->moving->busy, j, link);
	l->moving->free_count--;
	j->client = c;
	j->tickets = j->frames = 0;
	j->batch = (struct mover_batch){ .copy = j->copy, .lcore = l->index, .owner = j };
	return j;
}

static void job_free(struct lcore *l, struct moving_job *j)
{
	LIST_REMOVE(j, link);
	LIST_INSERT_HEAD(&l->moving->free, j, link);
	l->moving->free_count++;
}

static void tickets_settle(struct lcore *l, struct moving_job *j, nanotime now)
{
	for (uint32_t i = 0; i < j->tickets; i++)
		ticket_settle(l, &j->pending[i], j->copy, now);
}

static void frames_finish(struct lcore *l, struct moving_job *j, nanotime now)
{
	struct engine_qp *q = j->frame[0].qp;

	if (q == NULL) { /* detached meanwhile */
		for (uint32_t i = 0; i < j->frames; i++)
			rte_pktmbuf_free(j->frame[i].mbuf);
		return;
	}
	for (uint32_t i = 0; i < j->frames; i++)
		frame_seal(&j->frame[i], j->copy);
	q->gather_pending = false;
	frames_send(l, j->frame, j->frames, now);
	qp_settled(l, q, now);
}

static void job_done(struct lcore *l, struct moving_job *j, nanotime now)
{
	if (j->frames > 0)
		frames_finish(l, j, now);
	tickets_settle(l, j, now);
	job_free(l, j);
}

/*
 * Also with nothing to copy: tickets of direct memory behind one that is under way must not be
 * settled before it, and the mover returns jobs in their order.
 */
static void job_submit(struct lcore *l, struct moving_job *j, nanotime now)
{
	if (mover_submit(client_mover(j->client), &j->batch))
		return;
	/* No room at the mover: the copies count as failed, and their queue pairs fail. */
	for (uint32_t i = 0; i < j->batch.count; i++)
		j->copy[i].ok = false;
	job_done(l, j, now);
}

uint32_t moving_frames(struct lcore *l, uint32_t first, uint32_t end, uint32_t kept, nanotime now)
{
	while (first < end) {
		struct engine_qp *q = l->stage[first].qp;
		struct moving_job *j = job_take(l, q->client);
		bool full = false;

		/* Without a job the turn is taken back: these frames were never sent. */
		for (; first < end && l->stage[first].qp == q; first++) {
			struct staged_frame *s = &l->stage[first];

			/* The mover is new: turns from before it may be more than a job holds. */
			full |= j != NULL && (j->frames == LIMIT_TURN ||
					      j->batch.count + s->peer_count > JOB_COPIES);
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

void moving_tickets(struct lcore *l, struct pending_ticket *t, uint32_t n, struct peer_copy *copy,
		    nanotime now)
{
	struct moving_job *j = NULL;

	for (uint32_t i = 0; i < n; i++) {
		if (j != NULL &&
		    (j->tickets == JOB_TICKETS || j->batch.count + t[i].count > JOB_COPIES)) {
			job_submit(l, j, now);
			j = NULL;
		}
		if (j == NULL)
			j = job_take(l, t[i].qp->client);
		if (j == NULL) { /* JOBS_RESERVE was too small: this queue pair fails */
			for (uint32_t k = 0; k < t[i].count; k++)
				copy[t[i].first + k].ok = false;
			ticket_settle(l, &t[i], copy, now);
			continue;
		}
		j->pending[j->tickets] = t[i];
		j->pending[j->tickets].first = j->batch.count;
		memcpy(&j->copy[j->batch.count], &copy[t[i].first], t[i].count * sizeof(*copy));
		/* A value that stood in the ticket moved with it. */
		if (t[i].mbuf == NULL && t[i].count > 0)
			for (uint32_t k = 0; k < t[i].count; k++) {
				struct peer_copy *c = &j->copy[j->batch.count + k];

				c->local = (uint8_t *)&j->pending[j->tickets].value +
					   ((uint8_t *)c->local - (uint8_t *)&t[i].value);
			}
		j->batch.count += t[i].count;
		j->tickets++;
	}
	if (j != NULL)
		job_submit(l, j, now);
}

uint32_t place_poll(struct lcore *l, nanotime now)
{
	uint32_t work = 0;

	if (!moving_under_way(l))
		return 0;
	for (uint32_t i = 0; i < l->clients; i++) {
		struct mover *m = client_mover(l->client[i]);
		struct mover_batch *b;

		while (m != NULL && work < JOBS && (b = mover_poll(m, l->index)) != NULL) {
			job_done(l, b->owner, now);
			work++;
		}
	}
	return work;
}

void moving_forget(struct lcore *l, struct engine_qp *q)
{
	struct moving_job *j;

	LIST_FOREACH(j, &l->moving->busy, link)
	{
		for (uint32_t i = 0; i < j->tickets; i++)
			if (j->pending[i].qp == q)
				j->pending[i].qp = NULL;
		if (j->frames > 0 && j->frame[0].qp == q)
			j->frame[0].qp = NULL;
	}
	q->gather_pending = false;
}

void moving_give_back(struct lcore *l, struct mover_batch *b, nanotime now)
{
	job_done(l, b->owner, now);
}

static bool names_memory(const struct moving_job *j, const struct peer_memory *m)
{
	for (uint32_t i = 0; i < j->batch.count; i++)
		if (j->copy[i].memory == m)
			return true;
	return false;
}

uint32_t moving_jobs_of(const struct lcore *l, const struct client *c)
{
	const struct moving_job *j;
	uint32_t n = 0;

	LIST_FOREACH(j, &l->moving->busy, link)
	n += j->client == c;
	return n;
}

uint32_t moving_jobs_into(const struct lcore *l, const struct client *c)
{
	const struct moving_job *j;
	uint32_t n = 0;

	if (c->memory == NULL)
		return 0;
	LIST_FOREACH(j, &l->moving->busy, link)
	n += names_memory(j, c->memory);
	return n;
}
