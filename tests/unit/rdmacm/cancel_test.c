/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads are cancelled in calls that do not block, and in calls that wait for an acknowledgement:
 * the rest of the program is not affected. Runs with an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"

#define ROUNDS 100

/* A stack frame that the address sanitizer has poisoned stays so if the thread ends in it. */
#define ENDS_HERE __attribute__((no_sanitize_address))

TestSuite(cancel, .timeout = 60);

/* Runs `routine` in a thread for a time that differs from round to round, then cancels it. */
static void cancel_in(void *(*routine)(void *), void *argument, int round)
{
	pthread_t thread;
	void *result;

	cr_assert_eq(pthread_create(&thread, NULL, routine, argument), 0);
	usleep((useconds_t)(500 + 37 * round));
	cr_assert_eq(pthread_cancel(thread), 0);
	cr_assert_eq(pthread_join(thread, &result), 0);
	cr_assert_eq(result, PTHREAD_CANCELED);
}

static ENDS_HERE void *make_ids(void *channel)
{
	struct rdma_cm_id *id;

	for (;;) {
		if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0)
			rdma_destroy_id(id);
		pthread_testcancel();
	}
	return NULL;
}

Test(cancel, in_calls_to_the_engine)
{
	struct rdma_event_channel *channel = open_channel();

	for (int i = 0; i < ROUNDS; i++) {
		cancel_in(make_ids, channel, i);
		rdma_destroy_id(open_id(channel, RDMA_PS_TCP));
	}
	rdma_destroy_event_channel(channel);
}

static ENDS_HERE void *register_memory(void *id)
{
	size_t octets = 256 * 1024;
	void *memory = aligned_alloc(4096, octets);

	pthread_cleanup_push(free, memory);
	for (;;) {
		struct ibv_mr *mr = ibv_reg_mr(((struct rdma_cm_id *)id)->pd, memory, octets,
					       IBV_ACCESS_LOCAL_WRITE);

		if (mr != NULL)
			ibv_dereg_mr(mr);
		pthread_testcancel();
	}
	pthread_cleanup_pop(1);
	return NULL;
}

Test(cancel, in_calls_that_register_memory)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
	struct sockaddr_in a;
	char memory[64];

	cr_assert_eq(rdma_bind_addr(id, address(&a, OWN_ADDRESS, 0)), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_mr *mr;

		cancel_in(register_memory, id, i);
		mr = ibv_reg_mr(id->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
		cr_assert_not_null(mr);
		cr_assert_eq(ibv_dereg_mr(mr), 0);
	}
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

/* Not a cancellation point; long enough for the engine to fall asleep. */
static void spin(void)
{
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &to);
	while ((to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec < 5000000);
}

static void write_nothing(struct rdma_cm_id *id)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE }, *bad;

	cr_assert_eq(ibv_post_send(id->qp, &wr, &bad), 0);
}

static void take_completion(struct rdma_cm_id *id)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(id->send_cq, 1, &wc)) == 0)
		;
	cr_assert_eq(n, 1);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
}

static ENDS_HERE void *write_for_ever(void *id)
{
	for (;;) {
		spin();
		write_nothing(id);
		take_completion(id);
		pthread_testcancel();
	}
	return NULL;
}

/* Posting wakes a sleeping engine by a system call under the queue's lock. */
Test(cancel, in_calls_that_post_requests)
{
	struct connection c;

	connection_open(&c);
	for (int i = 0; i < 10; i++) {
		cancel_in(write_for_ever, c.caller, 30 * i);
		write_nothing(c.caller);
		take_completion(c.caller);
	}
	connection_close(&c);
}

static ENDS_HERE void *destroy(void *id)
{
	rdma_destroy_id(id);
	return NULL;
}

/* The id is lost, but the lock that the thread held is not. */
Test(cancel, while_an_event_is_not_acknowledged)
{
	struct rdma_event_channel *channel = open_channel();
	static struct rdma_cm_id *id; /* lost; static for the leak sanitizer */
	struct rdma_cm_event *event;
	struct sockaddr_in a;

	id = open_id(channel, RDMA_PS_TCP);
	cr_assert_eq(rdma_resolve_addr(id, NULL, address(&a, OWN_ADDRESS, 7), 2000), 0);
	event = expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	cancel_in(destroy, id, 500);
	rdma_destroy_id(open_id(channel, RDMA_PS_TCP));
	rdma_ack_cm_event(event);
	rdma_destroy_event_channel(channel);
}

/* ---- a cancellation is pending in a call that ends an object ---- */

struct ending {
	int (*end)(void *of);
	void *of;
	bool ended;
};

static ENDS_HERE void *end_cancelled(void *argument)
{
	struct ending *x = argument;

	pthread_cancel(pthread_self());
	x->end(x->of);
	x->ended = true;
	pthread_testcancel();
	return NULL;
}

static void expect_end(const char *what, int (*end)(void *of), void *of)
{
	struct ending x = { .end = end, .of = of };
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, end_cancelled, &x), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect(x.ended, "the thread ended in %s", what);
}

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	cr_assert(list != NULL && list[0] != NULL);
	context = ibv_open_device(list[0]);
	cr_assert_not_null(context, "%m");
	ibv_free_device_list(list);
	return context;
}

static int close_device(void *context)
{
	return ibv_close_device(context);
}

Test(cancel, in_a_call_that_closes_the_device)
{
	unsigned int before = descriptors();

	expect_end("ibv_close_device", close_device, open_device());
	cr_expect_eq(descriptors(), before);
}

static int free_domain(void *pd)
{
	return ibv_dealloc_pd(pd);
}

Test(cancel, in_a_call_that_destroys_the_last_object_of_a_closed_device)
{
	unsigned int before = descriptors();
	struct ibv_context *context = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);

	cr_assert_not_null(pd, "%m");
	cr_assert_eq(ibv_close_device(context), 0);
	expect_end("ibv_dealloc_pd", free_domain, pd);
	cr_expect_eq(descriptors(), before);
}

static int destroy_completion_channel(void *channel)
{
	return ibv_destroy_comp_channel(channel);
}

Test(cancel, in_a_call_that_destroys_a_completion_channel)
{
	unsigned int before = descriptors();
	struct ibv_context *context = open_device();
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);

	cr_assert_not_null(channel, "%m");
	expect_end("ibv_destroy_comp_channel", destroy_completion_channel, channel);
	cr_assert_eq(ibv_close_device(context), 0);
	cr_expect_eq(descriptors(), before);
}

static int destroy_event_channel(void *channel)
{
	rdma_destroy_event_channel(channel);
	return 0;
}

Test(cancel, in_a_call_that_destroys_an_event_channel)
{
	struct rdma_event_channel *first = open_channel(); /* so that the device is open */
	unsigned int before = descriptors();

	expect_end("rdma_destroy_event_channel", destroy_event_channel, open_channel());
	cr_expect_eq(descriptors(), before);
	rdma_destroy_event_channel(first);
}
