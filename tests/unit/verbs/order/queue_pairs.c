/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs and their states. */
#include "model.h"

#include <errno.h>
#include <string.h>

static uint64_t operations(enum ibv_qp_type type)
{
	static const uint64_t sends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
			      writes = IBV_QP_EX_WITH_RDMA_WRITE |
				       IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
			      fetches = IBV_QP_EX_WITH_RDMA_READ |
					IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
					IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

	if (type == IBV_QPT_UD)
		return sends;
	return type == IBV_QPT_UC ? sends | writes : sends | writes | fetches;
}

/* What it belongs to has one user more, or one less. */
static void use(const struct model_qp *q, int by)
{
	uint32_t n = (uint32_t)by;

	if (q->pd != NULL)
		q->pd->users += n;
	if (q->xrcd != NULL)
		q->xrcd->users += n;
	if (q->send_cq != NULL)
		q->send_cq->users += n;
	if (q->recv_cq != NULL)
		q->recv_cq->users += n;
	if (q->srq != NULL)
		q->srq->users += n;
}

static void make_target(struct model_qp *q)
{
	struct model_xrcd *x = ANY(w.xrcd);
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_XRC_RECV,
					    .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					    .xrcd = x->xrcd };

	if (x->xrcd == NULL)
		return;
	*q = (struct model_qp){ .xrcd = x, .type = IBV_QPT_XRC_RECV };
	q->qp = ibv_create_qp_ex(w.context, &init);
	if (q->qp == NULL)
		wrong("an XRC target: %m");
	use(q, 1);
}

/* What it is made of. False: a part is missing. */
static bool choose(struct model_qp *q)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC,
						  IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND };
	struct model_srq *s = draw(3) == 0 ? ANY(w.srq) : NULL;

	*q = (struct model_qp){ .pd = ANY(w.pd),
				.send_cq = ANY(w.cq),
				.recv_cq = ANY(w.cq),
				.type = types[draw(6)],
				.state = IBV_QPS_RESET,
				.all_signaled = draw(4) == 0,
				.extended = draw(2) == 0 };
	if (q->type == IBV_QPT_XRC_SEND)
		q->recv_cq = NULL;
	else if (s != NULL && s->srq != NULL && s->xrcd == NULL)
		q->srq = s;
	return q->pd->pd != NULL && q->send_cq->cq != NULL &&
	       (q->recv_cq == NULL || q->recv_cq->cq != NULL);
}

static void make(struct model_qp *q)
{
	struct ibv_qp_init_attr_ex init = { .cap = { DEPTH, DEPTH, 3, 3, 32 },
					    .comp_mask = IBV_QP_INIT_ATTR_PD };
	bool receives;

	if (draw(6) == 0) {
		make_target(q);
		return;
	}
	if (!choose(q)) {
		*q = (struct model_qp){ 0 };
		return;
	}
	receives = q->srq == NULL && q->recv_cq != NULL;
	init.qp_type = q->type;
	init.pd = q->pd->pd;
	init.send_cq = q->send_cq->cq;
	init.recv_cq = q->recv_cq != NULL ? q->recv_cq->cq : NULL;
	init.srq = q->srq != NULL ? q->srq->srq : NULL;
	init.sq_sig_all = q->all_signaled;
	if (!receives)
		init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
	if (q->extended) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = operations(q->type);
	}
	q->qp = ibv_create_qp_ex(w.context, &init);
	if (q->qp == NULL)
		wrong("type %u: %m", init.qp_type);
	if (init.cap.max_send_wr != DEPTH || (receives && init.cap.max_recv_wr != DEPTH))
		wrong("queues of %u and %u", init.cap.max_send_wr, init.cap.max_recv_wr);
	use(q, 1);
}

/* What it had posted does not complete any more. */
static void forget_work(struct model_qp *q)
{
	q->sends = q->receives = (struct fifo){ 0 };
	q->failed = q->broken = false;
}

static void end(struct model_qp *q)
{
	w.call = "ibv_destroy_qp";
	expect(ibv_destroy_qp(q->qp), 0);
	use(q, -1);
	for (struct model_qp *other = w.qp; other < w.qp + QPS; other++)
		if (other->peer == q)
			other->peer = NULL;
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

static bool is_reliable(const struct model_qp *q)
{
	return q->type != IBV_QPT_UC && q->type != IBV_QPT_UD;
}

/* A failure may have brought it to ERR, or to SQE if it is not reliable. */
static bool can_be(const struct model_qp *q, enum ibv_qp_state is)
{
	return is == q->state || is == IBV_QPS_ERR || (is == IBV_QPS_SQE && !is_reliable(q));
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
	if (is_reliable(q))
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
	       (is_reliable(q) ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
}

static int to_rts(const struct model_qp *q, struct ibv_qp_attr *a)
{
	a->timeout = 8;
	a->retry_cnt = (uint8_t)draw(4);
	a->rnr_retry = draw(8) ? 7 : (uint8_t)draw(4);
	a->max_rd_atomic = (uint8_t)(1 + draw(8));
	return IBV_QP_SQ_PSN | (is_reliable(q) ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
							 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
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

	if (works(q) && draw(64) != 0)
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

	q->peer = peer;
	for (uint32_t i = 0; i < 3; i++) {
		int error = modify(q, way[i], peer);

		if (error != 0) {
			refused(q, way[i], error);
			return;
		}
		q->state = way[i];
	}
}

static bool go_together(const struct model_qp *a, const struct model_qp *b)
{
	if (a->type == IBV_QPT_XRC_SEND)
		return b->type == IBV_QPT_XRC_RECV;
	return a->type != IBV_QPT_XRC_RECV && a->type == b->type;
}

/* Two that go together, or one with itself, so that messages arrive. */
void connect_step(void)
{
	struct model_qp *a = ANY(w.qp), *b = ANY(w.qp);

	for (uint32_t i = 0; i < 16 && (works(a) || a->qp == NULL); i++)
		a = ANY(w.qp);
	for (uint32_t i = 0; i < 16 && (works(b) || b->qp == NULL || !go_together(a, b)); i++)
		b = ANY(w.qp);
	if (a->qp == NULL || b->qp == NULL || !go_together(a, b))
		return;
	if (works(a) && works(b) && draw(10) > 0)
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
