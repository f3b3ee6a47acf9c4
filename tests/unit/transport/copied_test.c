/* SPDX-License-Identifier: BSD-3-Clause */
/* Tickets: what waits for a copy, and what a failed copy causes. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "pair.h"

static struct pair pair;
static struct pair_options o;

static void start(void)
{
	o = pair_options();
	pair_init(&pair, &o);
}

static void finish(void)
{
	pair_close(&pair);
}

TestSuite(copied, .init = start, .fini = finish, .timeout = 60);

Test(copied, completion_and_acknowledgement_wait_for_the_copy)
{
	pair.b.hold = true;
	pair_post_receive(&pair.b, 0, 100);
	pair_post(&pair, &pair.a, WORK_SEND, WORK_SIGNALED, 0, 100, 0);
	pair_run(&pair);
	cr_assert_eq(pair.b.done_count, 0);
	cr_assert_eq(pair.a.done_count, 0);
	pair_settle(&pair, &pair.b, true);
	cr_assert_eq(pair.b.done_count, 1);
	pair_run(&pair);
	cr_assert_eq(pair.a.done_count, 1);
	cr_assert_eq(pair.a.done[0].status, STATUS_SUCCESS);
}

Test(copied, a_read_behind_an_open_write_waits)
{
	pair.b.hold = true;
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, 0, 0, 8, 0);
	pair_post(&pair, &pair.a, WORK_RDMA_READ, WORK_SIGNALED, 64, 8, 0);
	pair_run(&pair);
	cr_assert_eq(pair.a.done_count, 0);
	pair_settle(&pair, &pair.b, true);
	pair_run(&pair);
	cr_assert_eq(pair.a.done_count, 1);
}

/* An empty message has no ticket of its own, and still does not overtake. */
Test(copied, empty_messages_wait_in_line)
{
	pair.b.hold = true;
	pair_post_receive(&pair.b, 0, 100);
	pair_post_receive(&pair.b, 0, 0);
	pair_post(&pair, &pair.a, WORK_SEND, WORK_SIGNALED, 0, 100, 0);
	pair_post(&pair, &pair.a, WORK_SEND, WORK_SIGNALED, 0, 0, 0);
	pair_run(&pair);
	cr_assert_eq(pair.b.done_count, 0);
	pair_settle(&pair, &pair.b, true);
	cr_assert_eq(pair.b.done_count, 2);
	cr_assert_eq(pair.b.done[0].wr_id, 0);
	cr_assert_eq(pair.b.done[1].wr_id, 1);
}

Test(copied, a_bounded_number_of_copies)
{
	const uint32_t most = LIMIT_TICKETS - 1; /* a SEND with invalidate would take two */
	struct packet p;
	uint32_t accepted = 0;

	pair.b.hold = true;
	for (uint32_t i = 0; i < LIMIT_TICKETS + 5; i++) {
		uint8_t octet = 1;

		p = pair_packet(&pair, &pair.b, OPB_WRITE_ONLY, o.psn + i);
		p.va = PAIR_IOVA + i;
		p.rkey = pair.b.key;
		p.dma_length = p.payload_length = 1;
		p.pad = 3;
		p.payload = &octet;
		cr_assert_eq(qp_can_receive(pair.b.qp), i < most);
		accepted += pair_inject(&pair, &pair.b, &p) == REASON_NONE;
	}
	cr_assert_eq(accepted, most);
	cr_assert_eq(pair.b.reason, REASON_BUSY);
	pair_settle(&pair, &pair.b, true);
	cr_assert(qp_can_receive(pair.b.qp));
}

static void send(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		pair_post_receive(&pair.b, 0, 100);
		pair_post(&pair, &pair.a, WORK_SEND, WORK_SIGNALED, 0, 100, 0);
	}
	pair_run(&pair);
}

/* Copies and completions under way move with the memory; there is room for more at once. */
Test(copied, room_for_more_copies)
{
	const uint32_t before = 11, few = LIMIT_TICKETS_NEW - 2, many = 40;
	void *memory = aligned_alloc(64, qp_tickets_size());

	pair_close(&pair);
	o.tickets = LIMIT_TICKETS_NEW;
	pair_init(&pair, &o);
	cr_assert_eq(qp_tickets(pair.b.qp), LIMIT_TICKETS_NEW);
	send(before);
	pair.b.hold = true;
	send(few);
	cr_assert_not(qp_can_receive(pair.b.qp));
	qp_give_tickets(pair.b.qp, memory);
	cr_expect_eq(qp_tickets(pair.b.qp), LIMIT_TICKETS);
	cr_assert(qp_can_receive(pair.b.qp));
	send(many - few);
	cr_expect_eq(pair.b.done_count, before, "all the others wait");
	pair_settle(&pair, &pair.b, true);
	pair_run(&pair);
	cr_assert_eq(pair.b.done_count, before + many);
	for (uint32_t i = 0; i < before + many; i++) {
		cr_expect_eq(pair.b.done[i].wr_id, i);
		cr_expect_eq(pair.b.done[i].status, STATUS_SUCCESS);
		cr_expect_eq(pair.b.done[i].byte_len, 100);
	}
	cr_expect_eq(pair.a.done_count, before + many);
	free(memory);
}

/* Three SENDs are in; the copy of the first fails. */
Test(copied, a_failed_receive_forgets_what_is_behind)
{
	pair.b.hold = true;
	for (uint32_t i = 0; i < 3; i++) {
		pair_post_receive(&pair.b, 0, 100);
		pair_post(&pair, &pair.a, WORK_SEND, 0, 0, 100, 0);
	}
	pair_run(&pair);
	pair_settle(&pair, &pair.b, false);
	cr_assert_eq(qp_state(pair.b.qp), QP_STATE_ERR);
	cr_assert_eq(pair.b.done_count, 3);
	cr_assert_eq(pair.b.done[0].status, STATUS_LOC_PROT_ERR);
	cr_assert_eq(pair.b.done[0].vendor_err, REASON_RECEIVE_MEMORY);
	cr_assert_eq(pair.b.done[1].status, STATUS_WR_FLUSH_ERR);
	cr_assert_eq(pair.b.done[2].status, STATUS_WR_FLUSH_ERR);
	pair_run(&pair);
	cr_assert_eq(pair.a.done_count, 3);
	cr_assert_eq(pair.a.done[0].status, STATUS_REM_OP_ERR);
	cr_assert_eq(pair.a.done[1].status, STATUS_WR_FLUSH_ERR);
}

Test(copied, a_failed_write_is_refused_at_its_packet)
{
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 8, 0);
	pair_run(&pair);
	pair.b.hold = true;
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 8, 0);
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 8, 0);
	pair_run(&pair);
	pair_settle(&pair, &pair.b, false);
	pair_run(&pair);
	cr_assert(pair.b.events & QP_EVENT_ACCESS_ERR);
	cr_assert_eq(pair.a.done_count, 3);
	cr_assert_eq(pair.a.done[0].status, STATUS_SUCCESS);
	cr_assert_eq(pair.a.done[1].status, STATUS_REM_ACCESS_ERR);
	cr_assert_eq(pair.a.done[2].status, STATUS_WR_FLUSH_ERR);
}

/* The READ's data does not land; the WRITE after it was acknowledged, and is flushed nevertheless. */
Test(copied, a_failed_landing_fails_its_request)
{
	pair.a.hold = true;
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 8, 0);
	pair_post(&pair, &pair.a, WORK_RDMA_READ, WORK_SIGNALED, 0, 3000, 0);
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 8, 0);
	pair_run(&pair);
	cr_assert_eq(pair.a.done_count, 1);
	pair_settle(&pair, &pair.a, false);
	cr_assert_eq(pair.a.done_count, 3);
	cr_assert_eq(pair.a.done[1].status, STATUS_LOC_PROT_ERR);
	cr_assert_eq(pair.a.done[1].vendor_err, REASON_MEMORY_FAULT);
	cr_assert_eq(pair.a.done[2].status, STATUS_WR_FLUSH_ERR);
}

/* Not what answers the first request, until the test has seen that what follows came. */
static bool but_the_first(struct pair *p, struct end *to, struct packet *packet)
{
	return to != &p->a || packet->psn != o.psn || p->seen > 0;
}

/* It came before the response of another READ, which must not count as done. */
Test(copied, a_landing_ahead_of_others_fails_in_its_turn)
{
	pair.a.hold = true;
	pair.pass = but_the_first;
	for (uint32_t i = 0; i < 3; i++)
		pair_post(&pair, &pair.a, WORK_RDMA_READ, WORK_SIGNALED, 8 * i, 8, 8 * i);
	pair_run(&pair);
	cr_assert_eq(pair.a.held_ticket, 2, "the second and the third");
	pair_settle(&pair, &pair.a, false);
	cr_assert_eq(pair.a.done_count, 0);
	pair.seen = 1;
	pair.a.hold = false;
	pair_until(&pair, &pair.a, 3, 50);
	cr_assert_eq(pair.a.done[0].status, STATUS_SUCCESS);
	cr_assert_eq(pair.a.done[1].status, STATUS_LOC_PROT_ERR);
	cr_assert_eq(pair.a.done[1].vendor_err, REASON_MEMORY_FAULT);
	cr_assert_eq(pair.a.done[2].status, STATUS_WR_FLUSH_ERR);
}

/* Goes to ERR and to RESET with copies under way; their late reports change nothing. */
Test(copied, reports_from_before_are_ignored)
{
	struct qp_attributes a = { .state = QP_STATE_ERR };

	pair.a.hold = pair.b.hold = true;
	pair_post_receive(&pair.b, 0, 100);
	pair_post(&pair, &pair.a, WORK_RDMA_READ, WORK_SIGNALED, 0, 8, 0);
	pair_post(&pair, &pair.a, WORK_SEND, WORK_SIGNALED, 0, 100, 0);
	pair_run(&pair);
	cr_assert_eq(qp_modify(pair.a.qp, &a, QP_ATTR_STATE, NULL), 0);
	cr_assert_eq(qp_modify(pair.b.qp, &a, QP_ATTR_STATE, NULL), 0);
	pair_run(&pair);
	cr_assert_eq(pair.a.done_count, 2);
	cr_assert_eq(pair.a.done[0].status, STATUS_WR_FLUSH_ERR);
	cr_assert_eq(pair.b.done_count, 1);
	cr_assert_eq(pair.b.done[0].status, STATUS_WR_FLUSH_ERR);
	pair_settle(&pair, &pair.a, true);
	pair_settle(&pair, &pair.b, false);
	a.state = QP_STATE_RESET;
	cr_assert_eq(qp_modify(pair.a.qp, &a, QP_ATTR_STATE, NULL), 0);
	pair_run(&pair);
	cr_assert_eq(pair.a.done_count, 2);
	cr_assert_eq(pair.b.done_count, 1);
	cr_assert_eq(qp_retired(pair.a.qp), 2);
}
