/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"

/* protocol-map 43, 83, 123, 125 */
Test(send, a_short_message_is_one_packet)
{
	story();
	post_receive(b, 1, 100);
	post(a, .wr_id = 7, .opcode = WORK_SEND, .length = 10);
	const struct packet *p = pass(a, "RC SEND ONLY", A_PSN);

	cr_assert(p->ack_req && p->payload_length == 10 && p->pad == 2 && !p->solicited);
	struct completion c = expect_receive(b, 1, STATUS_SUCCESS, 10);

	cr_assert_eq(c.opcode, COMPLETION_RECV);
	expect_same(b, LANDS + 0x1000, a, 0, 10);
	expect_untouched(b, LANDS + 0x100a, 100);
	expect_no_completion(a);
	pass_ack(b, A_PSN, 1);
	cr_assert_eq(expect_completion(a, 7, STATUS_SUCCESS).opcode, COMPLETION_SEND);
	expect_silence(a);
	expect_silence(b);
}

/* protocol-map 32, 37, 43, 54 */
Test(send, a_long_message_is_cut_at_the_path_mtu)
{
	story();
	post_receive(b, 1, 1000);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 601);
	const struct packet *p = pass(a, "RC SEND FIRST", A_PSN);

	cr_assert(p->payload_length == MTU && p->pad == 0);
	p = pass(a, "RC SEND MIDDLE", A_PSN + 1);
	cr_assert(p->payload_length == MTU && p->pad == 0);
	expect_no_completion(b);
	p = pass(a, "RC SEND LAST", A_PSN + 2);
	cr_assert(p->payload_length == 601 - 2 * MTU && p->pad == 3 && p->ack_req);
	expect_receive(b, 1, STATUS_SUCCESS, 601);
	expect_same(b, LANDS + 0x1000, a, 0, 601);
	pass_ack(b, A_PSN + 2, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 43 */
Test(send, a_multiple_of_the_path_mtu_ends_with_a_full_packet)
{
	story();
	post_receive(b, 1, 512);
	post(a, .opcode = WORK_SEND, .length = 512);
	pass(a, "RC SEND FIRST", A_PSN);
	cr_assert_eq(pass(a, "RC SEND LAST", A_PSN + 1)->payload_length, MTU);
	expect_receive(b, 1, STATUS_SUCCESS, 512);
}

/* protocol-map 43 */
Test(send, exactly_one_path_mtu_is_one_packet)
{
	story();
	post_receive(b, 1, 256);
	post(a, .opcode = WORK_SEND, .length = 256);
	cr_assert_eq(pass(a, "RC SEND ONLY", A_PSN)->payload_length, MTU);
	expect_receive(b, 1, STATUS_SUCCESS, 256);
}

/* protocol-map 47, 52 */
Test(send, an_empty_message_is_a_message)
{
	story();
	post_receive(b, 1, 0);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 0);
	cr_assert_eq(pass(a, "RC SEND ONLY", A_PSN)->payload_length, 0);
	expect_receive(b, 1, STATUS_SUCCESS, 0);
	pass_ack(b, A_PSN, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 0);
	expect_packet(a, "RC SEND ONLY", A_PSN + 1);
}

/* protocol-map 125 */
Test(send, immediate_data_arrives_as_it_was_given)
{
	story();
	post_receive(b, 1, 300);
	post(a, .opcode = WORK_SEND_WITH_IMM, .length = 300, .imm = 0x44332211);
	pass(a, "RC SEND FIRST", A_PSN);
	cr_assert_eq(pass(a, "RC SEND LAST+IMM", A_PSN + 1)->imm, 0x44332211);
	struct completion c = expect_receive(b, 1, STATUS_SUCCESS, 300);

	cr_assert(c.imm == 0x44332211 && c.wc_flags & COMPLETION_WITH_IMM);
	post_receive(b, 2, 10);
	post(a, .opcode = WORK_SEND_WITH_IMM, .length = 1, .imm = 5);
	pass(a, "RC SEND ONLY+IMM", A_PSN + 2);
	cr_assert_eq(expect_receive(b, 2, STATUS_SUCCESS, 1).imm, 5);
}

/* protocol-map 39, 126 */
Test(send, only_the_last_packet_is_solicited)
{
	story();
	post_receive(b, 1, 300);
	post_receive(b, 2, 300);
	post(a, .opcode = WORK_SEND, .length = 300, .flags = WORK_SOLICITED);
	cr_assert(!pass(a, "RC SEND FIRST", A_PSN)->solicited);
	cr_assert(pass(a, "RC SEND LAST", A_PSN + 1)->solicited);
	cr_assert(expect_receive(b, 1, STATUS_SUCCESS, 300).solicited);
	post(a, .opcode = WORK_SEND, .length = 1);
	cr_assert(!pass(a, "RC SEND ONLY", A_PSN + 2)->solicited);
	cr_assert(!expect_receive(b, 2, STATUS_SUCCESS, 1).solicited);
}

/* protocol-map 51 */
Test(send, inline_octets_are_copied_by_the_post)
{
	story();
	post_receive(b, 1, 64);
	post(a, .opcode = WORK_SEND, .length = 64, .flags = WORK_INLINE, .lkey = 0xbad);
	memset(octets(a, 0), 0x55, 64);
	pass(a, "RC SEND ONLY", A_PSN);
	expect_receive(b, 1, STATUS_SUCCESS, 64);
	cr_assert_eq(*octets(b, LANDS + 0x1000), 1);
	cr_assert_neq(*octets(b, LANDS + 0x1001), 0x55);
}

/* protocol-map 121 */
Test(send, an_unsignaled_success_is_silent)
{
	story();
	post_receive(b, 1, 10);
	post_receive(b, 2, 10);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10, .unsignaled = true);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	exchange();
	expect_completion(a, 2, STATUS_SUCCESS);
	expect_no_completion(a);
	cr_assert_eq(qp_retired(a->q->core), 2);
}

/* protocol-map 122 */
Test(send, sq_sig_all_reports_everything)
{
	story(.sq_sig_all = true);
	post_receive(b, 1, 10);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10, .unsignaled = true);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
}

/*
 * protocol-map 44
 * hostile H-94: lengths whose sum overflows.
 */
Test(send, more_than_two_gigabytes_fail_at_once)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 0x80000001u);
	expect_silence(a);
	expect_completion(a, 1, STATUS_LOC_LEN_ERR);
	expect_state(a, QP_STATE_ERR);
}

/*
 * protocol-map 121: a failure is reported even if unsignaled
 * hostile H-93: an opcode that does not exist.
 */
Test(send, an_opcode_that_is_not_carried_fails_in_its_turn)
{
	story();
	post_receive(b, 1, 10);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	post(a, .wr_id = 2, .opcode = WORK_TSO, .length = 10, .unsignaled = true);
	post(a, .wr_id = 3, .opcode = WORK_SEND, .length = 10);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_LOC_QP_OP_ERR);
	expect_completion(a, 3, STATUS_WR_FLUSH_ERR);
	expect_receive(b, 1, STATUS_SUCCESS, 10);
}

/*
 * protocol-map 155
 * hostile H-96: wrong local keys.
 */
Test(send, an_unreadable_source_is_a_local_error)
{
	story();
	post_receive(b, 1, 10);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10, .lkey = 0xbad);
	exchange();
	expect_completion(a, 1, STATUS_LOC_PROT_ERR);
	expect_state(a, QP_STATE_ERR);
	expect_no_completion(b);
}

/* protocol-map 155 */
Test(send, a_source_that_ends_early_is_a_local_error_after_the_sent_packets)
{
	story();
	post_receive(b, 1, 1000);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 600, .from = MEMORY - 300);
	exchange();
	at(ms(100));
	exchange();
	expect_completion(a, 1, STATUS_LOC_PROT_ERR);
	expect_no_completion(b);
}
