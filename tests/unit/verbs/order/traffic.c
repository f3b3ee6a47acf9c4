/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and their completions: each that was taken completes once, in the order of its queue. */
#include "model.h"

#include <errno.h>
#include <string.h>

#define LIST 8u /* requests posted at once, at most */

static bool rarely(void)
{
	return draw(200) == 0;
}

/* ---- requests ---- */

/* A part of a region, mostly of the right PD and with the right key. */
static struct ibv_sge part(const struct model_pd *pd, uint32_t length)
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

static void aim_at_memory(struct ibv_send_wr *wr, const struct model_mr *m)
{
	uint64_t at = 0;
	uint32_t rkey = 0;

	if (m != NULL && m->mr != NULL) {
		at = (uintptr_t)m->mr->addr + draw((uint32_t)m->mr->length / 2);
		rkey = m->mr->rkey;
	}
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = rarely() ? at : (at + 7) & ~UINT64_C(7);
		wr->wr.atomic.rkey = rkey;
		return;
	}
	wr->wr.rdma.remote_addr = at;
	wr->wr.rdma.rkey = rkey;
}

static enum ibv_wr_opcode some_opcode(const struct model_qp *q)
{
	/* those of UD, of UC and of RC, and all */
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

/* False: it cannot be posted at all, because a library may look into a missing address handle. */
static bool fill(struct ibv_send_wr *wr, const struct model_qp *q, struct ibv_sge *sge)
{
	wr->wr_id = ++w.last_id;
	wr->sg_list = sge;
	wr->num_sge = (int)draw(4);
	wr->opcode = some_opcode(q);
	wr->send_flags = (draw(2) ? IBV_SEND_SIGNALED : 0) |
			 (draw(4) == 0 ? IBV_SEND_SOLICITED : 0) |
			 (draw(16) == 0 ? IBV_SEND_FENCE : 0);
	if (draw(4) == 0 && wr->num_sge == 1 && sge->length <= 32 && sge->addr != 0 &&
	    wr->opcode != IBV_WR_RDMA_READ)
		wr->send_flags |= IBV_SEND_INLINE;
	if (q->type == IBV_QPT_UD) {
		const struct model_qp *to = ANY(w.qp);

		wr->wr.ud.ah = ANY(w.ah)->ah;
		wr->wr.ud.remote_qpn = to->qp != NULL ? to->qp->qp_num : 77;
		wr->wr.ud.remote_qkey = QKEY;
		return wr->wr.ud.ah != NULL;
	}
	aim_at_memory(wr, rarely() ? ANY(w.mr) : mr_of(q->pd));
	return true;
}

void send_step(void)
{
	struct ibv_send_wr wr[LIST], *bad = NULL;
	struct model_qp *q = ANY(w.qp);
	uint32_t n = 1 + draw(LIST), taken;
	struct ibv_sge sge[3];

	/* inline data is read at once: not from memory that is not there any more */
	if (q->qp == NULL || q->sends.count > MOST - LIST)
		return;
	memset(wr, 0, sizeof(wr));
	for (uint32_t i = 0; i < 3; i++)
		sge[i] = part(q->pd, draw(8) == 0 ? draw(LONGEST) : draw(64));
	for (uint32_t i = 0; i < n; i++) {
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
		if (!fill(&wr[i], q, sge))
			return;
	}
	taken = n;
	if (ibv_post_send(q->qp, wr, &bad) != 0)
		taken = (uint32_t)(bad - wr);
	if (taken > n)
		wrong("bad_wr is none of the list");
	for (uint32_t i = 0; i < taken; i++)
		fifo_push(&q->sends,
			  (struct posted){ wr[i].wr_id,
					   q->all_signaled ||
						   (wr[i].send_flags & IBV_SEND_SIGNALED) != 0 },
			  MOST);
}

void bind_step(void)
{
	struct model_qp *q = ANY(w.qp);
	struct model_mw *m = ANY(w.mw);
	struct model_mr *mr = q->pd != NULL ? mr_of(q->pd) : NULL;
	struct ibv_mw_bind bind = { .wr_id = ++w.last_id, .send_flags = IBV_SEND_SIGNALED };

	if (q->qp == NULL || m->mw == NULL || mr == NULL || q->sends.count == MOST)
		return;
	bind.bind_info = (struct ibv_mw_bind_info){ .mr = mr->mr,
						    .addr = (uintptr_t)mr->mr->addr,
						    .length = draw((uint32_t)mr->mr->length),
						    .mw_access_flags = IBV_ACCESS_REMOTE_READ };
	mr->maybe_bound = true;
	if (ibv_bind_mw(q->qp, m->mw, &bind) == 0)
		fifo_push(&q->sends, (struct posted){ bind.wr_id, true }, MOST);
}

void recv_step(void)
{
	struct ibv_recv_wr wr[LIST], *bad = NULL;
	struct model_qp *q = ANY(w.qp);
	uint32_t n = 1 + draw(LIST), taken = n;
	struct ibv_sge sge[2];

	if (q->qp == NULL)
		return;
	sge[0] = part(q->pd, LONGEST);
	sge[1] = part(q->pd, LONGEST);
	for (uint32_t i = 0; i < n; i++)
		wr[i] = (struct ibv_recv_wr){ .wr_id = ++w.last_id,
					      .next = i + 1 < n ? &wr[i + 1] : NULL,
					      .sg_list = sge,
					      .num_sge = rarely() ? 0 : 1 + (int)draw(2) };
	if (ibv_post_recv(q->qp, wr, &bad) != 0)
		taken = (uint32_t)(bad - wr);
	if (taken > n)
		wrong("bad_wr is none of the list");
	if (taken > 0 && (q->srq != NULL || q->state == IBV_QPS_RESET))
		wrong("a request was taken in RESET, or beside an SRQ");
	for (uint32_t i = 0; i < taken; i++)
		if (!fifo_push(&q->receives, (struct posted){ wr[i].wr_id, true }, DEPTH))
			wrong("a queue of %u takes more", DEPTH);
}

void srq_recv_step(void)
{
	struct model_srq *s = ANY(w.srq);
	struct ibv_sge sge = part(s->pd, 2 * LONGEST);
	struct ibv_recv_wr wr = { .wr_id = ++w.last_id, .sg_list = &sge, .num_sge = !rarely() };
	struct ibv_recv_wr *bad = NULL;

	if (s->srq == NULL || ibv_post_srq_recv(s->srq, &wr, &bad) != 0)
		return;
	/* The oldest of so many was lost with a queue pair that had taken it. */
	if (s->posted.count == MOST)
		fifo_pop(&s->posted);
	fifo_push(&s->posted, (struct posted){ wr.wr_id, true }, MOST);
}

/* ---- completions ---- */

static struct model_qp *qp_numbered(uint32_t number)
{
	for (uint32_t i = 0; i < QPS; i++)
		if (w.qp[i].qp != NULL && w.qp[i].qp->qp_num == number)
			return &w.qp[i];
	wrong("a completion of queue pair %u, which does not exist", number);
}

/*
 * Requests that ask for no completion have one only if they fail. After a failure all others fail,
 * too. A queue pair that is not reliable may have left SQE before its failures are polled.
 */
static void sent(struct model_qp *q, const struct ibv_wc *wc)
{
	for (struct posted p = fifo_pop(&q->sends); p.wr_id != wc->wr_id; p = fifo_pop(&q->sends))
		if (p.signaled || q->failed)
			wrong("queue pair %u, type %u: %llu (status %u) completes before %llu",
			      wc->qp_num, q->type, (unsigned long long)wc->wr_id, wc->status,
			      (unsigned long long)p.wr_id);
	if (q->type != IBV_QPT_RC)
		return;
	if (wc->status == IBV_WC_SUCCESS && q->failed)
		wrong("queue pair %u: success after a failure", wc->qp_num);
	q->failed = wc->status != IBV_WC_SUCCESS;
}

static void received(struct model_qp *q, const struct ibv_wc *wc)
{
	if (q->srq != NULL) {
		if (!fifo_take(&q->srq->posted, wc->wr_id))
			wrong("queue pair %u: %llu is not on its SRQ", wc->qp_num,
			      (unsigned long long)wc->wr_id);
		return;
	}
	if (q->receives.count == 0 || fifo_pop(&q->receives).wr_id != wc->wr_id)
		wrong("queue pair %u: %llu is not the oldest receive", wc->qp_num,
		      (unsigned long long)wc->wr_id);
}

static void completed(const struct model_cq *c, const struct ibv_wc *wc)
{
	struct model_qp *q = qp_numbered(wc->qp_num);
	bool is_send = fifo_has(&q->sends, wc->wr_id);

	*(wc->status == IBV_WC_SUCCESS ? &w.succeeded : &w.failed) += 1;
	if (wc->status == IBV_WC_SUCCESS && is_send != ((wc->opcode & IBV_WC_RECV) == 0))
		wrong("queue pair %u: %llu has opcode %u", wc->qp_num,
		      (unsigned long long)wc->wr_id, wc->opcode);
	if ((is_send ? q->send_cq : q->recv_cq) != c)
		wrong("queue pair %u: %llu completes in the other CQ", wc->qp_num,
		      (unsigned long long)wc->wr_id);
	if (is_send)
		sent(q, wc);
	else
		received(q, wc);
}

static void poll_extended(const struct model_cq *c)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)c->cq;
	int error = ibv_start_poll(cq, &attr);

	if (error == ENOENT)
		return;
	for (uint32_t more = draw(16); error == 0; more--) {
		struct ibv_wc wc = { .wr_id = cq->wr_id,
				     .status = cq->status,
				     .qp_num = ibv_wc_read_qp_num(cq) };

		if (cq->status == IBV_WC_SUCCESS)
			wc.opcode = ibv_wc_read_opcode(cq);
		completed(c, &wc);
		if (more == 0)
			break;
		error = ibv_next_poll(cq);
	}
	if (error != 0 && error != ENOENT)
		wrong("%s", strerror(error));
	ibv_end_poll(cq);
}

static void poll(const struct model_cq *c)
{
	struct ibv_wc wc[16];
	int n;

	if (c->extended && draw(2) == 0) {
		poll_extended(c);
		return;
	}
	n = ibv_poll_cq(c->cq, 1 + (int)draw(16), wc);
	if (n < 0)
		wrong("returned %d", n);
	for (int i = 0; i < n; i++)
		completed(c, &wc[i]);
}

void poll_step(void)
{
	const struct model_cq *c = ANY(w.cq);

	if (c->cq != NULL)
		poll(c);
}

void poll_all(void)
{
	for (uint32_t i = 0; i < CQS; i++)
		if (w.cq[i].cq != NULL)
			poll(&w.cq[i]);
}
