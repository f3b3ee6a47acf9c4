/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"

static const struct qp_attributes none;

/*
 * protocol-map 131, 132
 * hostile H-42: ERR while a packet is executed; H-135: one completion for each request.
 */
Test(error_flush, everything_completes_once_and_in_order)
{
	story();
	for (uint64_t i = 1; i <= 3; i++)
		post(a, .wr_id = i, .opcode = WORK_SEND, .length = 600, .unsignaled = i == 2);
	post_receive(a, 11, 10);
	post_receive(a, 12, 10);
	expect_packet(a, "RC SEND FIRST", A_PSN);
	cr_assert_eq(modify(a, QP_STATE_ERR, 0, &none), 0);
	expect_silence(a);
	struct node_completion c;
	uint64_t sends = 0, receives = 10;

	while (node_take(a->q, &c)) {
		cr_assert_eq(c.c.status, STATUS_WR_FLUSH_ERR);
		cr_assert_eq(c.c.wr_id, c.from_receive ? ++receives : ++sends);
		if (!c.from_receive)
			cr_assert_eq(c.c.from_srq, sends == 2 ? COMPLETION_UNSIGNALED : 0);
	}
	cr_assert(sends == 3 && receives == 12);
	cr_assert_eq(qp_retired(a->q->core), 3);
}

/* protocol-map 131, 201: requests posted in ERR are flushed; the marker of a drain is the last */
Test(error_flush, requests_posted_in_err_are_flushed)
{
	story();
	modify(a, QP_STATE_ERR, 0, &none);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	expect_completion(a, 1, STATUS_WR_FLUSH_ERR);
	post_receive(a, 2, 10);
	expect_receive(a, 2, STATUS_WR_FLUSH_ERR, 0);
	expect_no_completion(a);
}

/* protocol-map 132 */
Test(error_flush, the_first_error_wins)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	expect_packet(a, "RC SEND ONLY", A_PSN);
	expect_packet(a, "RC SEND ONLY", A_PSN + 1);
	inject(a, OPB_ACK, A_PSN, .syndrome = SYNDROME_NAK_REMOTE_ACCESS);
	inject(a, OPB_ACK, A_PSN, .syndrome = SYNDROME_NAK_INVALID_REQUEST);
	inject(a, OPB_ACK, A_PSN + 1, .syndrome = SYNDROME_NAK_REMOTE_OPERATION);
	node_fail(a->q, REASON_CQ_OVERRUN, ms(1000));
	expect_completion(a, 1, STATUS_REM_ACCESS_ERR);
	expect_completion(a, 2, STATUS_WR_FLUSH_ERR);
	expect_no_completion(a);
}

/* protocol-map 131: a message that was being received */
Test(error_flush, the_request_of_an_open_message_is_flushed_first)
{
	story();
	post_receive(b, 1, 1000);
	post_receive(b, 2, 1000);
	inject(b, OPB_SEND_FIRST, A_PSN, .payload_length = MTU);
	modify(b, QP_STATE_ERR, 0, &none);
	expect_receive(b, 1, STATUS_WR_FLUSH_ERR, 0);
	expect_receive(b, 2, STATUS_WR_FLUSH_ERR, 0);
	expect_no_completion(b);
}

/*
 * protocol-map 35, 136, 137
 * hostile H-42: ERR while a packet is executed.
 */
Test(error_flush, in_err_nothing_is_placed_and_nothing_answered)
{
	story();
	modify(b, QP_STATE_ERR, 0, &none);
	expect_reason(inject(b, OPB_WRITE_ONLY, A_PSN, at_memory(b, 0, 8), .payload_length = 8,
			     .ack_req = true),
		      REASON_QP_STATE);
	expect_reason(inject(b, OPB_READ_REQUEST, A_PSN, at_memory(b, 0, 8)), REASON_QP_STATE);
	expect_reason(inject(b, OPB_ACK, B_PSN, .syndrome = 31), REASON_QP_STATE);
	expect_silence(b);
	expect_untouched(b, 0, 8);
}

/*
 * protocol-map 136: the packet that was being executed is not executed again
 * hostile H-42: ERR while a packet is executed.
 */
Test(error_flush, a_copy_under_way_is_not_made_twice)
{
	story(.delay_copies = true);
	post_receive(b, 1, 100);
	post_receive(b, 2, 100);
	inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 8);
	modify(b, QP_STATE_ERR, 0, &none);
	settle(b, true);
	expect_receive(b, 1, STATUS_WR_FLUSH_ERR, 0);
	expect_receive(b, 2, STATUS_WR_FLUSH_ERR, 0);
	expect_no_completion(b);
	expect_silence(b);
}

/*
 * protocol-map 131: taken receive requests complete before those that wait in the queue
 * hostile H-135: one completion for each request.
 */
Test(error_flush, received_messages_complete_before_flushed_requests)
{
	story(.delay_copies = true);
	post_receive(b, 1, 100);
	post_receive(b, 2, 100);
	inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 8);
	inject(b, OPB_SEND_MIDDLE, A_PSN + 1, .payload_length = MTU);
	expect_state(b, QP_STATE_ERR);
	expect_no_completion(b);
	settle(b, true);
	expect_receive(b, 1, STATUS_SUCCESS, 8);
	expect_receive(b, 2, STATUS_WR_FLUSH_ERR, 0);
	expect_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN + 1, 1);
}

/* protocol-map 128 */
Test(error_flush, a_fault_from_outside_is_an_event)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	node_fail(a->q, REASON_CQ_OVERRUN, ms(1000));
	expect_events(a, QP_EVENT_FATAL);
	expect_completion(a, 1, STATUS_WR_FLUSH_ERR);
	cr_assert_eq(a->q->deadline, TIME_NEVER);
}

/*
 * protocol-map 135
 * hostile H-51: packets that arrive after a reset.
 */
Test(error_flush, reset_forgets_everything)
{
	story();
	for (uint64_t i = 1; i <= 4; i++)
		post(a, .wr_id = i, .opcode = WORK_SEND, .length = 10);
	expect_packet(a, "RC SEND ONLY", A_PSN);
	post_receive(a, 1, 10);
	connect_again(a);
	expect_no_completion(a);
	expect_silence(a);
	cr_assert_eq(a->q->deadline, TIME_NEVER);
	connect_again(b);
	post_receive(b, 1, 10);
	post(a, .wr_id = 9, .opcode = WORK_SEND, .length = 10);
	pass(a, "RC SEND ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	expect_completion(a, 9, STATUS_SUCCESS);
}

/* protocol-map 135: a replay record of the previous connection */
Test(error_flush, reset_forgets_saved_atomics)
{
	story();
	inject(b, OPB_FETCH_ADD, A_PSN, at_memory(b, 0, 0), .swap_add = 1);
	expect_packet(b, "RC ATOMIC ACK", A_PSN);
	connect_again(b);
	expect_reason(inject(b, OPB_FETCH_ADD, A_PSN - 1, at_memory(b, 0, 0), .swap_add = 1),
		      REASON_DUPLICATE_UNKNOWN);
	expect_silence(b);
}

/*
 * protocol-map 135, 137: a copy from before the reset is not reported
 * hostile H-51: packets that arrive after a reset.
 */
Test(error_flush, a_late_report_after_reset_is_ignored)
{
	story(.delay_copies = true);
	post_receive(b, 1, 100);
	inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 8, .ack_req = true);
	uint64_t ticket = b->q->outcome.ticket;

	connect_again(b);
	qp_copied(b->q->core, ticket, true);
	node_collect(b->q, ms(1000));
	expect_no_completion(b);
	expect_silence(b);
}

/* protocol-map 124 */
Test(error_flush, an_error_says_why)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 8, .rkey = 0xbad);
	exchange();
	cr_assert_eq(expect_completion(a, 1, STATUS_REM_ACCESS_ERR).vendor_err,
		     REASON_NAK_REMOTE_ACCESS);
}

/* protocol-map 126: an error wakes a program that waits for solicited completions */
Test(error_flush, an_error_is_solicited)
{
	story();
	post_receive(a, 1, 10);
	modify(a, QP_STATE_ERR, 0, &none);
	cr_assert(expect_receive(a, 1, STATUS_WR_FLUSH_ERR, 0).solicited);
}

/* protocol-map 133: of an SRQ only taken requests are flushed, and then the event comes */
Test(error_flush, the_last_wqe_event_follows_the_last_completion)
{
	story(.srq = true, .delay_copies = true);
	post_receive(b, 1, 1000);
	post_receive(b, 2, 1000);
	inject(b, OPB_SEND_FIRST, A_PSN, .payload_length = MTU);
	inject(b, OPB_WRITE_ONLY, A_PSN + 1, at_memory(b, 0, 4), .payload_length = 4);
	expect_state(b, QP_STATE_ERR);
	expect_no_completion(b);
	cr_assert_eq(b->q->events & QP_EVENT_LAST_WQE_REACHED, 0, "the copy is under way");
	settle(b, true);
	expect_receive(b, 1, STATUS_REM_INV_REQ_ERR, 0);
	expect_no_completion(b);
	expect_events(b, QP_EVENT_REQ_ERR | QP_EVENT_LAST_WQE_REACHED);
	cr_assert_eq(node_receives_posted(b->q), 1, "the SRQ keeps the other");
}
