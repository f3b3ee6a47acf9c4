/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TSO. A request of UD is as many messages as it has segments: packets with PSNs of their own, of
 * which the last completes it. A request of RAW_PACKET is one frame, which lib/engine cuts.
 */
#include <assert.h>

#include "base/bits.h"
#include "memory/spans.h"
#include "transport/qp.h"
#include "transport/requester/segment.h"
#include "wire/opcode.h"

bool segment_malformed(const struct qp *qp, const struct send_work *w, uint32_t least)
{
	uint32_t room = qp->req.stride - (uint32_t)sizeof(*w);

	assert(w->opcode == WORK_TSO && qp->req.stride >= sizeof(*w));
	return (w->flags & WORK_INLINE) || w->mss == 0 || w->tso_header < least ||
	       w->tso_header > LIMIT_TSO_HEADER ||
	       w->num_sge * sizeof(struct work_sge) + w->tso_header > room;
}

uint32_t segments_of(const struct qp *qp, const struct send_work *w, const struct message *m)
{
	if (qp->type != QP_TYPE_UD || w->opcode != WORK_TSO || m->length == 0)
		return 1;
	assert(w->mss > 0 && "segment_malformed");
	return (m->length + w->mss - 1) / w->mss;
}

/* The header of TSO lies in the window, as inline octets do. */
void segment_header(const struct send_work *w, struct span_list *gather)
{
	assert(gather->count == 0 && "it stands in front");
	gather->span[gather->count++] =
		(struct span){ .direct = (uint8_t *)(send_work_sge(w) + w->num_sge),
			       .length = w->tso_header };
	gather->length += w->tso_header;
}

enum reason segment_packet(const struct qp *qp, const struct send_work *w, const struct message *m,
			   uint32_t done, const struct key_table *keys, struct packet *p,
			   struct span_list *gather)
{
	uint32_t offset = done * w->mss, n = MIN_OF(m->length - offset, w->mss);

	assert(done < m->packets && offset <= m->length);
	p->opcode = OPCODE(SERVICE_UD, OPB_SEND_ONLY);
	p->payload_length = w->tso_header + n;
	p->pad = (uint8_t)(-p->payload_length & 3);
	p->mss = w->mss;
	p->tso_header = w->tso_header;
	p->tso_segment = (uint16_t)done;
	p->tso_last = done + 1 == m->packets;
	/* Like TCP's PSH: the reader gets all of it. */
	p->solicited = p->tso_last && (w->flags & WORK_SOLICITED);
	segment_header(w, gather);
	return key_spans_of_list(keys, send_work_sge(w), w->num_sge, qp->user, 0, offset, n,
				 gather);
}
