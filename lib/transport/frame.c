/* SPDX-License-Identifier: BSD-3-Clause */
/* RAW_PACKET: messages are whole Ethernet frames. */
#include <assert.h>

#include "memory/spans.h"
#include "transport/events.h"
#include "transport/frame.h"
#include "transport/qp.h"
#include "transport/requester/segment.h"
#include "transport/single.h"

enum reason frame_packet(const struct qp *qp, const struct send_work *w, const struct message *m,
			 const struct key_table *keys, struct packet *p, struct span_list *gather)
{
	bool tso = w->opcode == WORK_TSO;

	assert(qp->type == QP_TYPE_RAW_PACKET && m->packets == 1 && "a message is a frame");
	p->opcode = 0; /* not a RoCE frame */
	p->payload_length = m->length + (tso ? w->tso_header : 0);
	p->mss = tso ? w->mss : 0;
	p->tso_header = tso ? w->tso_header : 0;
	p->checksum = w->flags & WORK_IP_CSUM;
	if (w->flags & WORK_INLINE) {
		p->payload = send_work_inline(w);
		return REASON_NONE;
	}
	if (tso)
		segment_header(w, gather);
	return key_spans_of_list(keys, send_work_sge(w), w->num_sge, qp->user, 0, 0, m->length,
				 gather);
}

enum reason frame_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			   const struct key_table *keys, struct outcome *out)
{
	if (qp->state != QP_STATE_RTR && qp->state != QP_STATE_RTS && qp->state != QP_STATE_SQD &&
	    qp->state != QP_STATE_SQE)
		return REASON_QP_STATE;
	if (!qp_can_receive(qp))
		return REASON_BUSY;
	return single_received(qp, p, p->payload, p->payload_length, offer, keys, out);
}
