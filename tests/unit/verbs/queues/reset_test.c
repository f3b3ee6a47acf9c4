/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RESET forgets the work of a queue pair: what its program has not polled, in either of its CQs, and
 * what stands in its queues; nothing of the other queue pairs on the same CQs. Runs with an engine at
 * $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rig/asked.h"
#include "rig/endpoint.h"

#define FORGETS 1 /* wr_ids: of the queue pair that is reset, */
#define KEEPS	2 /* and of the one beside it */

static struct endpoint e;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_qp *qp[2]; /* their peers are e.qp */

static struct ibv_qp *create_qp(uint32_t depth)
{
	struct ibv_qp_init_attr init = { .send_cq = send_cq,
					 .recv_cq = recv_cq,
					 .cap = { depth, depth, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };

	return ibv_create_qp(e.pd, &init);
}

static int reset(struct ibv_qp *which)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return ibv_modify_qp(which, &attr, IBV_QP_STATE);
}

static void open_all(void)
{
	endpoint_open(&e);
	send_cq = ibv_create_cq(e.context, 64, NULL, NULL, 0);
	recv_cq = ibv_create_cq(e.context, 64, NULL, NULL, 0);
	cr_assert(send_cq != NULL && recv_cq != NULL);
	for (int i = 0; i < 2; i++) {
		qp[i] = create_qp(DEPTH);
		cr_assert_not_null(qp[i]);
		cr_assert_eq(endpoint_connect(&e, qp[i], e.qp[i]->qp_num), 0);
		cr_assert_eq(reset(e.qp[i]), 0);
		cr_assert_eq(endpoint_connect(&e, e.qp[i], qp[i]->qp_num), 0);
	}
}

static void close_all(void)
{
	for (int i = 0; i < 2; i++)
		cr_expect_eq(ibv_destroy_qp(qp[i]), 0);
	cr_expect_eq(ibv_destroy_cq(send_cq), 0);
	cr_expect_eq(ibv_destroy_cq(recv_cq), 0);
	endpoint_close(&e);
}

TestSuite(reset, .init = open_all, .fini = close_all, .timeout = 60);

static int post_send(struct ibv_qp *from, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 8, e.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	return ibv_post_send(from, &wr, &bad);
}

static int post_receive(struct ibv_qp *to, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + 64, 8, e.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(to, &wr, &bad);
}

/* A message each way; what completes at `which` is not polled, its peer's is. */
static void messages(int which, uint64_t id)
{
	struct ibv_wc wc[2];

	cr_assert_eq(post_receive(e.qp[which], id), 0);
	cr_assert_eq(post_receive(qp[which], id), 0);
	cr_assert_eq(post_send(qp[which], id), 0);
	cr_assert_eq(post_send(e.qp[which], id), 0);
	poll_completions(e.cq, wc, 2, "the peer's completions");
}

/* Exactly one completion can be polled, of the queue pair that was not reset. */
static void expect_one(struct ibv_cq *cq, const char *which)
{
	struct ibv_wc wc;

	poll_completions(cq, &wc, 1, which);
	cr_expect_eq(wc.wr_id, KEEPS, "the %s CQ has one of the other queue pair", which);
	cr_expect_eq(wc.status, IBV_WC_SUCCESS);
	cr_expect_eq(wc.qp_num, qp[1]->qp_num);
	cr_expect_eq(ibv_poll_cq(cq, 1, &wc), 0, "the %s CQ has more", which);
}

/* Completed before the other's, and behind it, in the order in which each CQ got them. */
static void reset_between(int first, int second)
{
	messages(first, first == 0 ? FORGETS : KEEPS);
	messages(second, second == 0 ? FORGETS : KEEPS);
	cr_assert_eq(reset(qp[0]), 0);
	expect_one(send_cq, "send");
	expect_one(recv_cq, "receive");
}

Test(reset, forgets_what_was_not_polled_of_both_cqs)
{
	reset_between(0, 1);
}

Test(reset, forgets_what_came_last)
{
	reset_between(1, 0);
}

/* The backlog of a CQ that was resized holds completions, too. */
Test(reset, forgets_what_a_resize_took_over)
{
	messages(0, FORGETS);
	messages(1, KEEPS);
	cr_assert_eq(ibv_resize_cq(send_cq, 256), 0);
	cr_assert_eq(ibv_resize_cq(recv_cq, 256), 0);
	cr_assert_eq(reset(qp[0]), 0);
	expect_one(send_cq, "send");
	expect_one(recv_cq, "receive");
}

/* Posts until the queue is full: it takes as many as it did when it was new. */
static uint32_t room(int (*post)(struct ibv_qp *, uint64_t))
{
	uint32_t n = 0;

	while (n < 10000 && post(qp[0], FORGETS) == 0)
		n++;
	return n;
}

Test(reset, leaves_its_queues_empty)
{
	uint32_t receives = room(post_receive), sends, again;

	cr_assert_eq(reset(e.qp[0]), 0); /* nothing is acknowledged: all stays in the queue */
	sends = room(post_send);
	cr_assert_eq(reset(qp[0]), 0);
	cr_assert_eq(endpoint_connect(&e, qp[0], e.qp[0]->qp_num), 0);
	again = room(post_receive);
	cr_expect_eq(again, receives, "%u receives have room, not %u", again, receives);
	again = room(post_send);
	cr_expect_eq(again, sends, "%u sends have room, not %u", again, sends);
}

static int (*posts)(struct ibv_qp *qp, uint64_t id);

static void post_in_vain(void)
{
	cr_expect_eq(posts(qp[0], FORGETS), EINVAL, "it is posted");
}

/* The engine has reset it, but the thread that asked for it does not know yet. */
static void reset_while(int (*post)(struct ibv_qp *qp, uint64_t id))
{
	posts = post;
	asked_after_reply = post_in_vain;
	cr_assert_eq(reset(qp[0]), 0);
	cr_assert_null(asked_after_reply);
}

Test(reset, takes_nothing_from_other_threads_meanwhile)
{
	struct ibv_wc wc;

	reset_while(post_send);
	reset_while(post_receive);
	cr_assert_eq(reset(e.qp[0]), 0);
	cr_assert_eq(endpoint_connect(&e, qp[0], e.qp[0]->qp_num), 0);
	cr_assert_eq(endpoint_connect(&e, e.qp[0], qp[0]->qp_num), 0);
	cr_assert_eq(post_receive(qp[0], KEEPS), 0);
	cr_assert_eq(post_send(e.qp[0], KEEPS), 0);
	poll_completions(recv_cq, &wc, 1, "a receive");
	cr_expect_eq(wc.wr_id, KEEPS, "it was posted before the queue pair was connected");
}

/* It goes on as before. */
Test(reset, that_is_refused_changes_nothing)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET, .cur_qp_state = IBV_QPS_INIT };

	cr_assert_neq(ibv_modify_qp(qp[0], &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
	messages(0, KEEPS);
}
