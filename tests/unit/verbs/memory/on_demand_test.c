/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On-demand memory for the receive requests of a shared receive queue, on each transport that
 * announces it: the pages appear when the message arrives.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "rig/ud.h"

#define ROWS(table)  (sizeof(table) / sizeof((table)[0]))
#define AREA	     (16u * 4096)
#define LENGTH	     4096u /* at most a datagram; at its address it covers two pages */
#define WHERE(i)     ((i)*3 * 4096 + 2048)
#define MESSAGES     4u
#define SRQ_RECEIVES IBV_ODP_SUPPORT_SRQ_RECV
#define OWN_RECEIVES IBV_ODP_SUPPORT_RECV

static struct endpoint e;

static void setup(void)
{
	endpoint_open(&e);
}

static void teardown(void)
{
	endpoint_close(&e);
}

TestSuite(on_demand, .init = setup, .fini = teardown, .timeout = 60);

Test(on_demand, receiving_on_demand_is_announced)
{
	struct ibv_device_attr_ex a;

	cr_assert_eq(ibv_query_device_ex(e.context, NULL, &a), 0);
	cr_expect(a.odp_caps.per_transport_caps.rc_odp_caps & SRQ_RECEIVES);
	cr_expect(a.odp_caps.per_transport_caps.rc_odp_caps & OWN_RECEIVES);
	cr_expect(a.odp_caps.per_transport_caps.uc_odp_caps & SRQ_RECEIVES);
	cr_expect(a.odp_caps.per_transport_caps.uc_odp_caps & OWN_RECEIVES);
	cr_expect(a.odp_caps.per_transport_caps.ud_odp_caps & SRQ_RECEIVES);
	cr_expect(a.odp_caps.per_transport_caps.ud_odp_caps & OWN_RECEIVES);
	cr_expect(a.xrc_odp_caps & SRQ_RECEIVES);
}

static struct ibv_qp *create_on(struct ibv_srq *srq, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .send_cq = e.cq,
					 .recv_cq = e.cq,
					 .srq = srq,
					 .cap = { UD_DEPTH, 0, 1, 0, 0 },
					 .qp_type = type };
	struct ibv_qp *qp = ibv_create_qp(e.pd, &init);

	cr_assert_not_null(qp, "%m");
	return qp;
}

static void connect_both(struct ibv_qp *a, struct ibv_qp *b)
{
	struct ibv_qp *pair[2] = { a, b };

	for (int i = 0; i < 2; i++) {
		struct ibv_qp *qp = pair[i];
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
					    .path_mtu = IBV_MTU_4096,
					    .dest_qp_num = pair[1 - i]->qp_num,
					    .ah_attr = ud_to_self(&e) };

		if (qp->qp_type == IBV_QPT_UD) {
			cr_assert_eq(ud_ready(qp, UD_QKEY), 0);
			continue;
		}
		if (qp->qp_type == IBV_QPT_RC) {
			cr_assert_eq(endpoint_connect(&e, qp, pair[1 - i]->qp_num), 0);
			continue;
		}
		cr_assert_eq(endpoint_to_init(qp), 0);
		cr_assert_eq(ibv_modify_qp(qp, &attr,
					   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
			     0);
		attr.qp_state = IBV_QPS_RTS;
		cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	}
}

static uint8_t *area(void)
{
	uint8_t *p = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	return p;
}

static void post(struct ibv_srq *srq, const struct ibv_mr *mr, const uint8_t *p, uint32_t i)
{
	struct ibv_sge sge = { (uintptr_t)p + WHERE(i), LENGTH + GRH, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	cr_assert_eq(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

/* Receives messages into unused pages of a region with that key. */
static void receive_all(enum ibv_qp_type type, struct ibv_mr *mr, uint8_t *p)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = MESSAGES, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(e.pd, &init);
	struct ibv_qp *from = create_on(srq, type), *to = create_on(srq, type);
	uint32_t skip = type == IBV_QPT_UD ? GRH : 0;
	struct ibv_ah *ah = ud_self(&e, GID_INDEX);
	struct ibv_wc wc[2];

	connect_both(from, to);
	for (uint32_t i = 0; i < MESSAGES; i++)
		post(srq, mr, p, i);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		memset(e.buffer, 0x40 + (int)i, LENGTH);
		if (type == IBV_QPT_UD)
			cr_assert_eq(ud_send(&e, from, ah, to->qp_num, UD_QKEY, 0, LENGTH), 0);
		else
			cr_assert_eq(ud_send(&e, from, NULL, 0, 0, 0, LENGTH), 0);
		poll_completions(e.cq, wc, 2, "a message");
		cr_expect_eq(wc[0].status, IBV_WC_SUCCESS, "type %u, message %u: %s", type, i,
			     ibv_wc_status_str(wc[0].status));
		cr_expect_eq(wc[1].status, IBV_WC_SUCCESS, "type %u, message %u: %s", type, i,
			     ibv_wc_status_str(wc[1].status));
		cr_expect_arr_eq(p + WHERE(i) + skip, e.buffer, LENGTH, "type %u, message %u", type,
				 i);
	}
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_destroy_qp(from), 0);
	cr_expect_eq(ibv_destroy_qp(to), 0);
	cr_expect_eq(ibv_destroy_srq(srq), 0);
}

Test(on_demand, shared_queues_of_each_transport)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };

	for (size_t i = 0; i < ROWS(types); i++) {
		uint8_t *p = area();
		struct ibv_mr *mr =
			ibv_reg_mr(e.pd, p, AREA, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);

		cr_assert_not_null(mr, "%m");
		receive_all(types[i], mr, p);
		cr_expect_eq(ibv_dereg_mr(mr), 0);
		munmap(p, AREA);
	}
}

Test(on_demand, shared_queues_and_the_whole_address_space)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	struct ibv_mr *mr =
		ibv_reg_mr(e.pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);

	cr_assert_not_null(mr, "%m");
	for (size_t i = 0; i < ROWS(types); i++) {
		uint8_t *p = area();

		receive_all(types[i], mr, p);
		munmap(p, AREA);
	}
	cr_expect_eq(ibv_dereg_mr(mr), 0);
}
