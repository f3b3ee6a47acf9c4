/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that the port did not take, and payloads that could not be gathered. */
#include <criterion/criterion.h>

#include "pair.h"

static struct pair pair;
static struct packet taken[300];

static void start(void)
{
	struct pair_options o = pair_options();

	pair_init(&pair, &o);
	pair_fill(pair.a.memory, 20000, 1);
	pair_fill(pair.b.memory + 40000, 20000, 2);
}

static void finish(void)
{
	pair_close(&pair);
}

static uint32_t take_all(struct end *e)
{
	uint32_t n = 0;

	while (n < ARRAY_SIZE(taken) && pair_next(&pair, e, &taken[n]))
		n++;
	return n;
}

static void give_back(struct end *e, uint32_t n, bool last_first)
{
	for (uint32_t i = 0; i < n; i++)
		qp_unsent(e->qp, &taken[last_first ? n - 1 - i : i], pair.now);
}

TestSuite(unsent, .init = start, .fini = finish, .timeout = 60);

/* hostile H-131: what could not leave. */
Test(unsent, requests_in_either_order)
{
	for (uint32_t last_first = 0; last_first < 2; last_first++) {
		uint32_t before = pair.a.done_count, n;

		memset(pair.b.memory, 0, 20000);
		pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 20000, 0);
		pair_post(&pair, &pair.a, WORK_RDMA_READ, WORK_SIGNALED, 20000, 20000, 40000);
		pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 8, 30000);
		n = take_all(&pair.a);
		cr_assert_eq(n, 20 + 1 + 1);
		give_back(&pair.a, n, last_first);
		cr_assert(qp_has_packet(pair.a.qp), "nobody waits for a timer");
		pair_run(&pair);
		cr_assert_eq(pair.a.done_count, before + 3);
		cr_assert_eq(pair.a.done[before + 2].status, STATUS_SUCCESS);
		cr_assert_arr_eq(pair.a.memory, pair.b.memory, 20000);
		cr_assert_arr_eq(pair.a.memory + 20000, pair.b.memory + 40000, 20000);
	}
	cr_assert_eq(pair.now, 0);
}

/* hostile H-131: what could not leave. */
Test(unsent, replies_in_either_order)
{
	for (uint32_t last_first = 0; last_first < 2; last_first++) {
		uint32_t before = pair.a.done_count, n;
		struct packet request;

		pair_post(&pair, &pair.a, WORK_RDMA_READ, WORK_SIGNALED, 20000, 20000, 40000);
		cr_assert(pair_next(&pair, &pair.a, &request));
		request.src_gid = pair.a.qp->attr.path.sgid;
		request.dst_gid = pair.a.qp->attr.path.dgid;
		request.payload_length = 0;
		pair_inject(&pair, &pair.b, &request);
		n = take_all(&pair.b);
		cr_assert_eq(n, 20);
		give_back(&pair.b, n, last_first);
		pair_run(&pair);
		cr_assert_eq(pair.a.done_count, before + 1);
		cr_assert_arr_eq(pair.a.memory + 20000, pair.b.memory + 40000, 20000);
	}
}

/* As many READs as the responder remembers: the oldest one's reply is made again, too. */
Test(unsent, replies_to_all_that_is_remembered)
{
	uint32_t remembered = pair.b.qp->attr.max_dest_rd_atomic, n;
	struct packet request;

	for (uint32_t i = 0; i < remembered; i++) {
		pair_post(&pair, &pair.a, WORK_RDMA_READ, WORK_SIGNALED, 20000 + 8 * i, 8,
			  40000 + 8 * i);
		cr_assert(pair_next(&pair, &pair.a, &request));
		request.src_gid = pair.a.qp->attr.path.sgid;
		request.dst_gid = pair.a.qp->attr.path.dgid;
		request.payload_length = 0;
		pair_inject(&pair, &pair.b, &request);
	}
	n = take_all(&pair.b);
	cr_assert_eq(n, remembered);
	give_back(&pair.b, n, true);
	cr_expect_eq(take_all(&pair.b), n, "nobody has asked again");
	give_back(&pair.b, n, true);
	pair_run(&pair);
	cr_assert_eq(pair.a.done_count, remembered);
	cr_assert_arr_eq(pair.a.memory + 20000, pair.b.memory + 40000, 8 * remembered);
}

/* The third packet's payload is not there: what came before it in the queue still completes. */
Test(unsent, a_payload_that_cannot_be_gathered)
{
	uint32_t n;

	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 8, 0);
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 3000, 0);
	n = take_all(&pair.a);
	cr_assert_eq(n, 4);
	qp_gather_failed(pair.a.qp, &taken[2]);
	qp_unsent(pair.a.qp, &taken[0], pair.now);
	pair_run(&pair);
	cr_assert_eq(pair.a.done_count, 2);
	cr_assert_eq(pair.a.done[0].status, STATUS_SUCCESS);
	cr_assert_eq(pair.a.done[1].status, STATUS_LOC_PROT_ERR);
	cr_assert_eq(pair.a.done[1].vendor_err, REASON_MEMORY_FAULT);
}

Test(unsent, a_reply_that_cannot_be_gathered)
{
	struct packet request;

	pair_post(&pair, &pair.a, WORK_RDMA_READ, WORK_SIGNALED, 20000, 5000, 40000);
	cr_assert(pair_next(&pair, &pair.a, &request));
	request.src_gid = pair.a.qp->attr.path.sgid;
	request.dst_gid = pair.a.qp->attr.path.dgid;
	request.payload_length = 0;
	pair_inject(&pair, &pair.b, &request);
	cr_assert(pair_next(&pair, &pair.b, &taken[0]));
	qp_gather_failed(pair.b.qp, &taken[0]);
	pair_run(&pair);
	cr_assert_eq(pair.a.done_count, 1);
	cr_assert_eq(pair.a.done[0].status, STATUS_REM_ACCESS_ERR);
	cr_assert(pair.b.events & QP_EVENT_ACCESS_ERR);
}
