/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Holds packets of queue pairs whose copies a mover makes, while that mover has all the jobs it may
 * have. They wait in order, one list for each queue pair, until jobs are back. Dropping them instead would
 * cost a reliable peer all that it sent behind them, and would lose a datagram for good.
 *
 *	rx -- fits --> the core            jobs come back (place_poll)
 *	   \- not ---> held by its queue pair ---- fits --> the core
 *
 * An lcore holds a fixed number of packets, shared as jobs are (moving.c): a user whose copies are stuck
 * takes nothing from other users. A packet beyond the share is dropped. How long a packet waits does
 * not matter, as its queue pair cannot go on without it.
 */
#include <stdlib.h>

#include "base/bits.h"
#include "lcore/moving/hold.h"
#include "lcore/inside.h"
#include "lcore/moving/moving.h"

#define AT_ONCE 128u

struct held_packet {
	STAILQ_ENTRY(held_packet) link;
	struct rte_mbuf *mbuf;
	uint16_t client; /* the program that it counts against; the queue pair's may change */
	uint16_t user;
	struct packet packet; /* its payload is in the mbuf */
};

struct holding {
	struct held_list free;
	uint32_t free_count;
	struct waiting_list waiting; /* queue pairs that hold packets, */
	uint32_t queues; /* so many */
	uint16_t of_client[LIMIT_CLIENTS];
	uint16_t of_user[LIMIT_CLIENTS];
	struct held_packet slot[LIMIT_HELD];
};

struct holding *holding_create(void)
{
	struct holding *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	STAILQ_INIT(&h->free);
	TAILQ_INIT(&h->waiting);
	for (uint32_t i = 0; i < LIMIT_HELD; i++)
		STAILQ_INSERT_TAIL(&h->free, &h->slot[i], link);
	h->free_count = LIMIT_HELD;
	return h;
}

void holding_destroy(struct holding *h)
{
	free(h);
}

static bool may_take(const struct holding *h, const struct client *c)
{
	uint32_t of_user = h->of_user[c->user];

	if (of_user < LIMIT_HELD_FEW)
		return h->free_count > 0;
	return h->free_count > LIMIT_HELD_KEPT + of_user &&
	       h->of_client[c->number] < h->free_count - LIMIT_HELD_KEPT - of_user;
}

bool hold_packet(struct lcore *l, struct engine_qp *q, const struct packet *p, struct rte_mbuf *m)
{
	struct holding *h = l->holding;
	struct held_packet *e = STAILQ_FIRST(&h->free);

	if (!may_take(h, q->client) || !moving_under_way(l))
		return false;
	STAILQ_REMOVE_HEAD(&h->free, link);
	h->free_count--;
	h->of_client[q->client->number]++;
	h->of_user[q->client->user]++;
	e->mbuf = m;
	e->client = (uint16_t)q->client->number;
	e->user = (uint16_t)q->client->user;
	e->packet = *p;
	if (STAILQ_EMPTY(&q->held)) {
		TAILQ_INSERT_TAIL(&h->waiting, q, held_link);
		h->queues++;
	}
	STAILQ_INSERT_TAIL(&q->held, e, link);
	return true;
}

/* The oldest. The caller has it until slot_free. */
static struct held_packet *take(struct holding *h, struct engine_qp *q)
{
	struct held_packet *e = STAILQ_FIRST(&q->held);

	STAILQ_REMOVE_HEAD(&q->held, link);
	if (STAILQ_EMPTY(&q->held)) {
		TAILQ_REMOVE(&h->waiting, q, held_link);
		h->queues--;
	}
	return e;
}

static void slot_free(struct holding *h, struct held_packet *e)
{
	h->of_client[e->client]--;
	h->of_user[e->user]--;
	h->free_count++;
	STAILQ_INSERT_HEAD(&h->free, e, link);
}

static bool release_one(struct lcore *l, struct engine_qp *q, nanotime now)
{
	struct held_packet *e = STAILQ_FIRST(&q->held);

	if (!packet_fits(l, q, &e->packet, now))
		return false;
	take(l->holding, q);
	if (!packet_take(l, q, &e->packet, e->mbuf, now))
		rte_pktmbuf_free(e->mbuf);
	slot_free(l->holding, e);
	return true;
}

bool hold_release_of(struct lcore *l, struct engine_qp *q, nanotime now)
{
	while (!STAILQ_EMPTY(&q->held))
		if (!release_one(l, q, now))
			return false;
	return true;
}

/* One round over all; a queue pair that was served goes behind those that were not. */
bool hold_release(struct lcore *l, uint32_t *work, nanotime now)
{
	struct holding *h = l->holding;
	uint32_t queues = h->queues, left = AT_ONCE;

	for (; queues > 0 && left > 0; queues--) {
		struct engine_qp *q = TAILQ_FIRST(&h->waiting);
		uint32_t n = MIN_OF(left, LIMIT_BURST);

		TAILQ_REMOVE(&h->waiting, q, held_link);
		TAILQ_INSERT_TAIL(&h->waiting, q, held_link);
		while (n > 0 && !STAILQ_EMPTY(&q->held) && release_one(l, q, now)) {
			n--;
			left--;
		}
	}
	*work += AT_ONCE - left;
	return left < AT_ONCE && h->queues > 0;
}

void hold_forget(struct lcore *l, struct engine_qp *q)
{
	while (!STAILQ_EMPTY(&q->held)) {
		struct held_packet *e = take(l->holding, q);

		rte_pktmbuf_free(e->mbuf);
		slot_free(l->holding, e);
	}
}
