/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Holds packets of queue pairs whose copies a mover makes, while that mover has all the jobs it may
 * have. Packets wait in order, one list for each queue pair, until jobs are back. A drop would cost
 * more: a reliable peer would send again all that it sent behind the packet, and a datagram would
 * be lost for good.
 *
 *	rx -- fits --> the core            jobs come back (place_poll)
 *	   \- not ---> held by its queue pair ---- fits --> the core
 *
 * An lcore holds a fixed number of packets, shared as jobs are (moving.c, slots.h): a user whose
 * copies are stuck takes nothing from other users. A packet beyond the share is dropped. How long a
 * packet waits does not matter, because its queue pair cannot go on without it.
 */
#include <stdlib.h>

#include <rte_mbuf.h>

#include "base/bits.h"
#include "lcore/moving/behind.h"
#include "lcore/moving/hold.h"
#include "lcore/inside.h"
#include "lcore/moving/moving.h"
#include "lcore/moving/slots.h"

struct holding {
	struct slots *slots;
	struct waiting_list waiting; /* queue pairs that hold packets, */
	uint32_t queues; /* ... and how many they are */
};

struct holding *holding_create(uint32_t packets)
{
	struct holding *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	TAILQ_INIT(&h->waiting);
	h->slots = slots_create(packets, LIMIT_HELD_KEPT, LIMIT_HELD_FEW, 1);
	if (h->slots == NULL) {
		free(h);
		return NULL;
	}
	return h;
}

void holding_destroy(struct holding *h)
{
	if (h == NULL)
		return;
	slots_destroy(h->slots);
	free(h);
}

bool hold_packet(struct lcore *l, struct engine_qp *q, const struct packet *p, struct rte_mbuf *m)
{
	struct holding *h = l->holding;
	struct held_packet *e;

	if (!moving_under_way(l))
		return false;
	e = slot_take(h->slots, q->client, p, m);
	if (e == NULL)
		return false;
	if (STAILQ_EMPTY(&q->held)) {
		TAILQ_INSERT_TAIL(&h->waiting, q, held_link);
		h->queues++;
	}
	STAILQ_INSERT_TAIL(&q->held, e, link);
	return true;
}

/* Takes the oldest packet. The caller owns it until slot_free(). */
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

static bool release_one(struct lcore *l, struct engine_qp *q, nanotime now)
{
	struct held_packet *e = STAILQ_FIRST(&q->held);

	if (!packet_fits(l, q, &e->packet, now))
		return false;
	take(l->holding, q);
	if (!packet_take(l, q, &e->packet, e->mbuf, now))
		rte_pktmbuf_free(e->mbuf);
	slot_free(l->holding->slots, e);
	if (behind_any(q))
		behind_release(l, q, now);
	return true;
}

bool hold_release_of(struct lcore *l, struct engine_qp *q, nanotime now)
{
	while (!STAILQ_EMPTY(&q->held))
		if (!release_one(l, q, now))
			return false;
	return true;
}

/*
 * One round over all queue pairs. Each goes to the end of the list, served or not, so all get a
 * turn.
 */
bool hold_release(struct lcore *l, uint32_t *work, nanotime now)
{
	struct holding *h = l->holding;
	uint32_t queues = h->queues, left = LIMIT_HELD_AT_ONCE;

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
	*work += LIMIT_HELD_AT_ONCE - left;
	return left < LIMIT_HELD_AT_ONCE && h->queues > 0;
}

void hold_forget(struct lcore *l, struct engine_qp *q)
{
	while (!STAILQ_EMPTY(&q->held)) {
		struct held_packet *e = take(l->holding, q);

		rte_pktmbuf_free(e->mbuf);
		slot_free(l->holding->slots, e);
	}
}
