/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that call verbs while another one forks. Runs with an engine at $UROCE_SOCKET. */
#include <criterion/criterion.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"

#define LENGTH	   (256u << 10) /* enough to be promoted */
#define FOR_NS	   INT64_C(3000000000)
#define CHILD_TIME 20 /* seconds */

TestSuite(forks, .timeout = 60);

static uint32_t stop;

static struct ibv_context *open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context =
		list != NULL && list[0] != NULL ? ibv_open_device(list[0]) : NULL;

	if (list != NULL)
		ibv_free_device_list(list);
	return context;
}

/* The last context that is closed ends this process as a client: each round is another one. */
static void *come_and_go(void *memory)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct ibv_context *context = open_first();
		struct ibv_pd *pd = context != NULL ? ibv_alloc_pd(context) : NULL;
		struct ibv_mr *mr =
			pd != NULL ? ibv_reg_mr(pd, memory, LENGTH, IBV_ACCESS_LOCAL_WRITE) : NULL;

		if (mr == NULL || ibv_dereg_mr(mr) != 0 || ibv_dealloc_pd(pd) != 0 ||
		    ibv_close_device(context) != 0)
			return (void *)1;
	}
	return NULL;
}

static void *list_devices(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct ibv_device **list = ibv_get_device_list(NULL);

		if (list == NULL || list[0] == NULL)
			return (void *)1;
		ibv_free_device_list(list);
	}
	return NULL;
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A child that does what its parent's threads do. */
static void child_of_fork(void)
{
	struct ibv_context *context;

	alarm(CHILD_TIME);
	context = open_first();
	_exit(context != NULL && ibv_close_device(context) == 0 ? 0 : 1);
}

static void fork_beside(void *(*one)(void *), void *(*other)(void *))
{
	void *memory = aligned_alloc(4096, 2 * LENGTH), *failed;
	int64_t end = now() + FOR_NS;
	pthread_t thread[2];
	int status;

	cr_assert_not_null(memory);
	memset(memory, 1, 2 * LENGTH);
	cr_assert_eq(pthread_create(&thread[0], NULL, one, memory), 0);
	cr_assert_eq(pthread_create(&thread[1], NULL, other, (char *)memory + LENGTH), 0);
	while (now() < end) {
		pid_t child = fork();

		if (child == 0)
			child_of_fork();
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert_eq(status, 0, "a child ended with %#x", (unsigned int)status);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (size_t i = 0; i < ARRAY_SIZE(thread); i++) {
		cr_assert_eq(pthread_join(thread[i], &failed), 0);
		cr_expect_null(failed);
	}
	free(memory);
}

Test(forks, beside_clients_that_come_and_go)
{
	fork_beside(come_and_go, come_and_go);
}

Test(forks, beside_lists_of_devices)
{
	fork_beside(list_devices, list_devices);
}
