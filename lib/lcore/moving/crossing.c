/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <rte_mbuf.h>

#include "lcore/elsewhere.h"
#include "lcore/moving/crossing.h"
#include "queue/fence.h"
#include "queue/pointers.h"
#include "wire/peek.h"

#define STUCK (LIMIT_STUCK_MS * TIME_MS)

struct crossing *crossing_create(void)
{
	return calloc(1, sizeof(struct crossing));
}

void crossing_destroy(struct crossing *c)
{
	for (; c != NULL && c->tail != c->head; c->tail++)
		rte_pktmbuf_free(c->frame[c->tail % LIMIT_CROSSING].mbuf);
	free(c);
}

static void drop(struct lcore *l, struct rte_mbuf *m)
{
	count_reason(l, REASON_HAND_OVER_FULL);
	rte_pktmbuf_free(m);
}

static bool put(struct lcore *to, struct rte_mbuf *m)
{
	if (!pointer_put(to->inbox, m))
		return false;
	/* The fence puts the frame into the ring before the flag is read. It pairs with idle.c. */
	queue_fence();
	if (__atomic_load_n(&to->sleeping, __ATOMIC_SEQ_CST))
		lcore_wake(to);
	return true;
}

void hand_over(struct lcore *l, struct lcore *to, struct rte_mbuf *m, uint32_t mark)
{
	struct crossing *c = l->crossing;
	uint32_t bit = 1u << to->index;

	m->hash.usr = mark;
	/*
	 * While frames wait, one of them may be for the same lcore. New frames wait behind them, to
	 * stay in order.
	 */
	if (!crossing_waits(l) && put(to, m)) {
		c->stuck &= ~bit;
		return;
	}
	if ((c->stuck & bit) != 0 || c->head - c->tail == LIMIT_CROSSING) {
		drop(l, m);
		return;
	}
	c->frame[c->head % LIMIT_CROSSING].mbuf = m;
	c->frame[c->head++ % LIMIT_CROSSING].to = to;
}

bool crossing_takes(struct lcore *l, struct rte_mbuf *m)
{
	const struct engine_qp *q;
	struct lcore *to;
	uint32_t qpn;

	if (frame_is_watched(l->engine)) /* a capture sees frames on the lcore where they arrived */
		return false;
	qpn = packet_peek(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);
	q = qpn != 0 ? directory_find(l->engine, qpn) : NULL;
	if (q == NULL || q->raw)
		return false;
	to = qp_lcore(q);
	if (to == l)
		return false;
	l->stats.crossed++;
	hand_over(l, to, m, frame_mark(FRAME_RECEIVED, 0));
	return true;
}

/* Nothing crossed for too long, so all lcores for which frames wait are stuck. */
static void get_stuck(struct lcore *l)
{
	struct crossing *c = l->crossing;

	for (; c->tail != c->head; c->tail++) {
		c->stuck |= 1u << c->frame[c->tail % LIMIT_CROSSING].to->index;
		drop(l, c->frame[c->tail % LIMIT_CROSSING].mbuf);
	}
	c->since = 0;
}

uint32_t crossing_flush(struct lcore *l, nanotime now)
{
	struct crossing *c = l->crossing;
	uint32_t full = 0, kept = c->tail, n;

	/* Frames for one lcore stay in order, and do not wait for frames for another one. */
	for (uint32_t i = c->tail; i != c->head; i++) {
		struct lcore *to = c->frame[i % LIMIT_CROSSING].to;

		if ((full >> to->index & 1) == 0 && put(to, c->frame[i % LIMIT_CROSSING].mbuf))
			continue;
		full |= 1u << to->index;
		c->frame[kept++ % LIMIT_CROSSING] = c->frame[i % LIMIT_CROSSING];
	}
	n = c->head - kept;
	c->head = kept;
	if (n > 0 || c->since == 0)
		c->since = now;
	if (!crossing_waits(l))
		c->since = 0;
	else if (now - c->since >= STUCK)
		get_stuck(l);
	return n;
}
