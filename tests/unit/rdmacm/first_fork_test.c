/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fork that begins before the library's first call. The program's own handler runs before the
 * library's, and begins that call in another thread. librdmacm opens the device within it, under its
 * lock, by this file's ibv_open_device. Runs with an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_TIME 20 /* seconds */
#define HELD_US	   200000 /* as long as the device takes to open */

static uint32_t opening;

__attribute__((visibility("default"))) struct ibv_context *ibv_open_device(
	struct ibv_device *device)
{
	struct ibv_context *(*real)(struct ibv_device *);

	*(void **)&real = dlsym(RTLD_NEXT, "ibv_open_device");
	if (__atomic_add_fetch(&opening, 1, __ATOMIC_RELEASE) == 1)
		usleep(HELD_US); /* the fork comes now, or waits for the lock */
	return real(device);
}

static int create_and_destroy(void)
{
	struct rdma_cm_id *id;

	return rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == 0 ? rdma_destroy_id(id) : -1;
}

static void *first_call(void *unused)
{
	return create_and_destroy() == 0 ? unused : (void *)1;
}

static pthread_t beginner;

static void other_begins(void)
{
	if (pthread_create(&beginner, NULL, first_call, NULL) != 0)
		_exit(95);
	for (int ms = 0; ms < 10000 && __atomic_load_n(&opening, __ATOMIC_ACQUIRE) == 0; ms++)
		usleep(1000);
	cr_assert_neq(opening, 0, "librdmacm opened no device in 10 s");
}

Test(first_fork, finds_the_lock_of_ids_free, .timeout = 60)
{
	void *failed = NULL;
	int status = -1;
	pid_t child;

	cr_assert_eq(pthread_atfork(other_begins, NULL, NULL), 0);
	child = fork();
	if (child == 0) {
		alarm(CHILD_TIME);
		_exit(create_and_destroy() == 0 ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0, "the child ended with %#x (0xe: it hung)", (unsigned int)status);
	cr_assert_eq(pthread_join(beginner, &failed), 0);
	cr_assert_null(failed);
}
