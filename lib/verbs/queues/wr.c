/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_wr_*(3). The program builds requests call by call between wr_start and wr_complete, which
 * hold the lock of the send queue. The requests are built outside the ring and copied into it at
 * the end, because no part of a batch may be posted if the batch is aborted or has an error.
 */
#include <errno.h>
#include <stdlib.h>

#include <rte_ring.h>

#include "verbs/memory/domain.h"
#include "verbs/memory/mw.h"
#include "verbs/queues/flush.h"
#include "verbs/queues/qp.h"
#include "verbs/queues/raw.h"

static struct qp *own(struct ibv_qp_ex *ibv)
{
	return (struct qp *)ibv;
}

static void fail(struct qp *qp, int error)
{
	if (qp->batch_error == 0)
		qp->batch_error = error;
	qp->building = NULL;
}

static struct send_work *batch_slot(struct qp *qp, uint32_t i)
{
	return (struct send_work *)(void *)(qp->batch + (size_t)i * qp->sq.stride);
}

static void wr_start(struct ibv_qp_ex *ibv)
{
	struct qp *qp = own(ibv);

	queue_lock(&qp->sq.lock);
	qp->batch_count = 0;
	qp->batch_error = 0;
	qp->building = NULL;
}

/* Begins a request. A batch has at most as many requests as an empty queue can hold. */
static struct send_work *begin(struct ibv_qp_ex *ibv, enum ibv_wr_opcode opcode)
{
	struct qp *qp = own(ibv);
	struct send_work *w;

	if (qp->batch_error != 0)
		return NULL;
	if (!qp_carries(qp, opcode)) {
		fail(qp, EINVAL);
		return NULL;
	}
	if (qp->batch_count >= qp->sq.max_wr) {
		fail(qp, ENOMEM);
		return NULL;
	}
	w = batch_slot(qp, qp->batch_count++);
	memset(w, 0, sizeof(*w));
	w->wr_id = ibv->wr_id;
	w->opcode = (uint8_t)opcode;
	/* This interface has functions of its own for inline data, so that flag is ignored. */
	w->flags = (uint8_t)(ibv->wr_flags & qp->send_flags & ~(uint32_t)IBV_SEND_INLINE);
	qp->building = w;
	return w;
}

static void begin_remote(struct ibv_qp_ex *ibv, enum ibv_wr_opcode opcode, uint32_t rkey,
			 uint64_t remote_addr)
{
	struct send_work *w = begin(ibv, opcode);

	if (w == NULL)
		return;
	w->rkey = rkey;
	w->remote_addr = remote_addr;
}

static void wr_send(struct ibv_qp_ex *ibv)
{
	begin(ibv, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ibv, __be32 imm_data)
{
	struct send_work *w = begin(ibv, IBV_WR_SEND_WITH_IMM);

	if (w != NULL)
		w->imm = imm_data;
}

static void wr_rdma_write(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(ibv, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	begin_remote(ibv, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr);
	if (own(ibv)->building != NULL)
		own(ibv)->building->imm = imm_data;
}

static void wr_rdma_read(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(ibv, IBV_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	begin_remote(ibv, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr);
	if (own(ibv)->building == NULL)
		return;
	own(ibv)->building->compare_add = compare;
	own(ibv)->building->swap = swap;
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	begin_remote(ibv, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr);
	if (own(ibv)->building != NULL)
		own(ibv)->building->compare_add = add;
}

/* After an aborted batch, mw->rkey is a key that was never bound, as after a failed bind. */
static void wr_bind_mw(struct ibv_qp_ex *ibv, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *bind_info)
{
	struct send_work *w = begin(ibv, IBV_WR_BIND_MW);
	int error;

	if (w == NULL)
		return;
	error = mw != NULL && bind_info != NULL && mw->type == IBV_MW_TYPE_2
			? mw_write_bind(w, mw, rkey, bind_info)
			: EINVAL;
	if (error != 0)
		fail(own(ibv), error);
	else
		mw->rkey = rkey;
}

static void begin_invalidate(struct ibv_qp_ex *ibv, enum ibv_wr_opcode opcode, uint32_t rkey)
{
	struct send_work *w = begin(ibv, opcode);

	if (w != NULL)
		w->imm = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ibv, uint32_t invalidate_rkey)
{
	begin_invalidate(ibv, IBV_WR_LOCAL_INV, invalidate_rkey);
}

static void wr_send_inv(struct ibv_qp_ex *ibv, uint32_t invalidate_rkey)
{
	begin_invalidate(ibv, IBV_WR_SEND_WITH_INV, invalidate_rkey);
}

static void wr_send_tso(struct ibv_qp_ex *ibv, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	struct send_work *w = begin(ibv, IBV_WR_TSO);
	int error = w != NULL ? tso_write(own(ibv), w, hdr, hdr_sz, mss) : 0;

	if (w != NULL && error == 0)
		error = tso_finish(own(ibv), w); /* called again if elements follow */
	if (error != 0)
		fail(own(ibv), error);
}

static void wr_atomic_write(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr,
			    const void *atomic_wr)
{
	struct qp *qp = own(ibv);

	begin_remote(ibv, IBV_WR_ATOMIC_WRITE, rkey, remote_addr);
	if (qp->building == NULL)
		return;
	send_write_word(qp->building, atomic_wr);
	qp->building = NULL; /* the request has all its data, so setters have nothing to set */
}

/* ibv_wr_flush(3). Headers newer than Debian 12's have it after wr_atomic_write. */
static void wr_flush(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr, size_t length,
		     uint8_t type, uint8_t level)
{
	struct qp *qp = own(ibv);

	begin_remote(ibv, (enum ibv_wr_opcode)WORK_FLUSH, rkey, remote_addr);
	if (qp->building == NULL)
		return;
	if (type == 0 || (type & ~(FLUSH_GLOBAL | FLUSH_PERSISTENT)) != 0 || level > FLUSH_REGION ||
	    length > LIMIT_MESSAGE) {
		fail(qp, EINVAL);
		return;
	}
	qp->building->flush_length = length;
	qp->building->flush_type = type;
	qp->building->flush_level = level;
	qp->building = NULL; /* the request has no data */
}

static void wr_set_ud_addr(struct ibv_qp_ex *ibv, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct qp *qp = own(ibv);
	int error = EINVAL;

	if (qp->building == NULL)
		return;
	if (ibv->qp_base.qp_type == IBV_QPT_UD)
		error = send_write_datagram(qp, qp->building, ah, remote_qpn, remote_qkey);
	if (error != 0)
		fail(qp, error);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ibv, uint32_t remote_srqn)
{
	struct qp *qp = own(ibv);

	if (qp->building == NULL)
		return;
	if (qp->ibv.qp_base.qp_type != IBV_QPT_XRC_SEND || remote_srqn >> 24 != 0)
		fail(qp, EINVAL);
	else
		send_work_set_srqn(qp->building, remote_srqn);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ibv, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct qp *qp = own(ibv);
	int error;

	if (qp->building == NULL)
		return;
	qp->building->flags |= WORK_INLINE;
	error = qp->building->opcode == WORK_RDMA_READ || qp->building->opcode == WORK_TSO ||
				qp->building->opcode == WORK_ATOMIC_CMP_AND_SWP ||
				qp->building->opcode == WORK_ATOMIC_FETCH_AND_ADD
			? EINVAL
			: send_write_inline(qp, qp->building, buf_list, num_buf);
	if (error != 0)
		fail(qp, error);
}

static void wr_set_inline_data(struct ibv_qp_ex *ibv, void *addr, size_t length)
{
	struct ibv_data_buf one = { addr, length };

	wr_set_inline_data_list(ibv, 1, &one);
}

static void wr_set_sge_list(struct ibv_qp_ex *ibv, size_t num_sge, const struct ibv_sge *sg_list)
{
	struct qp *qp = own(ibv);
	int error;

	if (qp->building == NULL)
		return;
	error = send_write_elements(qp, qp->building, sg_list, num_sge);
	if (error == 0 && qp->building->opcode == WORK_TSO)
		error = tso_finish(qp, qp->building);
	if (error != 0)
		fail(qp, error);
}

static void wr_set_sge(struct ibv_qp_ex *ibv, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge one = { addr, length, lkey };

	wr_set_sge_list(ibv, 1, &one);
}

static int post_batch(struct qp *qp)
{
	struct work_queue *q = &qp->sq;
	int error = send_admit(qp);

	if (error != 0)
		return error;
	if (send_outstanding(qp) + qp->batch_count > q->max_wr ||
	    rte_ring_free_count(q->ring) < qp->batch_count)
		return ENOMEM;
	for (uint32_t i = 0; i < qp->batch_count; i++)
		if (send_check(qp, batch_slot(qp, i)) != 0)
			return EINVAL;
	for (uint32_t i = 0; i < qp->batch_count; i++) {
		struct send_work *w = send_reserve(qp);

		memcpy(w, batch_slot(qp, i), q->stride);
		send_commit(qp, w);
	}
	qp_ring_doorbell(qp);
	return 0;
}

static int wr_complete(struct ibv_qp_ex *ibv)
{
	struct qp *qp = own(ibv);
	struct cq *wakes = NULL;
	int error = qp->batch_error;

	if (error == 0 && qp->batch_count > 0) {
		error = post_batch(qp);
		if (error == 0)
			wakes = flush_posted(qp, qp->send_page, qp->init.send_cq);
	}
	queue_unlock(&qp->sq.lock);
	if (wakes != NULL)
		flush_armed(wakes);
	return error;
}

static void wr_abort(struct ibv_qp_ex *ibv)
{
	queue_unlock(&own(ibv)->sq.lock);
}

int qp_ex_fill(struct ibv_qp_ex *ibv)
{
	struct qp *qp = own(ibv);

	if (domain_alloc(ibv->qp_base.pd, &qp->batch_memory,
			 (size_t)MAX_OF(qp->sq.max_wr, 1u) * qp->sq.stride, DOMAIN_QP) != 0)
		return ENOMEM;
	qp->batch = qp->batch_memory.address;
	ibv->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ibv->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ibv->wr_bind_mw = wr_bind_mw;
	ibv->wr_local_inv = wr_local_inv;
	ibv->wr_rdma_read = wr_rdma_read;
	ibv->wr_rdma_write = wr_rdma_write;
	ibv->wr_rdma_write_imm = wr_rdma_write_imm;
	ibv->wr_send = wr_send;
	ibv->wr_send_imm = wr_send_imm;
	ibv->wr_send_inv = wr_send_inv;
	ibv->wr_send_tso = wr_send_tso;
	ibv->wr_set_ud_addr = wr_set_ud_addr;
	ibv->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ibv->wr_set_inline_data = wr_set_inline_data;
	ibv->wr_set_inline_data_list = wr_set_inline_data_list;
	ibv->wr_set_sge = wr_set_sge;
	ibv->wr_set_sge_list = wr_set_sge_list;
	ibv->wr_start = wr_start;
	ibv->wr_complete = wr_complete;
	ibv->wr_abort = wr_abort;
	ibv->wr_atomic_write = wr_atomic_write;
	qp->wr_flush = wr_flush;
	return 0;
}
