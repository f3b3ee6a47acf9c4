/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory whose access blocks: pages of a userfaultfd that are never filled. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rig/endpoint.h"
#include "rig/waiting.h"

#define PAGE	 4096u
#define PAGES	 2u
#define ELEMENTS 4 /* enough for the engine to read them by pid and block at the page */
#define TURNS	 200

static struct endpoint e, beside;
static struct ibv_mr *mr;
static uint8_t *area;
static int faults;

static void open_endpoint(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	area = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (faults < 0)
		cr_skip_test("no privilege for a full userfaultfd");
	range.range.start = (uintptr_t)area;
	range.range.len = PAGES * PAGE;
	cr_assert_eq(ioctl(faults, UFFDIO_API, &api), 0);
	cr_assert_eq(ioctl(faults, UFFDIO_REGISTER, &range), 0);
	endpoint_open(&e);
	endpoint_open(&beside);
	mr = ibv_reg_mr(e.pd, area, PAGES * PAGE, IBV_ACCESS_LOCAL_WRITE);
	cr_assert_not_null(mr, "ibv_reg_mr: %m");
}

static void close_endpoint(void)
{
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	endpoint_close(&beside);
	endpoint_close(&e);
	close(faults);
	munmap(area, PAGES * PAGE);
}

TestSuite(blocked, .init = open_endpoint, .fini = close_endpoint, .timeout = 60);

/* Posts a WRITE from that page and waits until the engine accesses it. */
static void write_from(uint32_t page)
{
	struct ibv_sge sge[ELEMENTS];
	struct ibv_send_wr wr = { .sg_list = sge,
				  .num_sge = ELEMENTS,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct pollfd p = { .fd = faults, .events = POLLIN };

	for (uint32_t i = 0; i < ELEMENTS; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)area + page * PAGE + 8 * i, 8, mr->lkey };
	wr.wr.rdma.remote_addr = (uintptr_t)e.buffer;
	wr.wr.rdma.rkey = e.mr->rkey;
	cr_assert_eq(ibv_post_send(e.qp[0], &wr, &bad), 0);
	cr_assert_eq(poll(&p, 1, WAIT_SECONDS * 1000), 1, "nobody came to page %u", page);
}

static void fill(uint32_t page)
{
	struct uffdio_zeropage zero = { .range = { (uintptr_t)area + page * PAGE, PAGE } };
	struct ibv_wc wc;

	cr_assert_eq(ioctl(faults, UFFDIO_ZEROPAGE, &zero), 0);
	poll_completions(e.cq, &wc, 1, "a WRITE out of a page that was filled");
	cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
}

/* Reads a line of the engine's /proc/PID/task/TID/FILE; none if the thread has ended. */
static void read_of_thread(const char *thread, const char *file, char *text, int size)
{
	char path[320];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/task/%s/%s", getenv("UROCED_PID"), thread, file);
	f = fopen(path, "re");
	if (f == NULL || fgets(text, size, f) == NULL)
		text[0] = '\0';
	if (f != NULL)
		fclose(f);
}

/* Whether the engine has a mover, and whether the thread that is its lcore sleeps. */
static bool look_at_threads(bool *lcore_sleeps)
{
	char path[64], text[256];
	struct dirent *entry;
	bool has_mover = false;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%s/task", getenv("UROCED_PID"));
	d = opendir(path);
	cr_assert_not_null(d, "%s: %m", path);
	while ((entry = readdir(d)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		read_of_thread(entry->d_name, "comm", text, sizeof(text));
		has_mover |= strcmp(text, "uroce-mover\n") == 0;
		if (strcmp(text, "uroce-lcore\n") != 0)
			continue;
		read_of_thread(entry->d_name, "stat", text, sizeof(text));
		*lcore_sleeps = strstr(text, ") S ") != NULL;
	}
	closedir(d);
	return has_mover;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The engine does not map its memory, so it has a mover, and no lcore blocks. */
static void get_mover(void)
{
	double until = now() + WAIT_SECONDS;
	bool sleeps = false;

	write_from(0);
	while (!look_at_threads(&sleeps))
		cr_assert(now() < until, "no mover came");
	fill(0);
}

Test(blocked, an_lcore_sleeps_while_a_copy_blocks)
{
	double until = now() + WAIT_SECONDS;
	bool sleeps;

	get_mover();
	write_from(1);
	for (sleeps = false; !sleeps; look_at_threads(&sleeps))
		cr_assert(now() < until, "it is awake all the time");
	fill(1);
}

/*
 * Lets the engine go on: messages of another pair are sent, arrive and are acknowledged one after
 * the other. They are empty, so they do not need the mover.
 */
static void let_engine_go_on(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;

	for (int i = 0; i < TURNS; i++) {
		cr_assert_eq(ibv_post_send(beside.qp[0], &wr, &bad), 0);
		poll_completions(beside.cq, &wc, 1, "an empty WRITE");
		cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	}
}

/* Work that the mover cannot do yet: a SEND to the first queue pair after a WRITE of that one. */
static void hold_up(uint32_t page)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 32, e.mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = 7, .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &sge,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_INLINE },
			   *bad;

	get_mover();
	write_from(page);
	cr_assert_eq(ibv_post_recv(e.qp[0], &recv, &bad_recv), 0);
	cr_assert_eq(ibv_post_send(e.qp[1], &send, &bad), 0);
	let_engine_go_on(); /* it arrives */
}

static int go_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static void fill_alone(uint32_t page)
{
	struct uffdio_zeropage zero = { .range = { (uintptr_t)area + page * PAGE, PAGE } };

	cr_assert_eq(ioctl(faults, UFFDIO_ZEROPAGE, &zero), 0);
}

/* The program gets its memory back with the completion, not before (protocol-map 137). */
Test(blocked, a_flushed_request_is_in_no_copy)
{
	struct ibv_wc wc[2];

	hold_up(1);
	cr_assert_eq(go_to(e.qp[0], IBV_QPS_ERR), 0);
	let_engine_go_on();
	cr_expect_eq(ibv_poll_cq(e.cq, 2, wc), 0, "its memory is still read and written");
	fill_alone(1);
	poll_completions(e.cq, wc, 2, "a WRITE and a receive");
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(wc[i].qp_num, e.qp[0]->qp_num);
		cr_expect_eq(wc[i].status, IBV_WC_WR_FLUSH_ERR, "%s",
			     ibv_wc_status_str(wc[i].status));
	}
}

static int reset(void *qp)
{
	return go_to(qp, IBV_QPS_RESET);
}

static int destroy(void *qp)
{
	return ibv_destroy_qp(qp);
}

static void cut_off(const char *what, int (*call)(void *qp))
{
	struct waiting w;

	hold_up(1);
	waiting_begin(&w, what, call, e.qp[0]);
	let_engine_go_on();
	cr_assert_eq(pthread_tryjoin_np(w.thread, NULL), EBUSY,
		     "its memory is still read and written");
	fill_alone(1);
	waiting_end(&w);
	cr_expect_eq(w.result, 0, "%s: %s", what, strerror(w.result));
}

/*
 * After a reset or a destroying verb it gets the memory back when the call returns. hostile H-139:
 * destroyed objects are not used.
 */
Test(blocked, memory_of_a_reset_queue_pair_is_in_no_copy)
{
	cut_off("a queue pair's way to RESET", reset);
}

/* hostile H-126: timers of destroyed objects; H-139: destroyed objects are not used. */
Test(blocked, memory_of_a_destroyed_object_is_in_no_copy)
{
	cut_off("the end of a queue pair", destroy);
	e.qp[0] = endpoint_create_qp(&e);
}
