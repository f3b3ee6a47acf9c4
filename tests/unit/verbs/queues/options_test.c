/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rate limits, connection establishment options and placement order of a queue pair: their
 * effects, and the errno of the manual page otherwise. Runs with an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <time.h>

#include "base/bits.h"
#include "rig/endpoint.h"

static struct endpoint e;

static void open_endpoint(void)
{
	endpoint_open(&e);
}

static void close_endpoint(void)
{
	endpoint_close(&e);
}

TestSuite(options, .init = open_endpoint, .fini = close_endpoint, .timeout = 60);

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds that `n` WRITEs of half the buffer to the other half take. */
static double write_time(int n)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, BUFFER / 2, e.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	double start = now();
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = (uintptr_t)e.buffer + BUFFER / 2;
	wr.wr.rdma.rkey = e.mr->rkey;
	for (int i = 0; i < n; i++) {
		cr_assert_eq(ibv_post_send(e.qp[0], &wr, &bad), 0);
		poll_completions(e.cq, &wc, 1, "a WRITE");
		cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	}
	return now() - start;
}

/* ---- other services, whose messages may be lost ---- */

#define MESSAGE 1000u

static struct ibv_qp *create(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e.cq, .recv_cq = e.cq, .cap = { 8, 8, 1, 1, 0 }, .qp_type = type
	};

	return ibv_create_qp(e.pd, &init);
}

static int bring_up(struct ibv_qp *qp)
{
	bool uc = qp->qp_type == IBV_QPT_UC, ud = qp->qp_type == IBV_QPT_UD;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = e.gid, .sgid_index = GID_INDEX, .hop_limit = 64 } },
	};
	int error = ibv_modify_qp(qp, &attr,
				  IBV_QP_STATE | IBV_QP_PORT | (uc || ud ? IBV_QP_PKEY_INDEX : 0) |
					  (uc ? IBV_QP_ACCESS_FLAGS : 0) | (ud ? IBV_QP_QKEY : 0));

	attr.qp_state = IBV_QPS_RTR;
	if (error == 0)
		error = ibv_modify_qp(
			qp, &attr,
			IBV_QP_STATE |
				(uc ? IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
				    : 0));
	attr.qp_state = IBV_QPS_RTS;
	if (error == 0)
		error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | (uc || ud ? IBV_QP_SQ_PSN : 0));
	return error;
}

static double send_time(struct ibv_qp *qp, struct ibv_ah *ah, int n)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, MESSAGE, e.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	double start = now();
	struct ibv_wc wc;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qp->qp_num;
	for (int i = 0; i < n; i++) {
		cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0);
		poll_completions(e.cq, &wc, 1, "a SEND");
		cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	}
	return now() - start;
}

static int limit(struct ibv_qp *qp, uint32_t kilobits)
{
	struct ibv_qp_rate_limit_attr attr = { .rate_limit = kilobits };

	return ibv_modify_qp_rate_limit(qp, &attr);
}

static uint32_t limit_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	cr_assert_eq(ibv_query_qp(qp, &attr, IBV_QP_RATE_LIMIT, &init), 0);
	return attr.rate_limit;
}

Test(options, a_limited_queue_pair_does_not_exceed_its_rate)
{
	const uint32_t kilobits = 16000; /* 2 MB/s */
	const int writes = 32; /* 1 MiB */
	double octets = writes * (double)BUFFER / 2, least = octets * 8 / (kilobits * 1e3);
	double took;

	cr_assert_eq(limit(e.qp[0], kilobits), 0);
	cr_expect_eq(limit_of(e.qp[0]), kilobits);
	took = write_time(writes);
	/* minus a burst at the start */
	cr_expect_gt(took, least * 0.9, "%.0f octets in %.3f s: faster than %.3f", octets, took,
		     least);
	cr_assert_eq(limit(e.qp[0], 0), 0);
	cr_expect_eq(limit_of(e.qp[0]), 0);
	write_time(writes); /* story/rate_test.c measures how fast it is now */
}

Test(options, limited_queue_pairs_of_other_types_do_not_exceed_it)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET };
	struct ibv_ah_attr self = { .is_global = 1,
				    .port_num = 1,
				    .grh = { .dgid = e.gid, .sgid_index = GID_INDEX } };
	struct ibv_ah *ah = ibv_create_ah(e.pd, &self);
	const double least = 200 * MESSAGE * 8 / 8e6;
	struct ibv_device_attr_ex device;

	cr_assert_not_null(ah, "%m");
	cr_assert_eq(ibv_query_device_ex(e.context, NULL, &device), 0);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct ibv_qp *qp = create(types[i]);
		double took;

		if (qp == NULL && types[i] == IBV_QPT_RAW_PACKET && errno == EPERM)
			continue; /* not root */
		cr_assert_not_null(qp, "type %d: %m", (int)types[i]);
		cr_expect(device.packet_pacing_caps.supported_qpts & 1u << types[i]);
		cr_assert_eq(bring_up(qp), 0, "type %d does not go to RTS", (int)types[i]);
		cr_assert_eq(limit(qp, 8000), 0);
		took = send_time(qp, ah, 200);
		cr_expect_gt(took, least * 0.8, "type %d: %.3f s", (int)types[i], took);
		cr_assert_eq(limit(qp, 0), 0);
		send_time(qp, ah, 200);
		cr_expect_eq(ibv_destroy_qp(qp), 0);
	}
	cr_expect_eq(ibv_destroy_ah(ah), 0);
}

Test(options, wrong_limits_are_refused)
{
	struct ibv_qp_rate_limit_attr burst = { .rate_limit = 1000, .max_burst_sz = 1500 };
	struct ibv_qp_rate_limit_attr typical = { .rate_limit = 1000, .typical_pkt_sz = 500 };
	struct ibv_qp *reset = endpoint_create_qp(&e);
	struct ibv_device_attr_ex device;

	cr_assert_eq(ibv_query_device_ex(e.context, NULL, &device), 0);
	cr_expect(device.packet_pacing_caps.supported_qpts & 1u << IBV_QPT_RC);
	cr_expect_eq(limit(e.qp[0], device.packet_pacing_caps.qp_rate_limit_max), 0);
	cr_expect_eq(limit(e.qp[0], device.packet_pacing_caps.qp_rate_limit_min), 0);
	cr_expect_eq(limit(e.qp[0], device.packet_pacing_caps.qp_rate_limit_max + 1), EINVAL);
	cr_expect_eq(limit(e.qp[0], UINT32_MAX), EINVAL);
	cr_expect_eq(limit_of(e.qp[0]), device.packet_pacing_caps.qp_rate_limit_min);
	cr_expect_eq(ibv_modify_qp_rate_limit(e.qp[0], &burst), EOPNOTSUPP);
	cr_expect_eq(ibv_modify_qp_rate_limit(e.qp[0], &typical), EOPNOTSUPP);
	cr_expect_eq(ibv_modify_qp_rate_limit(e.qp[0], NULL), EINVAL);
	cr_expect_eq(limit(reset, 1000), EINVAL, "in RESET");
	cr_assert_eq(endpoint_to_init(reset), 0);
	cr_expect_eq(limit(reset, 1000), EINVAL, "in INIT");
	cr_expect_eq(ibv_destroy_qp(reset), 0);
}

static int to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

Test(options, there_are_no_establishment_options)
{
	struct ibv_qp *qp = endpoint_create_qp(&e);
	struct ibv_ece ece = { .vendor_id = 1, .options = 2, .comp_mask = 3 };

	cr_expect_eq(ibv_query_ece(qp, &ece), 0);
	cr_expect_neq(ece.vendor_id, 0);
	cr_expect_eq(ece.options, 0);
	cr_expect_eq(ece.comp_mask, 0);
	/* what another device proposes, before and on the way to RTS */
	for (int i = 0; i < 2; i++) {
		ece = (struct ibv_ece){ .vendor_id = 0x15b3, .options = 0xffffffff };
		cr_expect_eq(ibv_set_ece(qp, &ece), 0);
		cr_expect_eq(ece.options, 0, "none is accepted");
		cr_assert_eq(endpoint_to_init(qp), 0);
	}
	ece = (struct ibv_ece){ .vendor_id = 0x15b3, .comp_mask = 1 };
	cr_expect_eq(ibv_set_ece(qp, &ece), EINVAL, "an unknown member");
	ece = (struct ibv_ece){ 0 };
	errno = 0;
	cr_expect_eq(ibv_set_ece(qp, &ece), EOPNOTSUPP, "no vendor");
	cr_expect_eq(errno, EOPNOTSUPP);
	cr_expect_eq(ibv_set_ece(qp, NULL), EINVAL);
	cr_expect_eq(ibv_query_ece(qp, NULL), EINVAL);
	ece = (struct ibv_ece){ .vendor_id = 0x15b3 };
	cr_expect_eq(ibv_set_ece(e.qp[0], &ece), EINVAL, "in RTS");
	cr_expect_eq(ibv_query_ece(e.qp[0], &ece), 0);
	cr_assert_eq(to_state(e.qp[0], IBV_QPS_ERR), 0);
	cr_expect_eq(ibv_set_ece(e.qp[0], &ece), EINVAL, "in ERR");
	cr_assert_eq(to_state(e.qp[0], IBV_QPS_RESET), 0);
	cr_expect_eq(ibv_set_ece(e.qp[0], &ece), 0);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
}

Test(options, no_operation_promises_an_order_of_octets)
{
	for (int op = 0; op < 32; op++)
		for (uint32_t flags = 0; flags < 3; flags++)
			cr_expect_eq(
				ibv_query_qp_data_in_order(e.qp[0], (enum ibv_wr_opcode)op, flags),
				0);
}
