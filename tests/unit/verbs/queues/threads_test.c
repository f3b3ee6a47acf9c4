/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several threads on the same objects, and several programs on the same engine. Runs with an
 * engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig/endpoint.h"

#define THREADS	 3
#define EACH	 2000
#define CHILDREN 3

static struct endpoint e;

static void open_endpoint(void)
{
	endpoint_open(&e);
}

static void close_endpoint(void)
{
	endpoint_close(&e);
}

TestSuite(threads, .init = open_endpoint, .fini = close_endpoint, .timeout = 120);

static struct ibv_send_wr small_write(struct ibv_sge *sge, uint64_t wr_id)
{
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};

	*sge = (struct ibv_sge){ (uintptr_t)e.buffer, 32, e.mr->lkey };
	wr.wr.rdma.remote_addr = (uintptr_t)e.buffer + 4096;
	wr.wr.rdma.rkey = e.mr->rkey;
	return wr;
}

/* Posts EACH requests with its own numbers; waits when the queue is full. */
static void *post_many(void *argument)
{
	uint64_t first = (uint64_t)(uintptr_t)argument * EACH;

	for (uint64_t i = 0; i < EACH; i++) {
		struct ibv_sge sge;
		struct ibv_send_wr wr = small_write(&sge, first + i), *bad;
		int error;

		while ((error = ibv_post_send(e.qp[0], &wr, &bad)) == ENOMEM)
			sched_yield();
		if (error != 0)
			return (void *)(uintptr_t)error;
	}
	return NULL;
}

Test(threads, post_to_one_queue_and_every_request_completes_once)
{
	static uint8_t seen[THREADS * EACH];
	pthread_t thread[THREADS];
	struct ibv_wc wc[8];
	void *error;

	for (uintptr_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, post_many, (void *)i), 0);
	for (int i = 0; i < THREADS * EACH / 8; i++) {
		poll_completions(e.cq, wc, 8, "requests of several threads");
		for (int k = 0; k < 8; k++) {
			cr_assert_eq(wc[k].status, IBV_WC_SUCCESS);
			cr_assert_lt(wc[k].wr_id, THREADS * EACH);
			cr_assert_eq(seen[wc[k].wr_id]++, 0, "request %lu twice", wc[k].wr_id);
		}
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &error);
		cr_assert_null(error, "errno %d", (int)(uintptr_t)error);
	}
}

static uint32_t polled;

static void *poll_some(void *argument)
{
	struct ibv_wc wc;
	int n;

	while (__atomic_load_n(&polled, __ATOMIC_RELAXED) < EACH) {
		n = ibv_poll_cq(e.cq, 1, &wc);
		if (n < 0 || (n == 1 && wc.status != IBV_WC_SUCCESS))
			return (void *)(uintptr_t)1;
		if (n == 1)
			__atomic_add_fetch(&polled, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

Test(threads, poll_one_queue_and_share_its_completions)
{
	pthread_t thread[THREADS];
	void *error;

	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, poll_some, NULL), 0);
	cr_assert_null(post_many(NULL));
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &error);
		cr_assert_null(error);
	}
	cr_assert_eq(polled, EACH);
}

static void *make_and_destroy(void *argument)
{
	for (int i = 0; i < 100; i++) {
		struct ibv_qp *qp = endpoint_create_qp(&e);

		if (qp == NULL || endpoint_connect(&e, qp, qp->qp_num) != 0 ||
		    ibv_destroy_qp(qp) != 0)
			return (void *)(uintptr_t)1;
	}
	return NULL;
}

/*
 * hostile H-116: objects that are being destroyed; H-123: endless commands; H-126: timers of
 * destroyed objects.
 */
Test(threads, objects_come_and_go_during_traffic)
{
	pthread_t thread[2];
	struct ibv_wc wc[8];
	void *error;

	cr_assert_eq(pthread_create(&thread[0], NULL, make_and_destroy, NULL), 0);
	cr_assert_eq(pthread_create(&thread[1], NULL, post_many, NULL), 0);
	for (int i = 0; i < EACH / 8; i++)
		poll_completions(e.cq, wc, 8, "traffic beside new queue pairs");
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], &error);
		cr_assert_null(error);
	}
}

/* A separate program that sends until it is killed; tells when it runs. */
static void send_until_killed(int ready)
{
	struct endpoint own;
	uint64_t rounds = 0;

	endpoint_open(&own);
	e = own;
	for (;;) {
		struct ibv_sge sge;
		struct ibv_send_wr wr = small_write(&sge, 0), *bad;
		struct ibv_wc wc[DEPTH];

		ibv_post_send(own.qp[0], &wr, &bad);
		ibv_poll_cq(own.cq, DEPTH, wc);
		if (++rounds == 100 && write(ready, "r", 1) != 1)
			_exit(1);
	}
}

/* hostile H-121: a program that is killed or stopped. */
Test(threads, a_killed_program_does_not_affect_others)
{
	pid_t child[CHILDREN];
	struct ibv_wc wc[8];
	int ready[2];
	char octet;

	cr_assert_eq(pipe(ready), 0);
	for (int i = 0; i < CHILDREN; i++) {
		child[i] = fork();
		if (child[i] == 0)
			send_until_killed(ready[1]);
	}
	for (int i = 0; i < CHILDREN; i++)
		cr_assert_eq(read(ready[0], &octet, 1), 1);
	for (int i = 0; i < CHILDREN; i++) {
		kill(child[i], SIGKILL);
		waitpid(child[i], NULL, 0);
	}
	for (uint64_t round = 0; round < 200; round++) {
		for (uint64_t i = 0; i < 8; i++) {
			struct ibv_sge sge;
			struct ibv_send_wr wr = small_write(&sge, i), *bad;

			cr_assert_eq(ibv_post_send(e.qp[0], &wr, &bad), 0);
		}
		poll_completions(e.cq, wc, 8, "traffic after the others' death");
		for (int i = 0; i < 8; i++)
			cr_assert_eq(wc[i].status, IBV_WC_SUCCESS);
	}
}
