/* SPDX-License-Identifier: BSD-3-Clause */
/* SQE: a local error of an unreliable service stops its send queue, and nothing else. */
#include "story/story.h"

static const uint32_t types[] = { QP_TYPE_UC, QP_TYPE_UD, QP_TYPE_RAW_PACKET };

static uint32_t room_of(uint32_t type)
{
	return type == QP_TYPE_UD ? 140 : 100;
}

static void one_type(uint32_t type)
{
	struct qp_attributes none = { 0 }, seen;

	story(.type = type);
	post_receive(a, 1, 200);
	post_receive(b, 1, 200);
	post_receive(b, 2, 200);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 100);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 100, .lkey = 0xbad);
	post(a, .wr_id = 3, .opcode = WORK_SEND, .length = 100, .unsignaled = true);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_LOC_PROT_ERR);
	expect_completion(a, 3, STATUS_WR_FLUSH_ERR);
	expect_state(a, QP_STATE_SQE);
	expect_events(a, QP_EVENT_SQ_ERROR);
	expect_receive(b, 1, STATUS_SUCCESS, room_of(type));

	/* Requests posted in SQE are flushed. */
	post(a, .wr_id = 4, .opcode = WORK_SEND, .length = 100);
	expect_silence(a);
	expect_completion(a, 4, STATUS_WR_FLUSH_ERR);
	expect_no_completion(a);

	/* The receive queue is not affected. */
	post(b, .wr_id = 1, .opcode = WORK_SEND, .length = 100);
	exchange();
	expect_receive(a, 1, STATUS_SUCCESS, room_of(type));
	expect_completion(b, 1, STATUS_SUCCESS);

	/* Only RTS, RESET and ERR can follow. */
	cr_assert_neq(modify(a, QP_STATE_SQD, 0, &none), 0);
	cr_assert_neq(modify(a, QP_STATE_SQE, 0, &none), 0);
	qp_query(a->q->core, &seen);
	cr_assert_eq(seen.state, QP_STATE_SQE);

	cr_assert_eq(modify(a, QP_STATE_RTS, 0, &none), 0);
	post(a, .wr_id = 5, .opcode = WORK_SEND, .length = 100, .from = 0x300);
	exchange();
	expect_completion(a, 5, STATUS_SUCCESS);
	expect_receive(b, 2, STATUS_SUCCESS, room_of(type));
	expect_same(b, LANDS + 0x2000 + room_of(type) - 100, a, 0x300, 100);
	expect_events(a, 0);
}

/* protocol-map 134, 139 */
Test(send_queue_error, uc_stops_flushes_and_resumes)
{
	one_type(QP_TYPE_UC);
}

Test(send_queue_error, ud_stops_flushes_and_resumes)
{
	one_type(QP_TYPE_UD);
}

Test(send_queue_error, raw_stops_flushes_and_resumes)
{
	one_type(QP_TYPE_RAW_PACKET);
}

/* protocol-map 145 */
Test(send_queue_error, the_present_state_may_be_named)
{
	struct qp_attributes from = { .cur_state = QP_STATE_RTS, .qkey = 5 };

	story(.type = QP_TYPE_UD);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 1, .lkey = 0xbad);
	exchange();
	expect_completion(a, 1, STATUS_LOC_PROT_ERR);
	cr_assert_neq(modify(a, QP_STATE_RTS, QP_ATTR_CUR_STATE, &from), 0);
	from.cur_state = QP_STATE_SQE;
	cr_assert_eq(modify(a, QP_STATE_RTS, QP_ATTR_CUR_STATE | QP_ATTR_QKEY, &from), 0);
	expect_state(a, QP_STATE_RTS);
}

/* protocol-map 131: requests before the one at fault complete when their packets have left */
Test(send_queue_error, a_payload_that_cannot_be_read_fails_in_its_turn)
{
	struct packet first, second, third;

	story(.type = QP_TYPE_UC, .hold_sent = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 300);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 10);
	first = *expect_packet(a, "UC WRITE FIRST", A_PSN);
	second = *expect_packet(a, "UC WRITE LAST", A_PSN + 1);
	third = *expect_packet(a, "UC WRITE ONLY", A_PSN + 2);
	sent(a, &first);
	gather_failed(a, &third);
	expect_no_completion(a);
	expect_state(a, QP_STATE_RTS);
	sent(a, &second);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_LOC_PROT_ERR);
	expect_state(a, QP_STATE_SQE);
}

/* Reports of packets from before the error have no effect. */
Test(send_queue_error, late_reports_are_ignored)
{
	struct qp_attributes none = { 0 };
	struct packet packet[4];

	story(.type = QP_TYPE_UC, .hold_sent = true);
	for (uint32_t i = 0; i < 4; i++) {
		post(a, .wr_id = i, .opcode = WORK_RDMA_WRITE, .length = 10);
		packet[i] = *expect_packet(a, "UC WRITE ONLY", A_PSN + i);
	}
	gather_failed(a, &packet[0]);
	expect_completion(a, 0, STATUS_LOC_PROT_ERR);
	for (uint32_t i = 1; i < 4; i++)
		expect_completion(a, i, STATUS_WR_FLUSH_ERR);
	sent(a, &packet[1]);
	unsent(a, &packet[3]);
	gather_failed(a, &packet[2]);
	expect_silence(a);
	cr_assert_eq(modify(a, QP_STATE_RTS, 0, &none), 0);
	post(a, .wr_id = 9, .opcode = WORK_RDMA_WRITE, .length = 10);
	packet[0] = *expect_packet(a, "UC WRITE ONLY", A_PSN + 4);
	sent(a, &packet[1]);
	unsent(a, &packet[3]);
	gather_failed(a, &packet[2]);
	expect_silence(a);
	expect_no_completion(a);
	sent(a, &packet[0]);
	expect_completion(a, 9, STATUS_SUCCESS);
	expect_state(a, QP_STATE_RTS);
}

/* protocol-map 134, 147: also while the queue drains */
Test(send_queue_error, from_sqd)
{
	struct qp_attributes asked = { .en_sqd_async_notify = 1 };
	struct packet last;

	story(.type = QP_TYPE_UC, .hold_sent = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 300);
	sent(a, expect_packet(a, "UC WRITE FIRST", A_PSN));
	cr_assert_eq(modify(a, QP_STATE_SQD, QP_ATTR_EN_SQD_ASYNC_NOTIFY, &asked), 0);
	last = *expect_packet(a, "UC WRITE LAST", A_PSN + 1);
	gather_failed(a, &last);
	expect_completion(a, 1, STATUS_LOC_PROT_ERR);
	expect_state(a, QP_STATE_SQE);
	expect_events(a, QP_EVENT_SQ_ERROR);
}

/* From SQE to ERR: everything is flushed, once. */
Test(send_queue_error, to_err)
{
	struct qp_attributes none = { 0 };

	for (uint32_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (i > 0)
			node_free(&a->node), node_free(&b->node);
		story(.type = types[i]);
		post_receive(a, 1, 100);
		post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 20, .lkey = 0xbad);
		expect_silence(a);
		expect_completion(a, 1, STATUS_LOC_PROT_ERR);
		cr_assert_eq(modify(a, QP_STATE_ERR, 0, &none), 0);
		expect_receive(a, 1, STATUS_WR_FLUSH_ERR, 0);
		post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 20);
		expect_completion(a, 2, STATUS_WR_FLUSH_ERR);
		expect_no_completion(a);
	}
}
