/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which control group the kernel charges for pages of promoted memory that WRITEs touch first (the
 * memory file has none of them before). The engine's group may have $UROCED_MEMORY octets. A program of
 * another user, whose group may have more, registers twice as much.
 */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig/endpoint.h"
#include "rig/engine_objects.h"

#define NOBODY	65534
#define REGIONS 8u
#define FILLED	0x77

TestSuite(charged, .timeout = 240);

static uint64_t limit(void)
{
	return strtoull(getenv("UROCED_MEMORY"), NULL, 10);
}

/* Memory without pages. */
static uint8_t *new_memory(uint64_t octets)
{
	void *p = mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED, "%m");
	return p;
}

static void fill(struct endpoint *e, uint8_t *at, uint64_t octets, uint32_t rkey)
{
	for (uint64_t done = 0; done < octets; done += BUFFER) {
		struct ibv_sge sge = { (uintptr_t)e->buffer, BUFFER, e->mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_RDMA_WRITE,
					  .send_flags = IBV_SEND_SIGNALED },
				   *bad;
		struct ibv_wc wc;

		wr.wr.rdma.remote_addr = (uintptr_t)at + done;
		wr.wr.rdma.rkey = rkey;
		cr_assert_eq(ibv_post_send(e->qp[0], &wr, &bad), 0);
		poll_completions(e->cq, &wc, 1, "a WRITE into new memory");
		cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	}
}

static bool is_filled(const uint8_t *at, uint64_t octets)
{
	for (uint64_t i = 0; i < octets; i += 4096)
		if (at[i] != FILLED)
			return false;
	return true;
}

static bool register_and_fill(struct endpoint *e, uint64_t octets)
{
	uint8_t *p = new_memory(octets);
	struct ibv_mr *mr =
		ibv_reg_mr(e->pd, p, octets, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	cr_assert_not_null(mr, "%m");
	fill(e, p, octets, mr->rkey);
	return is_filled(p, octets);
}

static _Noreturn void be_nobody(void)
{
	uint64_t each = 2 * limit() / REGIONS;
	bool good = true;
	struct endpoint e;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0)
		_exit(2);
	setenv("UROCE_PROMOTE", "on", 1);
	endpoint_open(&e);
	memset(e.buffer, FILLED, BUFFER);
	for (uint32_t i = 0; i < REGIONS && good; i++)
		good = register_and_fill(&e, each);
	_exit(good ? 0 : 3);
}

/* Version 1 or 2. */
static uint64_t peak_of_engine(void)
{
	const char *const file[] = { "memory.max_usage_in_bytes", "memory.peak", "memory.current" };
	unsigned long long n = 0;
	char path[256];

	for (int i = 0; i < 3 && n == 0; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", getenv("UROCED_CGROUP"), file[i]);
		f = fopen(path, "re");
		if (f != NULL && fscanf(f, "%llu", &n) != 1)
			n = 0;
		if (f != NULL)
			fclose(f);
	}
	return n;
}

/* hostile H-122: memory that is charged to the engine. */
Test(charged, memory_that_writes_touch_first)
{
	struct reply_statistics s;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		be_nobody();
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0, "the program ended with 0x%x", (unsigned int)status);
	cr_log_info("%llu MiB of the engine's %llu", (unsigned long long)peak_of_engine() >> 20,
		    (unsigned long long)limit() >> 20);
	cr_expect_lt(peak_of_engine(), limit(), "the engine's group is full");
	engine_statistics(&s); /* it answers */
}
