/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting. Each request is checked, written into its slot of the ring and published. Then the
 * doorbell is rung once for the whole list. This file checks only what ibv_post_send(3) promises to
 * refuse. The engine checks everything again in its own copy.
 */
#include <errno.h>

#include "queue/fence.h"
#include "queue/ring_client.h"
#include "verbs/memory/domain.h"
#include "verbs/memory/mw.h"
#include "verbs/queues/flush.h"
#include "verbs/queues/qp.h"
#include "verbs/queues/raw.h"
#include "verbs/queues/recv.h"

/*
 * Follows the queue pair to the lcore to which the engine may have moved it when it became
 * connected.
 */
static void follow_lcore(struct qp *qp)
{
	uint32_t lcore = __atomic_load_n(&qp->page->lcore, __ATOMIC_RELAXED);

	if (lcore != qp->lcore && lcore < qp->attachment->carrier->lcores)
		qp_ring_at(qp, lcore);
}

void qp_ring_doorbell(struct qp *qp)
{
	follow_lcore(qp);
	doorbell_ring(qp->bell, &qp->page->doorbell, qp->handle, qp->sleeping, qp->wake_fd);
}

/*
 * Looks first at the state that the program set, and then at the engine's, which may be ERR by now.
 */
static bool state_at_least(struct qp *qp, enum ibv_qp_state least)
{
	if (qp_shown_state(&qp->ibv.qp_base) >= least)
		return true;
	/*
	 * Acquire: a thread that sees the state also sees the lcore, which the engine wrote before.
	 */
	return !qp->stale && __atomic_load_n(&qp->page->state, __ATOMIC_ACQUIRE) >= (uint32_t)least;
}

/*
 * How many slots of the send queue are taken. Requests that the engine still holds take slots;
 * qp_page.retired says which have left, and a polled completion may say so earlier. Unpolled
 * completions also take slots, because programs rely on a full queue to keep them from overrunning
 * a CQ of the same size.
 */
uint32_t send_outstanding(struct qp *qp)
{
	/* Acquire: the engine has copied the slot before we write it again. */
	uint32_t retired = __atomic_load_n(&qp->page->retired, __ATOMIC_ACQUIRE);
	uint32_t done = __atomic_load_n(&qp->sq.done, __ATOMIC_RELAXED);
	uint32_t held = qp->sq.posted - (work_is_after(&qp->sq, done, retired) ? done : retired);
	int32_t unpolled = (int32_t)(qp->sq.signaled_posted -
				     __atomic_load_n(&qp->sq.signaled_polled, __ATOMIC_RELAXED));

	return unpolled > (int32_t)held && !qp->sq.loses ? (uint32_t)unpolled : held;
}

int send_admit(struct qp *qp)
{
	if (qp->sq.resets != 0 || !state_at_least(qp, IBV_QPS_RTS))
		return EINVAL;
	/*
	 * No more slots are taken than requests were posted since the last polled completion. If
	 * that leaves room, there is no need to wait for the line in which the engine counts.
	 */
	if (qp->sq.posted - __atomic_load_n(&qp->sq.done, __ATOMIC_RELAXED) < qp->sq.max_wr)
		return 0;
	return send_outstanding(qp) >= qp->sq.max_wr ? ENOMEM : 0;
}

struct send_work *send_reserve(struct qp *qp)
{
	struct work_queue *q = &qp->sq;

	return q->ring != NULL ? ring_client_reserve_seen(q->ring, q->stride, &q->read) : NULL;
}

static inline void commit(struct qp *qp, const struct send_work *w)
{
	struct work_queue *q = &qp->sq;
	uint32_t slot = q->posted & q->mask;
	uint8_t signaled = qp->sig_all || (w->flags & WORK_SIGNALED);

	q->wr_id[slot] = w->wr_id;
	q->signaled[slot] = signaled;
	__atomic_store_n(&q->signaled_posted, q->signaled_posted + signaled, __ATOMIC_RELAXED);
	__atomic_store_n(&q->posted, q->posted + 1, __ATOMIC_RELAXED);
	ring_client_publish(q->ring);
}

void send_commit(struct qp *qp, const struct send_work *w)
{
	commit(qp, w);
}

int send_write_inline(struct qp *qp, struct send_work *w, const struct ibv_data_buf *buffers,
		      size_t count)
{
	uint8_t *to = send_work_inline(w);
	size_t length = 0;

	for (size_t i = 0; i < count; i++) {
		if (buffers[i].length > qp->max_inline - length)
			return EINVAL;
		memcpy(to + length, buffers[i].addr, buffers[i].length);
		length += buffers[i].length;
	}
	w->num_sge = 0;
	w->inline_length = (uint16_t)length;
	return 0;
}

void send_write_word(struct send_work *w, const void *octets)
{
	static_assert(sizeof(struct send_work) + 8 <= 64,
		      "the smallest slot has room for eight octets");
	memcpy(send_work_inline(w), octets, 8);
	w->flags |= WORK_INLINE;
	w->num_sge = 0;
	w->inline_length = 8;
}

int send_write_elements(struct qp *qp, struct send_work *w, const struct ibv_sge *sge, size_t count)
{
	struct work_sge *to = send_work_sge(w);
	uint64_t length = 0;

	if (count > qp->sq.max_sge)
		return EINVAL;
	for (size_t i = 0; i < count; i++) {
		to[i].addr = sge[i].addr;
		to[i].length = sge[i].length;
		to[i].lkey = sge[i].lkey;
		length += sge[i].length;
	}
	w->num_sge = (uint8_t)count;
	w->inline_length = 0;
	return length > LIMIT_MESSAGE ? EINVAL : 0;
}

static int write_data(struct qp *qp, struct send_work *w, const struct ibv_send_wr *wr)
{
	struct ibv_data_buf buffers[LIMIT_SGE];

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > LIMIT_SGE)
		return EINVAL;
	if (!(wr->send_flags & IBV_SEND_INLINE))
		return send_write_elements(qp, w, wr->sg_list, (size_t)wr->num_sge);
	for (int i = 0; i < wr->num_sge; i++) {
		buffers[i].addr = (void *)(uintptr_t)wr->sg_list[i].addr;
		buffers[i].length = wr->sg_list[i].length;
	}
	return send_write_inline(qp, w, buffers, (size_t)wr->num_sge);
}

static int write_operation(struct qp *qp, struct send_work *w, const struct ibv_send_wr *wr)
{
	bool is_inline = (wr->send_flags & IBV_SEND_INLINE) != 0;

	switch (wr->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		return 0;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		w->remote_addr = wr->wr.rdma.remote_addr;
		w->rkey = wr->wr.rdma.rkey;
		return 0;
	case IBV_WR_RDMA_READ:
		w->remote_addr = wr->wr.rdma.remote_addr;
		w->rkey = wr->wr.rdma.rkey;
		return is_inline ? EINVAL : 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		w->remote_addr = wr->wr.atomic.remote_addr;
		w->rkey = wr->wr.atomic.rkey;
		w->compare_add = wr->wr.atomic.compare_add;
		w->swap = wr->wr.atomic.swap;
		return is_inline ? EINVAL : 0;
	case IBV_WR_ATOMIC_WRITE:
		w->remote_addr = wr->wr.rdma.remote_addr;
		w->rkey = wr->wr.rdma.rkey;
		return 0;
	case IBV_WR_TSO:
		return tso_write(qp, w, wr->tso.hdr, wr->tso.hdr_sz, wr->tso.mss);
	default:
		return EINVAL;
	}
}

int send_write_datagram(const struct qp *qp, struct send_work *w, const struct ibv_ah *ah,
			uint32_t remote_qpn, uint32_t remote_qkey)
{
	if (ah == NULL || !is_same_domain(ah->pd, qp->ibv.qp_base.pd))
		return EINVAL;
	w->ah = ah->handle;
	w->remote_qpn = remote_qpn;
	w->remote_qkey = remote_qkey;
	return 0;
}

int send_check(const struct qp *qp, const struct send_work *w)
{
	const struct work_sge *sge;
	uint64_t length = w->inline_length;

	if (qp->ibv.qp_base.qp_type != IBV_QPT_UD && w->opcode != WORK_ATOMIC_WRITE)
		return 0;
	sge = send_work_sge(w);
	for (uint32_t i = 0; i < w->num_sge; i++)
		length += sge[i].length;
	if (w->opcode == WORK_ATOMIC_WRITE)
		return length == 8 ? 0 : EINVAL;
	/* A datagram is one packet, and so is each segment of one. Each needs an address handle. */
	if (w->opcode == WORK_TSO)
		length = (uint64_t)w->tso_header + w->mss;
	return length > __atomic_load_n(&qp->mtu, __ATOMIC_RELAXED) || w->ah == 0 ? EINVAL : 0;
}

/* XRC: the number of the SRQ at the peer, 24 bits. */
static int write_target(struct qp *qp, struct send_work *w, const struct ibv_send_wr *wr)
{
	if (qp->ibv.qp_base.qp_type != IBV_QPT_XRC_SEND)
		return 0;
	send_work_set_srqn(w, wr->qp_type.xrc.remote_srqn);
	return wr->qp_type.xrc.remote_srqn >> 24 != 0 ? EINVAL : 0;
}

/*
 * Whether the request is one of the usual kind: a SEND, WRITE or READ of one element on a reliable
 * connection.
 */
static inline bool is_plain(const struct qp *qp, const struct ibv_send_wr *wr)
{
	const uint32_t opcodes =
		1u << IBV_WR_SEND | 1u << IBV_WR_RDMA_WRITE | 1u << IBV_WR_RDMA_READ;
	const uint32_t flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;

	return qp->ibv.qp_base.qp_type == IBV_QPT_RC && wr->num_sge == 1 && qp->sq.max_sge > 0 &&
	       (wr->send_flags & ~flags) == 0 && wr->opcode < 32 && (opcodes >> wr->opcode & 1) &&
	       wr->sg_list->length <= LIMIT_MESSAGE;
}

static inline void write_plain(struct send_work *w, const struct ibv_send_wr *wr)
{
	bool is_send = wr->opcode == IBV_WR_SEND;

	*w = (struct send_work){
		.wr_id = wr->wr_id,
		.opcode = (uint8_t)wr->opcode,
		.flags = (uint8_t)wr->send_flags,
		.num_sge = 1,
		.rkey = is_send ? 0 : wr->wr.rdma.rkey,
		.remote_addr = is_send ? 0 : wr->wr.rdma.remote_addr,
	};
	*send_work_sge(w) = (struct work_sge){
		.addr = wr->sg_list->addr,
		.length = wr->sg_list->length,
		.lkey = wr->sg_list->lkey,
	};
}

static __attribute__((noinline)) int write_send(struct qp *qp, struct send_work *w,
						const struct ibv_send_wr *wr)
{
	int error = 0;

	if ((wr->send_flags & ~qp->send_flags) != 0 || !qp_carries(qp, wr->opcode))
		return EINVAL;
	memset(w, 0, sizeof(*w));
	w->wr_id = wr->wr_id;
	w->opcode = (uint8_t)wr->opcode;
	w->flags = (uint8_t)wr->send_flags;
	w->imm = wr->imm_data;
	error = write_target(qp, w, wr);
	if (error != 0)
		return error;
	if (wr->opcode == IBV_WR_BIND_MW || wr->opcode == IBV_WR_LOCAL_INV)
		return mw_write(w, wr);
	error = write_operation(qp, w, wr);
	if (error == 0 && qp->ibv.qp_base.qp_type == IBV_QPT_UD)
		error = send_write_datagram(qp, w, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
					    wr->wr.ud.remote_qkey);
	if (error == 0)
		error = write_data(qp, w, wr);
	if (error == 0 && wr->opcode == IBV_WR_TSO)
		error = tso_finish(qp, w);
	return error != 0 ? error : send_check(qp, w);
}

static inline int post_one_send(struct qp *qp, const struct ibv_send_wr *wr)
{
	struct send_work *w;
	int error = send_admit(qp);

	if (error != 0)
		return error;
	w = send_reserve(qp);
	if (w == NULL)
		return ENOMEM;
	if (is_plain(qp, wr))
		write_plain(w, wr);
	else
		error = write_send(qp, w, wr);
	if (error != 0)
		return error;
	if (wr->opcode == IBV_WR_BIND_MW)
		wr->bind_mw.mw->rkey = wr->bind_mw.rkey;
	commit(qp, w);
	return 0;
}

int verbs_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct qp *qp = qp_of(ibv);
	struct ibv_send_wr *first = wr;
	struct cq *wakes = NULL;
	int error = 0;

	queue_lock(&qp->sq.lock);
	while (wr != NULL) {
		error = post_one_send(qp, wr);
		if (error != 0) {
			*bad_wr = wr;
			break;
		}
		wr = wr->next;
	}
	if (wr != first) {
		qp_ring_doorbell(qp);
		wakes = flush_posted(qp, qp->send_page, qp->init.send_cq);
	}
	queue_unlock(&qp->sq.lock);
	if (wakes != NULL)
		flush_armed(wakes);
	return error;
}

static int post_one_recv(struct qp *qp, const struct ibv_recv_wr *wr)
{
	struct work_queue *q = &qp->rq;
	struct recv_work *w;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > q->max_sge)
		return EINVAL;
	if (q->ring == NULL || q->posted - __atomic_load_n(&q->done, __ATOMIC_RELAXED) >= q->max_wr)
		return ENOMEM;
	w = ring_client_reserve_seen(q->ring, q->stride, &q->read);
	if (w == NULL)
		return ENOMEM;
	recv_write(w, wr);
	q->wr_id[q->posted & q->mask] = wr->wr_id;
	__atomic_store_n(&q->posted, q->posted + 1, __ATOMIC_RELAXED);
	ring_client_publish(q->ring);
	return 0;
}

/*
 * An lcore reads the receive ring when a packet needs a request. It needs a doorbell only in ERR,
 * to flush the requests. The fence between publishing and reading the flag pairs with the engine's
 * fence between setting the flag and draining the ring: one side sees the other.
 */
static void ring_if_flushing(struct qp *qp)
{
	queue_fence();
	if (__atomic_load_n(&qp->page->flush_receives, __ATOMIC_RELAXED))
		qp_ring_doorbell(qp);
}

int verbs_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct qp *qp = qp_of(ibv);
	struct ibv_recv_wr *first = wr;
	struct cq *wakes = NULL;
	int error = 0;

	queue_lock(&qp->rq.lock);
	while (wr != NULL) {
		error = qp->rq.resets == 0 && state_at_least(qp, IBV_QPS_INIT)
				? post_one_recv(qp, wr)
				: EINVAL;
		if (error != 0) {
			*bad_wr = wr;
			break;
		}
		wr = wr->next;
	}
	if (wr != first) {
		ring_if_flushing(qp);
		wakes = flush_posted(qp, qp->recv_page, qp->init.recv_cq);
	}
	queue_unlock(&qp->rq.lock);
	if (wakes != NULL)
		flush_armed(wakes);
	return error;
}
