/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "story/story.h"

/* protocol-map 31, 32, 169 */
Test(xrc, every_request_names_the_srq_and_no_response_does)
{
	story(.xrc = true);
	post_srq_receive(b, SRQ, 1, 1000);
	post(a, .wr_id = 7, .opcode = WORK_SEND, .length = 601);
	cr_assert_eq(pass(a, "XRC SEND FIRST", A_PSN)->srqn, SRQ);
	cr_assert_eq(pass(a, "XRC SEND MIDDLE", A_PSN + 1)->srqn, SRQ);
	cr_assert_eq(pass(a, "XRC SEND LAST", A_PSN + 2)->srqn, SRQ);
	pass_ack(b, A_PSN + 2, 1);
	expect_completion(a, 7, STATUS_SUCCESS);
	struct completion c = expect_receive(b, 1, STATUS_SUCCESS, 601);

	cr_assert(c.from_srq && c.work_index == 1);
	expect_same(b, LANDS + 0x1000, a, 0, 601);
}

/* protocol-map 32, 169 */
Test(xrc, reads_writes_and_atomics_name_it_too)
{
	story(.xrc = true);
	set_word(b, LANDS, 5);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 300, .to = LANDS + 0x1000);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_READ, .length = 300, .from = 0x1000);
	post(a, .wr_id = 3, .opcode = WORK_ATOMIC_FETCH_AND_ADD, .compare_add = 2, .from = 0x2000);
	post(a, .wr_id = 4, .opcode = WORK_ATOMIC_CMP_AND_SWP, .compare_add = 7, .swap = 9,
	     .from = 0x2008);
	cr_assert_eq(pass(a, "XRC WRITE FIRST", A_PSN)->srqn, SRQ);
	cr_assert_eq(pass(a, "XRC WRITE LAST", A_PSN + 1)->srqn, SRQ);
	cr_assert_eq(pass(a, "XRC READ REQUEST", A_PSN + 2)->srqn, SRQ);
	cr_assert_eq(pass(a, "XRC FETCH ADD", A_PSN + 4)->srqn, SRQ);
	cr_assert_eq(pass(a, "XRC CMP SWAP", A_PSN + 5)->srqn, SRQ);
	pass(b, "XRC READ RESPONSE FIRST", A_PSN + 2);
	pass(b, "XRC READ RESPONSE LAST", A_PSN + 3);
	pass(b, "XRC ATOMIC ACK", A_PSN + 4);
	pass(b, "XRC ATOMIC ACK", A_PSN + 5);
	for (uint64_t i = 1; i <= 4; i++)
		expect_completion(a, i, STATUS_SUCCESS);
	cr_assert_eq(word(b, LANDS), 9);
	cr_assert(word(a, 0x2000) == 5 && word(a, 0x2008) == 7);
	expect_no_completion(b);
}

/* protocol-map 170: each message goes to the SRQ that it names */
Test(xrc, messages_of_one_connection_go_to_several_srqs)
{
	uint32_t key;

	story(.xrc = true);
	key = node_register(&b->node, 0, MEMORY, BASE, PD_2, ACCESS_ALL, 1);
	post_srq_receive(b, SRQ, 1, 100);
	cr_assert(node_srq_post(&b->node.srq[1], 2,
				&(struct work_sge){ BASE + LANDS + 0x2000, 100, key }, 1));
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10, .srqn = SRQ_2);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 20);
	exchange();
	struct completion first = expect_receive(b, 2, STATUS_SUCCESS, 10);
	struct completion second = expect_receive(b, 1, STATUS_SUCCESS, 20);

	cr_assert(first.from_srq && first.work_index == 2);
	cr_assert(second.from_srq && second.work_index == 1);
}

/* protocol-map 170: the SRQ's protection domain decides about rights */
Test(xrc, the_protection_domain_is_that_of_the_srq)
{
	story(.xrc = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 10, .srqn = SRQ_2);
	pass(a, "XRC WRITE ONLY", A_PSN);
	expect_untouched(b, LANDS, 10);
	pass_nak(b, SYNDROME_NAK_REMOTE_ACCESS, A_PSN, 0);
	expect_completion(a, 1, STATUS_REM_ACCESS_ERR);
	expect_state(b, QP_STATE_ERR);
}

/* protocol-map 170: a READ is answered with the rights of its request, whatever follows */
Test(xrc, a_read_keeps_the_domain_of_its_request)
{
	uint32_t key;

	story(.xrc = true);
	key = node_register(&b->node, 0, MEMORY, BASE, PD_2, ACCESS_ALL, 1);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 600, .from = 0x1000);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 10, .srqn = SRQ_2, .rkey = key,
	     .to = 0x3000);
	pass(a, "XRC READ REQUEST", A_PSN);
	pass(a, "XRC WRITE ONLY", A_PSN + 3);
	pass(b, "XRC READ RESPONSE FIRST", A_PSN);
	lose(b, "XRC READ RESPONSE MIDDLE", A_PSN + 1);
	lose(b, "XRC READ RESPONSE LAST", A_PSN + 2);
	exchange(); /* lost packets are also repeated */
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
	expect_same(a, 0x1000, b, LANDS, 600);
}

/*
 * protocol-map 170
 * hostile H-41: an SRQ of another domain.
 */
Test(xrc, an_unknown_srq_is_an_invalid_request)
{
	story(.xrc = true);
	post_srq_receive(b, SRQ, 1, 100);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10, .srqn = 0x999);
	pass(a, "XRC SEND ONLY", A_PSN);
	expect_reason(b->q->reason, REASON_SRQ_UNKNOWN);
	expect_events(b, QP_EVENT_REQ_ERR | QP_EVENT_LAST_WQE_REACHED);
	pass_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN, 0);
	expect_completion(a, 1, STATUS_REM_INV_REQ_ERR);
	expect_no_completion(b);
	cr_assert_eq(b->node.srq[0].receives.head, 0, "the SRQ keeps its request");
}

/* protocol-map 170: a request of every kind needs it */
Test(xrc, without_an_srq_nothing_is_executed)
{
	static const uint8_t bases[] = { OPB_WRITE_ONLY, OPB_READ_REQUEST, OPB_FETCH_ADD,
					 OPB_SEND_ONLY };

	story(.xrc = true);
	for (uint32_t i = 0; i < ARRAY_SIZE(bases); i++) {
		bool data = bases[i] == OPB_WRITE_ONLY || bases[i] == OPB_SEND_ONLY;

		connect_again(b);
		expect_reason(inject(b, bases[i], A_PSN, at_memory(b, LANDS, 8), .srqn = 0,
				     .payload_length = data ? 8 : 0),
			      REASON_SRQ_UNKNOWN);
		expect_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN, 0);
		expect_silence(b);
		expect_untouched(b, LANDS, 8);
	}
}

/* protocol-map 62, 170 */
Test(xrc, a_message_ends_in_the_srq_where_it_began)
{
	static const uint32_t other[] = { SRQ_2, 0x999 };

	story(.xrc = true);
	for (uint32_t i = 0; i < ARRAY_SIZE(other); i++) {
		connect_again(b);
		post_srq_receive(b, SRQ, 1 + i, 1000);
		inject(b, OPB_SEND_FIRST, A_PSN, .srqn = SRQ, .payload_length = MTU);
		expect_reason(inject(b, OPB_SEND_MIDDLE, A_PSN + 1, .srqn = other[i],
				     .payload_length = MTU),
			      REASON_OPCODE_SEQUENCE);
		expect_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN + 1, 0);
		struct completion c = expect_receive(b, 1 + i, STATUS_REM_INV_REQ_ERR, 0);

		cr_assert(c.from_srq && c.work_index == 1, "of the SRQ that lost the request");
	}
}

/* protocol-map 96, 166 */
Test(xrc, an_empty_srq_is_not_ready)
{
	story(.xrc = true);
	post_srq_receive(b, SRQ_2, 1, 100);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	pass(a, "XRC SEND ONLY", A_PSN);
	pass_nak(b, SYNDROME_RNR | 12, A_PSN, 0);
	post_srq_receive(b, SRQ, 2, 100);
	at(ms(1));
	pass(a, "XRC SEND ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	expect_receive(b, 2, STATUS_SUCCESS, 10);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 87, 105: a repetition is acknowledged without the SRQ */
Test(xrc, a_repeated_send_is_not_received_twice)
{
	story(.xrc = true);
	post_srq_receive(b, SRQ, 1, 100);
	post_srq_receive(b, SRQ, 2, 100);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	pass(a, "XRC SEND ONLY", A_PSN);
	expect_ack(b, A_PSN, 1);
	at(ms(5));
	pass(a, "XRC SEND ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_receive(b, 1, STATUS_SUCCESS, 10);
	expect_no_completion(b);
}

/* protocol-map 59, 108 */
Test(xrc, a_gap_is_reported_and_sent_again)
{
	story(.xrc = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 600);
	lose(a, "XRC WRITE FIRST", A_PSN);
	pass(a, "XRC WRITE MIDDLE", A_PSN + 1);
	pass_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN, 0);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_same(b, LANDS, a, 0, 600);
}

/*
 * protocol-map 34, 171: an initiator receives no request, a target no response, and neither RC
 * packets
 */
Test(xrc, each_half_has_its_direction)
{
	story(.xrc = true);
	expect_reason(inject(a, OPB_SEND_ONLY, B_PSN, .srqn = SRQ, .payload_length = 8),
		      REASON_SERVICE_MISMATCH);
	expect_reason(inject(b, OPB_ACK, B_PSN), REASON_SERVICE_MISMATCH);
	struct packet rc = { .opcode = OPCODE(SERVICE_RC, OPB_SEND_ONLY),
			     .pkey = 0xffff,
			     .dest_qpn = B_QPN,
			     .psn = A_PSN,
			     .src_gid = a->packet.src_gid };

	expect_reason(node_received(b->q, &rc, ms(1000)), REASON_SERVICE_MISMATCH);
	expect_state(a, QP_STATE_RTS);
	expect_state(b, QP_STATE_RTS);
	expect_silence(a);
	expect_silence(b);
}

/* protocol-map 171 */
Test(xrc, a_target_has_no_send_queue_and_an_initiator_no_receive_request)
{
	struct qp_caps target = { .type = QP_TYPE_XRC_RECV,
				  .qpn = 0x77,
				  .pd = PD,
				  .max_recv_sge = 1,
				  .max_rd_atomic = 1,
				  .port_mtu = 5,
				  .has_srq = true };

	story(.xrc = true);
	struct qp *qp = qp_init(aligned_alloc(64, round_up(qp_memory_size(&target), 64)), &target);

	cr_assert_null(qp_window_slot(qp));
	cr_assert_not(qp_wants_receive(
		a->q->core,
		&(struct packet){ .opcode = OPCODE(SERVICE_XRC, OPB_SEND_ONLY), .psn = B_PSN }));
	free(qp);
}

/* protocol-map 133 */
Test(xrc, the_last_request_of_a_target_is_reported)
{
	story(.xrc = true);
	post_srq_receive(b, SRQ, 1, 1000);
	post_srq_receive(b, SRQ, 2, 1000);
	inject(b, OPB_SEND_FIRST, A_PSN, .srqn = SRQ, .payload_length = MTU);
	struct qp_attributes none = { 0 };

	cr_assert_eq(modify(b, QP_STATE_ERR, 0, &none), 0);
	struct completion c = expect_receive(b, 1, STATUS_WR_FLUSH_ERR, 0);

	cr_assert(c.from_srq && c.work_index == 1);
	expect_events(b, QP_EVENT_LAST_WQE_REACHED);
	expect_no_completion(b);
	cr_assert_eq(b->node.srq[0].receives.tail - b->node.srq[0].receives.head, 1,
		     "the SRQ keeps the other");
}

/*
 * protocol-map 170: a target has no windows
 * hostile H-36: a window of another queue pair.
 */
Test(xrc, a_window_of_another_queue_pair_cannot_be_invalidated_through_a_target)
{
	uint32_t window;

	story(.xrc = true);
	window = node_window(&b->node, b->key, 0, 0x1000, ACCESS_REMOTE_WRITE, 0x55);
	post_srq_receive(b, SRQ, 1, 100);
	post(a, .wr_id = 1, .opcode = WORK_SEND_WITH_INV, .length = 8, .imm = window);
	cr_assert_eq(pass(a, "XRC SEND ONLY+INV", A_PSN)->invalidate_rkey, window);
	pass_nak(b, SYNDROME_NAK_REMOTE_ACCESS, A_PSN, 0);
	expect_receive(b, 1, STATUS_REM_ACCESS_ERR, 0);
	cr_assert_not_null(node_region(&b->node, window));
}

/* A basic SRQ has its number in completions, too. */
Test(xrc, a_receive_of_an_ordinary_srq_names_it)
{
	story(.srq = true);
	post_receive(b, 1, 100);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	exchange();
	struct completion c = expect_receive(b, 1, STATUS_SUCCESS, 10);

	cr_assert(c.from_srq && c.work_index == 7);
}

/*
 * hostile H-4: packets that are not requests to a target or responses to an initiator
 */
Test(xrc, every_opcode_at_every_length_to_both_halves, .timeout = 300)
{
	struct side *sides[] = { a, b };

	story(.xrc = true);
	for (uint32_t i = 0; i < 2 * 256 * 201; i++) {
		struct side *s = sides[i & 1];
		const struct opcode_info *op = &opcode_table[i / 2 % 256];
		static uint8_t payload[256];
		struct packet p = { .opcode = (uint8_t)(i / 2),
				    .payload = payload,
				    .payload_length = i / 512,
				    .psn = s == a ? B_PSN : A_PSN,
				    .pkey = 0xffff,
				    .dest_qpn = s->q->caps.qpn,
				    .src_gid = { { [10] = 0xff, 0xff, 10, 0, 0, s == a ? 2 : 1 } },
				    .dst_gid = { { [10] = 0xff, 0xff, 10, 0, 0, s == a ? 1 : 2 } },
				    .srqn = SRQ };

		if (s == b && op->service == SERVICE_XRC && !(op->flags & OP_RESPONSE))
			continue; /* legal: tested elsewhere */
		cr_assert_neq(node_received(s->q, &p, ms(1000)), REASON_NONE, "%s, %u octets",
			      op->name, p.payload_length);
		expect_state(s, QP_STATE_RTS);
		cr_assert_not(qp_has_packet(s->q->core));
	}
	expect_no_completion(a);
	expect_no_completion(b);
	expect_untouched(b, 0, MEMORY);
}
