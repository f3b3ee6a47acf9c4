/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"

/* protocol-map 117 */
Test(order, completions_come_in_the_order_of_posting)
{
	static const uint8_t opcodes[] = {
		WORK_RDMA_READ,	 WORK_SEND,	 WORK_ATOMIC_FETCH_AND_ADD,
		WORK_RDMA_WRITE, WORK_RDMA_READ, WORK_SEND
	};

	story();
	post_receive(b, 1, 100);
	post_receive(b, 2, 100);
	for (uint64_t i = 0; i < ARRAY_SIZE(opcodes); i++)
		post(a, .wr_id = i, .opcode = opcodes[i], .length = 8, .from = (uint32_t)i * 64);
	exchange();
	for (uint64_t i = 0; i < ARRAY_SIZE(opcodes); i++)
		expect_completion(a, i, STATUS_SUCCESS);
	expect_receive(b, 1, STATUS_SUCCESS, 8);
	expect_receive(b, 2, STATUS_SUCCESS, 8);
}

/* protocol-map 118: octets of an earlier WRITE are visible when the SEND is received */
Test(order, a_send_is_received_behind_the_copies_before_it)
{
	story(.delay_copies = true);
	post_receive(b, 1, 100);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 100, .from = 0x1000);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 0);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass(a, "RC SEND ONLY", A_PSN + 1);
	expect_no_completion(b);
	settle(b, true);
	expect_receive(b, 1, STATUS_SUCCESS, 0);
	expect_same(b, LANDS, a, 0x1000, 100);
}

/* protocol-map 118: a READ returns octets that were written before it */
Test(order, a_read_waits_for_the_copies_before_it)
{
	story(.delay_copies = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 8);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_READ, .length = 8, .from = 0x1000);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass(a, "RC READ REQUEST", A_PSN + 1);
	expect_silence(b);
	settle(b, true);
	pass(b, "RC READ RESPONSE ONLY", A_PSN + 1);
	settle(a, true);
	expect_same(a, 0x1000, a, 0, 8);
}

/*
 * protocol-map 119
 * hostile H-138: fences.
 */
Test(order, a_fence_waits_for_reads_and_atomics)
{
	static const uint8_t opcodes[] = { WORK_RDMA_READ, WORK_ATOMIC_FETCH_AND_ADD };

	for (uint32_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		story();
		post_receive(b, 1, 10);
		post(a, .wr_id = 1, .opcode = opcodes[i], .length = 8);
		post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 8, .flags = WORK_FENCE);
		cr_assert(node_next(a->q, ms(1000), &a->packet, a->payload));
		expect_silence(a);
		story_inject(b, &a->packet);
		cr_assert(node_next(b->q, ms(1000), &b->packet, b->payload));
		story_inject(a, &b->packet);
		pass(a, "RC SEND ONLY", A_PSN + 1);
		cr_assert_eq(memcmp(octets(b, LANDS + 0x1000), octets(a, 0), 8), 0,
			     "the fenced SEND sends what the READ brought");
		node_free(&a->node);
		node_free(&b->node);
	}
}

/*
 * protocol-map 119: until the READ's octets are in memory
 * hostile H-138: fences.
 */
Test(order, a_fence_waits_for_the_copy)
{
	story(.delay_copies = true);
	post_receive(b, 1, 10);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 8);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 8, .flags = WORK_FENCE);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(b, "RC READ RESPONSE ONLY", A_PSN);
	expect_silence(a);
	settle(a, true);
	pass(a, "RC SEND ONLY", A_PSN + 1);
}

/*
 * protocol-map 119: not for SENDs and WRITEs
 * hostile H-138: fences.
 */
Test(order, a_fence_does_not_wait_for_sends_and_writes)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 8);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 8);
	post(a, .wr_id = 3, .opcode = WORK_SEND, .length = 8, .flags = WORK_FENCE);
	expect_packet(a, "RC WRITE ONLY", A_PSN);
	expect_packet(a, "RC SEND ONLY", A_PSN + 1);
	expect_packet(a, "RC SEND ONLY", A_PSN + 2);
}

/* protocol-map 118: without a fence a READ delays nothing */
Test(order, without_a_fence_a_send_overtakes_a_read)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 8);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 8);
	expect_packet(a, "RC READ REQUEST", A_PSN);
	expect_packet(a, "RC SEND ONLY", A_PSN + 1);
}

/* protocol-map 117: a late landing delays later completions of requests, but not receives */
Test(order, receives_do_not_wait_for_landings)
{
	story(.delay_copies = true);
	post_receive(a, 5, 10);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 8);
	post(b, .wr_id = 2, .opcode = WORK_SEND, .length = 0);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(b, "RC READ RESPONSE ONLY", A_PSN);
	pass(b, "RC SEND ONLY", B_PSN);
	expect_receive(a, 5, STATUS_SUCCESS, 0);
	pass_ack(a, B_PSN, 1);
	expect_completion(b, 2, STATUS_SUCCESS);
	expect_no_completion(a);
	settle(a, true);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 53: at most the window is under way (numbers of limits.h) */
Test(order, the_window_is_bounded)
{
	uint32_t packets = 0;

	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 600 * MTU);
	while (node_next(a->q, ms(1000), &a->packet, a->payload))
		packets++;
	cr_assert_eq(packets, LIMIT_WINDOW);
	cr_assert(a->packet.ack_req, "the last packet that may be sent asks");
}
