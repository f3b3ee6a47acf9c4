/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"

static void post_sends(uint32_t count)
{
	for (uint64_t i = 1; i <= count; i++) {
		post_receive(b, i, 10);
		post(a, .wr_id = i, .opcode = WORK_SEND, .length = 10);
	}
}

/* protocol-map 80, 83 */
Test(acknowledge, one_acknowledgement_is_for_everything_before)
{
	story();
	post_sends(3);
	for (uint32_t i = 0; i < 3; i++)
		pass(a, "RC SEND ONLY", A_PSN + i);
	pass_ack(b, A_PSN + 2, 3);
	for (uint64_t i = 1; i <= 3; i++)
		expect_completion(a, i, STATUS_SUCCESS);
	expect_silence(b);
}

/* protocol-map 79 */
Test(acknowledge, a_packet_that_asks_is_answered)
{
	story();
	post_receive(b, 1, 1000);
	inject(b, OPB_SEND_FIRST, A_PSN, .payload_length = MTU);
	expect_silence(b);
	inject(b, OPB_SEND_MIDDLE, A_PSN + 1, .payload_length = MTU, .ack_req = true);
	expect_ack(b, A_PSN + 1, 0);
	inject(b, OPB_SEND_LAST, A_PSN + 2, .payload_length = 1, .ack_req = true);
	expect_ack(b, A_PSN + 2, 1);
}

/* protocol-map 80 */
Test(acknowledge, half_a_message_can_be_acknowledged)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 600);
	for (uint32_t i = 0; i < 3; i++)
		node_next(a->q, ms(1000), &a->packet, a->payload);
	inject(a, OPB_ACK, A_PSN + 1, .syndrome = 31);
	expect_no_completion(a);
	at(ms(20));
	expect_packet(a, "RC SEND LAST", A_PSN + 2);
	inject(a, OPB_ACK, A_PSN + 2, .syndrome = 31, .msn = 1);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/*
 * protocol-map 81: every credit code is an acknowledgement; none reads past a table
 * hostile H-48: reserved syndromes.
 */
Test(acknowledge, all_credit_codes_are_read)
{
	story(.max_send_wr = 32);
	for (uint32_t code = 0; code < 32; code++) {
		post(a, .wr_id = code, .opcode = WORK_SEND, .length = 1);
		expect_packet(a, "RC SEND ONLY", A_PSN + code);
		inject(a, OPB_ACK, A_PSN + code, .syndrome = (uint8_t)code, .msn = code + 1);
		expect_completion(a, code, STATUS_SUCCESS);
	}
}

/*
 * protocol-map 70: reserved syndromes are ignored
 * hostile H-48: reserved syndromes.
 */
Test(acknowledge, reserved_syndromes_are_ignored)
{
	static const uint8_t reserved[] = { 0x40, 0x5f, 0x64, 0x65, 0x7f, 0x80, 0xa0, 0xc0, 0xff };

	story();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 1);
	expect_packet(a, "RC SEND ONLY", A_PSN);
	for (uint32_t i = 0; i < ARRAY_SIZE(reserved); i++)
		expect_reason(inject(a, OPB_ACK, A_PSN, .syndrome = reserved[i]),
			      REASON_SYNDROME_RESERVED);
	expect_state(a, QP_STATE_RTS);
	expect_no_completion(a);
	inject(a, OPB_ACK, A_PSN, .syndrome = 31, .msn = 1);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/*
 * protocol-map 112
 * hostile H-43: acknowledgements outside of the window.
 */
Test(acknowledge, what_was_not_sent_is_not_acknowledged)
{
	static const uint32_t foreign[] = { A_PSN + 1,	      A_PSN + 2,	A_PSN - 1,
					    A_PSN + 0x7fffff, A_PSN + 0x800000, A_PSN + 0x800001 };
	static const uint8_t syndromes[] = { 31, 0x25, 0x60, 0x61, 0x62, 0x63 };

	story();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 1);
	expect_packet(a, "RC SEND ONLY", A_PSN);
	for (uint32_t i = 0; i < ARRAY_SIZE(foreign); i++)
		for (uint32_t j = 0; j < ARRAY_SIZE(syndromes); j++)
			expect_reason(inject(a, OPB_ACK, foreign[i], .syndrome = syndromes[j]),
				      REASON_ACK_STALE);
	expect_no_completion(a);
	expect_state(a, QP_STATE_RTS);
	expect_silence(a);
}

/* protocol-map 112: with nothing outstanding nothing can be acknowledged */
Test(acknowledge, an_acknowledgement_of_nothing_is_ignored)
{
	story();
	expect_reason(inject(a, OPB_ACK, A_PSN, .syndrome = 31), REASON_ACK_STALE);
	expect_reason(inject(a, OPB_ACK, A_PSN, .syndrome = 0x62), REASON_ACK_STALE);
	inject(a, OPB_READ_RESPONSE_ONLY, A_PSN, .payload_length = 8);
	inject(a, OPB_ATOMIC_ACK, A_PSN);
	expect_untouched(a, 0, 64);
	expect_state(a, QP_STATE_RTS);
}

/* protocol-map 84 */
Test(acknowledge, replies_keep_the_order_of_the_requests)
{
	story();
	post_receive(b, 1, 10);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 300);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10, .from = 0x1000);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(a, "RC SEND ONLY", A_PSN + 2);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 1);
	pass_ack(b, A_PSN + 2, 2);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
}

/* protocol-map 84, 111: a response acknowledges the requests before it */
Test(acknowledge, a_response_acknowledges_what_came_before)
{
	story();
	post_receive(b, 1, 10);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_READ, .length = 8, .from = 0x1000);
	pass(a, "RC SEND ONLY", A_PSN);
	pass(a, "RC READ REQUEST", A_PSN + 1);
	pass(b, "RC READ RESPONSE ONLY", A_PSN + 1);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
}

/*
 * protocol-map 111
 * hostile H-46: a response of the wrong kind.
 */
Test(acknowledge, an_acknowledgement_past_a_read_shows_that_its_response_was_lost)
{
	story();
	post_receive(b, 1, 10);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 8);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10, .from = 0x1000);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(a, "RC SEND ONLY", A_PSN + 1);
	lose(b, "RC READ RESPONSE ONLY", A_PSN);
	pass_ack(b, A_PSN + 1, 2);
	expect_no_completion(a);
	pass(a, "RC READ REQUEST", A_PSN);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
	expect_receive(b, 1, STATUS_SUCCESS, 10);
	expect_no_completion(b);
}

/* protocol-map 86 */
Test(acknowledge, a_long_message_asks_now_and_then)
{
	uint32_t asked = 0;

	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 40 * MTU);
	for (uint32_t i = 0; i < 40; i++) {
		cr_assert(node_next(a->q, ms(1000), &a->packet, a->payload));
		asked += a->packet.ack_req;
	}
	cr_assert(asked >= 2 && asked <= 5, "%u of 40", asked);
	cr_assert(a->packet.ack_req, "the last one asks");
}

/* protocol-map 83: a READ counts when it begins */
Test(acknowledge, the_msn_counts_messages)
{
	story();
	post_receive(b, 1, 1000);
	inject(b, OPB_READ_REQUEST, A_PSN, at_memory(b, 0, 600));
	cr_assert_eq(expect_packet(b, "RC READ RESPONSE FIRST", A_PSN)->msn, 1);
	expect_packet(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	cr_assert_eq(expect_packet(b, "RC READ RESPONSE LAST", A_PSN + 2)->msn, 1);
	inject(b, OPB_SEND_FIRST, A_PSN + 3, .payload_length = MTU, .ack_req = true);
	expect_ack(b, A_PSN + 3, 1);
	inject(b, OPB_SEND_LAST, A_PSN + 4, .payload_length = 1, .ack_req = true);
	expect_ack(b, A_PSN + 4, 2);
}

/* protocol-map 79, 80: octets are acknowledged only once they are in memory */
Test(acknowledge, copies_under_way_are_not_acknowledged)
{
	story(.delay_copies = true);
	inject(b, OPB_WRITE_ONLY, A_PSN, at_memory(b, 0, 8), .payload_length = 8, .ack_req = true);
	inject(b, OPB_WRITE_ONLY, A_PSN + 1, at_memory(b, 8, 8), .payload_length = 8,
	       .ack_req = true);
	expect_silence(b);
	settle(b, true);
	expect_ack(b, A_PSN, 1);
	expect_silence(b);
	settle(b, true);
	expect_ack(b, A_PSN + 1, 2);
}

/* protocol-map 40, 184: the window closes before the packet that would have asked is sent */
/*
 * The window has a minimum: however many notifications arrive, a message gets through without a
 * timer. hostile H-58: endless notifications.
 */
Test(acknowledge, notifications_without_end_do_not_stop_a_sender)
{
	struct packet cnp = { .opcode = OPCODE_CNP, .pkey = 0xffff, .dest_qpn = A_QPN };

	story(.no_timeout = true);
	for (uint32_t i = 0; i < 10000; i++)
		expect_reason(story_inject(a, &cnp), REASON_CNP_RECEIVED);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 40 * MTU);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
}

Test(acknowledge, a_notification_does_not_stop_a_sender_that_did_not_ask)
{
	struct packet cnp = { .opcode = OPCODE_CNP, .pkey = 0xffff, .dest_qpn = A_QPN };

	story(.no_timeout = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 8);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_READ, .length = 60 * MTU);
	cr_assert_not(pass(a, "RC WRITE ONLY", A_PSN)->ack_req);
	expect_reason(story_inject(a, &cnp), REASON_CNP_RECEIVED);
	exchange(); /* the READ's response acknowledges both */
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
}
