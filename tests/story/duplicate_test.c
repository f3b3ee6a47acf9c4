/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"

/*
 * protocol-map 87
 * hostile H-29: a duplicate that would overwrite reused memory.
 */
Test(duplicate, a_send_is_not_received_twice)
{
	story();
	post_receive(b, 1, 10);
	post_receive(b, 2, 10);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	pass(a, "RC SEND ONLY", A_PSN);
	lose(b, "RC ACK", A_PSN);
	expect_receive(b, 1, STATUS_SUCCESS, 10);
	at(ms(20));
	pass(a, "RC SEND ONLY", A_PSN);
	expect_no_completion(b);
	cr_assert_eq(node_receives_posted(b->q), 1);
	pass_ack(b, A_PSN, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/*
 * protocol-map 87: also if the program has reused the memory
 * hostile H-29: a duplicate that would overwrite reused memory.
 */
Test(duplicate, a_write_does_not_write_again)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 8);
	pass(a, "RC WRITE ONLY", A_PSN);
	lose(b, "RC ACK", A_PSN);
	set_word(b, LANDS, 12345);
	at(ms(20));
	pass(a, "RC WRITE ONLY", A_PSN);
	cr_assert_eq(word(b, LANDS), 12345);
	pass_ack(b, A_PSN, 1);
}

/* protocol-map 87: the answer is for the latest packet in order, even inside a message */
Test(duplicate, the_answer_acknowledges_the_newest)
{
	story();
	post_receive(b, 1, 1000);
	inject(b, OPB_WRITE_ONLY, A_PSN, at_memory(b, 0, 8), .payload_length = 8);
	inject(b, OPB_SEND_FIRST, A_PSN + 1, .payload_length = MTU);
	inject(b, OPB_WRITE_ONLY, A_PSN, at_memory(b, 0, 8), .payload_length = 8, .ack_req = true);
	expect_ack(b, A_PSN + 1, 1);
	inject(b, OPB_SEND_LAST, A_PSN + 2, .payload_length = 4);
	expect_receive(b, 1, STATUS_SUCCESS, MTU + 4);
}

/* protocol-map 94 */
Test(duplicate, a_duplicate_gets_no_rnr)
{
	story();
	post_receive(b, 1, 10);
	inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 4);
	expect_receive(b, 1, STATUS_SUCCESS, 4);
	expect_reason(inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 4, .ack_req = true),
		      REASON_DUPLICATE);
	expect_ack(b, A_PSN, 1);
}

/* protocol-map 56, 87: back to half of all PSNs */
Test(duplicate, an_old_duplicate_is_harmless)
{
	static const uint32_t old[] = { 1, 2, 0x1000, 0x7fffff, 0x800000 };

	story();
	for (uint32_t i = 0; i < ARRAY_SIZE(old); i++) {
		expect_reason(inject(b, OPB_WRITE_ONLY, A_PSN - old[i], at_memory(b, 0, 8),
				     .payload_length = 8, .ack_req = true),
			      REASON_DUPLICATE);
		expect_ack(b, A_PSN - 1, 0);
	}
	expect_untouched(b, 0, 8);
	expect_silence(b);
}

/* protocol-map 69: errors in a duplicate do not matter any more */
Test(duplicate, a_malformed_duplicate_is_still_a_duplicate)
{
	story();
	inject(b, OPB_WRITE_ONLY, A_PSN, at_memory(b, 0, 8), .payload_length = 8);
	expect_reason(inject(b, OPB_WRITE_ONLY, A_PSN, .va = 1, .rkey = 2, .dma_length = 3,
			     .payload_length = 8),
		      REASON_DUPLICATE);
	expect_reason(inject(b, OPB_SEND_MIDDLE, A_PSN, .payload_length = 3), REASON_DUPLICATE);
	expect_state(b, QP_STATE_RTS);
}
