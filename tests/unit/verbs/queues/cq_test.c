/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues: size, queue pairs that come and go, overrun and moderation.
 * Runs with an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rig/cq_pair.h"
#include "rig/waiting.h"
#include "verbs/types.h"

#define SMALL_CQ 7 /* entries: a ring of 8 */

TestSuite(cq, .init = open_endpoint, .fini = close_endpoint, .timeout = 60);

/* ---- ibv_resize_cq ---- */

Test(cq, a_resize_keeps_unpolled_completions_and_their_order)
{
	struct pair p = { 0 };

	open_pair(&p, SMALL_CQ);
	complete_many(&p, 0, 5);
	cr_assert_eq(ibv_resize_cq(p.cq, 30), 0);
	cr_expect_geq(p.cq->cqe, 30);
	complete_many(&p, 5, 10);
	cr_assert_eq(ibv_resize_cq(p.cq, 15), 0, "15 of 15 are unpolled");
	cr_expect_geq(p.cq->cqe, 15);
	cr_expect_lt(p.cq->cqe, 30, "it shrinks");
	expect_in_order(p.cq, 0, 15);
	cr_assert_eq(ibv_resize_cq(p.cq, 1), 0);
	cr_expect_geq(p.cq->cqe, 1);
	post_many(p.qp[0], 15, 1);
	expect_in_order(p.cq, 15, 1);
	close_pair(&p);
}

/* The first ones open what there is once, and malloc() keeps some of what they free. */
Test(cq, resizes_keep_no_memory)
{
	struct pair p = { 0 };
	size_t used = 0;

	open_pair(&p, SMALL_CQ);
	for (int i = 0; i < 64; i++) {
		cr_assert_eq(ibv_resize_cq(p.cq, i % 2 == 0 ? 30 : SMALL_CQ), 0);
		if (i == 32)
			used = mallinfo2().uordblks;
	}
	cr_expect_eq(mallinfo2().uordblks, used);
	close_pair(&p);
}

Test(cq, a_resize_below_unpolled_completions_is_refused)
{
	struct ibv_device_attr attr;
	struct pair p = { 0 };
	int cqe;

	open_pair(&p, SMALL_CQ);
	complete_many(&p, 0, 6);
	cqe = p.cq->cqe;
	cr_expect_eq(ibv_resize_cq(p.cq, 5), EINVAL);
	cr_expect_eq(p.cq->cqe, cqe);
	cr_assert_eq(ibv_resize_cq(p.cq, 30), 0);
	cr_expect_eq(ibv_resize_cq(p.cq, 5), EINVAL, "those that were carried over count");
	cr_assert_eq(ibv_resize_cq(p.cq, 6), 0);
	ibv_query_device(e.context, &attr);
	cr_expect_eq(ibv_resize_cq(p.cq, 0), EINVAL);
	cr_expect_eq(ibv_resize_cq(p.cq, -1), EINVAL);
	cr_expect_eq(ibv_resize_cq(p.cq, attr.max_cqe + 1), EINVAL);
	cr_expect_eq(ibv_resize_cq(p.cq, attr.max_cqe), 0, "what is announced can be had");
	expect_in_order(p.cq, 0, 6);
	close_pair(&p);
}

#define MOVING 3000u

static void *post_until_full(void *argument)
{
	for (uint64_t i = 0; i < MOVING; i++) {
		int error;

		while ((error = post_write(argument, i)) == ENOMEM)
			sched_yield();
		if (error != 0)
			return (void *)(uintptr_t)error;
	}
	return NULL;
}

Test(cq, a_resize_under_traffic_loses_nothing)
{
	static const int sizes[] = { 20, 100, 1000, 40, 17 };
	uint32_t seen = 0, resizes = 0;
	pthread_t thread;
	struct pair p = { 0 };
	void *error;

	open_pair(&p, 100);
	cr_assert_eq(pthread_create(&thread, NULL, post_until_full, p.qp[0]), 0);
	while (seen < MOVING) {
		struct ibv_wc wc[8];
		int n = ibv_poll_cq(p.cq, 8, wc);

		cr_assert_geq(n, 0);
		for (int i = 0; i < n; i++, seen++) {
			cr_assert_eq(wc[i].status, IBV_WC_SUCCESS);
			cr_assert_eq(wc[i].wr_id, seen);
		}
		if (seen / 50 >= resizes)
			cr_assert_eq(ibv_resize_cq(p.cq, sizes[resizes++ % 5]), 0);
	}
	pthread_join(thread, &error);
	cr_assert_null(error, "errno %d", (int)(uintptr_t)error);
	cr_expect_geq(resizes, 50);
	close_pair(&p);
}

struct reader {
	struct ibv_comp_channel *channel;
	bool any_order; /* of two queue pairs */
	uint32_t seen;
};

/* Sleeps until an event comes, as programs do: arm, poll, sleep. */
static void *read_by_events(void *argument)
{
	struct reader *r = argument;
	struct ibv_cq *cq;
	void *context;

	while (r->seen < (r->any_order ? 2 * MOVING : MOVING)) {
		struct ibv_wc wc[8];
		int n;

		if (ibv_get_cq_event(r->channel, &cq, &context) != 0)
			return (void *)1;
		ibv_ack_cq_events(cq, 1);
		if (ibv_req_notify_cq(cq, 0) != 0)
			return (void *)2;
		while ((n = ibv_poll_cq(cq, 8, wc)) > 0)
			for (int i = 0; i < n; i++)
				if (wc[i].status != IBV_WC_SUCCESS ||
				    (wc[i].wr_id != r->seen++ && !r->any_order))
					return (void *)3;
		if (n < 0)
			return (void *)4;
	}
	return NULL;
}

Test(cq, a_resize_wakes_threads_that_wait_for_events)
{
	pthread_t reader, writer;
	struct reader r = { 0 };
	void *error[2];
	struct pair p = { 0 };

	open_pair(&p, 100);
	r.channel = p.channel;
	cr_assert_eq(ibv_req_notify_cq(p.cq, 0), 0);
	cr_assert_eq(pthread_create(&reader, NULL, read_by_events, &r), 0);
	cr_assert_eq(pthread_create(&writer, NULL, post_until_full, p.qp[0]), 0);
	for (int i = 0; __atomic_load_n(&r.seen, __ATOMIC_RELAXED) < MOVING; i++) {
		cr_assert_eq(ibv_resize_cq(p.cq, i % 2 == 0 ? 200 : 50), 0);
		sched_yield();
	}
	pthread_join(writer, &error[0]);
	pthread_join(reader, &error[1]);
	cr_assert_null(error[0]);
	cr_assert_null(error[1], "the reader says %d", (int)(uintptr_t)error[1]);
	close_pair(&p);
}

/* ---- queue pairs of a CQ ---- */

/* An access error of p->qp[1]: its event, which is not acknowledged yet. */
static void take_event(struct pair *p, struct ibv_async_event *event)
{
	uint32_t rkey = e.mr->rkey;
	struct ibv_wc wc;

	e.mr->rkey ^= 0x5a5a00;
	cr_assert_eq(post_write(p->qp[0], 1), 0);
	e.mr->rkey = rkey;
	poll_completions(p->cq, &wc, 1, "a refused WRITE");
	cr_assert_eq(ibv_get_async_event(e.context, event), 0);
	cr_assert_eq(event->element.qp, p->qp[1]);
}

static int destroy_qp(void *qp)
{
	return ibv_destroy_qp(qp);
}

/* Queue pairs come and go until one has this handle. */
static struct ibv_qp *create_qp_of(struct ibv_cq *cq, uint32_t handle)
{
	struct ibv_cq *usual = e.cq;
	struct ibv_qp *qp = NULL;

	e.cq = cq;
	for (int i = 0; i < 1000 && (qp == NULL || qp->handle != handle); i++) {
		if (qp != NULL)
			cr_assert_eq(ibv_destroy_qp(qp), 0);
		qp = endpoint_create_qp(&e);
		cr_assert_not_null(qp, "%m");
	}
	e.cq = usual;
	cr_assert_eq(qp->handle, handle, "the handle is not used again");
	return qp;
}

/*
 * The engine has destroyed a queue pair, but the thread that asked for it is not back: it waits for
 * the program to acknowledge an event, or has lost its processor.
 */
Test(cq, a_queue_pair_that_leaves_late_takes_nothing_of_its_successor)
{
	struct ibv_async_event event;
	struct waiting leaves;
	struct ibv_qp *next;
	struct ibv_wc wc[4];
	struct pair p;

	open_pair(&p, 4 * DEPTH);
	take_event(&p, &event);
	waiting_begin(&leaves, "ibv_destroy_qp", destroy_qp, p.qp[1]);
	next = create_qp_of(p.cq, p.qp[1]->handle);
	cr_assert_eq(endpoint_connect(&e, next, next->qp_num), 0);
	cr_assert_eq(ibv_destroy_qp(p.qp[0]), 0);
	p.qp[0] = next;
	complete_many(&p, 100, 3);
	ibv_ack_async_event(&event);
	waiting_end(&leaves);
	cr_assert_eq(leaves.result, 0);
	cr_expect_eq(ibv_poll_cq(p.cq, 4, wc), 3, "completions of the successor are lost");
	for (uint64_t i = 0; i < 2 * DEPTH; i++) {
		cr_assert_eq(post_write(next, i), 0, "request %lu: its queue is full for ever", i);
		poll_completions(p.cq, wc, 1, "a WRITE");
	}
	p.qp[1] = endpoint_create_qp(&e);
	close_pair(&p);
}

/* ---- overrun ---- */

static bool next_event(enum ibv_event_type *type, int ms)
{
	struct pollfd p = { .fd = e.context->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	if (poll(&p, 1, ms) != 1)
		return false;
	cr_assert_eq(ibv_get_async_event(e.context, &event), 0);
	*type = event.event_type;
	ibv_ack_async_event(&event);
	return true;
}

/* hostile H-108: a completion queue that is never polled. */
Test(cq, an_overrun_is_an_error_of_the_cq_and_its_queue_pairs)
{
	bool cq_err = false, fatal = false;
	enum ibv_event_type type;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc[16];
	struct pair p = { 0 }, other = { 0 };

	open_pair(&p, SMALL_CQ);
	open_pair_on(&other, p.cq);
	post_many(p.qp[0], 0, (uint32_t)p.cq->cqe + 1);
	while (!cq_err || !fatal) {
		cr_assert(next_event(&type, WAIT_SECONDS * 1000), "CQ_ERR %d, QP_FATAL %d", cq_err,
			  fatal);
		cq_err |= type == IBV_EVENT_CQ_ERR;
		fatal |= type == IBV_EVENT_QP_FATAL;
	}
	cr_assert_eq(ibv_query_qp(p.qp[0], &attr, IBV_QP_STATE, &init), 0);
	cr_expect_eq(attr.qp_state, IBV_QPS_ERR);
	cr_assert_eq(ibv_query_qp(other.qp[0], &attr, IBV_QP_STATE, &init), 0);
	cr_expect_eq(attr.qp_state, IBV_QPS_RTS, "it has completed nothing yet");
	post_many(other.qp[0], 0, 1);
	do
		cr_assert(next_event(&type, WAIT_SECONDS * 1000), "others on it go on");
	while (type != IBV_EVENT_QP_FATAL);
	cr_assert_eq(ibv_query_qp(other.qp[0], &attr, IBV_QP_STATE, &init), 0);
	cr_expect_eq(attr.qp_state, IBV_QPS_ERR);
	cr_assert_eq(ibv_poll_cq(p.cq, 16, wc), p.cq->cqe, "what had room is there");
	cr_expect_lt(ibv_poll_cq(p.cq, 16, wc), 0, "then it says that some are missing");
	for (int i = 0; i < 2; i++)
		cr_expect_eq(ibv_destroy_qp(other.qp[i]), 0);
	close_pair(&p);
}

/*
 * All that is posted to a queue pair in ERR completes, so the queue is full until the program polls.
 * Programs rely on it: a CQ with an entry for each slot of its send queues is not overrun.
 */
Test(cq, unsignaled_requests_in_the_error_state_do_not_overrun_it)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE }, *bad;
	struct ibv_modify_cq_attr all = moderation(DEPTH, 0);
	struct ibv_wc wc[DEPTH];
	struct pair p = { 0 };

	open_pair(&p, 2 * DEPTH - 1);
	cr_assert_eq(ibv_modify_qp(p.qp[0], &attr, IBV_QP_STATE), 0);
	cr_assert_eq(ibv_modify_cq(p.cq, &all), 0);
	for (int round = 0; round < 4; round++) {
		cr_assert_eq(ibv_req_notify_cq(p.cq, 0), 0);
		for (int i = 0; i < DEPTH; i++)
			cr_assert_eq(ibv_post_send(p.qp[0], &wr, &bad), 0, "request %d", i);
		cr_assert(has_event(p.channel, WAIT_SECONDS * 1000), "they do not complete");
		cr_expect_eq(ibv_post_send(p.qp[0], &wr, &bad), ENOMEM, "nothing was polled");
		poll_completions(p.cq, wc, DEPTH, "what was flushed");
		cr_expect_eq(wc[0].status, IBV_WC_WR_FLUSH_ERR);
	}
	attr.qp_state = IBV_QPS_RESET;
	cr_assert_eq(ibv_modify_qp(p.qp[0], &attr, IBV_QP_STATE), 0);
	cr_assert_eq(endpoint_connect(&e, p.qp[0], p.qp[0]->qp_num), 0);
	for (uint64_t i = 0; i < 2 * DEPTH; i++) {
		cr_assert_eq(post_write(p.qp[0], i), 0, "request %lu after RESET", i);
		poll_completions(p.cq, wc, 1, "a WRITE");
		cr_expect_eq(wc[0].status, IBV_WC_SUCCESS);
	}
	close_pair(&p);
}

static void post_when_there_is_room(struct ibv_qp *qp)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + WAIT_SECONDS * UINT64_C(1000000000);
	int error;

	while ((error = post_write(qp, 0)) == ENOMEM)
		cr_assert(now_ns(CLOCK_MONOTONIC) < until, "the send queue stays full");
	cr_assert_eq(error, 0);
}

Test(cq, an_overrun_may_be_ignored)
{
	struct ibv_cq_ex *cq =
		extended(IBV_WC_STANDARD_FLAGS, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, SMALL_CQ);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	enum ibv_event_type type;
	struct ibv_wc wc[DEPTH];
	struct pair p = { 0 };
	int more = 0;

	open_pair_on(&p, (struct ibv_cq *)cq);
	/*
	 * Five full send queues, and no thread polls: lost completions do not keep the queue full.
	 */
	for (uint32_t i = 0; i < 5 * DEPTH; i++)
		post_when_there_is_room(p.qp[0]);
	poll_completions(p.cq, wc, SMALL_CQ, "what had room");
	for (int i = 0; i < SMALL_CQ; i++)
		cr_assert_eq(wc[i].status, IBV_WC_SUCCESS);
	/* at most those that were still under way fitted then */
	for (int i = 0; i < 5 * DEPTH; i++)
		more += ibv_poll_cq(p.cq, 1, wc);
	cr_assert_leq(more, DEPTH);
	post_when_there_is_room(p.qp[0]);
	poll_completions(p.cq, wc, 1, "one more");
	cr_assert_eq(ibv_query_qp(p.qp[0], &attr, IBV_QP_STATE, &init), 0);
	cr_expect_eq(attr.qp_state, IBV_QPS_RTS);
	cr_expect_not(next_event(&type, 0));
	cr_expect_eq(ibv_resize_cq(p.cq, 2 * SMALL_CQ), 0, "many were sent, and none waits");
	close_pair(&p);
}

/*
 * Nothing says how far requests are done where nobody polls, however many there were. They are
 * numbered modulo 2^32.
 */
Test(cq, one_that_ignores_overruns_may_stay_unpolled_for_ever)
{
	struct ibv_cq_ex *cq =
		extended(IBV_WC_STANDARD_FLAGS, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, SMALL_CQ);
	struct ibv_wc wc[SMALL_CQ];
	struct pair p = { 0 };
	struct work_queue *sq;

	open_pair_on(&p, (struct ibv_cq *)cq);
	sq = &qp_of(p.qp[0])->sq;
	sq->done -= 0x80000001; /* as after so many requests */
	cr_assert_eq(post_write(p.qp[0], 0), 0, "the empty send queue takes nothing");
	for (uint32_t i = 1; i < 2 * DEPTH; i++)
		post_when_there_is_room(p.qp[0]);
	poll_completions(p.cq, wc, SMALL_CQ, "what had room");
	cr_expect_eq(sq->done, SMALL_CQ, "the first polls say how far they are: %u", sq->done);
	close_pair(&p);
}

/* ---- moderation ---- */

static void write_and_poll(struct pair *p, int n)
{
	struct ibv_wc wc[DEPTH];

	post_many(p->qp[0], 0, (uint32_t)n);
	poll_completions(p->cq, wc, n, "moderated writes");
}

/*
 * A completion can be polled before its lcore looks whether the CQ is armed, so that lcore might take the next arming for
 * it. This returns when no lcore is between the two: a command about the moderation of any CQ waits for that.
 */
static void await_lcores(void)
{
	struct ibv_modify_cq_attr off = moderation(0, 0);

	cr_assert_eq(ibv_modify_cq(e.cq, &off), 0);
}

Test(cq, an_event_waits_for_enough_completions)
{
	struct ibv_modify_cq_attr attr = moderation(4, 0);
	struct pair p = { 0 };

	open_pair(&p, 64);
	cr_assert_eq(ibv_modify_cq(p.cq, &attr), 0);
	for (int round = 0; round < 3; round++) {
		cr_assert_eq(ibv_req_notify_cq(p.cq, 0), 0);
		write_and_poll(&p, 3);
		await_lcores();
		cr_assert_not(has_event(p.channel, 0), "after 3 of 4 completions");
		write_and_poll(&p, 1);
		cr_assert(has_event(p.channel, WAIT_SECONDS * 1000), "no event after 4");
		write_and_poll(&p, 5);
		await_lcores();
		cr_assert_not(has_event(p.channel, 0), "it was not armed again");
	}
	/* off again while an event is due: it comes now, and later ones at once */
	cr_assert_eq(ibv_req_notify_cq(p.cq, 0), 0);
	write_and_poll(&p, 2);
	attr = moderation(0, 0);
	cr_assert_eq(ibv_modify_cq(p.cq, &attr), 0);
	cr_assert(has_event(p.channel, 0));
	cr_assert_eq(ibv_req_notify_cq(p.cq, 0), 0);
	write_and_poll(&p, 1);
	cr_assert(has_event(p.channel, WAIT_SECONDS * 1000));
	close_pair(&p);
}

/*
 * Two queue pairs, on two lcores if there are, complete into the CQ while its moderation changes.
 * hostile H-134: arming while completions come.
 */
Test(cq, no_moderated_event_is_lost)
{
	static const uint16_t limits[][2] = { { 7, 300 }, { 0, 100 }, { 3, 1000 }, { 0, 0 } };
	struct ibv_modify_cq_attr attr = moderation(7, 300);
	pthread_t reader, writer[2];
	struct reader r = { .any_order = true };
	void *error[3];
	struct pair p = { 0 };

	open_pair(&p, 100);
	r.channel = p.channel;
	cr_assert_eq(ibv_modify_cq(p.cq, &attr), 0);
	cr_assert_eq(ibv_req_notify_cq(p.cq, 0), 0);
	cr_assert_eq(pthread_create(&reader, NULL, read_by_events, &r), 0);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&writer[i], NULL, post_until_full, p.qp[i]), 0);
	for (int i = 0; __atomic_load_n(&r.seen, __ATOMIC_RELAXED) < 2 * MOVING; i++) {
		attr = moderation(limits[i % 4][0], limits[i % 4][1]);
		cr_assert_eq(ibv_modify_cq(p.cq, &attr), 0);
		usleep(500);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(writer[i], &error[i]);
	pthread_join(reader, &error[2]);
	for (int i = 0; i < 3; i++)
		cr_assert_null(error[i], "thread %d says %d", i, (int)(uintptr_t)error[i]);
	close_pair(&p);
}

Test(cq, an_event_waits_no_longer_than_its_period)
{
	struct ibv_modify_cq_attr attr = moderation(1000, 40000);
	struct pair p = { 0 };

	open_pair(&p, 64);
	cr_assert_eq(ibv_modify_cq(p.cq, &attr), 0);
	for (int round = 0; round < 3; round++) {
		uint64_t begin = now_ns(CLOCK_MONOTONIC);

		cr_assert_eq(ibv_req_notify_cq(p.cq, 0), 0);
		write_and_poll(&p, 2);
		cr_assert(has_event(p.channel, WAIT_SECONDS * 1000), "no event after the period");
		/* from the first completion, which came after `begin` */
		cr_assert_geq(now_ns(CLOCK_MONOTONIC) - begin, 39000000u, "too early");
	}
	/* only the period, and many completions */
	attr = moderation(0, 20000);
	cr_assert_eq(ibv_modify_cq(p.cq, &attr), 0);
	cr_assert_eq(ibv_req_notify_cq(p.cq, 0), 0);
	write_and_poll(&p, DEPTH);
	cr_assert(has_event(p.channel, WAIT_SECONDS * 1000));
	/* a destroyed CQ leaves no timer behind */
	cr_assert_eq(ibv_req_notify_cq(p.cq, 0), 0);
	write_and_poll(&p, 2);
	close_pair(&p);
	write_and_poll(&(struct pair){ .cq = e.cq, .qp = { e.qp[0] } }, 1);
}

Test(cq, wrong_moderation_is_refused)
{
	struct ibv_modify_cq_attr attr = { 0 };
	struct ibv_device_attr_ex device;

	cr_expect_eq(ibv_modify_cq(e.cq, &attr), EINVAL, "nothing to modify");
	cr_expect_eq(ibv_modify_cq(e.cq, NULL), EINVAL);
	attr.attr_mask = IBV_CQ_ATTR_RESERVED;
	cr_expect_eq(ibv_modify_cq(e.cq, &attr), EOPNOTSUPP);
	cr_assert_eq(ibv_query_device_ex(e.context, NULL, &device), 0);
	cr_expect_eq(device.cq_mod_caps.max_cq_count, LIMIT_MODERATION);
	cr_expect_eq(device.cq_mod_caps.max_cq_period, LIMIT_MODERATION);
	attr = moderation(device.cq_mod_caps.max_cq_count, device.cq_mod_caps.max_cq_period);
	cr_expect_eq(ibv_modify_cq(e.cq, &attr), 0, "what is announced can be had");
}
