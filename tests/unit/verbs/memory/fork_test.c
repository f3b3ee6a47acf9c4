/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads call verbs while another one forks. Runs with an engine at $UROCE_SOCKET. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "rig/endpoint.h"

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

/* Closing the last context detaches this process, so each round is a new client. */
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

/* A child does what its parent's threads do. */
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

Test(forks, while_clients_come_and_go)
{
	fork_beside(come_and_go, come_and_go);
}

/* ---- a program that closed descriptors which it does not know ---- */

#define NUMBERS 256

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* Files of the program get the numbers that the library had. Returns how many. */
static int take_numbers(const bool *were_open, int *taken)
{
	int file = open("/dev/null", O_RDONLY), n = 0;

	cr_assert_geq(file, 0);
	for (int fd = 0; fd < NUMBERS; fd++)
		if (fd != file && is_open(fd) && !were_open[fd]) {
			cr_assert_eq(dup2(file, fd), fd);
			taken[n++] = fd;
		}
	return n;
}

Test(forks, a_child_keeps_files_with_numbers_that_the_library_had)
{
	bool were_open[NUMBERS];
	int taken[NUMBERS], n, status;
	struct ibv_comp_channel *channel;
	struct ibv_context *context;
	pid_t child;

	for (int fd = 0; fd < NUMBERS; fd++)
		were_open[fd] = is_open(fd);
	context = open_first();
	cr_assert_not_null(context);
	channel = ibv_create_comp_channel(context);
	cr_assert_not_null(channel);
	n = take_numbers(were_open, taken);
	cr_assert_gt(n, 0);
	child = fork();
	if (child == 0) {
		for (int i = 0; i < n; i++)
			if (!is_open(taken[i]))
				_exit(1);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "the child has lost files: %#x", (unsigned int)status);
}

/* ---- a fork that begins before the first call of the library ---- */

#define FIRST_FORKS 8

static uint32_t listed; /* times */

static void *list_and_open(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct ibv_context *context = open_first();

		if (context == NULL || ibv_close_device(context) != 0)
			return (void *)1;
		__atomic_fetch_add(&listed, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static pthread_t beginners[2];

/* Called when the fork has begun. */
static void others_begin(void)
{
	if (__atomic_load_n(&listed, __ATOMIC_RELAXED) > 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(beginners); i++)
		if (pthread_create(&beginners[i], NULL, list_and_open, NULL) != 0)
			_exit(95);
	while (__atomic_load_n(&listed, __ATOMIC_RELAXED) < 3)
		;
}

/* In a process that has not called the library yet. Its exit status is 0 if parent and child went on. */
static void fork_once(void)
{
	void *failed = NULL;
	int status = -1;
	pid_t child;

	alarm(2 * CHILD_TIME);
	if (pthread_atfork(others_begin, NULL, NULL) != 0)
		_exit(96);
	child = fork();
	if (child == 0)
		child_of_fork();
	if (waitpid(child, &status, 0) != child || status != 0)
		_exit(97);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (size_t i = 0; i < ARRAY_SIZE(beginners); i++)
		if (pthread_join(beginners[i], &failed) != 0 || failed != NULL)
			_exit(98);
	_exit(0);
}

Test(forks, before_the_first_call)
{
	for (int i = 0; i < FIRST_FORKS; i++) {
		int status = -1;
		pid_t process = fork();

		if (process == 0)
			fork_once();
		cr_assert_eq(waitpid(process, &status, 0), process);
		cr_assert_eq(status, 0, "fork %d: %#x (0x6100: its child hung or failed)", i,
			     (unsigned int)status);
	}
}

/* ---- during traffic into peer memory ---- */

#define LARGE (16u << 20)

static void *write_there(void *memory)
{
	volatile uint64_t *word = memory;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		(*word)++;
	return NULL;
}

static int post_write(struct endpoint *e, const uint8_t *to, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer, 4096, e->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)to;
	wr.wr.rdma.rkey = rkey;
	return ibv_post_send(e->qp[0], &wr, &bad);
}

/* If the fork held these pages, the engine's writes through the second region would fail. */
Test(forks, while_on_demand_memory_is_written)
{
	uint8_t *memory = aligned_alloc(4096, LARGE);
	struct ibv_mr *promoted, *on_demand;
	struct endpoint e;
	pthread_t thread;

	endpoint_open(&e);
	cr_assert_not_null(memory);
	memset(memory, 1, LARGE);
	promoted = ibv_reg_mr(e.pd, memory, LARGE, IBV_ACCESS_LOCAL_WRITE);
	on_demand =
		ibv_reg_mr(e.pd, memory, LARGE,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND);
	cr_assert(promoted != NULL && on_demand != NULL);
	cr_assert_eq(pthread_create(&thread, NULL, write_there, memory + LARGE - 64), 0);
	for (int round = 0; round < 20; round++) {
		struct ibv_wc wc[DEPTH];
		pid_t child;

		for (uint32_t i = 0; i < DEPTH; i++)
			cr_assert_eq(post_write(&e, memory + i * 4096, on_demand->rkey), 0);
		child = fork();
		if (child == 0)
			_exit(0);
		poll_completions(e.cq, wc, DEPTH, "WRITE");
		for (uint32_t i = 0; i < DEPTH; i++)
			cr_assert_eq(wc[i].status, IBV_WC_SUCCESS, "%s",
				     ibv_wc_status_str(wc[i].status));
		cr_assert_eq(waitpid(child, NULL, 0), child);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(ibv_dereg_mr(on_demand), 0);
	cr_assert_eq(ibv_dereg_mr(promoted), 0);
	endpoint_close(&e);
	free(memory);
}

Test(forks, while_devices_are_listed)
{
	fork_beside(list_devices, list_devices);
}

static uint32_t event_descriptors(void)
{
	char path[64], to[64];
	uint32_t n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		length = readlink(path, to, sizeof(to) - 1);
		to[length > 0 ? length : 0] = '\0';
		n += strstr(to, "[eventfd]") != NULL;
	}
	return n;
}

/* A child that forks again would have those of all its parents. */
Test(forks, a_child_has_no_descriptors_that_wake_lcores)
{
	uint32_t before = event_descriptors();
	struct ibv_context *context = open_first();
	int status;
	pid_t child;

	cr_assert_not_null(context, "%m");
	cr_assert_gt(event_descriptors(), before);
	child = fork();
	if (child == 0)
		_exit(event_descriptors() == before ? 0 : 1);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "it has more than the %u that were there", before);
	cr_expect_eq(ibv_close_device(context), 0);
	cr_expect_eq(event_descriptors(), before, "they are closed with the device");
}

static uint32_t promoted_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	uint32_t n = 0;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		n += strstr(line, "uroce-promoted") != NULL;
	if (f != NULL)
		fclose(f);
	return n;
}

/* The exit status of a child that registers memory in a protection domain of its parent. */
static int register_as_child(struct ibv_pd *pd)
{
	void *memory =
		mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t before;

	if (memory == MAP_FAILED)
		return 1;
	memset(memory, 1, LENGTH);
	before = promoted_mappings();
	errno = 0;
	if (ibv_reg_mr(pd, memory, LENGTH, IBV_ACCESS_LOCAL_WRITE) != NULL || errno != ENODEV)
		return 2;
	return promoted_mappings() == before ? 0 : 3;
}

Test(forks, memory_that_a_child_cannot_register_is_not_promoted)
{
	struct ibv_context *context = open_first();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	void *memory = aligned_alloc(4096, LENGTH);
	struct ibv_mr *mr;
	int status;
	pid_t child;

	cr_assert(pd != NULL && memory != NULL);
	memset(memory, 1, LENGTH);
	mr = ibv_reg_mr(pd, memory, LENGTH, IBV_ACCESS_LOCAL_WRITE);
	cr_assert_not_null(mr, "%m");
	if (promoted_mappings() == 0)
		cr_skip_test("this process may not promote memory");
	child = fork();
	if (child == 0)
		_exit(register_as_child(pd));
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "%#x (0x200: no ENODEV, 0x300: it is promoted)",
		     (unsigned int)status);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	cr_expect_eq(ibv_close_device(context), 0);
	free(memory);
}
