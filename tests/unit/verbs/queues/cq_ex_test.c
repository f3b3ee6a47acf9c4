/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended completion queues: timestamps, one thread, and what a program may do while it polls.
 * Runs with an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <time.h>

#include "rig/cq_pair.h"

TestSuite(cq_ex, .init = open_endpoint, .fini = close_endpoint, .timeout = 60);

static void start_poll(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = { 0 };
	uint64_t until = now_ns(CLOCK_MONOTONIC) + WAIT_SECONDS * UINT64_C(1000000000);
	int error;

	while ((error = ibv_start_poll(cq, &attr)) == ENOENT)
		cr_assert(now_ns(CLOCK_MONOTONIC) < until, "no completion came");
	cr_assert_eq(error, 0);
}

static uint64_t device_clock(void)
{
	struct ibv_values_ex v = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	cr_assert_eq(ibv_query_rt_values_ex(e.context, &v), 0);
	cr_assert_eq(v.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	return (uint64_t)v.raw_clock.tv_sec * 1000000000u + (uint64_t)v.raw_clock.tv_nsec;
}

Test(cq_ex, completions_have_timestamps)
{
	struct ibv_cq_ex *cq =
		extended(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
				 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
			 0, 64);
	uint64_t clock = device_clock(), wall = now_ns(CLOCK_REALTIME), at;
	struct ibv_device_attr_ex attr;
	struct pair p = { 0 };

	cr_assert_eq(ibv_query_device_ex(e.context, NULL, &attr), 0);
	cr_assert_eq(attr.hca_core_clock, 1000000, "kHz: ns");
	cr_assert_eq(attr.completion_timestamp_mask, UINT64_MAX);
	open_pair_on(&p, (struct ibv_cq *)cq);
	for (uint64_t i = 0; i < 20; i++) {
		cr_assert_eq(post_write(p.qp[0], i), 0);
		start_poll(cq);
		cr_assert_eq(cq->wr_id, i);
		at = ibv_wc_read_completion_ts(cq);
		cr_assert_geq(at, clock, "before it was posted");
		cr_assert_leq(at, device_clock(), "in the future");
		clock = at;
		at = ibv_wc_read_completion_wallclock_ns(cq);
		/* the clocks are read one after the other, and NTP may slew one of them */
		cr_assert_geq(at + 1000000, wall);
		cr_assert_leq(at, now_ns(CLOCK_REALTIME) + 1000000);
		wall = at;
		ibv_end_poll(cq);
	}
	close_pair(&p);
}

Test(cq_ex, unknown_real_time_values_are_refused)
{
	struct ibv_values_ex v = { .comp_mask = IBV_VALUES_MASK_RESERVED };

	cr_expect_eq(ibv_query_rt_values_ex(e.context, &v), EINVAL);
	v.comp_mask = 0;
	cr_expect_eq(ibv_query_rt_values_ex(e.context, &v), 0);
}

Test(cq_ex, one_thread_needs_no_lock)
{
	struct ibv_cq_ex *cq =
		extended(IBV_WC_STANDARD_FLAGS, IBV_CREATE_CQ_ATTR_SINGLE_THREADED, 64);
	struct pair p = { 0 };

	open_pair_on(&p, (struct ibv_cq *)cq);
	for (uint64_t round = 0; round < 20; round++) {
		post_many(p.qp[0], 0, 10);
		expect_in_order(p.cq, 0, 10);
		start_poll((post_many(p.qp[0], 1, 1), cq));
		cr_assert_eq(ibv_next_poll(cq), ENOENT);
		ibv_end_poll(cq);
	}
	cr_assert_eq(ibv_resize_cq(p.cq, 128), 0);
	post_many(p.qp[0], 0, 10);
	expect_in_order(p.cq, 0, 10);
	close_pair(&p);
}

/* A program may ask for the next event while it reads a completion. */
Test(cq_ex, an_extended_queue_is_armed_while_it_is_polled)
{
	struct ibv_cq_init_attr_ex init = { .cqe = DEPTH, .channel = e.channel };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(e.context, &init);
	struct pair p = { 0 };
	struct ibv_cq *which;
	void *context;

	open_pair_on(&p, ibv_cq_ex_to_cq(cq));
	post_many(p.qp[0], 0, 2);
	start_poll(cq);
	cr_assert_eq(ibv_req_notify_cq(p.cq, 0), 0);
	ibv_end_poll(cq);
	cr_assert_eq(ibv_get_cq_event(e.channel, &which, &context), 0);
	cr_expect_eq(which, p.cq);
	ibv_ack_cq_events(which, 1);
	expect_in_order(p.cq, 1, 1);
	close_pair(&p);
}

/* A server that reads a completion may make a queue pair, or end one, before it reads the next. */
Test(cq_ex, queue_pairs_come_and_go_while_an_extended_queue_is_polled)
{
	struct ibv_cq_ex *cq = extended(IBV_WC_STANDARD_FLAGS, 0, 64);
	struct pair p = { 0 }, other = { 0 };

	open_pair_on(&p, ibv_cq_ex_to_cq(cq));
	post_many(p.qp[0], 7, 2);
	start_poll(cq);
	open_pair_on(&other, p.cq);
	post_many(other.qp[0], 1, 1);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

		cr_expect_eq(ibv_modify_qp(other.qp[i], &reset, IBV_QP_STATE), 0);
		cr_expect_eq(ibv_destroy_qp(other.qp[i]), 0);
	}
	cr_expect_eq(cq->wr_id, 7, "the completion stays");
	ibv_end_poll(cq);
	expect_in_order(p.cq, 8, 1);
	close_pair(&p);
}
