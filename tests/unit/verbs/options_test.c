/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rate limits, connection establishment options and placement order of a queue pair: what they do,
 * and the errno of the manual page where they cannot. Runs with an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <time.h>

#include "base/bits.h"
#include "endpoint.h"

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
	/* less a burst at the beginning */
	cr_expect_gt(took, least * 0.9, "%.0f octets in %.3f s: faster than %.3f", octets, took,
		     least);
	cr_assert_eq(limit(e.qp[0], 0), 0);
	cr_expect_eq(limit_of(e.qp[0]), 0);
	cr_expect_lt(write_time(writes), took, "without a limit it is not slower");
}

Test(options, limits_that_cannot_be)
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
	cr_expect_eq(ibv_modify_qp_rate_limit(e.qp[0], &burst), EINVAL);
	cr_expect_eq(ibv_modify_qp_rate_limit(e.qp[0], &typical), EINVAL);
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
	ece = (struct ibv_ece){ .comp_mask = 1 };
	cr_expect_eq(ibv_set_ece(qp, &ece), EINVAL, "an unknown member");
	cr_expect_eq(ibv_set_ece(qp, NULL), EINVAL);
	cr_expect_eq(ibv_query_ece(qp, NULL), EINVAL);
	ece = (struct ibv_ece){ 0 };
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
