/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs and their states. */
#include "model.h"

#include <errno.h>
#include <string.h>

static void make(struct model_qp *q)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC,
						  IBV_QPT_UD };
	struct model_srq *s = draw(3) == 0 ? ANY(w.srq) : NULL;
	struct model_cq *send = ANY(w.cq), *recv = ANY(w.cq);
	struct model_pd *p = ANY(w.pd);
	struct ibv_qp_init_attr init = { .cap = { DEPTH, DEPTH, 3, 3, 32 } };

	if (p->pd == NULL || send->cq == NULL || recv->cq == NULL)
		return;
	if (s != NULL && s->srq == NULL)
		s = NULL;
	init.qp_type = types[draw(5)];
	init.send_cq = send->cq;
	init.recv_cq = recv->cq;
	init.srq = s != NULL ? s->srq : NULL;
	init.sq_sig_all = draw(4) == 0;
	if (s != NULL)
		init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
	*q = (struct model_qp){ .pd = p,
				.send_cq = send,
				.recv_cq = recv,
				.srq = s,
				.type = init.qp_type,
				.state = IBV_QPS_RESET,
				.all_signaled = init.sq_sig_all };
	q->qp = ibv_create_qp(p->pd, &init);
	if (q->qp == NULL)
		wrong("type %u: %m", init.qp_type);
	if (init.cap.max_send_wr != DEPTH || (s == NULL && init.cap.max_recv_wr != DEPTH))
		wrong("queues of %u and %u", init.cap.max_send_wr, init.cap.max_recv_wr);
	p->users++;
	send->users++;
	recv->users++;
	if (s != NULL)
		s->users++;
}

/* What it had posted does not complete any more. */
static void forget_work(struct model_qp *q)
{
	q->sends = q->receives = (struct fifo){ 0 };
	q->failed = false;
}

static void end(struct model_qp *q)
{
	w.call = "ibv_destroy_qp";
	expect(ibv_destroy_qp(q->qp), 0);
	forget_work(q);
	q->pd->users--;
	q->send_cq->users--;
	q->recv_cq->users--;
	if (q->srq != NULL)
		q->srq->users--;
	*q = (struct model_qp){ 0 };
}

/* ---- states ---- */

static enum ibv_qp_state state_of(const struct model_qp *q)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	expect(ibv_query_qp(q->qp, &attr, IBV_QP_STATE, &init), 0);
	if (q->qp->state != attr.qp_state)
		wrong("the state is %u, but %u in the queue pair", attr.qp_state, q->qp->state);
	return attr.qp_state;
}

/* A failure may have brought it to ERR, or to SQE if it is not reliable. */
static bool can_be(const struct model_qp *q, enum ibv_qp_state is)
{
	return is == q->state || is == IBV_QPS_ERR || (is == IBV_QPS_SQE && q->type != IBV_QPT_RC);
}

void query_step(void)
{
	struct model_qp *q = ANY(w.qp);
	enum ibv_qp_state is;

	if (q->qp == NULL)
		return;
	is = state_of(q);
	if (!can_be(q, is))
		wrong("queue pair %u is in %u, must be in %u", q->qp->qp_num, is, q->state);
}

static int to_init(const struct model_qp *q, struct ibv_qp_attr *a)
{
	a->port_num = 1;
	a->qkey = QKEY;
	a->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (q->type == IBV_QPT_RC)
		a->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	return IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	       (q->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
}

static int to_rtr(const struct model_qp *q, struct ibv_qp_attr *a, const struct model_qp *peer)
{
	if (q->type == IBV_QPT_UD)
		return 0;
	a->dest_qp_num = peer->qp != NULL ? peer->qp->qp_num : 99;
	a->path_mtu = (enum ibv_mtu)(1 + draw(5));
	a->max_dest_rd_atomic = (uint8_t)(1 + draw(8));
	a->min_rnr_timer = 14;
	a->ah_attr = (struct ibv_ah_attr){ .is_global = 1,
					   .port_num = 1,
					   .grh = { .sgid_index = 1, .hop_limit = 9 } };
	expect(ibv_query_gid(w.context, 1, 1, &a->ah_attr.grh.dgid), 0);
	return IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	       (q->type == IBV_QPT_RC ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
}

static int to_rts(const struct model_qp *q, struct ibv_qp_attr *a)
{
	a->timeout = 8;
	a->retry_cnt = (uint8_t)draw(4);
	a->rnr_retry = draw(2) ? 7 : (uint8_t)draw(4);
	a->max_rd_atomic = (uint8_t)(1 + draw(8));
	return IBV_QP_SQ_PSN |
	       (q->type == IBV_QPT_RC ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						IBV_QP_MAX_QP_RD_ATOMIC
				      : 0);
}

static int modify(struct model_qp *q, enum ibv_qp_state to, const struct model_qp *peer)
{
	struct ibv_qp_attr attr = { .qp_state = to };
	int mask = IBV_QP_STATE;

	if (to == IBV_QPS_INIT)
		mask |= to_init(q, &attr);
	else if (to == IBV_QPS_RTR)
		mask |= to_rtr(q, &attr, peer);
	else if (to == IBV_QPS_RTS && q->state == IBV_QPS_RTR)
		mask |= to_rts(q, &attr);
	return ibv_modify_qp(q->qp, &attr, mask);
}

static bool follows(enum ibv_qp_state from, enum ibv_qp_state to)
{
	static const uint8_t next[] = {
		[IBV_QPS_RESET] = 1 << IBV_QPS_INIT,
		[IBV_QPS_INIT] = 1 << IBV_QPS_INIT | 1 << IBV_QPS_RTR,
		[IBV_QPS_RTR] = 1 << IBV_QPS_RTS,
		[IBV_QPS_RTS] = 1 << IBV_QPS_RTS | 1 << IBV_QPS_SQD,
		[IBV_QPS_SQD] = 1 << IBV_QPS_SQD | 1 << IBV_QPS_RTS,
		[IBV_QPS_SQE] = 1 << IBV_QPS_RTS,
		[IBV_QPS_ERR] = 0,
	};

	return to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET) ||
	       (next[from] >> to & 1) != 0;
}

/* A queue pair that drains leaves SQD only when that is done. */
static void refused(struct model_qp *q, enum ibv_qp_state to, int error)
{
	enum ibv_qp_state is = state_of(q);

	if (!can_be(q, is) || error != EINVAL || (follows(is, to) && is != IBV_QPS_SQD))
		wrong("type %u from %u (%u) to %u: %s", q->type, q->state, is, to, strerror(error));
	q->state = is;
}

static void change(struct model_qp *q)
{
	static const enum ibv_qp_state likely[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
						    IBV_QPS_SQD,  IBV_QPS_RTS, IBV_QPS_RTS,
						    IBV_QPS_RESET };
	enum ibv_qp_state to = draw(3) > 0 ? likely[q->state] : (enum ibv_qp_state)draw(7);
	const struct model_qp *peer = ANY(w.qp);
	int error;

	if (q->state == IBV_QPS_RTS && draw(32) != 0)
		return;
	w.call = "ibv_modify_qp";
	error = modify(q, to, peer);
	if (error != 0) {
		refused(q, to, error);
		return;
	}
	/* from SQE, of which the program has not heard */
	if (!follows(q->state, to))
		wrong("came from %u to %u", q->state, to);
	q->state = to;
	if (to == IBV_QPS_RESET)
		forget_work(q);
}

void qp_step(void)
{
	struct model_qp *q = ANY(w.qp);

	if (q->qp == NULL)
		make(q);
	else if (draw(100) == 0)
		end(q);
	else
		change(q);
}

static void to_reset(struct model_qp *q)
{
	expect(modify(q, IBV_QPS_RESET, NULL), 0);
	q->state = IBV_QPS_RESET;
	forget_work(q);
}

/* A request of a third one, which was connected to it before, may bring it to ERR on its way. */
static void connect(struct model_qp *q, const struct model_qp *peer)
{
	static const enum ibv_qp_state way[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };

	for (uint32_t i = 0; i < 3; i++) {
		int error = modify(q, way[i], peer);

		if (error != 0) {
			refused(q, way[i], error);
			return;
		}
		q->state = way[i];
	}
}

/* Two of one type, or one with itself, so that messages arrive. */
void connect_step(void)
{
	struct model_qp *a = ANY(w.qp), *b = ANY(w.qp);

	if (a->qp == NULL || b->qp == NULL || a->type != b->type)
		return;
	if (a->state == IBV_QPS_RTS && b->state == IBV_QPS_RTS && draw(10) > 0)
		return;
	to_reset(a);
	if (a != b)
		to_reset(b);
	connect(a, b);
	if (a != b)
		connect(b, a);
}

/* ---- the end ---- */

void qps_to_error(void)
{
	w.call = "to ERR";
	for (struct model_qp *q = w.qp; q < w.qp + QPS; q++) {
		if (q->qp == NULL)
			continue;
		if (q->state != IBV_QPS_RESET)
			expect(modify(q, IBV_QPS_ERR, NULL), 0);
		else if (q->sends.count + q->receives.count > 0)
			wrong("queue pair %u took requests in RESET", q->qp->qp_num);
	}
}

void qps_end(void)
{
	for (uint32_t i = 0; i < QPS; i++)
		if (w.qp[i].qp != NULL)
			end(&w.qp[i]);
}
