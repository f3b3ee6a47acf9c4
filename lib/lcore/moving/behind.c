/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An lcore keeps LIMIT_BEHIND packets behind gaps, shared between users (slots.h). A queue pair has
 * at most LIMIT_WINDOW_MOST of them in each direction: the core asks for no more. A queue pair
 * whose requests reach further than LIMIT_WINDOW needs extra bits for them. The lcore has
 * LIMIT_BEHIND_FAR sets of such bits; a set comes back when the last kept request has gone on. A
 * packet without room is dropped and counted, and its sender sends it again.
 *
 * A kept packet is passed to the core once more when nothing before it is missing. Only then is it
 * checked, as if it had just arrived. If its queue pair or mover cannot take it, it stays first.
 */
#include <stdlib.h>

#include <rte_mbuf.h>

#include "lcore/moving/behind.h"
#include "lcore/inside.h"
#include "lcore/moving/hold.h"
#include "lcore/moving/slots.h"
#include "transport/psn.h"
#include "wire/opcode.h"

struct behind_far {
	void *unused[LIMIT_BEHIND_FAR];
	uint32_t count; /* of them */
	uint64_t word[];
};

struct behind_far *behind_far_create(void)
{
	struct behind_far *far = calloc(1, sizeof(*far) + LIMIT_BEHIND_FAR * qp_far_size());

	for (; far != NULL && far->count < LIMIT_BEHIND_FAR; far->count++)
		far->unused[far->count] = (uint8_t *)far->word + far->count * qp_far_size();
	return far;
}

/* False: the packet needs extra bits, and none are left. */
static bool has_bits(struct lcore *l, struct engine_qp *q, const struct packet *p)
{
	if (!qp_is_far(q->core, p))
		return true;
	if (l->far->count == 0)
		return false;
	qp_give_far(q->core, l->far->unused[--l->far->count]);
	return true;
}

static void bits_back(struct lcore *l, struct engine_qp *q)
{
	void *bits = TAILQ_EMPTY(&q->behind[0]) ? qp_take_far(q->core) : NULL;

	if (bits != NULL)
		l->far->unused[l->far->count++] = bits;
}

static struct held_queue *queue_of(struct engine_qp *q, const struct packet *p)
{
	return &q->behind[opcode_is(p->opcode, OP_RESPONSE)];
}

/*
 * Inserts the packet behind those with smaller PSNs. The search starts at the end, because most
 * packets come in order.
 */
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

/* The caller owns the packet until slot_free(). */
static void take_out(struct engine_qp *q, struct held_packet *e)
{
	TAILQ_REMOVE(queue_of(q, &e->packet), e, place);
	q->behind_count--;
}

bool behind_keep(struct lcore *l, struct engine_qp *q, const struct packet *p, struct rte_mbuf *m,
		 nanotime now)
{
	struct held_packet *e = slot_take(l->behind, q->client, p, m);

	if (e != NULL && !has_bits(l, q, p)) {
		slot_free(l->behind, e);
		e = NULL;
	}
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

	if (e == NULL || qp_waits(q->core, &e->packet) || !STAILQ_EMPTY(&q->held) ||
	    !packet_fits(l, q, &e->packet, now))
		return false;
	take_out(q, e);
	if (!packet_take(l, q, &e->packet, e->mbuf, now))
		frame_spent(l, e->mbuf);
	slot_free(l->behind, e);
	return true;
}

void behind_release(struct lcore *l, struct engine_qp *q, nanotime now)
{
	/* There are at most as many rounds as packets: each takes one out, and none is put back. */
	while (release_first(l, q, &q->behind[0], now) || release_first(l, q, &q->behind[1], now))
		continue;
	bits_back(l, q);
}

void behind_forget(struct lcore *l, struct engine_qp *q)
{
	struct held_packet *e;

	for (uint32_t i = 0; i < 2; i++) {
		while ((e = TAILQ_FIRST(&q->behind[i])) != NULL) {
			rte_pktmbuf_free(e->mbuf);
			take_out(q, e);
			slot_free(l->behind, e);
		}
	}
	bits_back(l, q);
}
