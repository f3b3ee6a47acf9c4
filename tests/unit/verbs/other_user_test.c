/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of another user than the engine's: a mover copies from and to its memory. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "endpoint.h"

#define NOBODY 65534
#define LENGTH 16384u
#define ROUNDS 500

static struct endpoint e;

static void open_as_nobody(void)
{
	if (geteuid() == 0)
		cr_assert_eq(setresuid(NOBODY, NOBODY, NOBODY), 0, "%m");
	prctl(PR_SET_DUMPABLE, 1); /* changing the user takes it away */
	endpoint_open(&e);
}

static void close_endpoint(void)
{
	endpoint_close(&e);
}

TestSuite(other_user, .init = open_as_nobody, .fini = close_endpoint, .timeout = 60);

static struct ibv_send_wr write_of(struct ibv_sge *sge, uint64_t to, uint32_t rkey)
{
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };

	wr.wr.rdma.remote_addr = to;
	wr.wr.rdma.rkey = rkey;
	return wr;
}

/* What lands in memory of the engine's needs no mover, and is behind what the mover has all the same. */
Test(other_user, writes_into_memory_of_two_kinds_keep_their_order)
{
	struct ibv_alloc_dm_attr attr = { .length = LENGTH };
	struct ibv_dm *dm = ibv_alloc_dm(e.context, &attr);
	struct ibv_sge sge = { (uintptr_t)e.buffer, LENGTH, e.mr->lkey };
	uint8_t *to = e.buffer + LENGTH;
	struct ibv_send_wr wr[2], *bad;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	cr_assert_not_null(dm, "ibv_alloc_dm: %m");
	mr = ibv_reg_dm_mr(e.pd, dm, 0, LENGTH,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_ZERO_BASED);
	cr_assert_not_null(mr, "ibv_reg_dm_mr: %m");
	wr[0] = write_of(&sge, (uintptr_t)to, e.mr->rkey);
	wr[1] = write_of(&sge, 0, mr->rkey);
	wr[1].send_flags = IBV_SEND_SIGNALED;
	for (int round = 0; round < ROUNDS; round++) {
		memset(e.buffer, round, LENGTH);
		cr_assert_eq(ibv_post_send(e.qp[0], &wr[0], &bad), 0);
		cr_assert_eq(ibv_post_send(e.qp[0], &wr[1], &bad), 0);
		poll_completions(e.cq, &wc, 1, "two writes");
		cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s in round %d",
			     ibv_wc_status_str(wc.status), round);
		cr_assert_eq(memcmp(to, e.buffer, LENGTH), 0, "round %d", round);
	}
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(ibv_free_dm(dm), 0);
}
