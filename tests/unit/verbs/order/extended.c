/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests by ibv_wr_start: all that were built are posted by ibv_wr_complete, or none of them. */
#include "model.h"

#include <string.h>

#define LIST 8u /* requests between start and complete, at most */

static void set_operation(struct ibv_qp_ex *qp, const struct model_qp *q, enum ibv_wr_opcode opcode)
{
	struct ibv_sge at = target(q, 3 * LONGEST);
	uint64_t word = rarely() ? at.addr : (at.addr + 7) & ~UINT64_C(7);

	switch (opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(qp);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, 1);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, at.lkey, at.addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, at.lkey, at.addr, 1);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, at.lkey, at.addr);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qp, at.lkey, word, 1);
		break;
	default:
		ibv_wr_atomic_cmp_swp(qp, at.lkey, word, 0, 1);
	}
}

static void set_data(struct ibv_qp_ex *qp, const struct model_qp *q, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge[3];
	bool is_atomic =
		opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	uint8_t octets[32] = { 0 };

	parts(q->pd, sge, 3);
	if (is_atomic)
		sge[0].length = 8;
	if (opcode < IBV_WR_RDMA_READ && draw(4) == 0)
		ibv_wr_set_inline_data(qp, octets, draw(sizeof(octets) + 1));
	else if (is_atomic || draw(2) == 0)
		ibv_wr_set_sge(qp, sge[0].lkey, sge[0].addr, sge[0].length);
	else
		ibv_wr_set_sge_list(qp, draw(4), sge);
}

/* UD: `ah` is not NULL. */
static struct posted build(struct ibv_qp_ex *qp, const struct model_qp *q, struct ibv_ah *ah,
			   uint32_t qpn)
{
	enum ibv_wr_opcode opcode = some_opcode(q);
	uint32_t srqn;

	/* an operation that it does not carry has no function */
	while (opcode == IBV_WR_LOCAL_INV || opcode == IBV_WR_SEND_WITH_INV ||
	       (q->type == IBV_QPT_UD && (opcode < IBV_WR_SEND || opcode > IBV_WR_SEND_WITH_IMM)) ||
	       (q->type == IBV_QPT_UC && opcode >= IBV_WR_RDMA_READ))
		opcode = some_opcode(q);
	qp->wr_id = ++w.last_id;
	qp->wr_flags = some_flags();
	set_operation(qp, q, opcode);
	if (q->type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(qp, ah, qpn, QKEY);
	if (q->type == IBV_QPT_XRC_SEND)
		ibv_wr_set_xrc_srqn(qp, has_srq(q, &srqn) ? srqn : 0);
	set_data(qp, q, opcode);
	return (struct posted){ qp->wr_id,
				q->all_signaled || (qp->wr_flags & IBV_SEND_SIGNALED) != 0 };
}

void extended_step(void)
{
	struct posted posted[LIST];
	struct model_qp *q = some_sender();
	uint32_t n = draw(LIST + 1), qpn;
	struct ibv_ah *ah = some_address(&qpn);
	struct ibv_qp_ex *qp;

	if (q->qp == NULL || !q->extended || q->sends.count > MOST - LIST ||
	    (q->type == IBV_QPT_UD && ah == NULL) ||
	    (q->type == IBV_QPT_XRC_SEND && !has_srq(q, &qpn)))
		return;
	qp = ibv_qp_to_qp_ex(q->qp);
	ibv_wr_start(qp);
	for (uint32_t i = 0; i < n; i++)
		posted[i] = build(qp, q, ah, qpn);
	if (draw(8) == 0) {
		ibv_wr_abort(qp);
		return;
	}
	w.call = "ibv_wr_complete";
	if (ibv_wr_complete(qp) != 0)
		return;
	for (uint32_t i = 0; i < n; i++)
		fifo_push(&q->sends, posted[i], MOST);
}
