/* SPDX-License-Identifier: BSD-3-Clause */
#include "window_rig.h"

#include <criterion/criterion.h>
#include <string.h>

struct endpoint e;
struct ibv_mr *region;
struct ibv_qp *third, *fourth;
struct ibv_mw *type1, *type2;

void windows_open(void)
{
	endpoint_open(&e);
	region = ibv_reg_mr(e.pd, e.buffer, BUFFER, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	third = endpoint_create_qp(&e);
	fourth = endpoint_create_qp(&e);
	cr_assert(region && third && fourth, "%m");
	cr_assert_eq(endpoint_connect(&e, third, fourth->qp_num), 0);
	cr_assert_eq(endpoint_connect(&e, fourth, third->qp_num), 0);
	type1 = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
	type2 = ibv_alloc_mw(e.pd, IBV_MW_TYPE_2);
	cr_assert(type1 && type2, "ibv_alloc_mw: %m");
}

void windows_close(void)
{
	cr_expect_eq(ibv_dealloc_mw(type1), 0);
	cr_expect_eq(ibv_dealloc_mw(type2), 0);
	cr_expect_eq(ibv_destroy_qp(third), 0);
	cr_expect_eq(ibv_destroy_qp(fourth), 0);
	cr_expect_eq(ibv_dereg_mr(region), 0);
	endpoint_close(&e);
}

/* ---- requests and their results ---- */

struct ibv_mw_bind_info info_of(struct ibv_mr *mr, uint32_t at, uint64_t length,
				unsigned int access)
{
	return (struct ibv_mw_bind_info){ mr, (uintptr_t)e.buffer + at, length, access };
}

struct ibv_wc one_completion(const char *what)
{
	struct ibv_wc wc;

	poll_completions(e.cq, &wc, 1, what);
	return wc;
}

int post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int error;

	wr->send_flags |= IBV_SEND_SIGNALED;
	error = ibv_post_send(qp, wr, &bad);
	cr_expect_eq(bad, error != 0 ? wr : NULL);
	return error;
}

int post_bind1(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
	struct ibv_mw_bind bind = { .wr_id = 1,
				    .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = info };

	return ibv_bind_mw(qp, mw, &bind);
}

int post_bind2(struct ibv_qp *qp, struct ibv_mw *mw, uint32_t rkey, struct ibv_mw_bind_info info)
{
	struct ibv_send_wr wr = { .wr_id = 2, .opcode = IBV_WR_BIND_MW };

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = info;
	return post(qp, &wr);
}

enum ibv_wc_status bind1(struct ibv_qp *qp, struct ibv_mw_bind_info info)
{
	int error = post_bind1(qp, type1, info);

	cr_assert_eq(error, 0, "ibv_bind_mw: %s, access %#x", strerror(error),
		     info.mw_access_flags);
	return one_completion("a bind of type 1").status;
}

enum ibv_wc_status bind2(struct ibv_qp *qp, struct ibv_mw_bind_info info)
{
	cr_assert_eq(post_bind2(qp, type2, ibv_inc_rkey(type2->rkey), info), 0);
	return one_completion("a bind of type 2").status;
}

enum ibv_wc_status invalidate(struct ibv_qp *qp, uint32_t rkey)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = rkey };

	cr_assert_eq(post(qp, &wr), 0);
	return one_completion("a local invalidation").status;
}

enum ibv_wc_status rdma(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint64_t remote,
			uint32_t length, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, length, e.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode };

	wr.wr.rdma.remote_addr = remote;
	wr.wr.rdma.rkey = rkey;
	cr_assert_eq(post(qp, &wr), 0);
	return one_completion("a request through a window").status;
}

enum ibv_wc_status write_at(struct ibv_qp *qp, uint32_t at, uint32_t length, uint32_t rkey)
{
	return rdma(qp, IBV_WR_RDMA_WRITE, (uintptr_t)e.buffer + at, length, rkey);
}

/* After an error: makes the queue pairs as new and empties the CQ. */
void reconnect(void)
{
	struct ibv_qp *qp[] = { e.qp[0], e.qp[1], third, fourth };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_wc wc;

	for (int i = 0; i < 4; i++)
		cr_assert_eq(ibv_modify_qp(qp[i], &attr, IBV_QP_STATE), 0);
	cr_assert_eq(ibv_poll_cq(e.cq, 1, &wc), 0, "a reset takes completions away");
	for (int i = 0; i < 4; i++)
		cr_assert_eq(endpoint_connect(&e, qp[i], qp[i ^ 1]->qp_num), 0);
}
