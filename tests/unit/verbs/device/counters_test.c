/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters with Linux's names count each event once. Runs with an engine at $UROCE_SOCKET. The test
 * waits for events that may come late, and leaves out counters of events that a busy machine repeats.
 */
#include <criterion/criterion.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "counters.h"
#include "rig/endpoint.h"
#include "rig/engine_objects.h"

#define MOST  11
#define LARGE 20000u /* many packets */

struct change {
	const char *name;
	uint64_t by;
};

/* Counters that may change: one that a test does not name must stay as it was. */
static const char *const names[MOST] = {
	"rx_write_requests", "rx_read_requests",     "rx_atomic_requests",
	"rdma_sends",	     "rdma_recvs",	     "resp_remote_access_errors",
	"req_cqe_error",     "req_cqe_flush_error",  "resp_cqe_error",
	"link_downed",	     "resp_cqe_flush_error",
};

static struct endpoint e;
static struct reply_statistics before;

static void begin(void)
{
	endpoint_open(&e);
	engine_statistics(&before);
}

static void end(void)
{
	endpoint_close(&e);
}

TestSuite(counters, .init = begin, .fini = end, .timeout = 120);

static uint64_t value(const struct reply_statistics *s, const char *name)
{
	for (const struct counter *c = linux_counters; c->name != NULL; c++)
		if (strcmp(c->name, name) == 0)
			return counter_value(s, c);
	cr_assert_fail("no counter %s", name);
	return 0;
}

static uint64_t wanted(const struct change *changes, const char *name)
{
	for (; changes->name != NULL; changes++)
		if (strcmp(changes->name, name) == 0)
			return changes->by;
	return 0;
}

/* The first name whose counter did not change so; NULL: all did. */
static const char *other_than(const struct change *changes, uint64_t *by)
{
	struct reply_statistics now;

	engine_statistics(&now);
	for (uint32_t i = 0; i < MOST; i++) {
		*by = value(&now, names[i]) - value(&before, names[i]);
		if (*by != wanted(changes, names[i]))
			return names[i];
	}
	return NULL;
}

/* The program may see the last completion before the counter counts it. */
static void expect(const struct change *changes)
{
	time_t until = time(NULL) + WAIT_SECONDS;
	const char *name;
	uint64_t by;

	while ((name = other_than(changes, &by)) != NULL && time(NULL) < until)
		sched_yield();
	cr_assert_null(name, "%s changed by %lu instead of %lu", name, by,
		       name != NULL ? wanted(changes, name) : 0);
	engine_statistics(&before);
}

static void post(enum ibv_wr_opcode opcode, uint32_t length, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, length, e.mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED
	};
	struct ibv_send_wr *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = (uintptr_t)e.buffer + BUFFER / 2;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)e.buffer + BUFFER / 2;
		wr.wr.rdma.rkey = rkey;
	}
	cr_assert_eq(ibv_post_send(e.qp[0], &wr, &bad), 0);
}

static void post_receive(void)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, LARGE, e.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	cr_assert_eq(ibv_post_recv(e.qp[1], &wr, &bad), 0);
}

static void done(int n)
{
	struct ibv_wc wc[4];

	poll_completions(e.cq, wc, n, "what was posted");
	for (int i = 0; i < n; i++)
		cr_assert_eq(wc[i].status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc[i].status));
}

/* Messages of one packet, which the responder handles on its short path, and of many. */
Test(counters, requests_of_peers)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t length;
		struct change change[2];
	} rows[] = {
		{ IBV_WR_RDMA_WRITE, 8, { { "rx_write_requests", 1 } } },
		{ IBV_WR_RDMA_WRITE, LARGE, { { "rx_write_requests", 1 } } },
		{ IBV_WR_RDMA_WRITE, 0, { { "rx_write_requests", 1 } } },
		{ IBV_WR_RDMA_READ, 8, { { "rx_read_requests", 1 } } },
		{ IBV_WR_RDMA_READ, LARGE, { { "rx_read_requests", 1 } } },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, 8, { { "rx_atomic_requests", 1 } } },
		{ IBV_WR_ATOMIC_CMP_AND_SWP, 8, { { "rx_atomic_requests", 1 } } },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		post(rows[i].opcode, rows[i].length, e.mr->rkey);
		done(1);
		expect(rows[i].change);
	}
}

Test(counters, sends_and_receives)
{
	static const struct change of_send[] = { { "rdma_sends", 1 }, { "rdma_recvs", 1 }, { 0 } };
	static const struct change of_write[] = { { "rx_write_requests", 1 },
						  { "rdma_recvs", 1 },
						  { 0 } };

	for (uint32_t i = 0; i < 2; i++) {
		post_receive();
		post(i == 0 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM, i == 0 ? 8 : LARGE, 0);
		done(2);
		expect(of_send);
	}
	post_receive();
	post(IBV_WR_RDMA_WRITE_WITH_IMM, LARGE, e.mr->rkey);
	done(2);
	expect(of_write);
}

/* A refused request does not count as begun; requests posted after it are flushed. */
Test(counters, access_that_is_refused)
{
	static const struct change changes[] = {
		{ "resp_remote_access_errors", 1 }, { "req_cqe_error", 2 },
		{ "req_cqe_flush_error", 1 },	    { "resp_cqe_error", 1 },
		{ "resp_cqe_flush_error", 1 },	    { 0 },
	};
	struct ibv_wc wc[3];

	post_receive();
	post(IBV_WR_RDMA_WRITE, 8, e.mr->rkey ^ 1);
	poll_completions(e.cq, wc, 2, "the refused request, and the receive of the peer");
	cr_assert_eq(wc[0].status,
		     wc[0].qp_num == e.qp[0]->qp_num ? IBV_WC_REM_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR);
	post(IBV_WR_RDMA_WRITE, 8, e.mr->rkey);
	poll_completions(e.cq, wc, 1, "the one behind it");
	cr_assert_eq(wc[0].status, IBV_WC_WR_FLUSH_ERR);
	expect(changes);
}
