/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run of received frames in the middle of a message: each is like the one before, and carries what comes behind it. The
 * core takes a run in one step. So what is asked about a packet, and noted of it, is asked and noted once a run; each frame
 * keeps its own ICRC and its own copy, in the frames' order.
 */
#include <string.h>

#include <rte_mbuf.h>

#include "lcore/inside.h"
#include "lcore/moving/behind.h"
#include "lcore/moving/moving.h"
#include "lcore/srq.h"
#include "queue/fence.h"
#include "wire/alike.h"

/* The octets of the packet were placed at once, and those of later ones may be, too. */
static bool is_direct(const struct lcore *l, const struct engine_qp *q)
{
	return l->outcome.reason == REASON_NONE && l->outcome.flags == OUTCOME_PLACE &&
	       q->mover == NULL && client_mover(q->client) == NULL && q->last_ticket == 0 &&
	       !q->atomic_waits && STAILQ_EMPTY(&q->held) && !behind_any(q);
}

/* Tag matching looks at each packet of an SRQ. */
static bool matches_tags(const struct engine_qp *q)
{
	return q->srq != NULL && q->srq->tags != NULL;
}

bool run_may_follow(const struct lcore *l, const struct engine_qp *q, const struct rte_mbuf *m)
{
	return m->nb_segs == 1 && is_direct(l, q) && !matches_tags(q) &&
	       alike_is(&l->alike, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);
}

static uint32_t frames_ahead(const struct alike *a, uint32_t psn, struct rte_mbuf **m, uint32_t n)
{
	uint32_t ahead = 0;

	while (ahead < n && m[ahead]->nb_segs == 1 &&
	       alike_is_next(a, rte_pktmbuf_mtod(m[ahead], const uint8_t *), m[ahead]->data_len,
			     psn + ahead))
		ahead++;
	return ahead;
}

uint32_t run_rx(struct lcore *l, struct engine_qp *q, const struct packet *p, struct rte_mbuf **m,
		uint32_t n, nanotime now)
{
	struct span_list *place = &l->outcome.place;
	uint32_t most = frames_ahead(&l->alike, p->psn, m, n), taken = 0, asked = 0;
	struct packet next;
	uint8_t *to;

	if (most > 0)
		most = qp_expects_alike(q->core, p, &l->keys, most, place);
	if (most == 0)
		return 0;
	to = place->span[0].direct;
	/* A damaged frame ends the run, and goes the ordinary way. */
	while (taken < most &&
	       alike_decode(&l->alike, &next, rte_pktmbuf_mtod(m[taken], const uint8_t *),
			    l->stages) == REASON_NONE) {
		queue_release_fence(); /* earlier placements become visible first */
		memcpy(to, next.payload, next.payload_length);
		to += next.payload_length;
		frame_spent(l, m[taken++]);
		if (next.ack_req)
			asked = taken;
	}
	if (taken > 0)
		qp_received_alike(q->core, p, taken, asked, now);
	q->received += taken;
	return taken;
}
