/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that were posted with an address handle are sent with it, even if the handle is
 * destroyed while its queue pair cannot send for a while. Afterwards the handle is gone from the
 * engine, too.
 */
#include <criterion/criterion.h>
#include <time.h>

#include "rig/engine_objects.h"
#include "rig/ud.h"

#define SLOW   1000u /* kbit/s: a datagram in 17 ms, but two of the MTU go at once */
#define CRAWL  1u /* a datagram in 17 s */
#define LENGTH 2048u
#define POSTED 8

static struct endpoint e;

static void setup(void)
{
	endpoint_open(&e);
}

static void teardown(void)
{
	endpoint_close(&e);
}

TestSuite(handle_ends, .init = setup, .fini = teardown, .timeout = 60);

static void post(struct ibv_qp *from, struct ibv_ah *ah, struct ibv_qp *to)
{
	for (int i = 0; i < POSTED; i++) {
		ud_receive(&e, to, 32768 + (uint32_t)i * 4096, LENGTH + GRH);
		cr_assert_eq(ud_send(&e, from, ah, to->qp_num, UD_QKEY, 0, LENGTH), 0);
	}
}

/* Everything that was posted is sent, and received. */
static void expect_all(const char *what)
{
	struct ibv_wc wc[2 * POSTED];

	poll_completions(e.cq, wc, 2 * POSTED, what);
	for (int i = 0; i < 2 * POSTED; i++)
		cr_expect_eq(wc[i].status, IBV_WC_SUCCESS, "%s: completion %d: %s", what, i,
			     ibv_wc_status_str(wc[i].status));
}

static void expect_objects(uint64_t wanted, const char *what)
{
	struct timespec pause = { .tv_nsec = 5000000 };

	for (int i = 0; i < 1000 && engine_objects() != wanted; i++)
		nanosleep(&pause, NULL);
	cr_expect_eq(engine_objects(), wanted, "%s", what);
}

static void limit(struct ibv_qp *qp, uint32_t kilobits)
{
	struct ibv_qp_rate_limit_attr attr = { .rate_limit = kilobits };

	cr_assert_eq(ibv_modify_qp_rate_limit(qp, &attr), 0);
}

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* hostile H-128: a queue pair with frames under way. */
Test(handle_ends, behind_a_rate_limit)
{
	struct ibv_qp *from = ud_open(&e, UD_QKEY), *to = ud_open(&e, UD_QKEY);
	uint64_t before = engine_objects();
	struct ibv_ah *ah = ud_self(&e, GID_INDEX);
	double begin;

	limit(from, CRAWL);
	post(from, ah, to);
	begin = seconds();
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_lt(seconds() - begin, 15, "it does not wait for the pace");
	limit(from, SLOW);
	expect_all("paced");
	expect_objects(before, "the handle goes in the end");
	cr_expect_eq(ibv_destroy_qp(from), 0);
	cr_expect_eq(ibv_destroy_qp(to), 0);
}

/* The later handle is destroyed after the earlier one, whose queue pair sends meanwhile. */
Test(handle_ends, one_after_the_other)
{
	struct ibv_qp *from = ud_open(&e, UD_QKEY), *to = ud_open(&e, UD_QKEY);
	uint64_t before = engine_objects();

	limit(from, SLOW);
	for (int i = 0; i < POSTED; i++) {
		struct ibv_ah *ah = ud_self(&e, GID_INDEX);

		ud_receive(&e, to, 32768 + (uint32_t)i * 4096, LENGTH + GRH);
		cr_assert_eq(ud_send(&e, from, ah, to->qp_num, UD_QKEY, 0, LENGTH), 0);
		cr_expect_eq(ibv_destroy_ah(ah), 0);
	}
	expect_all("each with a handle of its own");
	expect_objects(before, "the handles go in the end");
	cr_expect_eq(ibv_destroy_qp(from), 0);
	cr_expect_eq(ibv_destroy_qp(to), 0);
}

Test(handle_ends, while_the_queue_is_drained)
{
	struct ibv_qp *from = ud_open(&e, UD_QKEY), *to = ud_open(&e, UD_QKEY);
	uint64_t before = engine_objects();
	struct ibv_ah *ah = ud_self(&e, GID_INDEX);

	to_state(from, IBV_QPS_SQD);
	post(from, ah, to);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	ud_silent(e.cq, "in SQD");
	to_state(from, IBV_QPS_RTS);
	expect_all("after SQD");
	expect_objects(before, "the handle goes in the end");
	cr_expect_eq(ibv_destroy_qp(from), 0);
	cr_expect_eq(ibv_destroy_qp(to), 0);
}

/*
 * Requests that are never sent hold no handle: those of a queue pair that is reset or destroyed.
 * hostile H-128: a queue pair with frames under way.
 */
Test(handle_ends, with_what_never_leaves)
{
	struct ibv_qp *from = ud_open(&e, UD_QKEY), *to = ud_open(&e, UD_QKEY);
	uint64_t before = engine_objects();
	struct ibv_ah *ah = ud_self(&e, GID_INDEX);

	to_state(from, IBV_QPS_SQD);
	post(from, ah, to);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	to_state(from, IBV_QPS_RESET);
	expect_objects(before, "after RESET");
	cr_assert_eq(ud_ready(from, UD_QKEY), 0);
	ah = ud_self(&e, GID_INDEX);
	to_state(from, IBV_QPS_SQD);
	cr_assert_eq(ud_send(&e, from, ah, to->qp_num, UD_QKEY, 0, LENGTH), 0);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_destroy_qp(from), 0);
	expect_objects(before - 1, "after its queue pair");
	cr_expect_eq(ibv_destroy_qp(to), 0);
}

/* A destroyed handle does not hold its protection domain and ends with its context. */
Test(handle_ends, a_destroyed_handle_does_not_hold_its_domain)
{
	struct ibv_qp *from = ud_open(&e, UD_QKEY), *to = ud_open(&e, UD_QKEY);
	uint64_t before = engine_objects();
	struct ibv_ah_attr attr = ud_to_self(&e);
	struct ibv_pd *other = ibv_alloc_pd(e.context);
	struct ibv_ah *ah = ud_self(&e, GID_INDEX), *of_other = ibv_create_ah(other, &attr);

	cr_assert_not_null(of_other, "%m");
	limit(from, SLOW);
	post(from, ah, to);
	cr_expect_eq(ibv_destroy_ah(of_other), 0);
	cr_expect_eq(ibv_dealloc_pd(other), 0);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	expect_all("paced");
	expect_objects(before, "the handles go in the end");
	cr_expect_eq(ibv_destroy_qp(from), 0);
	cr_expect_eq(ibv_destroy_qp(to), 0);
}
