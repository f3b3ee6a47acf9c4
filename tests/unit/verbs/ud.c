/* SPDX-License-Identifier: BSD-3-Clause */
#include "ud.h"

#include <criterion/criterion.h>
#include <errno.h>

struct ibv_qp *ud_create(struct endpoint *e, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = { UD_DEPTH, UD_DEPTH, 4, 4, 128 },
		.qp_type = type,
	};

	return ibv_create_qp(e->pd, &init);
}

int ud_ready(struct ibv_qp *qp, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey };
	int error = ibv_modify_qp(qp, &attr,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (error == 0)
		error = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (error == 0)
		error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return error;
}

struct ibv_qp *ud_open(struct endpoint *e, uint32_t qkey)
{
	struct ibv_qp *qp = ud_create(e, IBV_QPT_UD);
	int error;

	cr_assert_not_null(qp, "ibv_create_qp: %m");
	error = ud_ready(qp, qkey);
	cr_assert_eq(error, 0, "to RTS: %s", strerror(error));
	return qp;
}

void ud_receive(struct endpoint *e, struct ibv_qp *qp, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer + offset, length, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = offset, .sg_list = &sge, .num_sge = 1 }, *bad;

	cr_assert_eq(ibv_post_recv(qp, &wr, &bad), 0);
}

int ud_send(struct endpoint *e, struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
	    uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer + offset, length, e->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 77,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = qkey },
	};
	struct ibv_send_wr *bad = NULL;
	int error = ibv_post_send(qp, &wr, &bad);

	if (error != 0)
		cr_expect_eq(bad, &wr);
	return error;
}

void ud_silent(struct ibv_cq *cq, const char *what)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	struct ibv_wc wc;

	for (int i = 0; i < 30; i++) {
		cr_assert_eq(ibv_poll_cq(cq, 1, &wc), 0, "%s: something completes", what);
		nanosleep(&pause, NULL);
	}
}

struct ibv_ah *ud_self(struct endpoint *e, uint8_t sgid_index)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .sgid_index = sgid_index, .hop_limit = 9, .traffic_class = 0x20 },
	};
	struct ibv_ah *ah;

	cr_assert_eq(ibv_query_gid(e->context, 1, sgid_index, &attr.grh.dgid), 0);
	ah = ibv_create_ah(e->pd, &attr);
	cr_assert_not_null(ah, "ibv_create_ah: %m");
	return ah;
}

union ibv_gid ipv4_gid(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return (union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff, [12] = a, b, c, d } };
}

struct ibv_ah_attr ud_to_self(const struct endpoint *e)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = e->gid, .sgid_index = GID_INDEX, .hop_limit = 64 },
	};
}

void ud_sent_alone(struct ibv_cq *cq, const char *what)
{
	struct ibv_wc wc;

	poll_completions(cq, &wc, 1, what);
	cr_expect_eq(wc.opcode, IBV_WC_SEND, "%s", what);
	cr_expect_eq(wc.status, IBV_WC_SUCCESS, "%s", what);
	ud_silent(cq, what);
}
