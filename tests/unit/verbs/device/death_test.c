/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine dies: everything that the program waits for ends, and it finds a new engine. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "rig/asked.h"
#include "rig/endpoint.h"
#include "rig/mortal_engine.h"
#include "rig/waiting.h"
#include "verbs/types.h"

static struct endpoint e;

static void begin(void)
{
	mortal_engine_begin();
	endpoint_open(&e);
}

TestSuite(death, .init = begin, .fini = mortal_engine_end, .timeout = 120);

static void post_receives(struct ibv_qp *qp, int n)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 64, e.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	for (int i = 0; i < n; i++) {
		wr.wr_id = 100 + (uint64_t)i;
		cr_assert_eq(ibv_post_recv(qp, &wr, &bad), 0);
	}
}

static void post_write(uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 64, e.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)e.buffer + 4096;
	wr.wr.rdma.rkey = e.mr->rkey;
	cr_assert_eq(ibv_post_send(e.qp[0], &wr, &bad), 0);
}

static void expect_flushed(const struct ibv_wc *wc, uint64_t wr_id)
{
	cr_assert_eq(wc->status, IBV_WC_WR_FLUSH_ERR, "%s", ibv_wc_status_str(wc->status));
	cr_assert_eq(wc->wr_id, wr_id);
}

/* hostile H-140: an engine that is killed. */
Test(death, a_busy_poller_finds_everything_flushed)
{
	struct ibv_wc wc[8];

	post_receives(e.qp[1], 3);
	post_write(1);
	poll_completions(e.cq, wc, 1, "WRITE");
	cr_assert_eq(wc[0].status, IBV_WC_SUCCESS);
	mortal_engine_kill();
	post_write(2);
	poll_completions(e.cq, wc, 4, "what was posted and not completed");
	for (int i = 0, receives = 0; i < 4; i++) {
		if (wc[i].qp_num == e.qp[0]->qp_num)
			expect_flushed(&wc[i], 2);
		else
			expect_flushed(&wc[i], 100 + (uint64_t)receives++);
	}
	cr_assert_eq(ibv_poll_cq(e.cq, 8, wc), 0, "each of them once");
	endpoint_close(&e);
}

/* Between two polls a program may post any number of unsignaled requests, numbered modulo 2^32. */
Test(death, what_was_polled_long_after_the_last_is_not_flushed)
{
	struct ibv_wc wc;

	post_write(1);
	qp_of(e.qp[0])->sq.done -= 0x80000001; /* as after so many unsignaled ones */
	poll_completions(e.cq, &wc, 1, "WRITE");
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	mortal_engine_kill();
	post_write(2);
	poll_completions(e.cq, &wc, 1, "what was not completed");
	expect_flushed(&wc, 2);
	cr_assert_eq(ibv_poll_cq(e.cq, 1, &wc), 0, "nothing else");
	endpoint_close(&e);
}

Test(death, a_sleeping_program_is_woken_by_the_channel)
{
	struct pollfd p = { .fd = e.channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	struct ibv_wc wc[4];
	void *context;

	post_receives(e.qp[1], 2);
	cr_assert_eq(ibv_req_notify_cq(e.cq, 0), 0);
	mortal_engine_kill();
	cr_assert_eq(poll(&p, 1, WAIT_SECONDS * 1000), 1, "the channel does not wake anybody");
	cr_assert_eq(ibv_get_cq_event(e.channel, &cq, &context), 0);
	cr_assert_eq(cq, e.cq);
	ibv_ack_cq_events(cq, 1);
	poll_completions(e.cq, wc, 2, "the flushed receives");
	expect_flushed(&wc[0], 100);
	expect_flushed(&wc[1], 101);
	endpoint_close(&e);
}

static int get_cq_event(void *channel)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(channel, &cq, &context) != 0)
		return -1;
	ibv_ack_cq_events(cq, 1);
	return 0;
}

static void expect_device_gone(struct waiting *w)
{
	waiting_end(w);
	cr_expect_eq(w->result, -1, "%s has an answer", w->what);
	cr_expect_eq(w->error, ENODEV, "%s: %s", w->what, strerror(w->error));
}

/* A thread that asks now learns that the engine is gone and does not block. */
static void expect_gone_at_once(void)
{
	struct waiting w;

	waiting_start(&w, "ibv_get_cq_event", get_cq_event, e.channel);
	expect_device_gone(&w);
}

/* Nothing was posted, so the only result is the end of the engine. */
Test(death, a_thread_blocked_in_a_channel_returns)
{
	struct waiting w[4];

	cr_assert_eq(ibv_req_notify_cq(e.cq, 0), 0);
	for (int i = 0; i < 4; i++)
		waiting_begin(&w[i], "ibv_get_cq_event", get_cq_event, e.channel);
	mortal_engine_kill();
	for (int i = 0; i < 4; i++)
		expect_device_gone(&w[i]);
	expect_gone_at_once();
	endpoint_close(&e);
}

/* One thread gets the CQ, the others the end of the engine, and all completions can be polled. */
Test(death, a_thread_blocked_in_a_channel_finds_flush_completions)
{
	struct waiting w[4];
	struct ibv_wc wc[2];
	int told = 0;

	post_receives(e.qp[1], 2);
	cr_assert_eq(ibv_req_notify_cq(e.cq, 0), 0);
	for (int i = 0; i < 4; i++)
		waiting_begin(&w[i], "ibv_get_cq_event", get_cq_event, e.channel);
	mortal_engine_kill();
	for (int i = 0; i < 4; i++) {
		waiting_end(&w[i]);
		told += w[i].result == 0;
		cr_expect(w[i].result == 0 || w[i].error == ENODEV, "%s", strerror(w[i].error));
	}
	cr_expect_eq(told, 1, "%d were told of one queue", told);
	poll_completions(e.cq, wc, 2, "the flushed receives");
	expect_flushed(&wc[0], 100);
	expect_flushed(&wc[1], 101);
	endpoint_close(&e);
}

/* It is readable because of its end; the program may have polled everything by then. */
Test(death, a_readable_channel_does_not_block)
{
	struct pollfd p = { .fd = e.channel->fd, .events = POLLIN };
	struct ibv_wc wc[2];

	post_receives(e.qp[1], 2);
	cr_assert_eq(ibv_req_notify_cq(e.cq, 0), 0);
	mortal_engine_kill();
	poll_completions(e.cq, wc, 2, "the flushed receives");
	cr_assert_eq(poll(&p, 1, WAIT_SECONDS * 1000), 1, "the channel does not wake anybody");
	expect_gone_at_once();
	expect_gone_at_once(); /* and every time */
	cr_expect_eq(poll(&p, 1, 0), 0, "a loop over the descriptor would spin");
	endpoint_close(&e);
}

/* After arming again there is an event again. */
Test(death, a_dead_channel_sends_an_event_when_armed)
{
	struct ibv_wc wc;

	mortal_engine_kill();
	expect_gone_at_once();
	for (int i = 0; i < 3; i++) {
		post_receives(e.qp[1], 1);
		cr_assert_eq(ibv_req_notify_cq(e.cq, 0), 0);
		cr_expect_eq(get_cq_event(e.channel), 0, "%s", strerror(errno));
		poll_completions(e.cq, &wc, 1, "the flushed receive");
		expect_gone_at_once();
	}
	endpoint_close(&e);
}

static void post_receive(struct ibv_qp *unused)
{
	post_receives(e.qp[1], 1);
}

static void post_send(struct ibv_qp *unused)
{
	post_write(100);
}

static void post_batch(struct ibv_qp *extended)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(extended);

	ibv_wr_start(qp);
	qp->wr_id = 100;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp);
	cr_assert_eq(ibv_wr_complete(qp), 0);
}

static struct ibv_mw *window;

static void bind_window(struct ibv_qp *unused)
{
	struct ibv_mw_bind bind = { .wr_id = 100, .send_flags = IBV_SEND_SIGNALED };

	cr_assert_eq(ibv_bind_mw(e.qp[0], window, &bind), 0);
}

static struct ibv_qp *connect_extended(void)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = e.cq,
		.recv_cq = e.cq,
		.cap = { .max_send_wr = 8, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e.pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(e.context, &init);

	cr_assert_not_null(qp, "%m");
	cr_assert_eq(endpoint_connect(&e, qp, qp->qp_num), 0);
	return qp;
}

/* As when one thread waits in epoll(7) and another one posts. */
Test(death, a_post_sends_an_event_to_whoever_armed_a_dead_channel)
{
	void (*const post[])(struct ibv_qp *) = { post_receive, post_send, post_batch,
						  bind_window };
	struct pollfd p = { .fd = e.channel->fd, .events = POLLIN };
	struct ibv_qp *extended = connect_extended();
	struct ibv_wc wc[2];

	window = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
	cr_assert_not_null(window, "%m");
	cr_assert_eq(fcntl(e.channel->fd, F_SETFL, O_NONBLOCK), 0);
	mortal_engine_kill();
	cr_assert_eq(get_cq_event(e.channel), -1);
	for (size_t i = 0; i < ARRAY_SIZE(post); i++) {
		cr_assert_eq(ibv_poll_cq(e.cq, 1, wc), 0);
		cr_assert_eq(ibv_req_notify_cq(e.cq, 0), 0);
		cr_assert_eq(poll(&p, 1, 0), 0, "there is nothing to poll yet");
		post[i](extended);
		cr_assert_eq(poll(&p, 1, 0), 1, "post %zu wakes nobody", i);
		cr_expect_eq(get_cq_event(e.channel), 0, "%s", strerror(errno));
		post[i](extended);
		cr_expect_eq(poll(&p, 1, 0), 0, "post %zu: one event for one arming", i);
		poll_completions(e.cq, wc, 2, "what was posted");
		expect_flushed(&wc[0], 100);
		expect_flushed(&wc[1], 100);
	}
	cr_expect_eq(ibv_dealloc_mw(window), 0);
	cr_expect_eq(ibv_destroy_qp(extended), 0);
	endpoint_close(&e);
}

/* ---- a cancellation is pending in a call under a lock of the library ---- */

/* Not a cancellation point, so the thread does not end in it. */
static int arm_cancelled(void *cq)
{
	pthread_cancel(pthread_self());
	return ibv_req_notify_cq(cq, 0) == 0;
}

Test(death, a_cancelled_thread_that_arms_keeps_no_lock)
{
	struct waiting w;

	mortal_engine_kill();
	expect_gone_at_once();
	post_receives(e.qp[1], 1);
	waiting_start(&w, "ibv_req_notify_cq", arm_cancelled, e.cq);
	waiting_end(&w);
	cr_assert_eq(w.result, 1, "the thread ended in ibv_req_notify_cq");
	cr_expect_eq(get_cq_event(e.channel), 0, "%s", strerror(errno));
	endpoint_close(&e);
}

static int poll_cancelled(void *cq)
{
	struct ibv_wc wc;
	int n;

	pthread_cancel(pthread_self());
	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (n == 0);
	return n;
}

/* It finds the end of the engine's socket, because the heartbeat is late. */
Test(death, a_cancelled_thread_that_polls_keeps_no_lock)
{
	struct waiting w;
	struct ibv_wc wc;

	post_receives(e.qp[1], 2);
	mortal_engine_kill();
	waiting_start(&w, "ibv_poll_cq", poll_cancelled, e.cq);
	waiting_end(&w);
	cr_assert_eq(w.result, 1, "the thread ended in ibv_poll_cq");
	poll_completions(e.cq, &wc, 1, "the other flushed receive");
	expect_flushed(&wc, 101);
	endpoint_close(&e);
}

static bool cancels; /* the thread that makes the descriptor mute */

__attribute__((visibility("default"))) int socketpair(int domain, int type, int protocol,
						      int pair[2])
{
	if (cancels)
		pthread_cancel(pthread_self());
	cancels = false;
	return (int)syscall(SYS_socketpair, domain, type, protocol, pair);
}

Test(death, a_thread_that_is_cancelled_at_the_end_of_a_channel_keeps_no_lock)
{
	struct waiting w;

	mortal_engine_kill();
	cancels = true;
	waiting_start(&w, "ibv_get_cq_event", get_cq_event, e.channel);
	waiting_end(&w);
	cr_assert(!cancels, "the library makes no mute descriptor");
	cr_assert_eq(w.result, -1, "the thread ended while it held the lock");
	expect_gone_at_once();
	endpoint_close(&e);
}

static void the_channel_ends(void)
{
	mortal_engine_kill();
	expect_gone_at_once();
}

/* The channel's thread looks at all of its CQs, also at one that another thread is about to get. */
Test(death, a_cq_that_is_being_created_has_no_completions)
{
	struct ibv_cq *cq;

	asked_before_reply = the_channel_ends;
	cq = ibv_create_cq(e.context, DEPTH, NULL, e.channel, 0);
	cr_expect_null(asked_before_reply, "the engine was asked");
	if (cq != NULL) /* it had answered before it ended */
		cr_expect_eq(ibv_destroy_cq(cq), 0);
	endpoint_close(&e);
}

static struct waiting watcher;

/* Between start_poll and end_poll a program may use everything but this CQ. */
static int use_others_while_polling(void *cq)
{
	const struct timespec nap = { .tv_nsec = 200000000 };
	struct ibv_poll_cq_attr attr = { 0 };

	while (ibv_start_poll(cq, &attr) == ENOENT)
		;
	mortal_engine_kill();
	nanosleep(&nap, NULL); /* the other thread looks at all CQs of the channel now */
	cr_expect_null(endpoint_create_qp(&e));
	ibv_end_poll(cq);
	return 0;
}

Test(death, a_cq_that_is_being_polled_holds_up_no_other_object)
{
	struct ibv_cq_init_attr_ex init = { .cqe = DEPTH, .channel = e.channel };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(e.context, &init);
	struct ibv_cq *usual = e.cq;
	struct waiting polls;
	struct ibv_wc wc;

	cr_assert_not_null(cq);
	cr_assert_eq(ibv_destroy_qp(e.qp[0]), 0);
	e.cq = ibv_cq_ex_to_cq(cq);
	e.qp[0] = endpoint_create_qp(&e);
	e.cq = usual;
	cr_assert_eq(endpoint_connect(&e, e.qp[0], e.qp[0]->qp_num), 0);
	post_write(1);
	post_write(2);
	waiting_begin(&watcher, "ibv_get_cq_event", get_cq_event, e.channel);
	waiting_start(&polls, "a poll", use_others_while_polling, cq);
	waiting_end(&polls);
	waiting_end(&watcher);
	cr_expect_eq(watcher.result, 0, "one is not polled yet: %s", strerror(watcher.error));
	poll_completions(ibv_cq_ex_to_cq(cq), &wc, 1, "the other one");
	cr_expect_eq(ibv_destroy_qp(e.qp[0]), 0);
	cr_expect_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	e.qp[0] = NULL;
}

/* A non-blocking descriptor returns EAGAIN, as always when there is no event. */
Test(death, a_non_blocking_channel_is_mute)
{
	struct pollfd p = { .fd = e.channel->fd, .events = POLLIN };

	cr_assert_eq(fcntl(e.channel->fd, F_SETFL, O_NONBLOCK), 0);
	mortal_engine_kill();
	for (int i = 0; i < 3; i++) {
		errno = 0;
		cr_expect_eq(get_cq_event(e.channel), -1);
		cr_expect_eq(errno, EAGAIN, "%s", strerror(errno));
	}
	cr_expect_eq(poll(&p, 1, 0), 0, "a loop over the descriptor would spin");
	endpoint_close(&e);
}

static int get_async_event(void *context)
{
	struct ibv_async_event event;

	if (ibv_get_async_event(context, &event) != 0)
		return -1;
	ibv_ack_async_event(&event);
	return event.event_type == IBV_EVENT_DEVICE_FATAL ? 0 : 1;
}

Test(death, a_thread_blocked_for_async_events_returns)
{
	struct waiting w[4];
	int told = 0;

	for (int i = 0; i < 4; i++)
		waiting_begin(&w[i], "ibv_get_async_event", get_async_event, e.context);
	mortal_engine_kill();
	for (int i = 0; i < 4; i++) {
		waiting_end(&w[i]);
		told += w[i].result == 0;
		cr_expect(w[i].result == 0 || w[i].error == ENODEV, "%s", strerror(w[i].error));
	}
	cr_expect_eq(told, 1, "%d were told of one fatal event", told);
	endpoint_close(&e);
}

Test(death, the_async_descriptor_says_device_fatal_once)
{
	struct pollfd p = { .fd = e.context->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	mortal_engine_kill();
	cr_assert_eq(poll(&p, 1, WAIT_SECONDS * 1000), 1);
	cr_assert_eq(ibv_get_async_event(e.context, &event), 0);
	cr_assert_eq(event.event_type, IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
	cr_assert_eq(poll(&p, 1, 0), 0, "the descriptor stays readable for ever");
	endpoint_close(&e);
}

/* hostile H-140: an engine that is killed. */
Test(death, commands_fail_and_a_new_engine_is_found)
{
	struct endpoint second;

	mortal_engine_kill();
	errno = 0;
	cr_assert_null(ibv_alloc_pd(e.context));
	cr_assert_eq(errno, ENODEV);
	mortal_engine_start();
	endpoint_open(&second);
	endpoint_close(&second);
	endpoint_close(&e);
}
