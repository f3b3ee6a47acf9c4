/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"

/*
 * protocol-map 59, 60
 * hostile H-32: jumps in the PSN.
 */
Test(nak, a_gap_is_reported_once)
{
	story(.max_send_wr = 16);
	for (uint64_t i = 0; i < 6; i++) {
		post_receive(b, i, 10);
		post(a, .wr_id = i, .opcode = WORK_SEND, .length = 10);
	}
	pass(a, "RC SEND ONLY", A_PSN);
	lose(a, "RC SEND ONLY", A_PSN + 1);
	pass(a, "RC SEND ONLY", A_PSN + 2);
	expect_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN + 1, 1);
	pass(a, "RC SEND ONLY", A_PSN + 3);
	pass(a, "RC SEND ONLY", A_PSN + 4);
	pass(a, "RC SEND ONLY", A_PSN + 5);
	expect_silence(b);
	expect_receive(b, 0, STATUS_SUCCESS, 10);
	expect_no_completion(b);
}

/* protocol-map 60 */
Test(nak, the_expected_packet_rearms_the_nak)
{
	story();
	for (uint64_t i = 0; i < 3; i++)
		post_receive(b, i, 10);
	inject(b, OPB_SEND_ONLY, A_PSN + 1, .payload_length = 4);
	expect_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN, 0);
	inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 4);
	inject(b, OPB_SEND_ONLY, A_PSN + 2, .payload_length = 4);
	expect_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN + 1, 1);
	expect_silence(b);
}

/* protocol-map 61 */
Test(nak, a_lost_nak_is_recovered_by_the_timer)
{
	story();
	post_receive(b, 1, 10);
	post_receive(b, 2, 10);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	lose(a, "RC SEND ONLY", A_PSN);
	pass(a, "RC SEND ONLY", A_PSN + 1);
	expect_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN, 0);
	expect_silence(b);
	at(ms(20));
	expect_silence(b);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
}

/* protocol-map 101, 108 */
Test(nak, it_acknowledges_what_came_before)
{
	story();
	for (uint64_t i = 1; i <= 3; i++)
		post(a, .wr_id = i, .opcode = WORK_SEND, .length = 10);
	for (uint32_t i = 0; i < 3; i++)
		expect_packet(a, "RC SEND ONLY", A_PSN + i);
	inject(a, OPB_ACK, A_PSN + 1, .syndrome = SYNDROME_NAK_SEQUENCE, .msn = 1);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_no_completion(a);
	expect_packet(a, "RC SEND ONLY", A_PSN + 1);
	expect_packet(a, "RC SEND ONLY", A_PSN + 2);
}

static void expect_fatal(uint8_t syndrome, enum work_status status)
{
	for (uint64_t i = 1; i <= 3; i++)
		post(a, .wr_id = i, .opcode = WORK_SEND, .length = 10);
	post_receive(a, 9, 10);
	for (uint32_t i = 0; i < 3; i++)
		expect_packet(a, "RC SEND ONLY", A_PSN + i);
	inject(a, OPB_ACK, A_PSN + 1, .syndrome = syndrome, .msn = 1);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, status);
	expect_completion(a, 3, STATUS_WR_FLUSH_ERR);
	expect_receive(a, 9, STATUS_WR_FLUSH_ERR, 0);
	expect_no_completion(a);
	expect_state(a, QP_STATE_ERR);
	expect_silence(a);
}

/* protocol-map 71, 76 */
Test(nak, invalid_request_fails_the_offending_request)
{
	story();
	expect_fatal(SYNDROME_NAK_INVALID_REQUEST, STATUS_REM_INV_REQ_ERR);
}

/* protocol-map 71, 76 */
Test(nak, remote_access_fails_the_offending_request)
{
	story();
	expect_fatal(SYNDROME_NAK_REMOTE_ACCESS, STATUS_REM_ACCESS_ERR);
}

/* protocol-map 71, 76 */
Test(nak, remote_operation_fails_the_offending_request)
{
	story();
	expect_fatal(SYNDROME_NAK_REMOTE_OPERATION, STATUS_REM_OP_ERR);
}

/*
 * protocol-map 75: its PSN is that of the request at fault, its MSN that of the last completed
 * message
 */
Test(nak, a_fatal_nak_names_the_packet_and_counts_completed_messages)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 8);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 8, .rkey = 0xbad);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass(a, "RC WRITE ONLY", A_PSN + 1);
	pass_nak(b, SYNDROME_NAK_REMOTE_ACCESS, A_PSN + 1, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_REM_ACCESS_ERR);
}

/* protocol-map 74, 155: the receive request's memory must not be written */
Test(nak, a_bad_receive_request_is_a_remote_operation_error)
{
	story();
	struct work_sge sge = { .addr = BASE, .length = 100, .lkey = 0xbad };

	node_post_receive(b->q, 1, &sge, 1);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	pass(a, "RC SEND ONLY", A_PSN);
	expect_receive(b, 1, STATUS_LOC_PROT_ERR, 0);
	expect_state(b, QP_STATE_ERR);
	pass_nak(b, SYNDROME_NAK_REMOTE_OPERATION, A_PSN, 0);
	expect_completion(a, 1, STATUS_REM_OP_ERR);
}

/* protocol-map 78 */
Test(nak, it_needs_no_receive_request)
{
	story();
	inject(b, OPB_SEND_MIDDLE, A_PSN, .payload_length = MTU);
	expect_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN, 0);
	expect_state(b, QP_STATE_ERR);
}

/*
 * protocol-map 69, 73: a copy that fails is a fault of its message, and not of earlier ones
 * hostile H-101: memory that goes away.
 */
Test(nak, missing_memory_is_a_remote_access_error)
{
	story(.delay_copies = true);
	for (uint64_t i = 1; i <= 3; i++)
		post(a, .wr_id = i, .opcode = WORK_RDMA_WRITE, .length = 8,
		     .to = LANDS + 8 * (uint32_t)i);
	for (uint32_t i = 0; i < 3; i++)
		pass(a, "RC WRITE ONLY", A_PSN + i);
	settle(b, true);
	settle(b, false);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_REM_ACCESS_ERR);
	expect_completion(a, 3, STATUS_WR_FLUSH_ERR);
	expect_state(b, QP_STATE_ERR);
}

/* protocol-map 74: the same for a receive request's memory */
Test(nak, missing_receive_memory_is_a_remote_operation_error)
{
	story(.delay_copies = true);
	post_receive(b, 1, 100);
	post_receive(b, 2, 100);
	post_receive(b, 3, 100);
	for (uint64_t i = 1; i <= 2; i++)
		post(a, .wr_id = i, .opcode = WORK_SEND, .length = 8);
	pass(a, "RC SEND ONLY", A_PSN);
	pass(a, "RC SEND ONLY", A_PSN + 1);
	expect_no_completion(b);
	settle(b, false);
	expect_receive(b, 1, STATUS_LOC_PROT_ERR, 0);
	expect_receive(b, 2, STATUS_WR_FLUSH_ERR, 0);
	expect_receive(b, 3, STATUS_WR_FLUSH_ERR, 0);
	pass_nak(b, SYNDROME_NAK_REMOTE_OPERATION, A_PSN, 0);
	expect_completion(a, 1, STATUS_REM_OP_ERR);
	expect_completion(a, 2, STATUS_WR_FLUSH_ERR);
}

/* The NAK may be lost: an ACK after it would say that the octets are in memory. */
Test(nak, nothing_is_acknowledged_behind_a_copy_that_failed)
{
	story(.delay_copies = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 8);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 8, .to = LANDS + 8);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass(a, "RC WRITE ONLY", A_PSN + 1);
	settle(b, false);
	expect_nak(b, SYNDROME_NAK_REMOTE_ACCESS, A_PSN, 0);
	expect_silence(b);
}

/* A READ whose response cannot be written also ends the peer's requests, whose copies are not made. */
Test(nak, nothing_is_acknowledged_behind_a_landing_that_failed)
{
	story(.delay_copies = true);
	post(b, .wr_id = 9, .opcode = WORK_RDMA_READ, .length = 8);
	pass(b, "RC READ REQUEST", B_PSN);
	pass(a, "RC READ RESPONSE ONLY", B_PSN);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 8);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_READ, .length = 8, .from = 0x1000);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass(a, "RC READ REQUEST", A_PSN + 1);
	settle(b, false);
	expect_completion(b, 9, STATUS_LOC_PROT_ERR);
	expect_silence(b);
}

/* protocol-map 59: a dropped packet is reported, even if the packet before it comes at once */
Test(nak, two_swapped_packets)
{
	story();
	post_receive(b, 1, 10);
	post_receive(b, 2, 10);
	expect_reason(inject(b, OPB_SEND_ONLY, A_PSN + 1, .ack_req = true), REASON_PSN_AHEAD);
	expect_reason(inject(b, OPB_SEND_ONLY, A_PSN), REASON_NONE);
	expect_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN + 1, 1);
	expect_reason(inject(b, OPB_SEND_ONLY, A_PSN + 2), REASON_PSN_AHEAD_AGAIN);
	expect_silence(b);
	expect_reason(inject(b, OPB_SEND_ONLY, A_PSN + 1, .ack_req = true), REASON_NONE);
	expect_ack(b, A_PSN + 1, 2);
}

/* protocol-map 59: ... and one that has arrived since is not */
Test(nak, a_packet_that_came_again_is_not_missing)
{
	story();
	for (uint32_t i = 0; i < 4; i++)
		post_receive(b, i, 10);
	inject(b, OPB_SEND_ONLY, A_PSN + 1, .ack_req = true);
	inject(b, OPB_SEND_ONLY, A_PSN + 2, .ack_req = true);
	for (uint32_t i = 0; i < 3; i++)
		expect_reason(inject(b, OPB_SEND_ONLY, A_PSN + i, .ack_req = i == 2), REASON_NONE);
	expect_ack(b, A_PSN + 2, 3);
	expect_silence(b);
	expect_reason(inject(b, OPB_SEND_ONLY, A_PSN + 4), REASON_PSN_AHEAD);
	expect_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN + 3, 3);
}

/*
 * protocol-map 111: a network that reorders. The response that came early has its place, so the READ is complete when
 * the late one comes. The NAK does not count, as a response before it was missing, and its sender is in ERR
 * and does not answer (IBTA 9.9.3).
 */
Test(nak, a_fatal_nak_after_reordered_responses)
{
	struct packet middle;
	uint8_t payload[MTU];

	story(.retry_cnt = 1);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 700);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 8, .rkey = 0xbad, .from = 0x1000);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(a, "RC WRITE ONLY", A_PSN + 3);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	middle = *expect_packet(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	memcpy(payload, middle.payload, MTU);
	middle.payload = payload;
	pass(b, "RC READ RESPONSE LAST", A_PSN + 2);
	pass_nak(b, SYNDROME_NAK_REMOTE_ACCESS, A_PSN + 3, 1);
	expect_state(b, QP_STATE_ERR);
	expect_reason(story_inject(a, &middle), REASON_NONE);
	for (uint32_t i = 0; i < 3; i++) {
		exchange();
		expect_silence(b);
		at(now + ms(5));
	}
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_RETRY_EXC_ERR);
}
