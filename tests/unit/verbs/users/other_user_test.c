/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of another user than the engine's: a mover copies from and to its memory. */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "rig/starved.h"
#include "rig/ud.h"

#define NOBODY	 65534
#define LENGTH	 16384u
#define ROUNDS	 500
#define ONE_TURN 8192u /* octets of a turn of a queue pair, with room for another WRITE */

static struct endpoint e;

static void open_as_nobody(void)
{
	if (geteuid() == 0)
		cr_assert_eq(setresuid(NOBODY, NOBODY, NOBODY), 0, "%m");
	prctl(PR_SET_DUMPABLE, 1); /* changing the user resets it */
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

/*
 * Writes to memory of the engine need no mover, but come after earlier writes that the mover has.
 */
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

/* A program that polls the flag sees the data, too, although the flag needs no mover. */
Test(other_user, a_flag_in_device_memory_comes_after_its_data)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_dm *dm = ibv_alloc_dm(e.context, &attr);
	struct ibv_sge sge[2] = { { (uintptr_t)e.buffer, ONE_TURN, e.mr->lkey },
				  { (uintptr_t)e.buffer, 4, e.mr->lkey } };
	uint8_t *to = e.buffer + LENGTH, flag[4];
	struct ibv_send_wr wr[2], *bad;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	int early = 0;

	cr_assert_not_null(dm, "ibv_alloc_dm: %m");
	mr = ibv_reg_dm_mr(e.pd, dm, 0, 4096,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_ZERO_BASED);
	cr_assert_not_null(mr, "ibv_reg_dm_mr: %m");
	wr[0] = write_of(&sge[0], (uintptr_t)to, e.mr->rkey);
	wr[0].next = &wr[1];
	wr[1] = write_of(&sge[1], 0, mr->rkey);
	wr[1].send_flags = IBV_SEND_SIGNALED;
	for (int round = 1; round <= ROUNDS; round++) {
		time_t until = time(NULL) + WAIT_SECONDS;

		memset(e.buffer, round, ONE_TURN);
		cr_assert_eq(ibv_post_send(e.qp[0], wr, &bad), 0);
		do {
			cr_assert_eq(ibv_memcpy_from_dm(flag, dm, 0, 4), 0);
			cr_assert_lt(time(NULL), until, "the flag did not come");
		} while (flag[3] != (uint8_t)round);
		early += __atomic_load_n(to + ONE_TURN - 1, __ATOMIC_ACQUIRE) != (uint8_t)round ||
			 memcmp(to, e.buffer, ONE_TURN) != 0;
		poll_completions(e.cq, &wc, 1, "two writes");
		cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	}
	cr_assert_eq(early, 0, "in %d of %d rounds the flag came before its data", early, ROUNDS);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(ibv_free_dm(dm), 0);
}

/* The mover executes atomics in their order among the WRITEs. */
Test(other_user, atomics_count_and_keep_their_order)
{
	uint64_t *word = (uint64_t *)(void *)(e.buffer + LENGTH);
	struct ibv_sge sge = { (uintptr_t)e.buffer, 8, e.mr->lkey };
	struct ibv_send_wr write = write_of(&sge, (uintptr_t)word, e.mr->rkey), *bad;
	struct ibv_send_wr add = { .sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				   .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;

	add.wr.atomic.remote_addr = (uintptr_t)word;
	add.wr.atomic.rkey = e.mr->rkey;
	add.wr.atomic.compare_add = 1;
	write.next = &add;
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		memcpy(e.buffer, &round, 8);
		cr_assert_eq(ibv_post_send(e.qp[0], &write, &bad), 0);
		poll_completions(e.cq, &wc, 1, "a WRITE and an atomic");
		cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
		cr_assert_eq(memcmp(e.buffer, &round, 8), 0, "it saw what was written before");
		cr_assert_eq(*word, round + 1);
	}
}

#define MANY (1u << 20) /* octets of a WRITE: long enough to be under way when posting returns */

/* Two queue pairs whose WRITEs keep the mover busy. */
struct traffic {
	uint8_t *buffer;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	pthread_t thread;
	int stop;
};

static void *write_on(void *argument)
{
	struct traffic *t = argument;
	struct ibv_sge sge = { (uintptr_t)t->buffer, MANY, t->mr->lkey };
	struct ibv_send_wr wr = write_of(&sge, (uintptr_t)t->buffer + MANY, t->mr->rkey), *bad;
	struct ibv_wc wc;

	wr.send_flags = IBV_SEND_SIGNALED;
	for (int posted = 0; posted < DEPTH; posted++)
		if (ibv_post_send(t->qp[0], &wr, &bad) != 0)
			return (void *)1;
	while (!__atomic_load_n(&t->stop, __ATOMIC_RELAXED)) {
		if (ibv_poll_cq(t->cq, 1, &wc) == 0)
			continue;
		if (wc.status != IBV_WC_SUCCESS || ibv_post_send(t->qp[0], &wr, &bad) != 0)
			return (void *)2;
	}
	return NULL;
}

static void begin_traffic(struct traffic *t)
{
	struct ibv_cq *usual = e.cq;

	*t = (struct traffic){ 0 };
	t->cq = e.cq = ibv_create_cq(e.context, 64, NULL, NULL, 0);
	t->buffer = calloc(2, MANY);
	t->mr = ibv_reg_mr(e.pd, t->buffer, (size_t)2 * MANY,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert(t->cq != NULL && t->mr != NULL, "%m");
	for (int i = 0; i < 2; i++) {
		t->qp[i] = endpoint_create_qp(&e);
		cr_assert_not_null(t->qp[i], "%m");
	}
	e.cq = usual;
	for (int i = 0; i < 2; i++)
		cr_assert_eq(endpoint_connect(&e, t->qp[i], t->qp[1 - i]->qp_num), 0);
	cr_assert_eq(pthread_create(&t->thread, NULL, write_on, t), 0);
}

static void end_traffic(struct traffic *t)
{
	void *error;

	__atomic_store_n(&t->stop, 1, __ATOMIC_RELAXED);
	pthread_join(t->thread, &error);
	cr_expect_null(error, "%lu", (uintptr_t)error);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(ibv_destroy_qp(t->qp[i]), 0);
	cr_expect_eq(ibv_destroy_cq(t->cq), 0);
	cr_expect_eq(ibv_dereg_mr(t->mr), 0);
	free(t->buffer);
}

#define CHANGES 8
#define CHANGE	0.5 /* s of the engine's own */

static void longer(double *longest, double took)
{
	*longest = took > *longest ? took : *longest;
}

/* A command waits for copies under way, not for those that come later. */
Test(other_user, keys_change_during_traffic)
{
	unsigned int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
	struct ibv_mr *region = ibv_reg_mr(e.pd, e.buffer, LENGTH, access), *mr;
	struct ibv_mw *mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = { region, (uintptr_t)e.buffer, 256,
						   IBV_ACCESS_REMOTE_READ } };
	double took, longest = 0;
	struct starved s;
	struct traffic t;
	struct ibv_wc wc;

	cr_assert(region != NULL && mw != NULL, "%m");
	begin_traffic(&t);
	starved_open(&s);
	for (int i = 0; i < CHANGES; i++) {
		starved_begin(&s);
		cr_assert_eq(ibv_bind_mw(e.qp[0], mw, &bind), 0);
		cr_assert(starved_poll(&s, e.cq, &wc, 1, &took), "a bind does not end");
		cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
		longer(&longest, took);
		starved_begin(&s);
		mr = ibv_reg_mr(e.pd, e.buffer, LENGTH, access);
		longer(&longest, starved_command(&s));
		cr_assert_not_null(mr, "%m");
		starved_begin(&s);
		cr_assert_eq(ibv_dereg_mr(mr), 0);
		longer(&longest, starved_command(&s));
	}
	starved_close(&s);
	cr_log_info("the longest change took %.3f s", longest);
	cr_expect_lt(longest, CHANGE, "a change took %.3f s", longest);
	cr_expect_eq(ibv_dealloc_mw(mw), 0);
	end_traffic(&t);
	cr_expect_eq(ibv_dereg_mr(region), 0);
}

#define DATAGRAMS 40u /* more than a turn of a queue pair */
#define ROUNDS_UD 30

/*
 * Posted datagrams are sent even if the mover has not read them yet. hostile H-139: destroyed
 * objects are not used.
 */
Test(other_user, datagrams_leave_before_their_address_handle_is_destroyed)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 1024, e.mr->lkey };
	struct ibv_qp_init_attr init = { .send_cq = e.cq,
					 .recv_cq = e.cq,
					 .cap = { DATAGRAMS, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_UD };
	struct ibv_qp *qp = ibv_create_qp(e.pd, &init);
	struct ibv_wc wc;

	cr_assert_not_null(qp, "%m");
	cr_assert_eq(ud_ready(qp, UD_QKEY), 0);
	for (int round = 0; round < ROUNDS_UD; round++) {
		struct ibv_ah *ah = ud_self(&e, GID_INDEX);

		for (uint32_t i = 0; i < DATAGRAMS; i++) {
			struct ibv_send_wr wr = { .sg_list = &sge,
						  .num_sge = 1,
						  .opcode = IBV_WR_SEND,
						  .send_flags = i + 1 == DATAGRAMS
									? IBV_SEND_SIGNALED
									: 0 },
					   *bad;

			wr.wr.ud.ah = ah;
			wr.wr.ud.remote_qpn = qp->qp_num;
			wr.wr.ud.remote_qkey = UD_QKEY;
			cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0);
		}
		cr_assert_eq(ibv_destroy_ah(ah), 0);
		poll_completions(e.cq, &wc, 1, "datagrams");
		cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s in round %d",
			     ibv_wc_status_str(wc.status), round);
	}
	cr_expect_eq(ibv_destroy_qp(qp), 0);
}
