/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies into registered memory. If all of a packet is direct, and nothing of its queue pair waits,
 * it is written at once and its ticket is settled on the spot. Otherwise all of it joins the
 * round's batch, direct and peer spans in their order, and so does everything that follows on the
 * same queue pair. At the end of the rx round the lcore or a mover makes the copies of the batch in
 * order.
 *
 *	spans of a queue pair's packets     direct | peer direct | direct | peer | direct
 *	                                    at once  -------- the batch, in order --------
 *
 * So a thread that sees an octet sees all packets before it, whatever memory they went to. The last
 * eight octets of a message become visible last, because programs poll the last byte. READ
 * responses come here in the order in which they arrive. Behind a gap that is not the order of
 * their PSNs; a READ is over when it is completed.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "base/bits.h"
#include "drivers/client_memory/peer_atomic.h"
#include "lcore/inside.h"
#include "lcore/moving/lent.h"
#include "lcore/moving/moving.h"
#include "queue/fence.h"
#include "wire/opcode.h"

struct own_batch {
	struct copy_batch batch; /* first */
	struct peer_copy copy[LIMIT_BATCH_COPIES];
	struct pending_ticket pending[LIMIT_BATCH_TICKETS];
	struct copy_breaks breaks;
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

/* How many of a message's last eight octets lie in the span that ends here. */
static uint32_t tail_in(const struct span_list *p, uint32_t end, uint32_t length)
{
	uint32_t begin = p->length > 8 ? p->length - 8 : 0;

	return end > begin ? MIN_OF(end - begin, length) : 0;
}

static __attribute__((noinline)) void place_spans(const struct span_list *p, const uint8_t *from)
{
	uint32_t end = 0;

	for (uint32_t i = 0; i < p->count; i++) {
		const struct span *s = &p->span[i];

		end += s->length;
		copy_direct(s->direct, from, s->length, tail_in(p, end, s->length));
		from += s->length;
	}
}

static inline void place_direct(const struct span_list *p, const uint8_t *from)
{
	queue_release_fence(); /* earlier placements become visible first */
	if (p->count == 1 && p->length == 8)
		copy_direct(p->span[0].direct, from, 8, 8);
	else
		place_spans(p, from);
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
	if (t->is_atomic)
		qp_atomic_done(t->qp->core, t->ticket, t->atomic.original, ok);
	else
		qp_copied(t->qp->core, t->ticket, ok);
	qp_settled(l, t->qp, now);
}

/* Makes the lcore's own copies. Consecutive copies into one program's memory are one call. */
static void batch_flush(struct lcore *l, nanotime now)
{
	struct copy_batch *b = l->copies;
	struct copy_breaks *breaks = &((struct own_batch *)b)->breaks;
	uint32_t tickets = b->tickets;
	enum stage before;

	if (tickets == 0)
		return;
	before = stage_nest(l->stages, STAGE_PLACE);
	b->tickets = 0;
	b->copies = 0;
	breaks->count = 0;
	for (uint32_t i = 0; i < tickets;) {
		struct client *c = b->pending[i].qp->client;
		uint32_t first = i, copies = 0;

		for (; i < tickets && b->pending[i].qp->client == c; i++)
			copies += b->pending[i].count;
		if (copies > 0)
			peer_memory_copy_chained(c->memory, &b->copy[b->pending[first].first],
						 copies, breaks);
		for (; first < i; first++)
			ticket_settle(l, &b->pending[first], b->copy, now);
	}
	stage_switch(l->stages, before);
}

/* The batch for a ticket of this queue pair, with room for that many copies. */
static struct copy_batch *batch_of(struct lcore *l, struct engine_qp *q, uint32_t copies,
				   nanotime now)
{
	struct copy_batch *b = l->copies;

	if (q->mover != NULL) {
		b = moving_opened(l, q->client);
		assert(b != NULL && "packet_fits has opened one, for one packet");
	} else if (b->tickets == LIMIT_BATCH_TICKETS || b->copies + copies > LIMIT_BATCH_COPIES) {
		batch_flush(l, now);
	}
	return b;
}

static struct pending_ticket *ticket_add(struct lcore *l, struct engine_qp *q, struct copy_batch *b,
					 uint64_t ticket)
{
	struct pending_ticket *t = &b->pending[b->tickets++];

	/* An unreliable queue pair drops that message only. */
	if (q->last_ticket == 0 || q->unreliable)
		q->chain = ++l->chains << 4 | l->index;
	q->last_ticket = ticket;
	t->qp = q;
	t->ticket = ticket;
	t->first = b->copies;
	t->count = 0;
	t->mbuf = NULL;
	t->is_atomic = false;
	return t;
}

static struct peer_copy *copy_add(struct lcore *l, struct engine_qp *q, struct copy_batch *b,
				  struct pending_ticket *t, const struct span *s)
{
	struct peer_copy *c = &b->copy[b->copies++];

	static_assert(LIMIT_LCORES <= 16, "numbers of chains");
	*c = (struct peer_copy){ .peer_address = s->peer_address,
				 .length = s->length,
				 .to_peer = true,
				 .direct = s->direct,
				 .chain = q->chain,
				 .owner = s->client };
	if (s->direct == NULL)
		c->memory = span_memory(l, q, s);
	t->count++;
	return c;
}

/* Queues the placement behind those of this queue pair that wait. */
static __attribute__((noinline)) bool batch_add(struct lcore *l, struct engine_qp *q,
						const struct outcome *o, const struct packet *p,
						struct rte_mbuf *m, nanotime now)
{
	bool last = q->raw || opcode_is(p->opcode, OP_LAST);
	struct copy_batch *b = batch_of(l, q, o->place.count, now);
	struct pending_ticket *t = ticket_add(l, q, b, o->ticket);
	const uint8_t *from = o->source;
	uint32_t end = 0;

	if (from == (const uint8_t *)&o->value) {
		t->value = o->value;
		from = (const uint8_t *)&t->value;
	} else {
		from = lent_keep(p, m) + (from - p->payload);
		t->mbuf = m;
	}
	for (uint32_t i = 0; i < o->place.count; i++) {
		const struct span *s = &o->place.span[i];
		struct peer_copy *c;

		end += s->length;
		if (s->direct != NULL || s->client != SPAN_NOBODY) {
			c = copy_add(l, q, b, t, s);
			c->local = (void *)(uintptr_t)from;
			c->tail = (uint8_t)(last ? tail_in(&o->place, end, s->length) : 0);
		}
		from += s->length;
	}
	return t->mbuf != NULL;
}

static void make_atomic(struct peer_atomic *to, const struct atomic_request *a)
{
	*to = (struct peer_atomic){ .compare_swap = a->compare_swap,
				    .compare = a->compare,
				    .value = a->swap_add };
}

/* ... an atomic. */
static void batch_add_atomic(struct lcore *l, struct engine_qp *q, const struct outcome *o,
			     nanotime now)
{
	struct copy_batch *b = batch_of(l, q, 1, now);
	struct pending_ticket *t = ticket_add(l, q, b, o->ticket);

	make_atomic(&t->atomic, &o->atomic);
	t->is_atomic = true;
	copy_add(l, q, b, t, &o->atomic.target)->atomic = &t->atomic;
}

/*
 * The lcore executes it in direct memory, because every queue pair that may name other memory has a
 * mover (movers.c). An address may be a multiple of eight in the region but not in memory, if the
 * region was registered at an odd place. The CPU has no atomic for that.
 */
static void execute_atomic(struct lcore *l, struct engine_qp *q, const struct outcome *o,
			   nanotime now)
{
	const struct span *target = &o->atomic.target;
	const struct peer_memory *m;
	struct peer_atomic a;
	int error;

	make_atomic(&a, &o->atomic);
	if (target->direct != NULL) {
		bool ok = direct_atomic(target->direct, &a);

		qp_atomic_done(q->core, o->ticket, a.original, ok);
		return;
	}
	m = span_memory(l, q, target);
	if (m == NULL)
		m = q->client->memory;
	error = peer_memory_atomic(m, target->peer_address, &a, now);
	if (error == EBUSY)
		moving_try_again(l, q, m, target->peer_address, o->ticket, &a);
	else
		qp_atomic_done(q->core, o->ticket, a.original, error == 0);
}

static __attribute__((noinline)) void take_atomic(struct lcore *l, struct engine_qp *q,
						  const struct outcome *o, nanotime now)
{
	bool by_mover =
		q->mover != NULL && (q->last_ticket != 0 || o->atomic.target.direct == NULL);

	if (by_mover) {
		batch_add_atomic(l, q, o, now);
		return;
	}
	/* Earlier writes of this queue pair are in place before the atomic reads. */
	if (q->last_ticket != 0)
		place_flush(l, now);
	execute_atomic(l, q, o, now);
}

bool place_outcome(struct lcore *l, struct engine_qp *q, const struct outcome *o,
		   const struct packet *p, struct rte_mbuf *m, nanotime now)
{
	if (o->flags & OUTCOME_ATOMIC) {
		stage_switch(l->stages, STAGE_PLACE);
		take_atomic(l, q, o, now);
		stage_switch(l->stages, STAGE_TRANSPORT);
		return false;
	}
	if (!o->place.has_peer && q->last_ticket == 0) {
		stage_switch(l->stages, STAGE_PLACE);
		place_direct(&o->place, o->source);
		stage_switch(l->stages, STAGE_TRANSPORT);
		qp_copied(q->core, o->ticket, true);
		return false;
	}
	return batch_add(l, q, o, p, m, now);
}

void place_nothing(struct lcore *l, struct engine_qp *q, uint64_t ticket, nanotime now)
{
	struct copy_batch *b = NULL;

	if (q->last_ticket != 0)
		b = batch_of(l, q, 0, now);
	if (q->last_ticket == 0) { /* or by now */
		qp_copied(q->core, ticket, true);
		return;
	}
	ticket_add(l, q, b, ticket);
}

void place_flush(struct lcore *l, nanotime now)
{
	batch_flush(l, now);
	if (l->has_jobs)
		moving_flush(l, now);
}

void place_forget(struct lcore *l, struct engine_qp *q)
{
	/* Messages run between bursts, where the batch is empty. */
	q->last_ticket = 0;
	q->atomic_waits = false;
	moving_forget(l, q);
}
