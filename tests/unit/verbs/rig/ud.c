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

void ud_one_datagram(struct endpoint *e, struct ibv_ah *ah, struct ibv_qp *from, struct ibv_qp *to,
		     struct ibv_wc *received)
{
	struct ibv_wc wc[2];
	int in;

	memset(e->buffer, 0xee, 4096);
	memset(e->buffer + 8192, 0x5a, 64);
	ud_receive(e, to, 0, 256);
	cr_assert_eq(ud_send(e, from, ah, to->qp_num, UD_QKEY, 8192, 64), 0);
	poll_completions(e->cq, wc, 2, "a datagram");
	in = wc[0].opcode == IBV_WC_RECV ? 0 : 1;
	cr_assert_eq(wc[in].status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc[in].status));
	cr_assert_eq(wc[1 - in].status, IBV_WC_SUCCESS);
	cr_expect_eq(wc[1 - in].opcode, IBV_WC_SEND);
	cr_expect_eq(wc[1 - in].wr_id, 77);
	*received = wc[in];
	cr_expect_eq(received->byte_len, GRH + 64);
	cr_expect(received->wc_flags & IBV_WC_GRH);
	cr_expect_eq(received->qp_num, to->qp_num);
	cr_expect_eq(received->src_qp, from->qp_num);
	cr_expect_arr_eq(e->buffer + GRH, e->buffer + 8192, 64, "payload begins at octet 40");
	cr_expect_eq(e->buffer[GRH + 64], 0xee, "and ends where it should");
}
