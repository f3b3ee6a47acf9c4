/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and their completions: each that was taken completes once, in the order of its queue. */
#include "model.h"

#include <errno.h>
#include <string.h>

#define LIST 8u /* requests posted at once, at most */

/* ---- requests ---- */

static void aim(struct ibv_send_wr *wr, struct ibv_sge at)
{
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = rarely() ? at.addr : (at.addr + 7) & ~UINT64_C(7);
		wr->wr.atomic.rkey = at.lkey;
		return;
	}
	wr->wr.rdma.remote_addr = at.addr;
	wr->wr.rdma.rkey = at.lkey;
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* False: it cannot be posted at all. */
static bool fill(struct ibv_send_wr *wr, const struct model_qp *q, struct ibv_sge *sge)
{
	wr->wr_id = ++w.last_id;
	wr->sg_list = sge;
	wr->opcode = some_opcode(q);
	wr->num_sge = is_atomic(wr->opcode) && !rarely() ? 1 : (int)draw(4);
	wr->send_flags = some_flags();
	/* at once, so not from memory that is not there any more */
	if (draw(4) == 0 && wr->num_sge == 1 && sge->length <= 32 && sge->addr != 0 &&
	    wr->opcode < IBV_WR_RDMA_READ)
		wr->send_flags |= IBV_SEND_INLINE;
	if (q->type == IBV_QPT_XRC_SEND && !has_srq(q, &wr->qp_type.xrc.remote_srqn))
		return false;
	if (q->type == IBV_QPT_UD) {
		wr->wr.ud.ah = some_address(&wr->wr.ud.remote_qpn);
		wr->wr.ud.remote_qkey = QKEY;
		return wr->wr.ud.ah != NULL;
	}
	aim(wr, target(q, 3 * LONGEST));
	return true;
}

void send_step(void)
{
	struct ibv_send_wr wr[LIST], *bad = NULL;
	struct model_qp *q = some_sender();
	uint32_t n = 1 + draw(LIST), taken;
	struct ibv_sge sge[LIST][3];

	if (q->qp == NULL || q->sends.count > MOST - LIST)
		return;
	memset(wr, 0, sizeof(wr));
	for (uint32_t i = 0; i < n; i++) {
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
		parts(q->pd, sge[i], 3);
		if (!fill(&wr[i], q, sge[i]))
			return;
		if (is_atomic(wr[i].opcode) && !rarely())
			sge[i][0].length = 8;
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

/* Type 2: the program names the key. */
static int bind_by_request(struct ibv_qp *qp, struct ibv_mw *mw, const struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = { .wr_id = bind->wr_id,
				  .opcode = IBV_WR_BIND_MW,
				  .send_flags = bind->send_flags,
				  .bind_mw = { .mw = mw,
					       .rkey = ibv_inc_rkey(mw->rkey),
					       .bind_info = bind->bind_info } };
	struct ibv_send_wr *bad;
	int error = ibv_post_send(qp, &wr, &bad);

	if (error == 0)
		mw->rkey = wr.bind_mw.rkey;
	return error;
}

/* A region that may have windows, mostly. */
static struct model_mr *some_bindable(const struct model_pd *pd)
{
	struct model_mr *mr = mr_of(pd);

	for (uint32_t i = 0; i < 16 && mr != NULL && !(mr->access & IBV_ACCESS_MW_BIND); i++)
		mr = mr_of(pd);
	return mr != NULL && (mr->access & IBV_ACCESS_MW_BIND || rarely()) ? mr : NULL;
}

void bind_step(void)
{
	struct model_qp *q = some_sender();
	struct model_mw *m = ANY(w.mw);
	struct model_mr *mr = q->pd != NULL ? some_bindable(q->pd) : NULL;
	struct ibv_mw_bind bind = { .wr_id = ++w.last_id, .send_flags = IBV_SEND_SIGNALED };
	int error;

	if (q->qp == NULL || m->mw == NULL || mr == NULL || q->sends.count == MOST ||
	    (m->pd != q->pd && !rarely()))
		return;
	bind.bind_info = (struct ibv_mw_bind_info){
		.mr = mr->mr,
		.addr = (uintptr_t)mr->mr->addr,
		.length = draw((uint32_t)mr->mr->length),
		.mw_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
	};
	mr->maybe_bound = true;
	error = m->mw->type == IBV_MW_TYPE_1 ? ibv_bind_mw(q->qp, m->mw, &bind)
					     : bind_by_request(q->qp, m->mw, &bind);
	if (error != 0)
		return;
	m->info = bind.bind_info;
	fifo_push(&q->sends, (struct posted){ bind.wr_id, true }, MOST);
}

void recv_step(void)
{
	struct ibv_recv_wr wr[LIST], *bad = NULL;
	struct model_qp *q = some_receiver();
	uint32_t n = 1 + draw(LIST), taken = n;
	struct ibv_sge sge[2];

	if (q->qp == NULL || (q->recv_cq == NULL && !rarely()))
		return;
	sge[0] = part(q->pd, 3 * LONGEST);
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
	if (taken > 0 && (q->srq != NULL || q->recv_cq == NULL || q->state == IBV_QPS_RESET))
		wrong("a request was taken in RESET, beside an SRQ, or by one that receives nothing");
	for (uint32_t i = 0; i < taken; i++)
		if (!fifo_push(&q->receives, (struct posted){ wr[i].wr_id, true }, DEPTH))
			wrong("a queue of %u takes more", DEPTH);
}

void srq_recv_step(void)
{
	struct model_srq *s = ANY(w.srq);
	struct ibv_sge sge = part(s->pd, 3 * LONGEST);
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
	return NULL;
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
	if (q->type == IBV_QPT_UC || q->type == IBV_QPT_UD)
		return;
	if (wc->status == IBV_WC_SUCCESS && q->failed)
		wrong("queue pair %u: success after a failure", wc->qp_num);
	q->failed = wc->status != IBV_WC_SUCCESS;
}

/*
 * An XRC target takes them from any SRQ of its domain. A completion may outlive target (NULL) and SRQ,
 * because its CQ is neither's.
 */
static void received_by_target(const struct model_cq *c, const struct model_qp *q,
			       const struct ibv_wc *wc)
{
	for (struct model_srq *s = w.srq; s < w.srq + SRQS; s++)
		if (s->srq != NULL && s->cq == c && (q == NULL || s->xrcd == q->xrcd) &&
		    fifo_take(&s->posted, wc->wr_id))
			return;
	if (wc->wr_id > w.ended_id)
		wrong("queue pair %u: %llu is on no XRC SRQ of this CQ", wc->qp_num,
		      (unsigned long long)wc->wr_id);
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
	bool is_send = q != NULL && fifo_has(&q->sends, wc->wr_id);

	*(wc->status == IBV_WC_SUCCESS ? &w.succeeded : &w.failed) += 1;
	if (q == NULL || q->type == IBV_QPT_XRC_RECV) {
		received_by_target(c, q, wc);
		return;
	}
	q->broken |= wc->status != IBV_WC_SUCCESS;
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

static int poll_extended(const struct model_cq *c)
{
	int n = 0;
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)c->cq;
	int error = ibv_start_poll(cq, &attr);

	if (error == ENOENT)
		return 0;
	for (uint32_t more = draw(16); error == 0; more--) {
		struct ibv_wc wc = { .wr_id = cq->wr_id,
				     .status = cq->status,
				     .qp_num = ibv_wc_read_qp_num(cq) };

		if (cq->status == IBV_WC_SUCCESS)
			wc.opcode = ibv_wc_read_opcode(cq);
		completed(c, &wc);
		n++;
		if (more == 0)
			break;
		error = ibv_next_poll(cq);
	}
	if (error != 0 && error != ENOENT)
		wrong("%s", strerror(error));
	ibv_end_poll(cq);
	return n;
}

/* Returns how many completions there were. */
static int poll(const struct model_cq *c)
{
	struct ibv_wc wc[16];
	int n;

	if (c->extended && draw(2) == 0)
		return poll_extended(c);
	n = ibv_poll_cq(c->cq, 1 + (int)draw(16), wc);
	if (n < 0)
		wrong("returned %d", n);
	for (int i = 0; i < n; i++)
		completed(c, &wc[i]);
	return n;
}

void poll_step(void)
{
	const struct model_cq *c = ANY(w.cq);

	if (c->cq != NULL)
		poll(c);
}

bool poll_all(void)
{
	int n = 0;

	for (uint32_t i = 0; i < CQS; i++)
		if (w.cq[i].cq != NULL)
			n += poll(&w.cq[i]);
	return n > 0;
}
