/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forks whose moment or number is a rare one. Runs with an engine at $UROCE_SOCKET.
 *
 * A fork that begins before the library's first call: the program's own handler runs before the
 * library's, and begins that call in another thread. librdmacm opens the device within it, under its
 * lock, by this file's ibv_open_device.
 *
 * A child with its parent's pid, which is the first process of a PID namespace, as the parent is of
 * another one: this file's getpid says so.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <stdint.h>
#include <sys/syscall.h>
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

static pid_t shown; /* 0: the real one */

__attribute__((visibility("default"))) pid_t getpid(void)
{
	return shown != 0 ? shown : (pid_t)syscall(SYS_getpid);
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

/* Runs in a child that has the pid of this process: 0, or the number of the step that failed. */
static int in_a_namesake(int (*steps)(void *argument), void *argument)
{
	int status = -1;
	pid_t child;

	shown = getpid();
	child = fork();
	if (child == 0) {
		alarm(CHILD_TIME);
		_exit(steps(argument));
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status), "the child ended with %#x (0xe: it hung)",
		  (unsigned int)status);
	return WEXITSTATUS(status);
}

/* 0 or an errno. */
static int listen_anywhere(void *unused)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int s = rsocket(AF_INET, SOCK_STREAM, 0);

	if (s < 0 || rbind(s, (struct sockaddr *)&any, sizeof(any)) != 0 || rlisten(s, 1) != 0)
		return errno;
	return 0;
}

Test(first_fork, gives_a_namesake_its_own_thread, .timeout = 60)
{
	int error = listen_anywhere(NULL);

	cr_assert_eq(error, 0, "%s", strerror(error));
	error = in_a_namesake(listen_anywhere, NULL);
	cr_expect_eq(error, 0, "the child's rsockets: %s", strerror(error));
}

static int takes_no_event(void *channel)
{
	struct rdma_cm_event *event;

	errno = 0;
	return rdma_get_cm_event(channel, &event) == -1 ? errno : 0;
}

Test(first_fork, gives_a_namesake_no_events_of_its_parent, .timeout = 60)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	int error;

	cr_assert_not_null(channel);
	error = in_a_namesake(takes_no_event, channel);
	cr_expect_eq(error, ENODEV, "the child's copy of a channel: %s", strerror(error));
	rdma_destroy_event_channel(channel);
}
