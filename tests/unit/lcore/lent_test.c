/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets within an lcore that do not carry their octets: what is copied when, and what may have gone meanwhile. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "lcore/moving/lent.h"
#include "loop_rig.h"

static struct rig *rig;

static void open_rig(void)
{
	rig = rig_open();
	memset(rig->side[0].buffer, 0x11, RIG_BUFFER);
}

static void close_rig(void)
{
	rig_close(rig);
}

TestSuite(lent, .init = open_rig, .fini = close_rig, .timeout = 60);

static struct lcore *lcore(void)
{
	return rig->engine.lcore;
}

static uint32_t in_loop(void)
{
	return lcore()->loop_head - lcore()->loop_tail;
}

/* A WRITE of so many octets has left, and has not arrived. */
static void leave(uint32_t at, uint32_t length)
{
	cr_assert(rig_post_at(rig, 0, WORK_RDMA_WRITE, at, at, length, WORK_SIGNALED));
	rig_poll(rig);
	cr_assert_geq(in_loop(), 1);
	cr_assert_eq(rig->side[1].buffer[at], 0);
}

static void run_until(uint32_t side, uint32_t completions)
{
	nanotime end = clock_now() + 20 * TIME_S;

	while (rig->side[side].completions < completions && clock_now() < end)
		rig_poll(rig);
	cr_assert_eq(rig->side[side].completions, completions);
}

static bool all_are(const uint8_t *octets, uint32_t n, uint8_t value)
{
	for (uint32_t i = 0; i < n; i++)
		if (octets[i] != value)
			return false;
	return true;
}

/* Whether a packet of that length carries what its buffer held when it left. */
static bool carries(uint32_t length)
{
	bool as_it_was;

	leave(0, length);
	rig->side[0].buffer[3] = 0x77;
	run_until(0, 1);
	as_it_was = rig->side[1].buffer[3] == 0x11;
	cr_expect(as_it_was || rig->side[1].buffer[3] == 0x77);
	cr_expect(all_are(rig->side[1].buffer + 4, length - 4, 0x11));
	cr_expect_eq(rig->side[1].buffer[length], 0);
	return as_it_was;
}

/* The copy is made on arrival, once. */
Test(lent, a_large_packet_is_copied_when_it_arrives)
{
	cr_expect_not(carries(4096));
}

Test(lent, as_of_a_certain_length)
{
	cr_expect_not(carries(LIMIT_LENT));
}

Test(lent, a_short_packet_is_not_lent)
{
	cr_expect(carries(LIMIT_LENT - 1));
}

Test(lent, nor_is_any_with_an_icrc)
{
	rig->engine.sum_loop = true;
	cr_expect(carries(4096));
}

Test(lent, nor_any_that_a_capture_sees)
{
	static struct capture *capture;

	capture = calloc(1, 4096);
	rig->engine.capture = capture;
	cr_expect(carries(4096));
	rig->engine.capture = NULL;
	free(capture);
}

/* hostile H-38: the memory may be somebody else's by now. */
Test(lent, no_octet_is_read_after_its_region_has_gone)
{
	const struct region *r;

	leave(0, 4096);
	r = key_withdraw(&rig->engine.keys, rig->side[0].key);
	memset(rig->side[0].buffer, 0x99, RIG_BUFFER);
	rig_poll(rig);
	rig_poll(rig);
	cr_expect(all_are(rig->side[1].buffer, RIG_BUFFER, 0),
		  "nothing is stored, nor what the buffer held before");
	run_until(0, 1);
	cr_expect_neq(rig->side[0].last.status, STATUS_SUCCESS);
	cr_expect(all_are(rig->side[1].buffer, RIG_BUFFER, 0));
	key_publish(&rig->engine.keys, rig->side[0].key, r);
}

/* A request that was flushed has given its memory back. */
Test(lent, no_octet_is_read_after_its_completion)
{
	leave(0, 4096);
	qp_fail(rig->side[0].qp.core, REASON_CQ_OVERRUN);
	qp_settled(lcore(), &rig->side[0].qp, clock_now());
	memset(rig->side[0].buffer, 0x99, RIG_BUFFER);
	run_until(0, 1);
	for (int i = 0; i < 1000; i++)
		rig_poll(rig);
	cr_expect(all_are(rig->side[1].buffer, RIG_BUFFER, 0));
}

/* protocol-map 147: SQD finishes what has begun. */
Test(lent, it_arrives_while_the_send_queue_drains)
{
	const struct qp_attributes drain = { .state = QP_STATE_SQD };

	leave(0, 4096);
	cr_assert_eq(qp_modify(rig->side[0].qp.core, &drain, QP_ATTR_STATE, NULL), 0);
	run_until(0, 1);
	cr_expect_eq(rig->side[0].last.status, STATUS_SUCCESS);
	cr_expect(all_are(rig->side[1].buffer, 4096, 0x11));
}

Test(lent, nor_of_a_queue_pair_that_has_gone)
{
	leave(0, 4096);
	directory_remove(&rig->engine, &rig->side[0].qp, clock_now());
	rig_poll(rig);
	cr_expect(all_are(rig->side[1].buffer, RIG_BUFFER, 0));
	cr_expect_eq(in_loop(), 0);
}

/* hostile H-38: ... and the receiver's key is asked as ever. */
Test(lent, the_receivers_region_has_gone)
{
	const struct region *r;

	leave(0, 4096);
	r = key_withdraw(&rig->engine.keys, rig->side[1].key);
	run_until(0, 1);
	cr_expect_eq(rig->side[0].last.status, STATUS_REM_ACCESS_ERR);
	cr_expect(all_are(rig->side[1].buffer, RIG_BUFFER, 0));
	key_publish(&rig->engine.keys, rig->side[1].key, r);
}

/* Packets behind a gap are kept, with the octets that they had on arrival. */
Test(lent, what_is_kept_has_its_octets)
{
	cr_assert(rig_post_at(rig, 0, WORK_RDMA_WRITE, 0, 0, 4096, WORK_SIGNALED));
	cr_assert(rig_post_at(rig, 0, WORK_RDMA_WRITE, 4096, 4096, 4096, WORK_SIGNALED));
	cr_assert(rig_post_at(rig, 0, WORK_RDMA_WRITE, 8192, 8192, 4096, WORK_SIGNALED));
	rig_poll(rig);
	cr_assert_geq(in_loop(), 3);
	rte_pktmbuf_free(lcore()->loop[lcore()->loop_tail++ % LIMIT_LOOP]); /* lost */
	rig_poll(rig);
	cr_expect(all_are(rig->side[1].buffer, 12288, 0));
	memset(rig->side[0].buffer + 4096, 0x55, 8192);
	run_until(0, 3);
	cr_expect_eq(rig->side[0].last.status, STATUS_SUCCESS);
	cr_expect(all_are(rig->side[1].buffer, 12288, 0x11));
}

Test(lent, large_messages_of_all_kinds)
{
	for (uint32_t i = 0; i < RIG_BUFFER; i++)
		rig->side[0].buffer[i] = (uint8_t)(i * 7 + i / 256);
	cr_assert(rig_receive(rig, 1));
	cr_assert(rig_post(rig, 0, WORK_SEND, RIG_BUFFER, WORK_SIGNALED));
	run_until(0, 1);
	run_until(1, 1);
	cr_expect_arr_eq(rig->side[0].buffer, rig->side[1].buffer, RIG_BUFFER);
	memset(rig->side[1].buffer, 0, RIG_BUFFER);
	cr_assert(rig_post(rig, 0, WORK_RDMA_WRITE, RIG_BUFFER - 1, WORK_SIGNALED));
	run_until(0, 2);
	cr_expect_arr_eq(rig->side[0].buffer, rig->side[1].buffer, RIG_BUFFER - 1);
	cr_expect_eq(rig->side[1].buffer[RIG_BUFFER - 1], 0);
	memset(rig->side[1].buffer, 0, RIG_BUFFER);
	cr_assert(rig_post(rig, 1, WORK_RDMA_READ, RIG_BUFFER, WORK_SIGNALED));
	run_until(1, 2);
	cr_expect_arr_eq(rig->side[0].buffer, rig->side[1].buffer, RIG_BUFFER);
}
