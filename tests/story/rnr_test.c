/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"

#define RNR_12 (SYNDROME_RNR | 12) /* 0.64 ms */

/* protocol-map 96, 99 */
Test(rnr, the_sender_waits_and_retries)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	pass(a, "RC SEND ONLY", A_PSN);
	pass_nak(b, RNR_12, A_PSN, 0);
	expect_silence(a);
	at(us(639));
	expect_silence(a);
	post_receive(b, 1, 10);
	at(us(641));
	pass(a, "RC SEND ONLY", A_PSN);
	expect_receive(b, 1, STATUS_SUCCESS, 10);
	pass_ack(b, A_PSN, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 96, 101 */
Test(rnr, it_acknowledges_what_came_before)
{
	story();
	post_receive(b, 1, 10);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	pass(a, "RC SEND ONLY", A_PSN);
	pass(a, "RC SEND ONLY", A_PSN + 1);
	pass_nak(b, RNR_12, A_PSN + 1, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_no_completion(a);
}

/* protocol-map 97: once, at the packet that needs the receive request */
Test(rnr, rnr_is_reported_at_the_first_packet)
{
	story();
	post(a, .opcode = WORK_SEND, .length = 600);
	pass(a, "RC SEND FIRST", A_PSN);
	expect_nak(b, RNR_12, A_PSN, 0);
	pass(a, "RC SEND MIDDLE", A_PSN + 1);
	pass(a, "RC SEND LAST", A_PSN + 2);
	expect_silence(b);
}

/*
 * protocol-map 97: packets changed places, and the one that came late is refused. The RNR NAK says where the sender
 * goes on, so the gap is not reported too: a peer that counts sequence NAKs as retries would lose one.
 */
Test(rnr, the_gap_before_a_refused_packet_is_not_reported)
{
	story(.recovery = true);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	lose(a, "RC SEND ONLY", A_PSN);
	pass(a, "RC SEND ONLY", A_PSN + 1);
	expect_silence(b);
	inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 10);
	pass_nak(b, RNR_12, A_PSN, 0);
	at(us(600));
	expect_silence(b);
	post_receive(b, 1, 10);
	post_receive(b, 2, 10);
	at(us(641));
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
}

/*
 * protocol-map 97: a gap was reported, so the sender goes back to it and sends again what was kept. If the kept packet
 * is refused, its repetition gets the only answer: Linux's rxe sends invalid requests after two answers.
 */
Test(rnr, a_kept_packet_that_comes_again_is_answered_once)
{
	story(.recovery = true);
	post_receive(b, 1, 10);
	inject(b, OPB_SEND_ONLY, A_PSN + 1, .payload_length = 10);
	at(us(LIMIT_REORDER_US));
	expect_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN, 0);
	inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 10, .ack_req = true);
	expect_receive(b, 1, STATUS_SUCCESS, 10);
	expect_ack(b, A_PSN, 1);
	expect_silence(b);
	inject(b, OPB_SEND_ONLY, A_PSN + 1, .payload_length = 10);
	expect_nak(b, RNR_12, A_PSN + 1, 1);
	post_receive(b, 2, 10);
	inject(b, OPB_SEND_ONLY, A_PSN + 1, .payload_length = 10, .ack_req = true);
	expect_receive(b, 2, STATUS_SUCCESS, 10);
	expect_ack(b, A_PSN + 1, 2);
	at(ms(10));
	expect_silence(b);
}

/* The repetition was lost, too: its gap is reported. */
Test(rnr, a_kept_packet_that_does_not_come_again_is_asked_for)
{
	story(.recovery = true);
	post_receive(b, 1, 10);
	inject(b, OPB_SEND_ONLY, A_PSN + 1, .payload_length = 10);
	at(us(LIMIT_REORDER_US));
	expect_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN, 0);
	inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 10);
	at(us(LIMIT_REORDER_US + LIMIT_PATIENCE_US - 1));
	expect_silence(b);
	at(us(LIMIT_REORDER_US + LIMIT_PATIENCE_US));
	expect_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN + 1, 1);
}

/* The network changed the order of packets, and nobody was told: nothing comes again by itself. */
Test(rnr, a_kept_packet_that_came_early_is_refused)
{
	story(.recovery = true);
	post_receive(b, 1, 10);
	inject(b, OPB_SEND_ONLY, A_PSN + 1, .payload_length = 10);
	inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 10);
	expect_nak(b, RNR_12, A_PSN + 1, 1);
}

/* A peer that understands selections sends again only what is missing. */
Test(rnr, a_kept_packet_of_a_selective_peer_is_refused)
{
	story(.recovery = true, .selective = true);
	post_receive(b, 1, 10);
	inject(b, OPB_SEND_ONLY, A_PSN + 1, .payload_length = 10, .selective = true);
	at(us(LIMIT_PATIENCE_US));
	expect_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN, 0);
	inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 10, .selective = true);
	expect_nak(b, RNR_12, A_PSN + 1, 1);
}

/*
 * protocol-map 96, 97: a WRITE with immediate data, at its last packet; its octets are not written
 * again
 */
Test(rnr, a_write_with_immediate_data_is_refused_at_its_last_packet)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE_WITH_IMM, .length = 300);
	pass(a, "RC WRITE FIRST", A_PSN);
	pass(a, "RC WRITE LAST+IMM", A_PSN + 1);
	expect_same(b, LANDS, a, 0, MTU);
	expect_untouched(b, LANDS + MTU, 44);
	pass_nak(b, RNR_12, A_PSN + 1, 0);
	post_receive(b, 1, 0);
	at(ms(1));
	pass(a, "RC WRITE LAST+IMM", A_PSN + 1);
	expect_receive(b, 1, STATUS_SUCCESS, 300);
	expect_same(b, LANDS, a, 0, 300);
}

/* protocol-map 98 */
Test(rnr, every_code_is_its_time)
{
	static const uint32_t us10[32] = { 65536, 1,	2,    3,     4,	    6,	   8,	  12,
					   16,	  24,	32,   48,    64,    96,	   128,	  192,
					   256,	  384,	512,  768,   1024,  1536,  2048,  3072,
					   4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152 };

	story(.rnr_retry = 7);
	post(a, .opcode = WORK_SEND, .length = 10);
	expect_packet(a, "RC SEND ONLY", A_PSN);
	for (uint8_t code = 0; code < 32; code++) {
		nanotime wait = us(10 * us10[code]);

		inject(a, OPB_ACK, A_PSN, .syndrome = SYNDROME_RNR | code);
		at(now + wait - 1);
		expect_silence(a);
		at(now + 1);
		expect_packet(a, "RC SEND ONLY", A_PSN);
	}
}

/*
 * protocol-map 99: the retransmission timer does not shorten the wait
 * hostile H-132: a timer during an RNR wait.
 */
Test(rnr, a_timeout_does_not_shorten_the_wait)
{
	story(.min_rnr_timer = 20);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	pass(a, "RC SEND ONLY", A_PSN);
	pass_nak(b, SYNDROME_RNR | 20, A_PSN, 0);
	at(us(10239));
	expect_silence(a);
	at(us(10241));
	expect_packet(a, "RC SEND ONLY", A_PSN);
}

/* protocol-map 99: nor does another request */
Test(rnr, nothing_overtakes_the_wait)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	pass(a, "RC SEND ONLY", A_PSN);
	pass_nak(b, RNR_12, A_PSN, 0);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 10);
	expect_silence(a);
	at(ms(1));
	expect_packet(a, "RC SEND ONLY", A_PSN);
	expect_packet(a, "RC WRITE ONLY", A_PSN + 1);
}

/*
 * protocol-map 100
 * hostile H-49: endless RNR NAKs.
 */
Test(rnr, rnr_retry_times_and_no_more)
{
	story(.rnr_retry = 2);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	for (uint32_t tries = 0; tries < 3; tries++) {
		expect_no_completion(a);
		pass(a, "RC SEND ONLY", A_PSN);
		pass(a, "RC SEND ONLY", A_PSN + 1);
		pass_nak(b, RNR_12, A_PSN, 0);
		at(now + ms(1));
	}
	expect_completion(a, 1, STATUS_RNR_RETRY_EXC_ERR);
	expect_completion(a, 2, STATUS_WR_FLUSH_ERR);
	expect_state(a, QP_STATE_ERR);
	expect_state(b, QP_STATE_RTS);
}

/* protocol-map 100 */
Test(rnr, with_rnr_retry_0_the_first_is_the_last)
{
	story(.rnr_retry = -1);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	pass(a, "RC SEND ONLY", A_PSN);
	pass_nak(b, RNR_12, A_PSN, 0);
	expect_completion(a, 1, STATUS_RNR_RETRY_EXC_ERR);
}

/* protocol-map 100 */
Test(rnr, seven_is_for_ever)
{
	story(.rnr_retry = 7);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	for (uint32_t tries = 0; tries < 100; tries++) {
		pass(a, "RC SEND ONLY", A_PSN);
		pass_nak(b, RNR_12, A_PSN, 0);
		at(now + ms(1));
	}
	post_receive(b, 1, 10);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 100 */
Test(rnr, progress_restores_the_retries)
{
	story(.rnr_retry = 1);
	for (uint64_t i = 1; i <= 4; i++) {
		post(a, .wr_id = i, .opcode = WORK_SEND, .length = 10);
		pass(a, "RC SEND ONLY", A_PSN + (uint32_t)i - 1);
		pass_nak(b, RNR_12, A_PSN + (uint32_t)i - 1, (uint32_t)i - 1);
		post_receive(b, i, 10);
		at(now + ms(1));
		exchange();
		expect_completion(a, i, STATUS_SUCCESS);
	}
}

/*
 * protocol-map 59, 96: packets after a refused SEND are out of sequence and use no receive request
 * hostile H-31: packets after a SEND that was not received.
 */
Test(rnr, a_refused_send_and_its_successors)
{
	story();
	inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 4);
	expect_nak(b, RNR_12, A_PSN, 0);
	post_receive(b, 1, 10);
	post_receive(b, 2, 10);
	inject(b, OPB_SEND_ONLY, A_PSN + 1, .payload_length = 5);
	expect_no_completion(b);
	cr_assert_eq(node_receives_posted(b->q), 2);
	inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 4);
	inject(b, OPB_SEND_ONLY, A_PSN + 1, .payload_length = 5);
	expect_receive(b, 1, STATUS_SUCCESS, 4);
	expect_receive(b, 2, STATUS_SUCCESS, 5);
}

/*
 * protocol-map 99, 100: an RNR NAK for a READ is obeyed, within rnr_retry
 * hostile H-49: endless RNR NAKs.
 */
Test(rnr, an_rnr_nak_for_a_read_is_obeyed)
{
	story(.rnr_retry = 1);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 8);
	for (uint32_t i = 0; i < 2; i++) {
		expect_packet(a, "RC READ REQUEST", A_PSN);
		inject(a, OPB_ACK, A_PSN, .syndrome = RNR_12);
		at(now + ms(1));
	}
	expect_completion(a, 1, STATUS_RNR_RETRY_EXC_ERR);
}

/*
 * protocol-map 99: many of them are one wait
 * hostile H-49: endless RNR NAKs.
 */
Test(rnr, a_storm_is_one_wait)
{
	story(.rnr_retry = 1);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 8);
	expect_packet(a, "RC SEND ONLY", A_PSN);
	for (uint32_t i = 0; i < 10; i++)
		inject(a, OPB_ACK, A_PSN, .syndrome = RNR_12);
	expect_state(a, QP_STATE_RTS);
	at(ms(1));
	expect_packet(a, "RC SEND ONLY", A_PSN);
}
