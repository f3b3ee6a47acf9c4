/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between two queue pairs of this program. Runs with an engine at $UROCE_SOCKET. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/limits.h"
#include "rig/endpoint.h"
#include "rig/engine_objects.h"

#define FROM   0u /* offsets in the buffer */
#define TO     32768u
#define LENGTH 20000u

static struct endpoint e;

static void open_endpoint(void)
{
	endpoint_open(&e);
	for (uint32_t i = 0; i < LENGTH; i++)
		e.buffer[FROM + i] = (uint8_t)(i * 7 + 3);
}

static void close_endpoint(void)
{
	endpoint_close(&e);
}

TestSuite(traffic, .init = open_endpoint, .fini = close_endpoint, .timeout = 60);

static struct ibv_send_wr remote_wr(enum ibv_wr_opcode opcode, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = {
		.wr_id = 77,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};

	wr.wr.rdma.remote_addr = (uintptr_t)e.buffer + TO;
	wr.wr.rdma.rkey = e.mr->rkey;
	return wr;
}

static void post_recv(struct ibv_qp *qp, uint64_t wr_id, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + offset, length, e.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	cr_assert_eq(ibv_post_recv(qp, &wr, &bad), 0);
}

static void post_send(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	cr_assert_eq(ibv_post_send(qp, wr, &bad), 0, "%m");
}

static void expect_success(const struct ibv_wc *wc, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	cr_assert_eq(wc->status, IBV_WC_SUCCESS, "%s (%u)", ibv_wc_status_str(wc->status),
		     wc->vendor_err);
	cr_assert_eq(wc->wr_id, wr_id);
	cr_assert_eq(wc->opcode, opcode);
}

Test(traffic, write)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + FROM, LENGTH, e.mr->lkey };
	struct ibv_send_wr wr = remote_wr(IBV_WR_RDMA_WRITE, &sge);
	struct ibv_wc wc;

	post_send(e.qp[0], &wr);
	poll_completions(e.cq, &wc, 1, "WRITE");
	expect_success(&wc, 77, IBV_WC_RDMA_WRITE);
	cr_assert_eq(wc.qp_num, e.qp[0]->qp_num);
	cr_assert_eq(memcmp(e.buffer + FROM, e.buffer + TO, LENGTH), 0);
}

Test(traffic, read)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + TO, LENGTH, e.mr->lkey };
	struct ibv_send_wr wr = remote_wr(IBV_WR_RDMA_READ, &sge);
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = (uintptr_t)e.buffer + FROM;
	post_send(e.qp[0], &wr);
	poll_completions(e.cq, &wc, 1, "READ");
	expect_success(&wc, 77, IBV_WC_RDMA_READ);
	cr_assert_eq(memcmp(e.buffer + FROM, e.buffer + TO, LENGTH), 0);
}

static const struct ibv_wc *of_qp(const struct ibv_wc *wc, int n, const struct ibv_qp *qp)
{
	for (int i = 0; i < n; i++) {
		if (wc[i].qp_num == qp->qp_num)
			return &wc[i];
	}
	cr_assert_fail("no completion of queue pair %#x", qp->qp_num);
	return NULL;
}

/*
 * As many elements as the device announces, on both sides of a SEND; one more is refused.
 * hostile H-95: the sum of all elements; H-153: the largest number of elements.
 */
Test(traffic, as_many_elements_as_announced)
{
	struct ibv_device_attr device;
	struct ibv_qp_init_attr init = {
		.send_cq = e.cq, .recv_cq = e.cq, .cap = { 4, 4, 0, 0, 0 }, .qp_type = IBV_QPT_RC
	};
	struct ibv_sge from[LIMIT_SGE + 1], to[LIMIT_SGE];
	struct ibv_send_wr wr = { .sg_list = from,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_recv_wr receive = { .sg_list = to }, *bad_receive;
	struct ibv_qp *qp[2];
	struct ibv_wc wc[2];

	cr_assert_eq(ibv_query_device(e.context, &device), 0);
	cr_assert_eq(device.max_sge, LIMIT_SGE);
	init.cap.max_send_sge = init.cap.max_recv_sge = LIMIT_SGE;
	for (int i = 0; i < 2; i++)
		cr_assert_not_null(qp[i] = ibv_create_qp(e.pd, &init), "%m");
	for (int i = 0; i < 2; i++)
		cr_assert_eq(endpoint_connect(&e, qp[i], qp[1 - i]->qp_num), 0);
	for (uint32_t i = 0; i <= LIMIT_SGE; i++)
		from[i] = (struct ibv_sge){ (uintptr_t)e.buffer + FROM + 100 * i, 100, e.mr->lkey };
	for (uint32_t i = 0; i < LIMIT_SGE; i++)
		to[i] = (struct ibv_sge){ (uintptr_t)e.buffer + TO + 100 * i, 100, e.mr->lkey };
	receive.num_sge = wr.num_sge = LIMIT_SGE;
	cr_assert_eq(ibv_post_recv(qp[1], &receive, &bad_receive), 0);
	cr_assert_eq(ibv_post_send(qp[0], &wr, &bad), 0);
	poll_completions(e.cq, wc, 2, "a message of all elements");
	cr_expect_eq(wc[0].status, IBV_WC_SUCCESS);
	cr_expect_eq(wc[1].status, IBV_WC_SUCCESS);
	cr_expect_eq(memcmp(e.buffer + TO, e.buffer + FROM, 100 * LIMIT_SGE), 0);
	cr_expect_eq(e.buffer[TO + 100 * LIMIT_SGE], 0, "behind it");
	wr.num_sge++;
	cr_expect_neq(ibv_post_send(qp[0], &wr, &bad), 0);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(ibv_destroy_qp(qp[i]), 0);
}

Test(traffic, send_with_immediate)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + FROM, LENGTH, e.mr->lkey };
	struct ibv_send_wr wr = remote_wr(IBV_WR_SEND_WITH_IMM, &sge);
	const struct ibv_wc *received;
	struct ibv_wc wc[2];

	wr.imm_data = 0x12345678;
	post_recv(e.qp[1], 5, TO, LENGTH + 100);
	post_send(e.qp[0], &wr);
	poll_completions(e.cq, wc, 2, "SEND and its receive");
	expect_success(of_qp(wc, 2, e.qp[0]), 77, IBV_WC_SEND);
	received = of_qp(wc, 2, e.qp[1]);
	expect_success(received, 5, IBV_WC_RECV);
	cr_assert_eq(received->byte_len, LENGTH);
	cr_assert(received->wc_flags & IBV_WC_WITH_IMM);
	cr_assert_eq(received->imm_data, 0x12345678);
	cr_assert_eq(memcmp(e.buffer + FROM, e.buffer + TO, LENGTH), 0);
}

Test(traffic, inline_data_is_copied_at_once)
{
	char text[] = "copied when it was posted";
	struct ibv_sge sge = { (uintptr_t)text, sizeof(text), 0 };
	struct ibv_send_wr wr = remote_wr(IBV_WR_RDMA_WRITE, &sge);
	struct ibv_wc wc;

	wr.send_flags |= IBV_SEND_INLINE;
	post_send(e.qp[0], &wr);
	memset(text, 'x', sizeof(text) - 1);
	poll_completions(e.cq, &wc, 1, "inline WRITE");
	expect_success(&wc, 77, IBV_WC_RDMA_WRITE);
	cr_assert_str_eq((char *)e.buffer + TO, "copied when it was posted");
}

Test(traffic, atomics)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + 8192, 8, e.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				  .send_flags = IBV_SEND_SIGNALED };
	uint64_t *target = (uint64_t *)(void *)(e.buffer + TO);
	uint64_t *original = (uint64_t *)(void *)(e.buffer + 8192);
	struct ibv_wc wc;

	*target = 40;
	wr.wr.atomic.remote_addr = (uintptr_t)target;
	wr.wr.atomic.rkey = e.mr->rkey;
	wr.wr.atomic.compare_add = 2;
	post_send(e.qp[0], &wr);
	poll_completions(e.cq, &wc, 1, "FETCH_AND_ADD");
	expect_success(&wc, 1, IBV_WC_FETCH_ADD);
	cr_assert_eq(*original, 40);
	cr_assert_eq(*target, 42);
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.compare_add = 42;
	wr.wr.atomic.swap = UINT64_C(0x1122334455667788);
	post_send(e.qp[0], &wr);
	poll_completions(e.cq, &wc, 1, "CMP_AND_SWP");
	expect_success(&wc, 1, IBV_WC_COMP_SWAP);
	cr_assert_eq(*original, 42);
	cr_assert_eq(*target, UINT64_C(0x1122334455667788));
}

Test(traffic, atomic_write_stores_eight_octets)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + FROM, 8, e.mr->lkey };
	struct ibv_send_wr wr = remote_wr(IBV_WR_ATOMIC_WRITE, &sge), *bad = NULL;
	struct ibv_wc wc;

	post_send(e.qp[0], &wr);
	poll_completions(e.cq, &wc, 1, "ATOMIC_WRITE");
	expect_success(&wc, 77, IBV_WC_ATOMIC_WRITE);
	cr_expect_eq(memcmp(e.buffer + TO, e.buffer + FROM, 8), 0);
	for (sge.length = 0; sge.length < 17; sge.length += 4) {
		if (sge.length == 8)
			continue;
		cr_expect_eq(ibv_post_send(e.qp[0], &wr, &bad), EINVAL, "%u octets", sge.length);
		cr_expect_eq(bad, &wr);
	}
	sge.length = 8;
	wr.wr.rdma.remote_addr += 4;
	post_send(e.qp[0], &wr);
	poll_completions(e.cq, &wc, 1, "a misaligned ATOMIC_WRITE");
	cr_expect_eq(wc.status, IBV_WC_REM_INV_REQ_ERR);
}

/* The octets are in the request; the queue pair needs no inline data for that. */
Test(traffic, atomic_write_of_the_extended_calls)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = e.cq,
		.recv_cq = e.cq,
		.cap = { DEPTH, DEPTH, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e.pd,
		.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(e.context, &init);
	uint64_t word = UINT64_C(0x0123456789abcdef), seen;
	struct ibv_qp_ex *qpx;
	struct ibv_wc wc;

	cr_assert_not_null(qp, "%m");
	qpx = ibv_qp_to_qp_ex(qp);
	cr_assert_eq(endpoint_connect(&e, qp, qp->qp_num), 0, "a queue pair to itself");
	ibv_wr_start(qpx);
	qpx->wr_id = 5;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(qpx, e.mr->rkey, (uintptr_t)e.buffer + TO, &word);
	word = 0;
	cr_assert_eq(ibv_wr_complete(qpx), 0);
	poll_completions(e.cq, &wc, 1, "ibv_wr_atomic_write");
	expect_success(&wc, 5, IBV_WC_ATOMIC_WRITE);
	memcpy(&seen, e.buffer + TO, sizeof(seen));
	cr_expect_eq(seen, UINT64_C(0x0123456789abcdef));
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	init.qp_type = IBV_QPT_UC;
	cr_expect_null(ibv_create_qp_ex(e.context, &init));
	cr_expect_eq(errno, EOPNOTSUPP);
}

/* hostile H-136: completions after bad requests; H-137: an error leaves nothing behind. */
Test(traffic, a_wrong_key_fails_on_both_sides_and_the_rest_is_flushed)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + FROM, 8, e.mr->lkey };
	struct ibv_send_wr wr = remote_wr(IBV_WR_RDMA_WRITE, &sge);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc[2];

	wr.wr.rdma.rkey ^= 0x5a5a00;
	post_send(e.qp[0], &wr);
	wr.wr_id = 78;
	post_send(e.qp[0], &wr);
	poll_completions(e.cq, wc, 2, "the refused WRITE and the one behind it");
	cr_assert_eq(wc[0].status, IBV_WC_REM_ACCESS_ERR);
	cr_assert_eq(wc[0].wr_id, 77);
	cr_assert_eq(wc[1].status, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(wc[1].wr_id, 78);
	cr_assert_eq(ibv_query_qp(e.qp[0], &attr, IBV_QP_STATE, &init), 0);
	cr_assert_eq(attr.qp_state, IBV_QPS_ERR);
	post_recv(e.qp[0], 79, TO, 8);
	poll_completions(e.cq, wc, 1, "a receive that is posted in ERR");
	cr_assert_eq(wc[0].status, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(wc[0].wr_id, 79);
}

Test(traffic, a_queue_takes_what_it_granted_again_and_again)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + FROM, 64, e.mr->lkey };
	struct ibv_send_wr wr = remote_wr(IBV_WR_RDMA_WRITE, &sge);
	struct ibv_wc wc[DEPTH];

	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < DEPTH; i++) {
			wr.wr_id = (uint64_t)(round * DEPTH + i);
			post_send(e.qp[0], &wr);
		}
		poll_completions(e.cq, wc, DEPTH, "a full queue");
		for (int i = 0; i < DEPTH; i++)
			expect_success(&wc[i], (uint64_t)(round * DEPTH + i), IBV_WC_RDMA_WRITE);
	}
}

Test(traffic, a_full_queue_keeps_its_program_from_overrunning_the_cq)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + FROM, 8, e.mr->lkey };
	struct ibv_send_wr wr = remote_wr(IBV_WR_RDMA_WRITE, &sge), *bad;
	struct ibv_wc wc[DEPTH];

	for (int i = 0; i < DEPTH; i++)
		post_send(e.qp[0], &wr);
	/* no completion was polled, whatever the engine has done by now */
	for (int tries = 0; tries < 100000; tries++)
		cr_assert_eq(ibv_post_send(e.qp[0], &wr, &bad), ENOMEM);
	poll_completions(e.cq, wc, 1, "the first");
	post_send(e.qp[0], &wr);
	cr_assert_eq(ibv_post_send(e.qp[0], &wr, &bad), ENOMEM);
	poll_completions(e.cq, wc, DEPTH, "the others");
}

Test(traffic, unsignaled_requests_leave_no_completion)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + FROM, 64, e.mr->lkey };
	struct ibv_send_wr wr = remote_wr(IBV_WR_RDMA_WRITE, &sge);
	struct ibv_wc wc[2];

	for (int round = 0; round < 50; round++) {
		wr.send_flags = 0;
		wr.wr_id = 1;
		for (int i = 0; i < DEPTH - 1; i++)
			post_send(e.qp[0], &wr);
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.wr_id = 2;
		post_send(e.qp[0], &wr);
		poll_completions(e.cq, wc, 1, "the signaled one");
		expect_success(&wc[0], 2, IBV_WC_RDMA_WRITE);
	}
	cr_assert_eq(ibv_poll_cq(e.cq, 1, wc), 0);
}

static void expect_event(void)
{
	struct pollfd p = { .fd = e.channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	cr_assert_eq(poll(&p, 1, WAIT_SECONDS * 1000), 1, "no completion event came");
	cr_assert_eq(ibv_get_cq_event(e.channel, &cq, &context), 0);
	cr_assert_eq(cq, e.cq);
	cr_assert_eq(context, &e);
	ibv_ack_cq_events(cq, 1);
}

Test(traffic, a_program_that_never_signals_needs_no_completion)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + FROM, 64, e.mr->lkey };
	struct ibv_send_wr wr = remote_wr(IBV_WR_RDMA_WRITE, &sge), *bad;
	struct ibv_wc wc;
	int error, waits = 0;

	wr.send_flags = 0;
	for (int i = 0; i < 20 * DEPTH; i++) {
		while ((error = ibv_post_send(e.qp[0], &wr, &bad)) == ENOMEM) {
			cr_assert_lt(++waits, 100000000, "the queue stays full");
			sched_yield();
		}
		cr_assert_eq(error, 0);
	}
	cr_assert_eq(ibv_poll_cq(e.cq, 1, &wc), 0);
}

/* Messages into memory that the engine does not map: many copies are under way at once. */
Test(traffic, a_queue_pair_gets_room_for_many_copies_when_it_needs_it)
{
	const size_t octets = 2 * LENGTH + (-(size_t)(2 * LENGTH) & 4095);
	uint8_t *peer = aligned_alloc(4096, octets);
	struct ibv_mr *mr;
	struct ibv_sge sge = { (uintptr_t)peer, LENGTH, 0 };
	struct ibv_send_wr wr = remote_wr(IBV_WR_RDMA_WRITE, &sge);
	struct reply_statistics before, after;
	struct ibv_wc wc;
	uint32_t rounds = 0;

	cr_assert_not_null(peer);
	cr_assert_eq(madvise(peer, octets, MADV_DONTFORK), 0); /* so it is not promoted */
	mr = ibv_reg_mr(e.pd, peer, 2 * LENGTH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert_not_null(mr, "ibv_reg_mr: %m");
	sge.lkey = mr->lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)peer + LENGTH;
	wr.wr.rdma.rkey = mr->rkey;
	engine_statistics(&before);
	do {
		memset(peer, (int)++rounds, LENGTH);
		post_send(e.qp[0], &wr);
		poll_completions(e.cq, &wc, 1, "a write of many packets");
		cr_assert_eq(wc.status, IBV_WC_SUCCESS);
		cr_assert_eq(memcmp(peer, peer + LENGTH, LENGTH), 0, "round %u", rounds);
		engine_statistics(&after);
	} while (after.qp_memory == before.qp_memory && rounds < 1000);
	cr_expect_gt(after.qp_memory, before.qp_memory, "no room came in %u rounds", rounds);
	post_send(e.qp[0], &wr);
	poll_completions(e.cq, &wc, 1, "a write with the new room");
	cr_expect_eq(wc.status, IBV_WC_SUCCESS);
	ibv_dereg_mr(mr);
	free(peer);
}

Test(traffic, an_armed_queue_sends_one_event)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + FROM, 64, e.mr->lkey };
	struct ibv_send_wr wr = remote_wr(IBV_WR_RDMA_WRITE, &sge);
	struct pollfd p = { .fd = e.channel->fd, .events = POLLIN };
	struct ibv_wc wc[2];

	cr_assert_eq(ibv_req_notify_cq(e.cq, 0), 0);
	post_send(e.qp[0], &wr);
	expect_event();
	poll_completions(e.cq, wc, 1, "WRITE");
	post_send(e.qp[0], &wr);
	poll_completions(e.cq, wc, 1, "WRITE that nobody waits for");
	cr_assert_eq(poll(&p, 1, 0), 0, "an event without arming");
}

Test(traffic, a_solicited_arming_waits_for_a_solicited_send)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + FROM, 64, e.mr->lkey };
	struct ibv_send_wr wr = remote_wr(IBV_WR_SEND, &sge);
	struct pollfd p = { .fd = e.channel->fd, .events = POLLIN };
	struct ibv_wc wc[2];

	post_recv(e.qp[1], 1, TO, 64);
	post_recv(e.qp[1], 2, TO, 64);
	cr_assert_eq(ibv_req_notify_cq(e.cq, 1), 0);
	post_send(e.qp[0], &wr);
	poll_completions(e.cq, wc, 2, "an ordinary SEND");
	cr_assert_eq(poll(&p, 1, 0), 0, "an event for an ordinary SEND");
	wr.send_flags |= IBV_SEND_SOLICITED;
	post_send(e.qp[0], &wr);
	expect_event();
	poll_completions(e.cq, wc, 2, "a solicited SEND");
}

/*
 * protocol-map 127: UCX polls, arms, and does not poll again before it waits.
 * hostile H-134: arming while completions come.
 */
Test(traffic, an_arming_after_a_poll_finds_what_came_between)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + FROM, 64, e.mr->lkey };
	struct ibv_send_wr wr = remote_wr(IBV_WR_RDMA_WRITE, &sge);
	struct pollfd p = { .fd = e.channel->fd, .events = POLLIN };
	struct ibv_wc wc[2];

	cr_assert_eq(ibv_req_notify_cq(e.cq, 0), 0);
	post_send(e.qp[0], &wr);
	expect_event(); /* the completion stays unpolled for now */
	cr_assert_eq(ibv_req_notify_cq(e.cq, 0), 0);
	cr_expect_eq(poll(&p, 1, 0), 0, "an event for what the poll behind the arming finds");
	cr_assert_eq(ibv_poll_cq(e.cq, 0, wc), 0);
	cr_assert_eq(ibv_req_notify_cq(e.cq, 0), 0);
	cr_expect_eq(poll(&p, 1, 0), 1, "no event for what came between poll and arming");
	expect_event();
	cr_expect_eq(poll(&p, 1, 0), 0, "more than one event for one arming");
	cr_assert_eq(ibv_poll_cq(e.cq, 0, wc), 0);
	cr_assert_eq(ibv_req_notify_cq(e.cq, 1), 0);
	cr_expect_eq(poll(&p, 1, 0), 0, "an event for what is not solicited");
	poll_completions(e.cq, wc, 1, "WRITE");
	cr_assert_eq(ibv_req_notify_cq(e.cq, 0), 0);
	cr_expect_eq(poll(&p, 1, 0), 0, "an event of an empty queue");
	post_send(e.qp[0], &wr);
	expect_event();
	poll_completions(e.cq, wc, 1, "WRITE that an arming waited for");
}

Test(traffic, a_channel_without_events_returns_eagain)
{
	struct ibv_cq *cq;
	void *context;

	fcntl(e.channel->fd, F_SETFL, fcntl(e.channel->fd, F_GETFL) | O_NONBLOCK);
	errno = 0;
	cr_assert_eq(ibv_get_cq_event(e.channel, &cq, &context), -1);
	cr_assert_eq(errno, EAGAIN);
}

Test(traffic, extended_calls)
{
	struct ibv_cq_init_attr_ex cq_init = { .cqe = 32, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(e.context, &cq_init);
	struct ibv_qp_init_attr_ex init = {
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.cap = { DEPTH, DEPTH, 2, 2, 64 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e.pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_qp *qp = ibv_create_qp_ex(e.context, &init);
	struct ibv_qp_ex *qpx;
	int error, tries = 0;

	cr_assert_not_null(qp, "%m");
	qpx = ibv_qp_to_qp_ex(qp);
	cr_assert_not_null(qpx);
	cr_assert_eq(endpoint_connect(&e, qp, qp->qp_num), 0, "a queue pair to itself");
	cr_assert_eq(ibv_start_poll(cq, &attr), ENOENT);
	ibv_wr_start(qpx);
	qpx->wr_id = 99;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qpx, e.mr->rkey, (uintptr_t)e.buffer + TO);
	ibv_wr_set_sge(qpx, e.mr->lkey, (uintptr_t)e.buffer + FROM, 1000);
	cr_assert_eq(ibv_wr_complete(qpx), 0);
	while ((error = ibv_start_poll(cq, &attr)) == ENOENT)
		cr_assert_lt(++tries, 1000000000, "no completion came");
	cr_assert_eq(error, 0);
	cr_expect_eq(cq->status, IBV_WC_SUCCESS);
	cr_expect_eq(cq->wr_id, 99);
	cr_expect_eq(ibv_wc_read_opcode(cq), IBV_WC_RDMA_WRITE);
	cr_expect_eq(ibv_wc_read_qp_num(cq), qp->qp_num);
	cr_expect_eq(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	cr_expect_eq(memcmp(e.buffer + FROM, e.buffer + TO, 1000), 0);
	ibv_wr_start(qpx);
	ibv_wr_rdma_write(qpx, e.mr->rkey, (uintptr_t)e.buffer + TO);
	ibv_wr_set_sge(qpx, e.mr->lkey, (uintptr_t)e.buffer + FROM, 1000);
	ibv_wr_abort(qpx);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	cr_expect_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* Exits with 0 if everything is right in the child, else with a line number. */
#define CHILD_EXPECT(what)                     \
	do {                                   \
		if (!(what))                   \
			_exit(__LINE__ % 256); \
	} while (0)

static void child_of_fork(void)
{
	struct ibv_send_wr wr = { 0 }, *bad_send;
	struct ibv_recv_wr recv = { 0 }, *bad_recv;
	struct ibv_device **list;
	struct ibv_context *own;
	struct ibv_wc wc;
	int n;

	CHILD_EXPECT(fcntl(e.channel->fd, F_GETFD) < 0);
	CHILD_EXPECT(ibv_poll_cq(e.cq, 1, &wc) < 0);
	CHILD_EXPECT(ibv_post_send(e.qp[0], &wr, &bad_send) != 0);
	CHILD_EXPECT(ibv_post_recv(e.qp[0], &recv, &bad_recv) != 0);
	CHILD_EXPECT(ibv_alloc_pd(e.context) == NULL);
	CHILD_EXPECT(ibv_destroy_qp(e.qp[0]) == 0);
	list = ibv_get_device_list(&n);
	CHILD_EXPECT(n == 1);
	own = ibv_open_device(list[0]);
	CHILD_EXPECT(own != NULL);
	CHILD_EXPECT(ibv_alloc_pd(own) != NULL);
	CHILD_EXPECT(ibv_close_device(own) == 0);
	_exit(0);
}

Test(traffic, a_forks_child_leaves_the_parents_objects_alone_and_may_open_its_own)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + FROM, 64, e.mr->lkey };
	struct ibv_send_wr wr = remote_wr(IBV_WR_RDMA_WRITE, &sge);
	struct ibv_wc wc;
	pid_t child = fork();
	int status;

	if (child == 0)
		child_of_fork();
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "line %d of the child",
		  WEXITSTATUS(status));
	post_send(e.qp[0], &wr);
	poll_completions(e.cq, &wc, 1, "WRITE after the fork");
	expect_success(&wc, 77, IBV_WC_RDMA_WRITE);
}
