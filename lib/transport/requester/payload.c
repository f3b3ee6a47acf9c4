/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>

#include "base/bits.h"
#include "memory/spans.h"
#include "transport/qp.h"
#include "transport/requester/kind.h"
#include "transport/transport.h"
#include "wire/opcode.h"

/* The request of this packet. False: it is not in flight, or was acknowledged. */
static bool find(const struct requester *r, uint32_t psn, uint32_t *index)
{
	uint32_t from = r->una, to = r->begun;

	if (from == to || !psn_within(psn, r->una_psn, (r->top_psn - r->una_psn) & PSN_MASK))
		return false;
	/* The last request that does not begin behind it. */
	while (to - from > 1) {
		uint32_t middle = from + (to - from) / 2;

		if (psn_after(message_at(r, middle)->first_psn, psn))
			to = middle;
		else
			from = middle;
	}
	*index = from;
	return psn_within(psn, message_at(r, from)->first_psn, message_at(r, from)->packets);
}

enum reason qp_payload_of(const struct qp *qp, const struct packet *p, const struct key_table *keys,
			  struct span_list *gather)
{
	const struct requester *r = &qp->req;
	const struct send_work *w;
	const struct message *m;
	uint32_t index, offset, n;

	/* In SQD what has begun goes on. */
	if (qp->type != QP_TYPE_RC || (qp->state != QP_STATE_RTS && qp->state != QP_STATE_SQD) ||
	    !find(r, p->psn, &index))
		return REASON_DUPLICATE;
	m = message_at(r, index);
	w = request_at(r, index);
	offset = ((p->psn - m->first_psn) & PSN_MASK) << qp->mtu_shift;
	n = MIN_OF(m->length - offset, qp->mtu);
	if ((m->kind != KIND_SEND && m->kind != KIND_WRITE) || (w->flags & WORK_INLINE) ||
	    m->kind != opcode_table[p->opcode].kind || n != p->payload_length)
		return REASON_DUPLICATE; /* of a packet that had this number before */
	if (key_one_span_of_list(keys, send_work_sge(w), w->num_sge, qp->user, 0, offset, n,
				 gather))
		return REASON_NONE;
	return key_spans_of_list(keys, send_work_sge(w), w->num_sge, qp->user, 0, offset, n,
				 gather);
}
