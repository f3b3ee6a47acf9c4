/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"

/* protocol-map 46, 54, 123 */
Test(read, the_response_is_cut_like_a_write)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 600, .from = 5);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 4, .to = 0x100);
	const struct packet *p = pass(a, "RC READ REQUEST", A_PSN);

	cr_assert(p->va == BASE + LANDS && p->dma_length == 600 && p->rkey == b->key);
	pass(a, "RC WRITE ONLY", A_PSN + 3);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	expect_no_completion(a);
	cr_assert_eq(pass(b, "RC READ RESPONSE LAST", A_PSN + 2)->payload_length, 88);
	struct completion c = expect_completion(a, 1, STATUS_SUCCESS);

	cr_assert(c.opcode == COMPLETION_RDMA_READ);
	expect_same(a, 5, b, LANDS, 600);
	expect_untouched(a, 0, 5);
	expect_untouched(a, 605, 100);
	pass_ack(b, A_PSN + 3, 2);
	expect_completion(a, 2, STATUS_SUCCESS);
}

/*
 * protocol-map 47
 * hostile H-23: an empty message with any key.
 */
Test(read, an_empty_read_takes_one_psn_and_no_key)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .rkey = 0xbad, .lkey = 0xbad);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 4);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(a, "RC WRITE ONLY", A_PSN + 1);
	cr_assert_eq(pass(b, "RC READ RESPONSE ONLY", A_PSN)->payload_length, 0);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 105, 110 */
Test(read, missing_responses_are_requested_again)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 600);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	lose(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	lose(b, "RC READ RESPONSE LAST", A_PSN + 2);
	expect_silence(b);
	at(ms(20));
	const struct packet *p = pass(a, "RC READ REQUEST", A_PSN + 1);

	cr_assert(p->va == BASE + LANDS + MTU && p->dma_length == 600 - MTU);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, 600);
}

/*
 * protocol-map 111, 113: its PSN says where it belongs.
 * hostile H-47: a response that begins in the middle.
 */
Test(read, a_response_out_of_order_has_its_place_and_shows_a_loss)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 600);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	lose(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 2);
	expect_untouched(a, 256, 256);
	expect_same(a, 512, b, LANDS + 512, 88);
	expect_no_completion(a);
	pass(a, "RC READ REQUEST", A_PSN + 1);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, 600);
}

/* hostile H-47: it is dropped, and fails its READ only when the one before it is complete. */
Test(read, a_wrong_response_out_of_order_fails_in_its_turn)
{
	story();
	for (uint32_t i = 0; i < 2; i++)
		post(a, .wr_id = 1 + i, .opcode = WORK_RDMA_READ, .length = 8);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(a, "RC READ REQUEST", A_PSN + 1);
	expect_reason(inject(a, OPB_READ_RESPONSE_ONLY, A_PSN + 1, .payload_length = 12),
		      REASON_RESPONSE_AHEAD);
	expect_no_completion(a);
	inject(a, OPB_READ_RESPONSE_ONLY, A_PSN, .payload_length = 8);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_no_completion(a);
	inject(a, OPB_READ_RESPONSE_ONLY, A_PSN + 1, .payload_length = 12);
	expect_completion(a, 2, STATUS_BAD_RESP_ERR);
}

static void ask_for_the_rest(void)
{
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 700);
	expect_packet(a, "RC READ REQUEST", A_PSN);
	inject(a, OPB_READ_RESPONSE_FIRST, A_PSN, .payload_length = MTU);
	at(ms(20));
	expect_packet(a, "RC READ REQUEST", A_PSN + 1);
}

/*
 * protocol-map 90: a peer that treats the repeated request as a new one
 * hostile H-47: a response that begins in the middle.
 */
Test(read, the_rest_may_begin_with_first)
{
	story();
	ask_for_the_rest();
	inject(a, OPB_READ_RESPONSE_FIRST, A_PSN + 1, .payload_length = MTU);
	inject(a, OPB_READ_RESPONSE_LAST, A_PSN + 2, .payload_length = 188);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 90: a peer that continues where it was */
Test(read, the_rest_may_begin_with_middle)
{
	story();
	ask_for_the_rest();
	inject(a, OPB_READ_RESPONSE_MIDDLE, A_PSN + 1, .payload_length = MTU);
	inject(a, OPB_READ_RESPONSE_LAST, A_PSN + 2, .payload_length = 188);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 90 */
Test(read, a_read_from_its_first_psn_is_answered_from_first_again)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 300);
	pass(a, "RC READ REQUEST", A_PSN);
	lose(b, "RC READ RESPONSE FIRST", A_PSN);
	lose(b, "RC READ RESPONSE LAST", A_PSN + 1);
	at(ms(20));
	cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN)->dma_length, 300);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 1);
	expect_completion(a, 1, STATUS_SUCCESS);
}

static void expect_bad_response(void)
{
	expect_completion(a, 1, STATUS_BAD_RESP_ERR);
	expect_state(a, QP_STATE_ERR);
	expect_untouched(a, 600, 1000);
}

/*
 * protocol-map 113
 * hostile H-45: a response longer than its request.
 */
Test(read, a_response_with_too_much_is_an_error_and_places_nothing)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 600);
	expect_packet(a, "RC READ REQUEST", A_PSN);
	inject(a, OPB_READ_RESPONSE_FIRST, A_PSN, .payload_length = MTU);
	inject(a, OPB_READ_RESPONSE_MIDDLE, A_PSN + 1, .payload_length = MTU);
	inject(a, OPB_READ_RESPONSE_LAST, A_PSN + 2, .payload_length = 89);
	expect_bad_response();
	expect_untouched(a, 512, 88);
}

/*
 * protocol-map 113
 * hostile H-45: a response longer than its request.
 */
Test(read, a_response_with_too_little_is_an_error)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 600);
	expect_packet(a, "RC READ REQUEST", A_PSN);
	inject(a, OPB_READ_RESPONSE_FIRST, A_PSN, .payload_length = MTU - 4);
	expect_bad_response();
	expect_untouched(a, 0, 600);
}

/*
 * protocol-map 113
 * hostile H-45: a response longer than its request.
 */
Test(read, a_response_that_does_not_end_is_an_error)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 600);
	expect_packet(a, "RC READ REQUEST", A_PSN);
	inject(a, OPB_READ_RESPONSE_FIRST, A_PSN, .payload_length = MTU);
	inject(a, OPB_READ_RESPONSE_MIDDLE, A_PSN + 1, .payload_length = MTU);
	inject(a, OPB_READ_RESPONSE_MIDDLE, A_PSN + 2, .payload_length = MTU);
	expect_bad_response();
	expect_untouched(a, 512, 256);
}

/*
 * protocol-map 113
 * hostile H-47: a response that begins in the middle.
 */
Test(read, a_response_that_begins_in_the_middle_is_an_error)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 600);
	expect_packet(a, "RC READ REQUEST", A_PSN);
	inject(a, OPB_READ_RESPONSE_MIDDLE, A_PSN, .payload_length = MTU);
	expect_bad_response();
}

/*
 * protocol-map 113
 * hostile H-46: a response of the wrong kind.
 */
Test(read, a_response_to_a_send_is_an_error)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	expect_packet(a, "RC SEND ONLY", A_PSN);
	inject(a, OPB_READ_RESPONSE_ONLY, A_PSN, .payload_length = 10);
	expect_bad_response();
	expect_untouched(a, 0, 10);
}

/*
 * protocol-map 113
 * hostile H-46: a response of the wrong kind.
 */
Test(read, an_atomic_response_to_a_read_is_an_error)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 8);
	expect_packet(a, "RC READ REQUEST", A_PSN);
	inject(a, OPB_ATOMIC_ACK, A_PSN, .original = 77);
	expect_bad_response();
	expect_untouched(a, 0, 8);
}

/*
 * protocol-map 155
 * hostile H-96: wrong local keys.
 */
Test(read, landing_in_read_only_memory_is_a_local_error)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 8, .lkey = 0xbad);
	exchange();
	expect_completion(a, 1, STATUS_LOC_PROT_ERR);
	expect_state(a, QP_STATE_ERR);
}

/* protocol-map 123 */
Test(read, completion_waits_for_the_copy)
{
	story(.delay_copies = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 100);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(b, "RC READ RESPONSE ONLY", A_PSN);
	expect_no_completion(a);
	settle(a, true);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, 100);
}

/* protocol-map 155 */
Test(read, a_failing_copy_is_a_local_error)
{
	story(.delay_copies = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 100);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(b, "RC READ RESPONSE ONLY", A_PSN);
	settle(a, false);
	expect_completion(a, 1, STATUS_LOC_PROT_ERR);
	expect_state(a, QP_STATE_ERR);
}

/* protocol-map 88 */
Test(read, a_duplicate_is_executed_again)
{
	story();
	inject(b, OPB_READ_REQUEST, A_PSN, at_memory(b, 0, 600));
	for (int i = 0; i < 3; i++)
		node_next(b->q, ms(1000), &b->packet, b->payload);
	expect_silence(b);
	inject(b, OPB_READ_REQUEST, A_PSN, at_memory(b, 0, 600));
	expect_packet(b, "RC READ RESPONSE FIRST", A_PSN);
	expect_packet(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	expect_packet(b, "RC READ RESPONSE LAST", A_PSN + 2);
	expect_silence(b);
}

static void read_done_at_b(void)
{
	inject(b, OPB_READ_REQUEST, A_PSN, at_memory(b, 0x1000, 600));
	expect_packet(b, "RC READ RESPONSE FIRST", A_PSN);
	expect_packet(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	expect_packet(b, "RC READ RESPONSE LAST", A_PSN + 2);
	expect_silence(b);
}

/* protocol-map 88: the request for the rest of the READ */
Test(read, a_duplicate_of_a_part_is_executed)
{
	story();
	read_done_at_b();
	inject(b, OPB_READ_REQUEST, A_PSN + 2, at_memory(b, 0x1200, 88));
	const struct packet *p = &b->packet;

	cr_assert(node_next(b->q, ms(1000), &b->packet, b->payload));
	cr_assert(p->psn == A_PSN + 2 && p->payload_length == 88);
	cr_assert_eq(memcmp(b->payload, octets(b, 0x1200), 88), 0);
	expect_silence(b);
}

/* protocol-map 88 */
Test(read, a_duplicate_of_something_else_is_dropped)
{
	story();
	read_done_at_b();
	inject(b, OPB_READ_REQUEST, A_PSN, at_memory(b, 0x1000, 601));
	inject(b, OPB_READ_REQUEST, A_PSN, at_memory(b, 0x0fff, 600));
	inject(b, OPB_READ_REQUEST, A_PSN + 1, at_memory(b, 0x1100, 600));
	inject(b, OPB_READ_REQUEST, A_PSN, .va = BASE + 0x1000, .rkey = 0xbad, .dma_length = 600);
	inject(b, OPB_READ_REQUEST, A_PSN - 1, at_memory(b, 0x1000, 600));
	expect_silence(b);
	expect_state(b, QP_STATE_RTS);
}

/*
 * protocol-map 89
 * hostile H-17: a repetition with a range that wraps around.
 */
Test(read, a_duplicate_whose_range_wraps_is_dropped)
{
	story();
	read_done_at_b();
	inject(b, OPB_READ_REQUEST, A_PSN, .va = UINT64_MAX - 0xff, .rkey = b->key,
	       .dma_length = 0x100);
	inject(b, OPB_READ_REQUEST, A_PSN, .va = UINT64_MAX - 0xff, .rkey = b->key,
	       .dma_length = UINT32_MAX);
	inject(b, OPB_READ_REQUEST, A_PSN, .va = BASE + 0x1000, .rkey = b->key,
	       .dma_length = UINT32_MAX);
	expect_silence(b);
	expect_state(b, QP_STATE_RTS);
}

/*
 * protocol-map 95
 * hostile H-30: a duplicate READ whose key was withdrawn.
 */
Test(read, a_duplicate_whose_key_is_gone_is_refused)
{
	story();
	read_done_at_b();
	node_deregister(&b->node, b->key);
	inject(b, OPB_READ_REQUEST, A_PSN, at_memory(b, 0x1000, 600));
	expect_packet(b, "RC ACK", A_PSN);
	cr_assert_eq(b->packet.syndrome, SYNDROME_NAK_REMOTE_ACCESS);
	expect_silence(b);
}

/* protocol-map 152 */
Test(read, every_response_checks_the_key)
{
	story();
	inject(b, OPB_READ_REQUEST, A_PSN, at_memory(b, 0x1000, 600));
	expect_packet(b, "RC READ RESPONSE FIRST", A_PSN);
	node_deregister(&b->node, b->key);
	expect_packet(b, "RC ACK", A_PSN + 1);
	cr_assert_eq(b->packet.syndrome, SYNDROME_NAK_REMOTE_ACCESS);
	expect_silence(b);
	expect_state(b, QP_STATE_ERR);
	expect_events(b, QP_EVENT_ACCESS_ERR | QP_EVENT_REFUSED_ACCESS);
}

/* protocol-map 115 */
Test(read, no_more_than_max_rd_atomic_are_outstanding)
{
	story(.max_rd_atomic = 2);
	for (uint64_t i = 1; i <= 3; i++)
		post(a, .wr_id = i, .opcode = WORK_RDMA_READ, .length = 8);
	post(a, .wr_id = 4, .opcode = WORK_RDMA_WRITE, .length = 8);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(a, "RC READ REQUEST", A_PSN + 1);
	expect_silence(a);
	pass(b, "RC READ RESPONSE ONLY", A_PSN);
	pass(a, "RC READ REQUEST", A_PSN + 2);
	pass(a, "RC WRITE ONLY", A_PSN + 3);
	exchange();
	for (uint64_t i = 1; i <= 4; i++)
		expect_completion(a, i, STATUS_SUCCESS);
}

/* protocol-map 115 */
Test(read, with_max_rd_atomic_0_none_is_sent)
{
	story(.max_rd_atomic = -1);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 8);
	expect_silence(a);
	expect_completion(a, 1, STATUS_LOC_QP_OP_ERR);
	expect_state(a, QP_STATE_ERR);
}

/*
 * protocol-map 67
 * hostile H-26: more READs than agreed.
 */
Test(read, with_max_dest_rd_atomic_0_a_read_is_invalid)
{
	story(.max_dest_rd_atomic = -1);
	inject(b, OPB_READ_REQUEST, A_PSN, at_memory(b, 0, 8));
	expect_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN, 0);
	expect_state(b, QP_STATE_ERR);
}

/*
 * protocol-map 68
 * hostile H-26: more READs than agreed.
 */
Test(read, more_than_max_dest_rd_atomic_are_invalid)
{
	story(.max_dest_rd_atomic = 2);
	for (uint32_t i = 0; i < 3; i++)
		inject(b, OPB_READ_REQUEST, A_PSN + i, at_memory(b, 0, 8));
	expect_packet(b, "RC READ RESPONSE ONLY", A_PSN);
	expect_packet(b, "RC READ RESPONSE ONLY", A_PSN + 1);
	expect_packet(b, "RC ACK", A_PSN + 2);
	cr_assert_eq(b->packet.syndrome, SYNDROME_NAK_INVALID_REQUEST);
}

/* protocol-map 92: the last max_dest_rd_atomic are kept */
Test(read, the_oldest_read_is_forgotten_first)
{
	story(.max_dest_rd_atomic = 2);
	for (uint32_t i = 0; i < 3; i++) {
		inject(b, OPB_READ_REQUEST, A_PSN + i, at_memory(b, i * 8, 8));
		expect_packet(b, "RC READ RESPONSE ONLY", A_PSN + i);
	}
	inject(b, OPB_READ_REQUEST, A_PSN, at_memory(b, 0, 8));
	expect_silence(b);
	inject(b, OPB_READ_REQUEST, A_PSN + 1, at_memory(b, 8, 8));
	expect_packet(b, "RC READ RESPONSE ONLY", A_PSN + 1);
}
