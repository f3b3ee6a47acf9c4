/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable connections: a lost packet is lost, and affects only its message. */
#include "story/story.h"

#define uc(...) story(.type = QP_TYPE_UC, ##__VA_ARGS__)

static struct packet copied; /* a packet to repeat, with its payload */

static void keep(const struct packet *p)
{
	static uint8_t payload[NODE_PAYLOAD];

	copied = *p;
	memcpy(payload, p->payload, p->payload_length);
	copied.payload = payload;
}

/* protocol-map 123, 172 */
Test(unreliable, a_send_is_complete_when_it_has_left)
{
	uc(.hold_sent = true);
	post_receive(b, 1, 100);
	post(a, .wr_id = 7, .opcode = WORK_SEND, .length = 10, .flags = WORK_SOLICITED);
	const struct packet *p = pass(a, "UC SEND ONLY", A_PSN);

	cr_assert(!p->ack_req && p->payload_length == 10 && p->pad == 2 && p->solicited);
	struct completion c = expect_receive(b, 1, STATUS_SUCCESS, 10);

	cr_assert(c.solicited && c.src_qp == A_QPN && c.wc_flags == 0);
	expect_same(b, LANDS + 0x1000, a, 0, 10);
	expect_no_completion(a);
	expect_silence(b);
	sent(a, p);
	cr_assert_eq(expect_completion(a, 7, STATUS_SUCCESS).opcode, COMPLETION_SEND);
	cr_assert_eq(a->q->deadline, TIME_NEVER, "no answer is awaited");
}

/* protocol-map 43, 123 */
Test(unreliable, a_long_message_is_complete_with_its_last_packet)
{
	uc(.hold_sent = true);
	post_receive(b, 1, 1000);
	post(a, .wr_id = 1, .opcode = WORK_SEND_WITH_IMM, .length = 601, .imm = 0x1234);
	sent(a, pass(a, "UC SEND FIRST", A_PSN));
	sent(a, pass(a, "UC SEND MIDDLE", A_PSN + 1));
	expect_no_completion(a);
	sent(a, pass(a, "UC SEND LAST+IMM", A_PSN + 2));
	expect_completion(a, 1, STATUS_SUCCESS);
	cr_assert_eq(expect_receive(b, 1, STATUS_SUCCESS, 601).imm, 0x1234);
	expect_same(b, LANDS + 0x1000, a, 0, 601);
}

/* protocol-map 149 */
Test(unreliable, the_first_packet_in_rtr_is_the_established_event)
{
	uc(.b_in_rtr = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 10);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 10);
	pass(a, "UC WRITE ONLY", A_PSN);
	expect_events(b, QP_EVENT_COMM_EST);
	pass(a, "UC WRITE ONLY", A_PSN + 1);
	expect_events(b, 0);
}

/* protocol-map 65, 174 */
Test(unreliable, a_write_lands_without_a_completion)
{
	uc();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 600);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_no_completion(b);
	expect_same(b, LANDS, a, 0, 600);
	post_receive(b, 1, 0);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE_WITH_IMM, .length = 300, .imm = 5);
	exchange();
	struct completion c = expect_receive(b, 1, STATUS_SUCCESS, 300);

	cr_assert(c.opcode == COMPLETION_RECV_RDMA_WITH_IMM && c.imm == 5);
	expect_silence(b);
}

/* protocol-map 57, 172: the numbers wrap in the middle of a message */
Test(unreliable, psns_wrap_inside_a_message)
{
	uc(.sq_psn = 0xfffffe);
	post_receive(b, 1, 2000);
	post_receive(b, 2, 2000);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 1024);
	pass(a, "UC SEND FIRST", 0xfffffe);
	pass(a, "UC SEND MIDDLE", 0xffffff);
	pass(a, "UC SEND MIDDLE", 0);
	pass(a, "UC SEND LAST", 1);
	expect_receive(b, 1, STATUS_SUCCESS, 1024);
	expect_same(b, LANDS + 0x1000, a, 0, 1024);
	expect_completion(a, 1, STATUS_SUCCESS);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 1);
	pass(a, "UC SEND ONLY", 2);
	expect_receive(b, 2, STATUS_SUCCESS, 1);
}

/* protocol-map 172, 173 */
Test(unreliable, a_gap_drops_the_message_and_the_next_one_arrives)
{
	uc();
	post_receive(b, 1, 1000);
	post_receive(b, 2, 1000);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 900);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 300, .from = 0x2000);
	pass(a, "UC SEND FIRST", A_PSN);
	lose(a, "UC SEND MIDDLE", A_PSN + 1);
	pass(a, "UC SEND MIDDLE", A_PSN + 2);
	expect_reason(b->q->reason, REASON_PSN_AHEAD);
	pass(a, "UC SEND LAST", A_PSN + 3);
	expect_reason(b->q->reason, REASON_OPCODE_SEQUENCE);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_no_completion(b);
	pass(a, "UC SEND FIRST", A_PSN + 4);
	pass(a, "UC SEND LAST", A_PSN + 5);
	/* The receive request of the lost message serves this one. */
	expect_receive(b, 1, STATUS_SUCCESS, 300);
	expect_same(b, LANDS + 0x1000, a, 0x2000, 300);
	expect_silence(b);
	expect_state(b, QP_STATE_RTS);
	cr_assert_eq(node_receives_posted(b->q), 1);
}

/* protocol-map 172: any PSN will do for a new message */
Test(unreliable, a_message_brings_its_own_psn)
{
	uc();
	for (uint32_t i = 1; i <= 4; i++)
		post_receive(b, i, 1000);
	expect_reason(inject(b, OPB_SEND_ONLY, A_PSN + 1000, .payload_length = 8), REASON_NONE);
	expect_reason(inject(b, OPB_SEND_ONLY, A_PSN - 1000, .payload_length = 8), REASON_NONE);
	expect_reason(inject(b, OPB_SEND_FIRST, A_PSN + 0x7fffff, .payload_length = MTU),
		      REASON_NONE);
	expect_reason(inject(b, OPB_SEND_LAST, A_PSN + 0x800000, .payload_length = 1), REASON_NONE);
	expect_receive(b, 1, STATUS_SUCCESS, 8);
	expect_receive(b, 2, STATUS_SUCCESS, 8);
	expect_receive(b, 3, STATUS_SUCCESS, MTU + 1);
}

/* protocol-map 173 */
Test(unreliable, a_new_message_takes_the_request_of_the_one_it_cuts)
{
	uc();
	post_receive(b, 1, 1000);
	post_receive(b, 2, 1000);
	inject(b, OPB_SEND_FIRST, A_PSN, .payload_length = MTU);
	expect_reason(inject(b, OPB_SEND_ONLY, A_PSN + 5, .payload_length = 9), REASON_NONE);
	expect_receive(b, 1, STATUS_SUCCESS, 9);
	expect_no_completion(b);
	cr_assert_eq(node_receives_posted(b->q), 1);
	inject(b, OPB_SEND_FIRST, A_PSN + 6, .payload_length = MTU);
	/* ... also if immediate data needs it, and even if something came between. */
	expect_reason(
		inject(b, OPB_WRITE_ONLY, A_PSN + 9, .payload_length = 8, at_memory(b, LANDS, 8)),
		REASON_NONE);
	expect_reason(inject(b, OPB_WRITE_ONLY_IMM, A_PSN + 10, .payload_length = 8, .imm = 3,
			     at_memory(b, LANDS, 8)),
		      REASON_NONE);
	cr_assert_eq(expect_receive(b, 2, STATUS_SUCCESS, 8).opcode, COMPLETION_RECV_RDMA_WITH_IMM);
	expect_no_completion(b);
}

/* protocol-map 173: its request does not stay with the queue pair */
Test(unreliable, a_cut_message_of_an_srq_completes_in_error)
{
	uc(.srq = true);
	post_receive(b, 1, 1000);
	post_receive(b, 2, 1000);
	inject(b, OPB_SEND_FIRST, A_PSN, .payload_length = MTU);
	expect_reason(inject(b, OPB_SEND_ONLY, A_PSN + 5, .payload_length = 9), REASON_NONE);
	expect_receive(b, 1, STATUS_REM_INV_REQ_ERR, 0);
	expect_receive(b, 2, STATUS_SUCCESS, 9);
	post_receive(b, 3, 1000);
	inject(b, OPB_SEND_FIRST, A_PSN + 6, .payload_length = MTU);
	expect_reason(inject(b, OPB_SEND_MIDDLE, A_PSN + 8, .payload_length = MTU),
		      REASON_PSN_AHEAD);
	expect_receive(b, 3, STATUS_REM_INV_REQ_ERR, 0);
	expect_state(b, QP_STATE_RTS);
	expect_events(b, 0);
}

/* protocol-map 172 */
Test(unreliable, middles_and_lasts_outside_of_a_message_are_dropped)
{
	static const uint8_t outside[] = { OPB_SEND_MIDDLE,  OPB_SEND_LAST,  OPB_SEND_LAST_IMM,
					   OPB_WRITE_MIDDLE, OPB_WRITE_LAST, OPB_WRITE_LAST_IMM };

	uc();
	post_receive(b, 1, 1000);
	for (uint32_t i = 0; i < ARRAY_SIZE(outside); i++)
		expect_reason(inject(b, outside[i], A_PSN, .payload_length = MTU),
			      REASON_OPCODE_SEQUENCE);
	expect_no_completion(b);
	expect_silence(b);
	expect_untouched(b, 0, MEMORY);
	expect_reason(inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 1), REASON_NONE);
	expect_receive(b, 1, STATUS_SUCCESS, 1);
}

Test(unreliable, a_repeated_packet_does_not_spoil_the_message)
{
	uc();
	post_receive(b, 1, 1000);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 900);
	pass(a, "UC SEND FIRST", A_PSN);
	keep(pass(a, "UC SEND MIDDLE", A_PSN + 1));
	expect_reason(story_inject(b, &copied), REASON_DUPLICATE);
	pass(a, "UC SEND MIDDLE", A_PSN + 2);
	pass(a, "UC SEND LAST", A_PSN + 3);
	expect_receive(b, 1, STATUS_SUCCESS, 900);
	expect_same(b, LANDS + 0x1000, a, 0, 900);
}

/* protocol-map 166: no receive request, no message, no harm */
Test(unreliable, without_a_receive_request_the_message_is_lost)
{
	uc();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 300);
	pass(a, "UC SEND FIRST", A_PSN);
	expect_reason(b->q->reason, REASON_RECEIVE_NOT_READY);
	post_receive(b, 1, 1000);
	pass(a, "UC SEND LAST", A_PSN + 1);
	expect_reason(b->q->reason, REASON_OPCODE_SEQUENCE);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_no_completion(b);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 30);
	exchange();
	expect_receive(b, 1, STATUS_SUCCESS, 30);
	expect_silence(b);
}

/* protocol-map 48, 174 */
Test(unreliable, a_write_without_its_receive_request_leaves_what_came_before)
{
	uc();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE_WITH_IMM, .length = 300);
	pass(a, "UC WRITE FIRST", A_PSN);
	pass(a, "UC WRITE LAST+IMM", A_PSN + 1);
	expect_reason(b->q->reason, REASON_RECEIVE_NOT_READY);
	expect_same(b, LANDS, a, 0, MTU);
	expect_untouched(b, LANDS + MTU, 300);
	post_receive(b, 1, 0);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE_WITH_IMM, .length = 0);
	exchange();
	expect_receive(b, 1, STATUS_SUCCESS, 0);
	expect_state(b, QP_STATE_RTS);
}

/*
 * protocol-map 65, 150: each of them drops its message, and nothing else
 * hostile H-33: keys are guessed.
 */
Test(unreliable, what_may_not_be_written_is_dropped)
{
	uc();
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t va = i == 1 ? BASE + MEMORY - 7 : BASE + LANDS;
		uint32_t key = b->key ^ (i == 0 ? 0x5500 : 0), length = i == 2 ? 9 : 8;

		if (i == 3) {
			struct qp_attributes none = { 0 };

			cr_assert_eq(modify(b, QP_STATE_RTS, QP_ATTR_ACCESS_FLAGS, &none), 0);
		}
		cr_assert_neq(inject(b, OPB_WRITE_ONLY, A_PSN, .payload_length = 8, .va = va,
				     .rkey = key, .dma_length = length),
			      REASON_NONE, "row %u", i);
		expect_untouched(b, 0, MEMORY);
		expect_state(b, QP_STATE_RTS);
		expect_events(b, 0);
		expect_silence(b);
	}
}

/* protocol-map 152 */
Test(unreliable, a_key_that_goes_away_ends_the_write)
{
	uc();
	post_receive(b, 1, 0);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE_WITH_IMM, .length = 600);
	pass(a, "UC WRITE FIRST", A_PSN);
	node_deregister(&b->node, b->key);
	pass(a, "UC WRITE MIDDLE", A_PSN + 1);
	expect_reason(b->q->reason, REASON_KEY_UNKNOWN);
	pass(a, "UC WRITE LAST+IMM", A_PSN + 2);
	expect_reason(b->q->reason, REASON_OPCODE_SEQUENCE);
	expect_untouched(b, LANDS + MTU, 600);
	expect_no_completion(b);
	expect_state(b, QP_STATE_RTS);
}

/* protocol-map 50 */
Test(unreliable, a_message_longer_than_its_receive_request_is_dropped)
{
	uc();
	post_receive(b, 1, 300);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 600);
	exchange();
	expect_no_completion(b);
	expect_untouched(b, LANDS + 0x1000 + 300, 600);
	expect_state(b, QP_STATE_RTS);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 300, .from = 0x800);
	exchange();
	expect_receive(b, 1, STATUS_SUCCESS, 300);
	expect_same(b, LANDS + 0x1000, a, 0x800, 300);
}

Test(unreliable, a_message_longer_than_the_request_of_an_srq_says_so)
{
	uc(.srq = true);
	post_receive(b, 1, 300);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 600);
	exchange();
	expect_receive(b, 1, STATUS_LOC_LEN_ERR, 0);
	expect_state(b, QP_STATE_RTS);
}

/* protocol-map 155: a program's own error ends the queue pair */
Test(unreliable, a_receive_request_for_unregistered_memory_is_a_local_error)
{
	struct work_sge sge = { .addr = BASE, .length = 100, .lkey = 0xbad };

	uc();
	node_post_receive(b->q, 1, &sge, 1);
	post_receive(b, 2, 100);
	expect_reason(inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 8), REASON_RECEIVE_MEMORY);
	expect_receive(b, 1, STATUS_LOC_PROT_ERR, 0);
	expect_receive(b, 2, STATUS_WR_FLUSH_ERR, 0);
	expect_state(b, QP_STATE_ERR);
	expect_silence(b);
}

/* protocol-map 131: the request of a cut message is flushed like others, and first */
Test(unreliable, a_kept_request_is_flushed)
{
	struct qp_attributes none = { 0 };

	uc();
	post_receive(b, 1, 1000);
	post_receive(b, 2, 1000);
	inject(b, OPB_SEND_FIRST, A_PSN, .payload_length = MTU);
	inject(b, OPB_SEND_LAST, A_PSN + 3, .payload_length = 9);
	cr_assert_eq(modify(b, QP_STATE_ERR, 0, &none), 0);
	expect_receive(b, 1, STATUS_WR_FLUSH_ERR, 0);
	expect_receive(b, 2, STATUS_WR_FLUSH_ERR, 0);
	expect_no_completion(b);
}

/* protocol-map 135 */
Test(unreliable, reset_forgets_a_kept_request)
{
	uc();
	post_receive(b, 1, 1000);
	inject(b, OPB_SEND_FIRST, A_PSN, .payload_length = MTU);
	inject(b, OPB_SEND_LAST, A_PSN + 3, .payload_length = 9);
	connect_again(b);
	expect_reason(inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 8),
		      REASON_RECEIVE_NOT_READY);
	expect_no_completion(b);
}

/* Delayed copies, and one that fails. */
Test(unreliable, a_receive_completes_after_its_copies)
{
	uc(.delay_copies = true);
	post_receive(b, 1, 1000);
	post_receive(b, 2, 1000);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 300);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	exchange();
	expect_no_completion(b);
	settle(b, true);
	expect_no_completion(b);
	settle(b, true);
	expect_receive(b, 1, STATUS_SUCCESS, 300);
	settle(b, false);
	expect_receive(b, 2, STATUS_LOC_PROT_ERR, 0);
	expect_state(b, QP_STATE_ERR);
	expect_silence(b);
}

Test(unreliable, a_write_that_cannot_be_placed_is_dropped)
{
	uc(.delay_copies = true);
	post_receive(b, 1, 0);
	post_receive(b, 2, 0);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE_WITH_IMM, .length = 300);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE_WITH_IMM, .length = 10);
	exchange();
	settle(b, false);
	settle(b, true);
	settle(b, true);
	expect_receive(b, 1, STATUS_LOC_PROT_ERR, 0);
	expect_receive(b, 2, STATUS_SUCCESS, 10);
	expect_state(b, QP_STATE_RTS);
	expect_silence(b);
}

/*
 * protocol-map 10, 34, 35
 * hostile H-53: packets from another address.
 */
Test(unreliable, packets_of_strangers_are_dropped)
{
	struct packet p;

	uc();
	post_receive(b, 1, 1000);
	p = (struct packet){ .opcode = OPCODE(SERVICE_RC, OPB_SEND_ONLY),
			     .pkey = 0xffff,
			     .dest_qpn = B_QPN,
			     .psn = A_PSN };
	expect_reason(story_inject(b, &p), REASON_SERVICE_MISMATCH);
	p.opcode = OPCODE(SERVICE_UD, OPB_SEND_ONLY);
	expect_reason(story_inject(b, &p), REASON_SERVICE_MISMATCH);
	p.opcode = OPCODE(SERVICE_UC, OPB_SEND_ONLY);
	p.dest_qpn = QPN_MULTICAST;
	expect_reason(story_inject(b, &p), REASON_SERVICE_MISMATCH);
	p.dest_qpn = B_QPN;
	p.pkey = 0x8001;
	expect_reason(story_inject(b, &p), REASON_PKEY);
	p.pkey = 0xffff;
	story_inject(b, &p);
	expect_receive(b, 1, STATUS_SUCCESS, 0);
	p.src_gid.octet[15] ^= 1;
	expect_reason(node_received(b->q, &p, 0), REASON_ADDRESS_MISMATCH);
}

/* protocol-map 147: SQD finishes messages that have begun */
Test(unreliable, sqd_drains_when_all_has_left)
{
	struct qp_attributes asked = { .en_sqd_async_notify = 1 };

	uc(.hold_sent = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 300);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 30);
	sent(a, pass(a, "UC WRITE FIRST", A_PSN));
	cr_assert_eq(modify(a, QP_STATE_SQD, QP_ATTR_EN_SQD_ASYNC_NOTIFY, &asked), 0);
	expect_events(a, 0);
	sent(a, pass(a, "UC WRITE LAST", A_PSN + 1));
	expect_events(a, QP_EVENT_SQ_DRAINED);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_silence(a);
	cr_assert_eq(modify(a, QP_STATE_RTS, 0, &asked), 0);
	pass(a, "UC WRITE ONLY", A_PSN + 2);
}

/* protocol-map 114 */
Test(unreliable, what_was_not_sent_is_the_next_packet_again)
{
	struct packet first, second;

	uc(.hold_sent = true);
	post_receive(b, 1, 1000);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 600);
	first = *pass(a, "UC SEND FIRST", A_PSN);
	second = *lose(a, "UC SEND MIDDLE", A_PSN + 1);
	unsent(a, lose(a, "UC SEND LAST", A_PSN + 2));
	unsent(a, &second);
	sent(a, &first);
	sent(a, pass(a, "UC SEND MIDDLE", A_PSN + 1));
	sent(a, pass(a, "UC SEND LAST", A_PSN + 2));
	expect_receive(b, 1, STATUS_SUCCESS, 600);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/*
 * protocol-map 162: as on a reliable connection, and with a key that the peer must not invalidate
 */
Test(unreliable, a_send_may_invalidate_a_window)
{
	uc();
	uint32_t key = node_window(&b->node, b->key, LANDS, 0x1000, ACCESS_REMOTE_WRITE, B_QPN);

	post_receive(b, 1, 1000);
	post(a, .wr_id = 1, .opcode = WORK_SEND_WITH_INV, .length = 30, .imm = b->key);
	pass(a, "UC SEND ONLY+INV", A_PSN);
	expect_reason(b->q->reason, REASON_INVALIDATE_KEY);
	expect_no_completion(b);
	expect_state(b, QP_STATE_RTS);
	post(a, .wr_id = 2, .opcode = WORK_SEND_WITH_INV, .length = 300, .imm = key);
	pass(a, "UC SEND FIRST", A_PSN + 1);
	pass(a, "UC SEND LAST+INV", A_PSN + 2);
	struct completion c = expect_receive(b, 1, STATUS_SUCCESS, 300);

	cr_assert(c.wc_flags == COMPLETION_WITH_INV && c.imm == key);
	cr_assert_null(node_region(&b->node, key));
	expect_silence(b);
}
