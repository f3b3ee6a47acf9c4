/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An lcore keeps LIMIT_BEHIND packets behind gaps, shared between users as those that wait for movers
 * are (slots.h); a queue pair has LIMIT_WINDOW of them in each direction at most, as the core asks for no
 * more. A packet that finds no room is dropped and counted, and its sender sends it again.
 *
 * A kept packet is passed to the core once more when nothing before it is missing: only then is it
 * checked, as if it had come then. If its queue pair or mover cannot take it, it stays first.
 */
#include "lcore/moving/behind.h"
#include "lcore/inside.h"
#include "lcore/moving/hold.h"
#include "lcore/moving/slots.h"
#include "transport/psn.h"
#include "wire/opcode.h"

static struct held_queue *queue_of(struct engine_qp *q, const struct packet *p)
{
	return &q->behind[opcode_is(p->opcode, OP_RESPONSE)];
}

/* Behind those with smaller PSNs: most come in their order. */
static void insert(struct engine_qp *q, struct held_packet *e)
{
	struct held_queue *list = queue_of(q, &e->packet);
	struct held_packet *before = TAILQ_LAST(list, held_queue);

	while (before != NULL && psn_after(before->packet.psn, e->packet.psn))
		before = TAILQ_PREV(before, held_queue, place);
	if (before != NULL)
		TAILQ_INSERT_AFTER(list, before, e, place);
	else
		TAILQ_INSERT_HEAD(list, e, place);
	q->behind_count++;
}

static void take_out(struct lcore *l, struct engine_qp *q, struct held_packet *e)
{
	TAILQ_REMOVE(queue_of(q, &e->packet), e, place);
	q->behind_count--;
	slot_free(l->behind, e);
}

bool behind_keep(struct lcore *l, struct engine_qp *q, const struct packet *p, struct rte_mbuf *m,
		 nanotime now)
{
	struct held_packet *e = slot_take(l->behind, q->client, p, m);

	if (e == NULL) {
		count_reason(l, REASON_BEHIND_FULL);
		return false;
	}
	insert(q, e);
	qp_held(q->core, p, now);
	return true;
}

static bool release_first(struct lcore *l, struct engine_qp *q, struct held_queue *list,
			  nanotime now)
{
	struct held_packet *e = TAILQ_FIRST(list);
	struct packet p;
	struct rte_mbuf *m;

	if (e == NULL || qp_waits(q->core, &e->packet) || !STAILQ_EMPTY(&q->held) ||
	    !packet_fits(l, q, &e->packet, now))
		return false;
	p = e->packet;
	m = e->mbuf;
	take_out(l, q, e);
	if (!packet_take(l, q, &p, m, now))
		rte_pktmbuf_free(m);
	return true;
}

void behind_release(struct lcore *l, struct engine_qp *q, nanotime now)
{
	/* As many turns as there are packets: each takes one out, and none is put back. */
	while (release_first(l, q, &q->behind[0], now) || release_first(l, q, &q->behind[1], now))
		continue;
}

void behind_forget(struct lcore *l, struct engine_qp *q)
{
	struct held_packet *e;

	for (uint32_t i = 0; i < 2; i++) {
		while ((e = TAILQ_FIRST(&q->behind[i])) != NULL) {
			rte_pktmbuf_free(e->mbuf);
			take_out(l, q, e);
		}
	}
}
