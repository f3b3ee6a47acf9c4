/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"

static const struct qp_attributes none;

static int drain(struct side *s)
{
	return modify(s, QP_STATE_SQD, QP_ATTR_EN_SQD_ASYNC_NOTIFY,
		      &(struct qp_attributes){ .en_sqd_async_notify = 1 });
}

/* protocol-map 147 */
Test(modify, sqd_finishes_begun_requests_and_reports_once)
{
	story();
	post_receive(b, 1, 1000);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 600);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	pass(a, "RC SEND FIRST", A_PSN);
	cr_assert_eq(drain(a), 0);
	struct qp_attributes now_is;

	qp_query(a->q->core, &now_is);
	cr_assert(now_is.sq_draining && now_is.state == QP_STATE_SQD);
	pass(a, "RC SEND MIDDLE", A_PSN + 1);
	pass(a, "RC SEND LAST", A_PSN + 2);
	expect_silence(a);
	expect_events(a, 0);
	pass_ack(b, A_PSN + 2, 1);
	expect_events(a, QP_EVENT_SQ_DRAINED);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_no_completion(a);
	qp_query(a->q->core, &now_is);
	cr_assert(!now_is.sq_draining);
	expect_silence(a);
}

/* protocol-map 147: the packet that would have asked for an acknowledgement is not sent */
Test(modify, sqd_asks_for_the_outstanding_acknowledgement)
{
	story(.no_timeout = true);
	for (uint64_t i = 1; i <= 3; i++)
		post(a, .wr_id = i, .opcode = WORK_RDMA_WRITE, .length = 8);
	cr_assert_not(pass(a, "RC WRITE ONLY", A_PSN)->ack_req);
	cr_assert_not(pass(a, "RC WRITE ONLY", A_PSN + 1)->ack_req);
	cr_assert_eq(drain(a), 0);
	cr_assert(pass(a, "RC WRITE ONLY", A_PSN + 1)->ack_req);
	pass_ack(b, A_PSN + 1, 2);
	expect_events(a, QP_EVENT_SQ_DRAINED);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
	expect_silence(a);
}

/* ... also if one alone is on its way */
Test(modify, sqd_asks_for_the_acknowledgement_of_one_packet)
{
	story(.no_timeout = true);
	for (uint64_t i = 1; i <= 2; i++)
		post(a, .wr_id = i, .opcode = WORK_RDMA_WRITE, .length = 8);
	cr_assert_not(pass(a, "RC WRITE ONLY", A_PSN)->ack_req);
	cr_assert_eq(drain(a), 0);
	cr_assert(pass(a, "RC WRITE ONLY", A_PSN)->ack_req);
	pass_ack(b, A_PSN, 1);
	expect_events(a, QP_EVENT_SQ_DRAINED);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_silence(a);
}

/* protocol-map 147: sending goes on in RTS */
Test(modify, rts_after_sqd_sends_waiting_requests)
{
	story();
	cr_assert_eq(drain(a), 0);
	expect_events(a, QP_EVENT_SQ_DRAINED);
	post_receive(b, 1, 10);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	expect_silence(a);
	cr_assert_eq(modify(a, QP_STATE_RTS, 0, &none), 0);
	pass(a, "RC SEND ONLY", A_PSN);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 105, 147: requests that have begun are repeated in SQD, too */
Test(modify, sqd_still_retries)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	lose(a, "RC SEND ONLY", A_PSN);
	drain(a);
	at(ms(20));
	expect_packet(a, "RC SEND ONLY", A_PSN);
}

/* protocol-map 35, 147 */
Test(modify, sqd_receives_as_before)
{
	story();
	drain(b);
	post_receive(b, 1, 10);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_READ, .length = 8, .from = 0x100);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
	expect_receive(b, 1, STATUS_SUCCESS, 10);
}

/* protocol-map 147 */
Test(modify, while_it_drains_only_reset_and_err_are_allowed)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	expect_packet(a, "RC SEND ONLY", A_PSN);
	drain(a);
	cr_assert_neq(modify(a, QP_STATE_RTS, 0, &none), 0);
	cr_assert_eq(modify(a, QP_STATE_ERR, 0, &none), 0);
	expect_completion(a, 1, STATUS_WR_FLUSH_ERR);
}

/* protocol-map 149 */
Test(modify, the_first_packet_in_rtr_is_the_established_event)
{
	story(.b_in_rtr = true);
	post_receive(b, 1, 10);
	post_receive(b, 2, 10);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	pass(a, "RC SEND ONLY", A_PSN);
	expect_events(b, QP_EVENT_COMM_EST);
	pass(a, "RC SEND ONLY", A_PSN + 1);
	expect_events(b, 0);
	pass_ack(b, A_PSN + 1, 2);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 35 */
Test(modify, in_rtr_requests_are_answered_and_responses_ignored)
{
	story(.b_in_rtr = true);
	expect_reason(inject(b, OPB_ACK, B_PSN, .syndrome = 31), REASON_QP_STATE);
	inject(b, OPB_READ_REQUEST, A_PSN, at_memory(b, 0, 8));
	expect_packet(b, "RC READ RESPONSE ONLY", A_PSN);
}

/* protocol-map 35 */
Test(modify, in_init_nothing_is_received)
{
	story(.stay_in_init = true);
	post_receive(b, 1, 10);
	expect_reason(inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 4), REASON_QP_STATE);
	expect_silence(b);
	expect_no_completion(b);
}

/* protocol-map 139 */
Test(modify, transitions_that_do_not_exist)
{
	static const uint32_t from_rts[] = { QP_STATE_INIT, QP_STATE_RTR, QP_STATE_SQE, 7, 99 };
	struct qp_attributes before, after;

	story();
	qp_query(a->q->core, &before);
	for (uint32_t i = 0; i < ARRAY_SIZE(from_rts); i++)
		cr_assert_neq(modify(a, from_rts[i], 0, &none), 0, "to %u", from_rts[i]);
	qp_query(a->q->core, &after);
	cr_assert_eq(memcmp(&before, &after, sizeof(before)), 0, "nothing changed");
	modify(a, QP_STATE_ERR, 0, &none);
	cr_assert_neq(modify(a, QP_STATE_RTS, 0, &none), 0);
	cr_assert_eq(modify(a, QP_STATE_RESET, 0, &none), 0);
	cr_assert_neq(modify(a, QP_STATE_ERR, 0, &none), 0);
	cr_assert_eq(modify(a, QP_STATE_RESET, 0, &none), 0);
}

/* protocol-map 146 */
Test(modify, attributes_that_do_not_belong_to_the_transition)
{
	struct qp_attributes with;

	story();
	with = attributes_of(a);
	cr_assert_neq(modify(a, QP_STATE_RTS, QP_ATTR_PATH_MTU, &with), 0);
	cr_assert_neq(modify(a, QP_STATE_RTS, QP_ATTR_SQ_PSN, &with), 0);
	cr_assert_neq(modify(a, QP_STATE_RTS, QP_ATTR_QKEY, &with), 0);
	cr_assert_eq(modify(a, QP_STATE_RTS, QP_ATTR_MIN_RNR_TIMER, &with), 0);
}

/* protocol-map 65, 143: access flags may change while the connection exists */
Test(modify, access_flags_of_a_standing_connection)
{
	struct qp_attributes with = { .access_flags = ACCESS_LOCAL_WRITE };

	story();
	inject(b, OPB_WRITE_ONLY, A_PSN, at_memory(b, 0, 8), .payload_length = 8);
	cr_assert_eq(modify(b, QP_STATE_RTS, QP_ATTR_ACCESS_FLAGS, &with), 0);
	inject(b, OPB_WRITE_ONLY, A_PSN + 1, at_memory(b, 8, 8), .payload_length = 8);
	expect_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN + 1, 1);
}

/* protocol-map 107: retries come back with progress or a new count, and only then */
Test(modify, changes_in_an_outage_restore_no_retries)
{
	struct qp_attributes with;

	story(.retry_cnt = 2);
	with = attributes_of(a);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	for (uint32_t tries = 0; tries < 3; tries++) {
		expect_no_completion(a);
		lose(a, "RC SEND ONLY", A_PSN);
		cr_assert_eq(modify(a, QP_STATE_RTS, QP_ATTR_ACCESS_FLAGS, &with), 0);
		cr_assert_eq(modify(a, QP_STATE_RTS, QP_ATTR_MIN_RNR_TIMER, &with), 0);
		cr_assert_eq(modify(a, QP_STATE_RTS, QP_ATTR_RATE_LIMIT, &with), 0);
		at(now + (ms(5) << tries));
	}
	expect_completion(a, 1, STATUS_RETRY_EXC_ERR);
}

/* protocol-map 107: nor while the peer is not ready */
Test(modify, changes_while_the_peer_is_not_ready_restore_no_retries)
{
	struct qp_attributes with;

	story(.rnr_retry = 2);
	with = attributes_of(a);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	for (uint32_t tries = 0; tries < 3; tries++) {
		expect_no_completion(a);
		pass(a, "RC SEND ONLY", A_PSN);
		cr_assert_eq(modify(a, QP_STATE_RTS, QP_ATTR_ACCESS_FLAGS, &with), 0);
		pass_nak(b, SYNDROME_RNR | 12, A_PSN, 0);
		at(now + ms(1));
	}
	expect_completion(a, 1, STATUS_RNR_RETRY_EXC_ERR);
}

/* protocol-map 107: a new count starts from its own value */
Test(modify, a_new_retry_count_takes_effect)
{
	struct qp_attributes with;

	story(.retry_cnt = 3, .rnr_retry = 3);
	with = attributes_of(a);
	with.retry_cnt = 1;
	cr_assert_eq(modify(a, QP_STATE_SQD, 0, &with), 0);
	cr_assert_eq(modify(a, QP_STATE_SQD, QP_ATTR_RETRY_CNT, &with), 0);
	cr_assert_eq(modify(a, QP_STATE_RTS, 0, &with), 0);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	for (uint32_t tries = 0; tries < 2; tries++) {
		expect_no_completion(a);
		lose(a, "RC SEND ONLY", A_PSN);
		at(now + (ms(5) << tries));
	}
	expect_completion(a, 1, STATUS_RETRY_EXC_ERR);
}
