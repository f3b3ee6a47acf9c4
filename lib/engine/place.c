/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies into registered memory. Direct spans are written at once and their ticket is settled on
 * the spot. Peer spans gather in the round's batch, with whatever follows them on the same queue
 * pair, and are made by a few system calls at the end of the rx round, by the lcore or by a mover.
 *
 * The last eight octets of a placement become visible last: programs poll the last byte.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "engine/engine.h"
#include "engine/moving.h"
#include "queue/fence.h"

#define BATCH_COPIES  512u
#define BATCH_TICKETS 128u

struct own_batch {
	struct copy_batch batch; /* first */
	struct peer_copy copy[BATCH_COPIES];
	struct pending_ticket pending[BATCH_TICKETS];
};

struct copy_batch *copy_batch_create(void)
{
	struct own_batch *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	b->batch = (struct copy_batch){ .copy = b->copy, .pending = b->pending };
	return &b->batch;
}

void copy_batch_destroy(struct copy_batch *b)
{
	for (uint32_t i = 0; i < b->tickets; i++)
		if (b->pending[i].mbuf != NULL)
			rte_pktmbuf_free(b->pending[i].mbuf);
	free(b);
}

/* The head of the octets, then, after it, the last eight by one store: of an ATOMIC WRITE all. */
static void copy_tail_last(uint8_t *to, const uint8_t *from, uint32_t length)
{
	if (length < 8) {
		memcpy(to, from, length);
		return;
	}
	if (length > 8)
		memcpy(to, from, length - 8);
	/* Release: who sees the tail (a polling program, on its own acquire) sees the head. */
	queue_release_fence();
	memcpy(to + length - 8, from + length - 8, 8);
}

static void place_direct(const struct span_list *p, const uint8_t *from)
{
	for (uint32_t i = 0; i < p->count; i++) {
		copy_tail_last(p->span[i].direct, from, p->span[i].length);
		from += p->span[i].length;
	}
}

void client_copy(struct lcore *l, struct client *c, struct peer_copy *copy, uint32_t n,
		 nanotime now)
{
	for (uint32_t i = 0, run; i < n; i += run) {
		const struct peer_memory *m = copy[i].memory;

		run = peer_copy_run(copy + i, n - i);
		copy_stamp_begin(&l->stamp, m != NULL ? m->owner : c->number, now);
		peer_memory_copy(c->memory, copy + i, run);
		copy_stamp_end(&l->stamp);
	}
}

void ticket_settle(struct lcore *l, struct pending_ticket *t, const struct peer_copy *copy,
		   nanotime now)
{
	bool ok = true;

	for (uint32_t i = 0; i < t->count; i++)
		ok &= copy[t->first + i].ok;
	if (t->mbuf != NULL)
		rte_pktmbuf_free(t->mbuf);
	t->mbuf = NULL;
	if (t->qp == NULL)
		return;
	if (t->qp->last_ticket == t->ticket)
		t->qp->last_ticket = 0;
	qp_copied(t->qp->core, t->ticket, ok, now);
	qp_settled(l, t->qp, now);
}

/* The lcore's own copies. Runs of those into one client's memory are made together. */
static void batch_flush(struct lcore *l, nanotime now)
{
	struct copy_batch *b = l->copies;
	uint32_t tickets = b->tickets;

	b->tickets = 0;
	b->copies = 0;
	for (uint32_t i = 0; i < tickets;) {
		struct client *c = b->pending[i].qp->client;
		uint32_t first = i, copies = 0;

		for (; i < tickets && b->pending[i].qp->client == c; i++)
			copies += b->pending[i].count;
		if (copies > 0)
			client_copy(l, c, &b->copy[b->pending[first].first], copies, now);
		for (; first < i; first++)
			ticket_settle(l, &b->pending[first], b->copy, now);
	}
}

/* Where a ticket of this queue pair goes, with room for so many copies. */
static struct copy_batch *batch_of(struct lcore *l, struct engine_qp *q, uint32_t copies,
				   nanotime now)
{
	struct copy_batch *b = l->copies;

	if (q->mover != NULL) {
		b = moving_opened(l, q->client);
		assert(b != NULL && "packet_fits has opened one, for one packet");
	} else if (b->tickets == BATCH_TICKETS || b->copies + copies > BATCH_COPIES) {
		batch_flush(l, now);
	}
	return b;
}

/* Puts the placement behind what already waits for this queue pair. */
static bool batch_add(struct lcore *l, struct engine_qp *q, const struct outcome *o,
		      struct rte_mbuf *m, nanotime now)
{
	struct copy_batch *b = batch_of(l, q, o->place.count, now);
	struct pending_ticket *t;
	const uint8_t *from = o->source;

	t = &b->pending[b->tickets++];
	*t = (struct pending_ticket){ .qp = q, .ticket = o->ticket, .first = b->copies };
	if (from == (const uint8_t *)&o->value) {
		t->value = o->value;
		from = (const uint8_t *)&t->value;
	} else {
		t->mbuf = m;
	}
	for (uint32_t i = 0; i < o->place.count; i++) {
		const struct span *s = &o->place.span[i];

		if (s->direct != NULL)
			copy_tail_last(s->direct, from, s->length);
		else if (s->client != SPAN_NOBODY)
			b->copy[b->copies++] = (struct peer_copy){
				.peer_address = s->peer_address,
				.local = (void *)(uintptr_t)from,
				.length = s->length,
				.to_peer = true,
				.memory = span_memory(l, q, s),
			};
		from += s->length;
	}
	t->count = b->copies - t->first;
	q->last_ticket = o->ticket;
	return t->mbuf != NULL;
}

/*
 * False: the address is a multiple of eight in the region, but not in memory (a region that was
 * registered at an odd place): the CPU has no atomic for that.
 */
static bool atomic_direct(const struct atomic_request *a, uint64_t *original)
{
	uint64_t *at = a->target.direct;

	if ((uintptr_t)at % sizeof(*at) != 0)
		return false;
	if (!a->compare_swap) {
		*original = __atomic_fetch_add(at, a->swap_add, __ATOMIC_SEQ_CST);
		return true;
	}
	*original = a->compare;
	__atomic_compare_exchange_n(at, original, a->swap_add, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return true;
}

static void execute_atomic(struct lcore *l, struct engine_qp *q, const struct outcome *o,
			   nanotime now)
{
	const struct atomic_request *a = &o->atomic;
	uint64_t original = 0;
	bool ok;

	/* What this queue pair wrote before is in place when the atomic looks. */
	if (q->last_ticket != 0)
		place_flush(l, now);
	if (a->target.direct != NULL) {
		ok = atomic_direct(a, &original);
	} else {
		const struct peer_memory *m = span_memory(l, q, &a->target);

		copy_stamp_begin(&l->stamp, a->target.client, now);
		ok = peer_memory_atomic(m != NULL ? m : q->client->memory, l->engine->locks,
					a->target.peer_address, a->compare_swap, a->compare,
					a->swap_add, &original) == 0;
		copy_stamp_end(&l->stamp);
	}
	qp_atomic_done(q->core, o->ticket, original, ok, now);
}

bool place_outcome(struct lcore *l, struct engine_qp *q, struct outcome *o, struct rte_mbuf *m,
		   nanotime now)
{
	if (o->flags & OUTCOME_ATOMIC) {
		execute_atomic(l, q, o, now);
		return false;
	}
	if (!o->place.has_peer && q->last_ticket == 0) {
		place_direct(&o->place, o->source);
		qp_copied(q->core, o->ticket, true, now);
		return false;
	}
	return batch_add(l, q, o, m, now);
}

void place_nothing(struct lcore *l, struct engine_qp *q, uint64_t ticket, nanotime now)
{
	struct copy_batch *b = NULL;

	if (q->last_ticket != 0)
		b = batch_of(l, q, 0, now);
	if (q->last_ticket == 0) { /* or by now */
		qp_copied(q->core, ticket, true, now);
		return;
	}
	b->pending[b->tickets++] =
		(struct pending_ticket){ .qp = q, .ticket = ticket, .first = b->copies };
	q->last_ticket = ticket;
}

void place_flush(struct lcore *l, nanotime now)
{
	batch_flush(l, now);
	moving_flush(l, now);
}

void place_forget(struct lcore *l, struct engine_qp *q)
{
	/* Messages run between bursts, where the batch is empty. */
	q->last_ticket = 0;
	moving_forget(l, q);
}
