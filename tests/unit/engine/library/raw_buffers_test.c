/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A TSO request of a raw queue pair needs a packet buffer for each segment. If the pool is empty
 * half-way, the request is lost as if on a wire: it completes, no segment of it arrives, and its
 * buffers are free again. The program polls the engine in its own loop.
 */
#include "library_rig.h"

#include <stdlib.h>
#include <time.h>

#include <rte_mbuf.h>

#include "../verbs/raw/raw_rig.h"

#define MSS	   1000u
#define SEGMENTS   8u
#define LEFT	   3u /* buffers, fewer than segments */
#define BUFFERS	   2047u
#define LIMIT_TIME 30 /* seconds */

static struct uroce_engine *engine;
static struct rte_mempool *pool;
static struct raw_rig r;
static struct rte_mbuf *taken[BUFFERS];
static uint32_t taken_count;

static void take_all_but(uint32_t left)
{
	while (rte_mempool_avail_count(pool) > left) {
		cr_assert_lt(taken_count, BUFFERS);
		taken[taken_count] = rte_pktmbuf_alloc(pool);
		cr_assert_not_null(taken[taken_count]);
		taken_count++;
	}
}

static void give_back(void)
{
	while (taken_count > 0)
		rte_pktmbuf_free(taken[--taken_count]);
}

static void post(struct built_frame *header)
{
	struct ibv_sge sge = { (uintptr_t)r.buffer + RAW_SEND, SEGMENTS * MSS, r.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_TSO }, *bad;

	build_frame(header, &(struct frame_recipe){ .dst_mac = GROUP_MAC,
						    .src = "10.0.0.1",
						    .dst = "224.0.1.5",
						    .protocol = 6,
						    .src_port = 80 });
	wr.tso.hdr = header->octet;
	wr.tso.hdr_sz = (uint16_t)header->length;
	wr.tso.mss = MSS;
	cr_assert_eq(ibv_post_send(r.tx, &wr, &bad), 0, "%m");
}

/* Until the request is complete, and so many segments have come. */
static void complete(uint32_t segments)
{
	time_t end = time(NULL) + LIMIT_TIME;
	uint32_t sent = 0, received = 0;
	struct ibv_wc wc;

	while (sent < 1 || received < segments) {
		cr_assert_lt(time(NULL), end, "%u of 1 sent, %u of %u segments received", sent,
			     received, segments);
		uroce_poll(engine, 0);
		if (ibv_poll_cq(r.cq, 1, &wc) != 1)
			continue;
		cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
		if (wc.opcode == IBV_WC_RECV)
			received++;
		else
			sent++;
	}
	for (int i = 0; i < 100; i++)
		uroce_poll(engine, 0);
	cr_expect_eq(ibv_poll_cq(r.cq, 1, &wc), 0, "more came than %u segments", segments);
}

Test(raw_buffers, a_request_that_finds_too_few_is_lost, .timeout = 60)
{
	struct uroce_options o = library_options();
	struct built_frame header;
	struct ibv_flow *flow;
	char why[256];
	uint32_t before;

	library_begin();
	pool = rte_pktmbuf_pool_create("own", BUFFERS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE + 4096,
				       SOCKET_ID_ANY);
	cr_assert_not_null(pool);
	o.pool = pool;
	engine = uroce_create(&o, why, sizeof(why));
	cr_assert_not_null(engine, "%s", why);
	cr_assert_eq(uroce_register(engine), 0);
	raw_rig_open(&r);
	flow = raw_rule(r.rx, &(struct raw_rule){ .dst_mac = GROUP_MAC });
	cr_assert_not_null(flow, "%m");
	for (uint32_t i = 0; i < 2 * SEGMENTS; i++)
		raw_post_recv(&r, r.rx, i, RAW_SLOT);
	before = rte_mempool_avail_count(pool);

	take_all_but(LEFT);
	post(&header);
	complete(0);
	cr_expect_eq(rte_mempool_avail_count(pool), LEFT, "its buffers are free again");

	give_back();
	post(&header);
	complete(SEGMENTS);
	cr_expect_eq(rte_mempool_avail_count(pool), before);
	cr_expect_eq(ibv_destroy_flow(flow), 0);
	raw_rig_close(&r);
	uroce_destroy(engine);
	rte_mempool_free(pool);
	library_end();
}
