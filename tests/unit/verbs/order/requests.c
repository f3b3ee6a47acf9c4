/* SPDX-License-Identifier: BSD-3-Clause */
/* What a request is made of: mostly what succeeds, and now and then anything. */
#include "model.h"

bool rarely(void)
{
	return draw(1000) == 0;
}

bool works(const struct model_qp *q)
{
	return q->qp != NULL && q->state == IBV_QPS_RTS && !q->broken;
}

struct model_qp *some_sender(void)
{
	struct model_qp *q = ANY(w.qp);

	for (uint32_t i = 0; i < 16 && draw(64) != 0; i++) {
		if (works(q) && q->type != IBV_QPT_XRC_RECV)
			break;
		q = ANY(w.qp);
	}
	return q;
}

struct model_qp *some_receiver(void)
{
	struct model_qp *q = ANY(w.qp);

	for (uint32_t i = 0; i < 16 && draw(64) != 0; i++) {
		if (works(q) && q->recv_cq != NULL && q->srq == NULL)
			break;
		q = ANY(w.qp);
	}
	return q;
}

struct ibv_sge part(const struct model_pd *pd, uint32_t length)
{
	const struct model_mr *m = rarely() ? ANY(w.mr) : mr_of(pd);
	struct ibv_sge s = { .length = length };

	if (m == NULL || m->mr == NULL)
		return s;
	if (s.length > m->mr->length && !rarely())
		s.length = (uint32_t)m->mr->length;
	s.addr = (uintptr_t)m->mr->addr;
	if (s.length < m->mr->length)
		s.addr += draw((uint32_t)m->mr->length - s.length);
	s.lkey = m->mr->lkey + rarely();
	return s;
}

uint32_t parts(const struct model_pd *pd, struct ibv_sge sge[3], uint32_t count)
{
	uint32_t octets = 0;

	for (uint32_t i = 0; i < count; i++) {
		sge[i] = part(pd, draw(8) == 0 ? draw(LONGEST) : draw(64));
		octets += sge[i].length;
	}
	return octets;
}

/* XRC: each request names an SRQ of the peer's domain. NULL: there is none, or it is no XRC request. */
static const struct model_srq *srq_at(const struct model_qp *peer)
{
	for (uint32_t i = 0; peer != NULL && i < SRQS; i++) {
		const struct model_srq *s = &w.srq[(w.last_id + i) % SRQS];

		if (s->srq != NULL && s->xrcd != NULL && s->xrcd == peer->xrcd)
			return s;
	}
	return NULL;
}

/* Through a window. A long request ends outside of it. */
static bool window_of(const struct model_pd *pd, struct ibv_sge *s)
{
	const struct model_mw *m = ANY(w.mw);

	if (m->mw == NULL || m->pd != pd || m->info.length == 0)
		return false;
	*s = (struct ibv_sge){ .addr = m->info.addr, .lkey = m->mw->rkey };
	return true;
}

/* An XRC target checks keys in the protection domain of the SRQ. */
struct ibv_sge target(const struct model_qp *q, uint32_t length)
{
	const struct model_srq *srq = srq_at(q->peer);
	const struct model_pd *pd = ANY(w.pd);
	struct ibv_sge s;

	if (srq != NULL)
		pd = srq->pd;
	else if (q->peer != NULL && q->peer->pd != NULL)
		pd = q->peer->pd;
	if (draw(8) == 0 && window_of(pd, &s))
		return s;
	s = part(pd, length);
	s.length = 0; /* lkey and rkey are one number */
	return s;
}

enum ibv_wr_opcode some_opcode(const struct model_qp *q)
{
	/* those of UD, of UC, of RC and XRC, and all */
	static const enum ibv_wr_opcode all[] = {
		IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_LOCAL_INV,
		IBV_WR_SEND_WITH_INV,
	};

	return all[draw(rarely() ? 9 : q->type == IBV_QPT_UD ? 2 : q->type == IBV_QPT_UC ? 4 : 7)];
}

unsigned some_flags(void)
{
	return (draw(2) ? IBV_SEND_SIGNALED : 0) | (draw(4) == 0 ? IBV_SEND_SOLICITED : 0) |
	       (draw(16) == 0 ? IBV_SEND_FENCE : 0);
}

bool has_srq(const struct model_qp *q, uint32_t *number)
{
	const struct model_srq *s = srq_at(q->peer);

	if (s == NULL && draw(16) == 0)
		s = ANY(w.srq);
	*number = s != NULL ? s->number : 0;
	return s != NULL;
}

struct ibv_ah *some_address(uint32_t *qpn)
{
	const struct model_qp *to = ANY(w.qp);

	for (uint32_t i = 0; i < 16 && to->type != IBV_QPT_UD; i++)
		to = ANY(w.qp);
	*qpn = to->qp != NULL ? to->qp->qp_num : 77;
	return ANY(w.ah)->ah;
}
