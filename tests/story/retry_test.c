/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"
#include "transport/path.h"
#include "transport/qp.h"

#define TIMEOUT us(4195) /* slightly more than 4.096 us * 2^10 = 4.194304 ms */

/* What the timer waits for after so many tries without an answer. */
static nanotime timeout_after(uint32_t tries)
{
	return tries == 0 ? TIMEOUT : tries == 1 ? 2 * TIMEOUT : 4 * TIMEOUT;
}

/* protocol-map 103, 105 */
Test(retry, a_retry_comes_at_the_timeout_and_not_before)
{
	story();
	post_receive(b, 1, 10);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	lose(a, "RC SEND ONLY", A_PSN);
	at(us(4194));
	expect_silence(a);
	at(4 * us(4194));
	pass(a, "RC SEND ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/*
 * protocol-map 103: each retry waits twice as long as the one before, but no longer than four
 * timeouts, so that a peer whose host has no processor for half a second is not given up.
 */
Test(retry, a_silent_peer_gets_more_time_with_each_retry)
{
	story(.retry_cnt = 7);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	post_receive(b, 1, 10);
	for (uint32_t tries = 0; tries < 7; tries++) {
		lose(a, "RC SEND ONLY", A_PSN);
		at(now + timeout_after(tries) - us(10));
		expect_silence(a);
		at(now + us(10));
	}
	pass(a, "RC SEND ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 10);
	lose(a, "RC WRITE ONLY", A_PSN + 1);
	at(now + TIMEOUT); /* the peer answered: one timeout again */
	pass(a, "RC WRITE ONLY", A_PSN + 1);
}

/*
 * protocol-map 103, 105: an answer takes longer than the program's ACK timeout, which may be four
 * times as long.
 */
Test(retry, a_retry_waits_for_the_round_trip_if_that_is_longer)
{
	static const struct {
		uint64_t trip, retry; /* ms, us */
		uint8_t doubt; /* answers to probes gave no sample so often */
	} row[] = { { 10, 10000, 0 }, { 1000, 16778, 0 }, { 5, 10000, 1 }, { 5, 16778, 6 } };

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		story(.recovery = true);
		a->q->core->path->srtt = ms(row[i].trip);
		a->q->core->path->doubt = row[i].doubt;
		post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 10);
		lose(a, "RC WRITE ONLY", A_PSN);
		at(us(row[i].retry - 1));
		expect_silence(a);
		cr_expect_eq(qp_timeouts(a->q->core), 0);
		at(us(row[i].retry));
		cr_expect_eq(qp_timeouts(a->q->core), 1);
		pass(a, "RC WRITE ONLY", A_PSN);
		pass_ack(b, A_PSN, 1);
		expect_completion(a, 1, STATUS_SUCCESS);
	}
}

/* protocol-map 104 */
Test(retry, an_idle_queue_pair_has_no_deadline)
{
	story();
	cr_assert_eq(a->q->deadline, TIME_NEVER);
	post_receive(b, 1, 10);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	pass(a, "RC SEND ONLY", A_PSN);
	cr_assert_neq(a->q->deadline, TIME_NEVER);
	pass_ack(b, A_PSN, 1);
	cr_assert_eq(a->q->deadline, TIME_NEVER);
}

/* protocol-map 104 */
Test(retry, progress_restarts_the_timer)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	lose(a, "RC SEND ONLY", A_PSN);
	lose(a, "RC SEND ONLY", A_PSN + 1);
	at(ms(4));
	inject(a, OPB_ACK, A_PSN, .syndrome = 31, .msn = 1);
	at(ms(8));
	expect_silence(a);
	at(ms(9));
	expect_packet(a, "RC SEND ONLY", A_PSN + 1);
}

/* protocol-map 106 */
Test(retry, retry_cnt_times_and_no_more)
{
	story(.retry_cnt = 2);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	for (uint32_t tries = 0; tries < 3; tries++) {
		expect_no_completion(a);
		lose(a, "RC SEND ONLY", A_PSN);
		lose(a, "RC SEND ONLY", A_PSN + 1);
		at(now + timeout_after(tries));
	}
	expect_silence(a);
	expect_completion(a, 1, STATUS_RETRY_EXC_ERR);
	expect_completion(a, 2, STATUS_WR_FLUSH_ERR);
	expect_state(a, QP_STATE_ERR);
}

/* protocol-map 106 */
Test(retry, with_retry_cnt_0_the_first_loss_is_the_last)
{
	story(.retry_cnt = -1);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	lose(a, "RC SEND ONLY", A_PSN);
	at(TIMEOUT);
	expect_completion(a, 1, STATUS_RETRY_EXC_ERR);
}

/* protocol-map 106: 7 means seven */
Test(retry, seven_is_not_for_ever)
{
	story(.retry_cnt = 7);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	for (uint32_t tries = 0; tries < 8; tries++) {
		lose(a, "RC SEND ONLY", A_PSN);
		at(now + timeout_after(tries));
	}
	expect_completion(a, 1, STATUS_RETRY_EXC_ERR);
}

/* protocol-map 107 */
Test(retry, progress_restores_the_retries)
{
	story(.retry_cnt = 1);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 600);
	for (uint32_t i = 0; i < 3; i++) {
		while (node_next(a->q, now + ms(1000), &a->packet, a->payload))
			;
		at(now + TIMEOUT);
		while (node_next(a->q, now + ms(1000), &a->packet, a->payload))
			;
		inject(a, OPB_ACK, A_PSN + i, .syndrome = 31);
	}
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 103: timeout 0 means no timer */
Test(retry, without_a_timeout_it_waits_for_ever)
{
	story(.no_timeout = true);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	lose(a, "RC SEND ONLY", A_PSN);
	cr_assert_eq(a->q->deadline, TIME_NEVER);
	at(ms(100000));
	expect_silence(a);
}

/* protocol-map 109 */
Test(retry, a_retry_begins_in_the_middle_of_a_message)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 700);
	pass(a, "RC WRITE FIRST", A_PSN);
	lose(a, "RC WRITE MIDDLE", A_PSN + 1);
	pass(a, "RC WRITE LAST", A_PSN + 2);
	pass_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN + 1, 0);
	pass(a, "RC WRITE MIDDLE", A_PSN + 1);
	pass(a, "RC WRITE LAST", A_PSN + 2);
	pass_ack(b, A_PSN + 2, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_same(b, LANDS, a, 0, 700);
}

/* protocol-map 114 */
Test(retry, a_retry_sends_the_present_contents_of_memory)
{
	story();
	post_receive(b, 1, 10);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 8);
	lose(a, "RC SEND ONLY", A_PSN);
	set_word(a, 0, 77);
	at(TIMEOUT);
	pass(a, "RC SEND ONLY", A_PSN);
	cr_assert_eq(word(b, LANDS + 0x1000), 77);
}

/*
 * protocol-map 114: a packet that the port refused is the next one again
 * hostile H-131: packets that could not be sent.
 */
Test(retry, unsent_packets_are_taken_back)
{
	story();
	post_receive(b, 1, 1000);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 700);
	pass(a, "RC SEND FIRST", A_PSN);
	struct packet middle = *expect_packet(a, "RC SEND MIDDLE", A_PSN + 1);
	struct packet last = *expect_packet(a, "RC SEND LAST", A_PSN + 2);

	qp_unsent(a->q->core, &last, ms(1000));
	qp_unsent(a->q->core, &middle, ms(1000));
	pass(a, "RC SEND MIDDLE", A_PSN + 1);
	pass(a, "RC SEND LAST", A_PSN + 2);
	expect_receive(b, 1, STATUS_SUCCESS, 700);
	expect_same(b, LANDS + 0x1000, a, 0, 700);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 114: likewise for replies */
Test(retry, unsent_replies_are_taken_back)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 600);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	struct packet middle = *expect_packet(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);

	qp_unsent(b->q->core, &middle, ms(1000));
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 2);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, 600);
}

/*
 * protocol-map 108
 * hostile H-50: endless sequence NAKs.
 */
Test(retry, a_repeated_nak_is_one_recovery)
{
	story(.retry_cnt = 1);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	lose(a, "RC SEND ONLY", A_PSN);
	lose(a, "RC SEND ONLY", A_PSN + 1);
	for (uint32_t i = 0; i < 10; i++)
		inject(a, OPB_ACK, A_PSN, .syndrome = SYNDROME_NAK_SEQUENCE);
	expect_packet(a, "RC SEND ONLY", A_PSN);
	expect_packet(a, "RC SEND ONLY", A_PSN + 1);
	inject(a, OPB_ACK, A_PSN, .syndrome = SYNDROME_NAK_SEQUENCE);
	expect_silence(a);
	expect_state(a, QP_STATE_RTS);
}

/*
 * protocol-map 106, 108: NAKs use up retries, too
 * hostile H-50: endless sequence NAKs.
 */
Test(retry, naks_without_progress_exhaust_the_retries)
{
	story(.retry_cnt = 2);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	for (uint32_t i = 0; i < 3 && qp_state(a->q->core) == QP_STATE_RTS; i++) {
		lose(a, "RC SEND ONLY", A_PSN);
		inject(a, OPB_ACK, A_PSN, .syndrome = SYNDROME_NAK_SEQUENCE);
		at(now + timeout_after(i));
	}
	expect_completion(a, 1, STATUS_RETRY_EXC_ERR);
}

/*
 * protocol-map 103, 105: a jump of the clock counts as one expiry
 * hostile H-141: a clock that jumps.
 */
Test(retry, a_jump_of_the_clock_is_one_timeout)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	lose(a, "RC SEND ONLY", A_PSN);
	now = ms(3600000);
	at(ms(3600000));
	expect_packet(a, "RC SEND ONLY", A_PSN);
	expect_state(a, QP_STATE_RTS);
}

/* protocol-map 106, 107: all of them, and no more */
Test(retry, after_progress_there_are_retry_cnt_again)
{
	story(.retry_cnt = 1);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	lose(a, "RC SEND ONLY", A_PSN);
	lose(a, "RC SEND ONLY", A_PSN + 1);
	inject(a, OPB_ACK, A_PSN, .syndrome = 31, .msn = 1);
	expect_completion(a, 1, STATUS_SUCCESS);
	at(now + TIMEOUT);
	lose(a, "RC SEND ONLY", A_PSN + 1);
	expect_no_completion(a);
	at(now + timeout_after(1));
	expect_completion(a, 2, STATUS_RETRY_EXC_ERR);
}

/* protocol-map 103: a packet that leaves late has a timer of its own and does not delay others */
Test(retry, late_replies_do_not_delay_a_retry)
{
	struct packet request, reply;

	story();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	request = *lose(a, "RC SEND ONLY", A_PSN);
	qp_left(a->q->core, &request, ms(1000) + TIMEOUT / 2);
	inject(a, OPB_READ_REQUEST, B_PSN, at_memory(a, 0, 8));
	reply = *lose(a, "RC READ RESPONSE ONLY", B_PSN);
	qp_left(a->q->core, &reply, ms(1000) + TIMEOUT);
	cr_expect_eq(qp_deadline(a->q->core), ms(1000) + TIMEOUT / 2 + (4096u << 10));
}
