/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends of a stream stop sending, while the last data of one of them is still under way. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rs_rig.h"

#define LONG 60000 /* octets that the peer's engine accepts without its program */
#define HELD 32 /* requests, at most */

static int listener, called;
static struct ibv_context *context;
static int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static struct ibv_qp *slow; /* NULL: that which posts next */
static struct {
	struct ibv_send_wr request;
	struct ibv_sge sge[2];
} held[HELD];
static int held_count;

/* As if the network were slow for one queue pair. */
static int hold(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int n = held_count;

	if (slow == NULL)
		slow = qp;
	if (qp != slow || n == HELD)
		return post_send(qp, wr, bad);
	held[n].request = *wr;
	memcpy(held[n].sge, wr->sg_list, (size_t)wr->num_sge * sizeof(wr->sg_list[0]));
	held[n].request.sg_list = held[n].sge;
	__atomic_store_n(&held_count, n + 1, __ATOMIC_RELEASE);
	return 0;
}

/* Both libraries share this context, so its function table affects both. */
static void begin(void)
{
	struct ibv_context **list = rdma_get_devices(NULL);
	struct sockaddr_in a;

	cr_assert(list != NULL && list[0] != NULL, "no device: %s", strerror(errno));
	context = list[0];
	rdma_free_devices(list);
	rs_pair_open();
	listener = rs_listening(&a);
	called = rs_connect_stream(listener, &a);
	post_send = context->ops.post_send;
}

static void end(void)
{
	rclose(called);
	rclose(listener);
	rs_pair_close();
}

TestSuite(rs_last_data, .init = begin, .fini = end, .timeout = 60);

static void let_go(void)
{
	struct ibv_send_wr *bad;

	context->ops.post_send = post_send;
	for (int i = 0; i < held_count; i++)
		cr_expect_eq(post_send(slow, &held[i].request, &bad), 0, "request %d", i);
}

static void *shut(void *argument)
{
	(void)argument;
	return (void *)(intptr_t)rshutdown(called, SHUT_WR);
}

static void *shut_and_close(void *argument)
{
	(void)argument;
	return (void *)(intptr_t)rclose(called);
}

/* `called` has sent data and tells its end, which do not arrive. Then the end of `s` comes. */
static pthread_t begin_late_data(void)
{
	static const uint8_t octets[LONG];
	struct pollfd p = { .fd = called, .events = POLLRDHUP };
	uint64_t end_of_wait;
	pthread_t thread;
	int data;

	context->ops.post_send = hold;
	cr_assert_eq(rsend(called, octets, LONG, MSG_DONTWAIT), LONG);
	data = held_count;
	cr_assert_eq(pthread_create(&thread, NULL, shut, NULL), 0);
	end_of_wait = wait_end();
	while (__atomic_load_n(&held_count, __ATOMIC_ACQUIRE) == data && nap_before(end_of_wait))
		;
	cr_assert_eq(held_count, data + 1, "the end is not posted");
	cr_assert_eq(rshutdown(s, SHUT_WR), 0, "%s", strerror(errno));
	cr_assert_eq(rpoll(&p, 1, WAIT_SECONDS * 1000), 1, "the peer's end does not come");
	cr_expect_eq(p.revents, POLLRDHUP, "it is over while data is under way: 0x%x", p.revents);
	return thread;
}

static void expect_success(pthread_t thread)
{
	void *status;

	cr_assert_eq(pthread_join(thread, &status), 0);
	cr_expect_eq((intptr_t)status, 0);
}

static void expect_all_data(void)
{
	static uint8_t octets[LONG];
	ssize_t n, all = 0;

	while ((n = rrecv(s, octets, sizeof(octets), 0)) > 0)
		all += n;
	cr_expect_eq(n, 0, "%s", strerror(errno));
	cr_expect_eq(all, LONG);
}

Test(rs_last_data, arrives_after_the_peers_end)
{
	pthread_t thread = begin_late_data();
	struct pollfd p = { .fd = called, .events = POLLIN };

	let_go();
	expect_success(thread);
	expect_all_data();
	cr_assert_eq(rpoll(&p, 1, WAIT_SECONDS * 1000), 1);
	cr_expect_eq(p.revents, POLLIN | POLLHUP, "then it is over: 0x%x", p.revents);
}

Test(rs_last_data, arrives_although_another_thread_closes)
{
	pthread_t thread = begin_late_data(), closing;
	struct timespec soon;

	cr_assert_eq(pthread_create(&closing, NULL, shut_and_close, NULL), 0);
	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_sec++; /* a shorter time would find less, and nothing that is not there */
	cr_assert_eq(pthread_timedjoin_np(closing, NULL, &soon), ETIMEDOUT, "it does not wait");
	let_go();
	expect_success(closing);
	expect_success(thread);
	expect_all_data();
}

Test(rs_last_data, is_lost_and_rshutdown_says_so)
{
	struct ibv_qp_attr ends = { .qp_state = IBV_QPS_ERR };
	pthread_t thread = begin_late_data();
	void *status;

	cr_assert_eq(ibv_modify_qp(slow, &ends, IBV_QP_STATE), 0);
	let_go();
	cr_assert_eq(pthread_join(thread, &status), 0);
	cr_expect_eq((intptr_t)status, -1, "the data did not arrive");
}

/* ---- another thread's call reports the failure ---- */

static int (*poll_cq)(struct ibv_cq *cq, int n, struct ibv_wc *wc);
static pthread_t reporter;
static bool only_reporter;

/* From then on, no other thread finds out. */
static int poll_for_one(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	if (__atomic_load_n(&only_reporter, __ATOMIC_ACQUIRE) &&
	    !pthread_equal(pthread_self(), reporter))
		return 0;
	return poll_cq(cq, n, wc);
}

/* A call that finds no data returns the error, once. Before the failure it returns the peer's end. */
static void report(void)
{
	uint64_t end_of_wait = wait_end();
	uint8_t octet;
	ssize_t n;

	do
		n = rrecv(called, &octet, 1, MSG_DONTWAIT);
	while (n == 0 && nap_before(end_of_wait));
	cr_assert(n == -1 && errno == ECONNRESET, "the failure does not come: %zd, %m", n);
	cr_assert_eq(rrecv(called, &octet, 1, MSG_DONTWAIT), 0, "it is reported twice");
}

Test(rs_last_data, is_lost_and_another_thread_has_heard_it_first, .timeout = 200)
{
	struct ibv_qp_attr ends = { .qp_state = IBV_QPS_ERR };
	pthread_t thread;
	void *status;

	reporter = pthread_self();
	poll_cq = context->ops.poll_cq;
	context->ops.poll_cq = poll_for_one; /* before there is a thread that calls it */
	thread = begin_late_data();
	__atomic_store_n(&only_reporter, true, __ATOMIC_RELEASE);
	cr_assert_eq(ibv_modify_qp(slow, &ends, IBV_QP_STATE), 0);
	let_go();
	report();
	cr_assert_eq(pthread_join(thread, &status), 0);
	cr_expect_eq((intptr_t)status, -1, "the data did not arrive");
	context->ops.poll_cq = poll_cq;
}
