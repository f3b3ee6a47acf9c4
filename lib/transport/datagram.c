/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UD: an address handle routes a datagram, a Q_Key authorises it (IBTA 9.8.3). The receiver finds a
 * GRH in front of each datagram.
 */
#include <assert.h>

#include "transport/datagram.h"
#include "transport/psn.h"
#include "transport/qp.h"
#include "transport/single.h"
#include "wire/decode.h"

#define QKEY_OWN UINT32_C(0x80000000) /* in a request: means the queue pair's own */

void datagram_address(const struct qp *qp, const struct send_work *w, struct packet *p)
{
	assert(qp->type == QP_TYPE_UD);
	p->ah = w->ah;
	p->dest_qpn = w->remote_qpn & PSN_MASK;
	p->qkey = w->remote_qkey & QKEY_OWN ? qp->attr.qkey : w->remote_qkey;
	p->src_qpn = qp->qpn;
	p->checksum = w->flags & WORK_IP_CSUM;
}

static enum reason check_datagram(const struct qp *qp, const struct packet *p)
{
	if (p->qkey != qp->attr.qkey)
		return REASON_QKEY;
	return p->pad == (-p->payload_length & 3) ? REASON_NONE : REASON_LENGTH_PAYLOAD;
}

enum reason datagram_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			      const struct key_table *keys, struct outcome *out)
{
	enum reason why = check_datagram(qp, p);

	if (why != REASON_NONE)
		return why;
	return single_received(qp, p, p->payload - GRH_LENGTH, p->payload_length + GRH_LENGTH,
			       offer, keys, out);
}
