/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lcores' part of queue pair 1. Datagrams that cannot be messages are dropped here. The others
 * wait in a ring for the control thread. A flood fills the ring and does no other harm.
 */
#include <rte_mbuf.h>

#include "cm/mad.h"
#include "lcore/inside.h"
#include "queue/pointers.h"
#include "wire/opcode.h"

static enum reason verdict(const struct packet *p)
{
	if (p->opcode != (SERVICE_UD << 5 | OPB_SEND_ONLY) || p->multicast)
		return REASON_SERVICE_MISMATCH;
	if ((p->pkey & 0x7fff) != 0x7fff)
		return REASON_PKEY;
	if (p->qkey != GSI_QKEY)
		return REASON_QKEY;
	return p->payload_length == MAD_OCTETS ? REASON_NONE : REASON_LENGTH_PAYLOAD;
}

void cm_rx(struct lcore *l, const struct packet *p, struct rte_mbuf *m)
{
	enum reason why = verdict(p);

	/* NULL: an engine without a control path. */
	if (why == REASON_NONE && (l->engine->mads == NULL || !pointer_put(l->engine->mads, m)))
		why = REASON_BUSY;
	if (why == REASON_NONE) {
		control_tell(l->engine, l->engine->mads);
		return;
	}
	count_reason(l, why);
	rte_pktmbuf_free(m);
}

void cm_rx_established(struct engine *e, const struct engine_qp *q)
{
	/* If the ring is full, the peer's RTU will say it again. */
	if (e->established != NULL && pointer_put(e->established, (void *)(uintptr_t)q->qpn))
		control_tell(e, e->established);
}
