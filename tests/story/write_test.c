/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"

/* protocol-map 45, 123, 151 */
Test(write, octets_arrive_and_the_peer_sees_no_completion)
{
	story();
	post_receive(b, 1, 100);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 600, .to = LANDS + 3);
	const struct packet *p = pass(a, "RC WRITE FIRST", A_PSN);

	cr_assert(p->va == BASE + LANDS + 3 && p->dma_length == 600 && p->rkey == b->key);
	pass(a, "RC WRITE MIDDLE", A_PSN + 1);
	pass(a, "RC WRITE LAST", A_PSN + 2);
	expect_same(b, LANDS + 3, a, 0, 600);
	expect_untouched(b, LANDS, 3);
	expect_untouched(b, LANDS + 603, 100);
	pass_ack(b, A_PSN + 2, 1);
	cr_assert_eq(expect_completion(a, 1, STATUS_SUCCESS).opcode, COMPLETION_RDMA_WRITE);
	expect_no_completion(b);
	cr_assert_eq(node_receives_posted(b->q), 1, "a WRITE takes no receive request");
}

/*
 * protocol-map 47
 * hostile H-23: an empty message with any key.
 */
Test(write, an_empty_write_checks_no_key)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .rkey = 0xdeadbeef, .remote_addr = 1);
	cr_assert_eq(pass(a, "RC WRITE ONLY", A_PSN)->dma_length, 0);
	pass_ack(b, A_PSN, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/*
 * protocol-map 47, 62: the key of an empty WRITE is not kept for later packets
 * hostile H-23: an empty message with any key.
 */
Test(write, no_packet_continues_an_empty_write)
{
	story();
	inject(b, OPB_WRITE_ONLY, A_PSN, .va = BASE, .rkey = b->key);
	inject(b, OPB_WRITE_MIDDLE, A_PSN + 1, .payload_length = MTU);
	expect_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN + 1, 1);
	expect_untouched(b, 0, 2 * MTU);
}

/* protocol-map 48, 125 */
Test(write, immediate_data_takes_a_receive_request)
{
	story();
	post_receive(b, 1, 0);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE_WITH_IMM, .length = 300, .imm = 9,
	     .flags = WORK_SOLICITED);
	pass(a, "RC WRITE FIRST", A_PSN);
	cr_assert_eq(node_receives_posted(b->q), 1, "taken at the packet with the data");
	cr_assert(pass(a, "RC WRITE LAST+IMM", A_PSN + 1)->solicited);
	struct completion c = expect_receive(b, 1, STATUS_SUCCESS, 300);

	cr_assert(c.opcode == COMPLETION_RECV_RDMA_WITH_IMM && c.imm == 9);
	cr_assert(c.wc_flags & COMPLETION_WITH_IMM && c.solicited);
	expect_same(b, LANDS, a, 0, 300);
	pass_ack(b, A_PSN + 1, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 48 */
Test(write, immediate_data_alone_reports_no_octets)
{
	story();
	post_receive(b, 1, 100);
	post(a, .opcode = WORK_RDMA_WRITE_WITH_IMM, .imm = 3, .rkey = 0xbad);
	pass(a, "RC WRITE ONLY+IMM", A_PSN);
	cr_assert_eq(expect_receive(b, 1, STATUS_SUCCESS, 0).imm, 3);
}

/* protocol-map 39 */
Test(write, solicited_means_nothing_without_immediate_data)
{
	story();
	post(a, .opcode = WORK_RDMA_WRITE, .length = 8, .flags = WORK_SOLICITED);
	cr_assert(!pass(a, "RC WRITE ONLY", A_PSN)->solicited);
}

/* protocol-map 51, 123: nothing is reported before the octets are in memory */
Test(write, the_acknowledgement_waits_for_the_copy)
{
	story(.delay_copies = true);
	post_receive(b, 1, 0);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE_WITH_IMM, .length = 100);
	pass(a, "RC WRITE ONLY+IMM", A_PSN);
	expect_silence(b);
	expect_no_completion(b);
	expect_untouched(b, LANDS, 100);
	settle(b, true);
	expect_same(b, LANDS, a, 0, 100);
	expect_receive(b, 1, STATUS_SUCCESS, 100);
	pass_ack(b, A_PSN, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
}
