/* SPDX-License-Identifier: BSD-3-Clause */
/* A port that refuses packets, and payload that cannot be gathered: what they may cost. */
#include "story/story.h"

#define TIMEOUT us(4195) /* slightly more than 4.096 us * 2^10 = 4.194304 ms */

/*
 * Builds all packets that a can send now; the port takes the first `taken` of them. Returns the
 * number of packets.
 */
static uint32_t offer(uint32_t taken)
{
	static struct packet made[64];
	uint32_t n = 0;

	while (n < ARRAY_SIZE(made) && node_next(a->q, now + ms(1000), &made[n], a->payload))
		n++;
	for (uint32_t i = n; i-- > taken;)
		unsent(a, &made[i]);
	return n;
}

/* protocol-map 103, 106, hostile H-131: a packet that never left cannot have been lost */
Test(unsent, a_port_that_refuses_packets_costs_no_retry)
{
	story(.retry_cnt = 1);
	post_receive(b, 1, 10);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	for (uint32_t i = 0; i < 100; i++) {
		cr_assert_eq(offer(0), 1, "the packet is made again");
		at(now + TIMEOUT / 2);
		expect_state(a, QP_STATE_RTS);
	}
	cr_assert_eq(qp_timeouts(a->q->core), 0, "%u timeouts", qp_timeouts(a->q->core));
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_receive(b, 1, STATUS_SUCCESS, 10);
}

/* protocol-map 103: no packet is on its way, so the timer does not run */
Test(unsent, the_time_runs_from_the_departure)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	cr_assert_eq(offer(0), 1);
	cr_expect_eq(qp_deadline(a->q->core), TIME_NEVER, "nothing is on its way");
	at(us(4000));
	lose(a, "RC SEND ONLY", A_PSN);
	cr_assert_eq(qp_deadline(a->q->core), ms(1004) + (4096u << 10));
}

/*
 * protocol-map 103, 106: the same for a retransmission
 * hostile H-131: packets that could not be sent.
 */
Test(unsent, a_repetition_that_is_refused_costs_no_retry)
{
	story(.retry_cnt = 1);
	post_receive(b, 1, 10);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	lose(a, "RC SEND ONLY", A_PSN);
	at(TIMEOUT);
	for (uint32_t i = 0; i < 100; i++) {
		cr_assert_eq(offer(0), 1);
		at(now + TIMEOUT / 2);
	}
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
}

/*
 * protocol-map 86, 103: the packets that left did not request an acknowledgement; the one that will
 * is still refused
 */
Test(unsent, a_peer_that_was_not_asked_is_not_late)
{
	story(.retry_cnt = 1);
	post_receive(b, 1, 1000);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 700);
	pass(a, "RC SEND FIRST", A_PSN);
	for (uint32_t i = 0; i < 100; i++) {
		cr_assert_eq(offer(0), 2);
		at(now + TIMEOUT / 2);
	}
	cr_assert_eq(qp_timeouts(a->q->core), 0, "%u timeouts", qp_timeouts(a->q->core));
	pass(a, "RC SEND MIDDLE", A_PSN + 1);
	pass(a, "RC SEND LAST", A_PSN + 2);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_receive(b, 1, STATUS_SUCCESS, 700);
}

/*
 * protocol-map 105, 106: packets that left and requested an acknowledgement are waited for,
 * whatever the port does
 */
Test(unsent, a_dead_peer_is_noticed_even_if_the_port_is_slow)
{
	story(.retry_cnt = 1, .max_send_wr = 64);
	for (uint32_t i = 0; i < 40; i++)
		post(a, .wr_id = i, .opcode = WORK_SEND, .length = 10);
	for (uint32_t i = 0; i < 1000 && qp_state(a->q->core) == QP_STATE_RTS; i++) {
		offer(1);
		at(now + TIMEOUT / 10);
	}
	expect_completion(a, 0, STATUS_RETRY_EXC_ERR);
}

/* protocol-map 86: each packet that leaves may be the last one for a long time */
Test(unsent, a_port_that_takes_one_packet_at_a_time_does_not_silence_the_peer)
{
	uint32_t asked = 0;

	story(.max_send_wr = 64);
	for (uint32_t i = 0; i < 60; i++)
		post(a, .wr_id = i, .opcode = WORK_RDMA_WRITE, .length = 8);
	for (uint32_t i = 0; i < 60; i++) {
		struct packet first;

		cr_assert(node_next(a->q, now + ms(1000), &first, a->payload));
		asked += first.ack_req;
		offer(0);
	}
	cr_assert_geq(asked, 60 / LIMIT_ACK_EVERY, "%u of 60 asked", asked);
}

/* The packet that would have requested an acknowledgement is the one without payload. */
static void without_the_last_packet(bool has_timeout)
{
	struct packet last;

	story(.no_timeout = !has_timeout);
	post_receive(b, 1, 10);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 700);
	pass(a, "RC SEND ONLY", A_PSN);
	pass(a, "RC WRITE FIRST", A_PSN + 1);
	pass(a, "RC WRITE MIDDLE", A_PSN + 2);
	last = *expect_packet(a, "RC WRITE LAST", A_PSN + 3);
	cr_assert(last.ack_req, "it is the one that asks");
	gather_failed(a, &last);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_LOC_PROT_ERR);
	expect_receive(b, 1, STATUS_SUCCESS, 10);
	expect_state(a, QP_STATE_ERR);
	cr_assert_eq(now, 0, "no timer was needed");
}

/* protocol-map 86, 155 */
Test(unsent, ungathered_payload_does_not_lose_the_ack_request)
{
	without_the_last_packet(true);
}

/* protocol-map 86, 155: nothing else would ever wake it */
Test(unsent, payload_that_cannot_be_gathered_without_a_timer)
{
	without_the_last_packet(false);
}

/* protocol-map 86: the response comes once, and the READ is not sent again */
Test(unsent, a_read_before_a_refused_packet_is_not_disturbed)
{
	story(.no_timeout = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 700);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 8, .from = 0x1000);
	pass(a, "RC READ REQUEST", A_PSN);
	cr_assert_eq(offer(0), 1);
	cr_assert_eq(modify(a, QP_STATE_SQD, 0, &(struct qp_attributes){ 0 }), 0);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, 700);
}
