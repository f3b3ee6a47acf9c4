/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core's services for tag matching: octets that are not stored, marks of receive requests, and
 * the caller's own requests between those of the program.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "pair.h"

#define OWN 4u

static struct pair pair;
static struct pair_options o;

static void start(void)
{
	o = pair_options();
	o.own_wr = OWN;
	o.max_send_wr = 3;
	o.mtu = 1;
	pair_init(&pair, &o);
}

static void finish(void)
{
	pair_close(&pair);
}

TestSuite(own, .init = start, .fini = finish, .timeout = 60);

static struct recv_work *post_marked(uint32_t length, uint16_t mark, uint16_t strip)
{
	struct recv_work *w;

	pair_post_receive(&pair.b, 0, length);
	w = (struct recv_work *)(void *)((uint8_t *)pair.b.receive +
					 (pair.b.receive_tail - 1) * recv_work_stride(PAIR_SGE));
	w->mark = mark;
	w->strip = strip;
	return w;
}

static void expect_stripped(uint32_t length)
{
	pair_fill(pair.a.memory, length, length);
	memset(pair.b.memory, 0xee, length);
	post_marked(length - 16, 77, 16);
	pair_post(&pair, &pair.a, WORK_SEND, WORK_SIGNALED, 0, length, 0);
	pair_until(&pair, &pair.b, 1, 4);
	cr_expect_eq(pair.b.done[0].status, STATUS_SUCCESS);
	cr_expect_eq(pair.b.done[0].byte_len, length - 16);
	cr_expect_eq(pair.b.done[0].work_index, 77, "its mark");
	cr_expect_arr_eq(pair.b.memory, pair.a.memory + 16, length - 16);
	cr_expect_eq(pair.b.memory[length - 16], 0xee, "nothing behind it");
}

Test(own, the_start_of_a_message_is_not_stored)
{
	expect_stripped(100);
}

Test(own, nor_that_of_a_message_of_many_packets)
{
	expect_stripped(1000);
}

Test(own, a_message_may_be_nothing_but_what_is_not_stored)
{
	post_marked(0, 5, 32)->num_sge = 0;
	pair_post(&pair, &pair.a, WORK_SEND, WORK_SIGNALED, 0, 32, 0);
	pair_until(&pair, &pair.b, 1, 4);
	cr_expect_eq(pair.b.done[0].status, STATUS_SUCCESS);
	cr_expect_eq(pair.b.done[0].byte_len, 0);
	cr_expect_eq(pair.b.done[0].work_index, 5);
}

Test(own, more_than_the_message_is_not_stored_either)
{
	post_marked(100, 5, 64);
	pair_post(&pair, &pair.a, WORK_SEND, WORK_SIGNALED, 0, 20, 0);
	pair_until(&pair, &pair.b, 1, 4);
	cr_expect_eq(pair.b.done[0].status, STATUS_SUCCESS);
	cr_expect_eq(pair.b.done[0].byte_len, 0);
}

Test(own, what_is_stored_must_have_room)
{
	post_marked(100, 9, 16);
	pair_post(&pair, &pair.a, WORK_SEND, WORK_SIGNALED, 0, 117, 0);
	pair_until(&pair, &pair.a, 1, 4);
	cr_expect_eq(pair.b.done[0].status, STATUS_LOC_LEN_ERR);
	cr_expect_eq(pair.b.done[0].work_index, 9, "a failed one is marked, too");
	cr_expect_eq(pair.a.done[0].status, STATUS_REM_INV_REQ_ERR);
}

static bool only_the_first(struct pair *p, struct end *to, struct packet *packet)
{
	return p->seen++ == 0;
}

Test(own, a_marked_request_of_a_message_that_ends_early_comes_back)
{
	pair.pass = only_the_first;
	post_marked(1000, 9, 16);
	pair_post(&pair, &pair.a, WORK_SEND, WORK_SIGNALED, 0, 1000, 0);
	pair_run(&pair);
	cr_assert_eq(pair.b.done_count, 0);
	qp_fail(pair.b.qp, REASON_CQ_OVERRUN);
	pair_run(&pair);
	cr_assert_eq(pair.b.done_count, 1);
	cr_expect_eq(pair.b.done[0].status, STATUS_WR_FLUSH_ERR);
	cr_expect_eq(pair.b.done[0].work_index, 9);
}

static void post_own(uint64_t wr_id)
{
	struct send_work *w = qp_own_slot(pair.a.qp);

	cr_assert_not_null(w);
	*w = (struct send_work){ .wr_id = wr_id,
				 .opcode = WORK_RDMA_READ,
				 .flags = WORK_SIGNALED,
				 .num_sge = 1,
				 .rkey = pair.b.key,
				 .remote_addr = PAIR_IOVA };
	send_work_sge(w)[0] = (struct work_sge){ PAIR_IOVA + 4096, 600, pair.a.key };
	qp_own_posted(pair.a.qp);
}

static void post_write(void)
{
	cr_assert_not_null(qp_window_slot(pair.a.qp));
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 8, 8192);
}

/* The program's numbers count the program's requests. */
static void expect_done(uint32_t from, enum work_status status)
{
	static const bool own[] = { true, false, true, false, true, false, true };
	uint32_t index = 0;

	cr_assert_eq(pair.a.done_count, from + 7);
	for (uint32_t i = 0; i < 7; i++) {
		const struct completion *c = &pair.a.done[from + i];

		cr_expect_eq(c->status, status, "%u: %u", i, c->status);
		cr_expect_eq(c->from_srq, own[i] ? COMPLETION_OWN : 0, "%u", i);
		if (own[i])
			cr_expect_eq(c->wr_id, 100 + i);
		else
			cr_expect_eq(c->work_index, from / 7 * 3 + index++);
	}
}

static void post_all(void)
{
	for (uint64_t i = 0; i < 7; i++)
		i % 2 == 0 ? post_own(100 + i) : post_write();
	cr_expect_null(qp_own_slot(pair.a.qp));
	cr_expect_null(qp_window_slot(pair.a.qp), "each has its own room");
}

Test(own, requests_of_both_are_done_in_their_order_and_counted_apart)
{
	for (uint32_t round = 0; round < 5; round++) {
		post_all();
		pair_until(&pair, &pair.a, 7 * (round + 1), 4);
		expect_done(7 * round, STATUS_SUCCESS);
		cr_expect_eq(qp_retired(pair.a.qp), 3 * (round + 1));
	}
}

Test(own, both_are_flushed)
{
	post_all();
	qp_fail(pair.a.qp, REASON_CQ_OVERRUN);
	pair_run(&pair);
	expect_done(0, STATUS_WR_FLUSH_ERR);
	cr_expect_eq(qp_retired(pair.a.qp), 3);
}

Test(own, a_reset_gives_back_the_room_of_both)
{
	struct qp_attributes a = { .state = QP_STATE_RESET };
	uint32_t slots = 0;

	post_all();
	cr_assert_eq(qp_modify(pair.a.qp, &a, QP_ATTR_STATE, NULL), 0);
	cr_expect_eq(qp_retired(pair.a.qp), 3);
	for (; slots < OWN && qp_own_slot(pair.a.qp) != NULL; slots++)
		post_own(slots);
	cr_expect_eq(slots, OWN);
	cr_expect_not_null(qp_window_slot(pair.a.qp));
}
