/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_mbuf.h>

#include "lcore/inside.h"
#include "lcore/moving/lent.h"
#include "lcore/tag/tag.h"
#include "wire/opcode.h"

bool lent_is_watched(const struct lcore *l)
{
	return __atomic_load_n(&l->engine->capture, __ATOMIC_ACQUIRE) != NULL;
}

bool lent_may(const struct lcore *l, const struct staged_frame *s)
{
	const struct packet *p = &s->packet;
	uint8_t kind = opcode_table[p->opcode].kind;

	return p->payload_length >= LIMIT_LENT && (kind == KIND_SEND || kind == KIND_WRITE) &&
	       s->qp->type == QP_TYPE_RC && p->payload == NULL && l->gather.count == 1 &&
	       !l->gather.has_peer && (p->dest_qpn & 15) == l->index && !lent_is_watched(l);
}

/* Where the payload belongs in the frame. */
static uint8_t *place_of(const struct packet *p, struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod(m, uint8_t *) + m->data_len - ICRC_LENGTH - p->pad -
	       p->payload_length;
}

/* NULL: the payload is gone, or it is not one piece of memory that the engine maps. */
static const uint8_t *octets_of(struct lcore *l, const struct engine_qp *sender,
				const struct packet *p, enum reason *why)
{
	struct span_list g;

	span_list_clear(&g);
	*why = qp_payload_of(sender->core, p, &l->keys, &g);
	if (*why == REASON_NONE && (g.count != 1 || g.has_peer))
		*why = REASON_MEMORY_FAULT;
	return *why == REASON_NONE ? g.span[0].direct : NULL;
}

bool lent_fill(struct lcore *l, struct staged_frame *s)
{
	enum reason why;
	const uint8_t *octets = octets_of(l, s->qp, &s->packet, &why);

	if (octets == NULL) {
		count_reason(l, why);
		return false;
	}
	memcpy(place_of(&s->packet, s->mbuf), octets, s->packet.payload_length);
	s->lent = false;
	return true;
}

/*
 * Whether q's receive path only copies the payload. Other receivers read the payload, which must
 * not change meanwhile, or keep more than the payload.
 */
static bool takes_octets_only(const struct lcore *l, const struct engine_qp *q)
{
	return q != NULL && !q->raw && q->type == QP_TYPE_RC && qp_lcore(q) == l &&
	       (q->srq == NULL || q->srq->tags == NULL);
}

enum reason lent_open(struct lcore *l, const struct engine_qp *q, struct packet *p,
		      struct rte_mbuf *m)
{
	const struct engine_qp *sender = directory_find(l->engine, p->sender);
	const uint8_t *octets;
	enum reason why;

	if (sender == NULL || qp_lcore(sender) != l || sender->raw)
		return REASON_DUPLICATE;
	octets = octets_of(l, sender, p, &why);
	if (octets == NULL)
		return why;
	if (takes_octets_only(l, q))
		p->payload = octets;
	else
		memcpy(place_of(p, m), octets, p->payload_length);
	return REASON_NONE;
}

const uint8_t *lent_keep(const struct packet *p, struct rte_mbuf *m)
{
	const uint8_t *begin;
	uint8_t *to;

	if (p->payload_length == 0)
		return p->payload;
	begin = rte_pktmbuf_mtod(m, const uint8_t *);
	if (p->payload >= begin && p->payload < begin + m->data_len)
		return p->payload;
	to = place_of(p, m);
	memcpy(to, p->payload, p->payload_length);
	return to;
}
