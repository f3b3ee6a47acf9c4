/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"

/* A window of b, bound to b's queue pair. */
static uint32_t window_of_b(void)
{
	return node_window(&b->node, b->key, LANDS, 0x1000, ACCESS_REMOTE_WRITE, B_QPN);
}

static bool valid(struct side *s, uint32_t key)
{
	return node_region(&s->node, key) != NULL;
}

/* protocol-map 64, 125, 162 */
Test(invalidate, a_send_names_the_key_on_its_last_packet)
{
	story();
	uint32_t key = window_of_b();

	post_receive(b, 1, 1000);
	post(a, .wr_id = 7, .opcode = WORK_SEND_WITH_INV, .length = 300, .imm = key);
	pass(a, "RC SEND FIRST", A_PSN);
	cr_assert(valid(b, key));
	const struct packet *p = pass(a, "RC SEND LAST+INV", A_PSN + 1);

	cr_assert(p->invalidate_rkey == key && p->ack_req);
	cr_assert_not(valid(b, key));
	struct completion c = expect_receive(b, 1, STATUS_SUCCESS, 300);

	cr_assert(c.wc_flags == COMPLETION_WITH_INV && c.imm == key && c.opcode == COMPLETION_RECV);
	expect_same(b, LANDS + 0x1000, a, 0, 300);
	pass_ack(b, A_PSN + 1, 1);
	cr_assert_eq(expect_completion(a, 7, STATUS_SUCCESS).opcode, COMPLETION_SEND);
}

/* protocol-map 64 */
Test(invalidate, a_short_send_is_one_packet)
{
	story();
	uint32_t key = window_of_b();

	post_receive(b, 1, 100);
	post(a, .wr_id = 1, .opcode = WORK_SEND_WITH_INV, .length = 8, .imm = key,
	     .flags = WORK_INLINE | WORK_SOLICITED);
	cr_assert(pass(a, "RC SEND ONLY+INV", A_PSN)->solicited);
	cr_assert(expect_receive(b, 1, STATUS_SUCCESS, 8).solicited);
}

/* protocol-map 47, 162 */
Test(invalidate, an_empty_send_invalidates)
{
	story();
	uint32_t key = window_of_b();

	post_receive(b, 1, 0);
	post(a, .wr_id = 1, .opcode = WORK_SEND_WITH_INV, .imm = key);
	pass(a, "RC SEND ONLY+INV", A_PSN);
	expect_receive(b, 1, STATUS_SUCCESS, 0);
	cr_assert_not(valid(b, key));
}

/* protocol-map 162: first the data, then the key, then completion and acknowledgement */
Test(invalidate, the_completion_waits_for_the_copy_and_for_the_key)
{
	story(.delay_copies = true);
	uint32_t key = window_of_b();

	post_receive(b, 1, 100);
	post(a, .wr_id = 1, .opcode = WORK_SEND_WITH_INV, .length = 8, .imm = key);
	pass(a, "RC SEND ONLY+INV", A_PSN);
	settle(b, true);
	expect_same(b, LANDS + 0x1000, a, 0, 8);
	cr_assert(valid(b, key));
	expect_no_completion(b);
	expect_silence(b);
	settle(b, true);
	cr_assert_not(valid(b, key));
	expect_receive(b, 1, STATUS_SUCCESS, 8);
	pass_ack(b, A_PSN, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 162: the key was withdrawn between check and execution */
Test(invalidate, a_key_that_cannot_be_invalidated_in_the_end_fails_the_receive)
{
	story(.delay_copies = true);
	uint32_t key = window_of_b();

	post_receive(b, 1, 100);
	post_receive(b, 2, 100);
	post(a, .wr_id = 1, .opcode = WORK_SEND_WITH_INV, .length = 8, .imm = key);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 8);
	pass(a, "RC SEND ONLY+INV", A_PSN);
	pass(a, "RC SEND ONLY", A_PSN + 1);
	settle(b, true);
	settle(b, false);
	expect_receive(b, 1, STATUS_REM_ACCESS_ERR, 0);
	expect_receive(b, 2, STATUS_WR_FLUSH_ERR, 0);
	pass_nak(b, SYNDROME_NAK_REMOTE_ACCESS, A_PSN, 0);
	expect_completion(a, 1, STATUS_REM_ACCESS_ERR);
	expect_completion(a, 2, STATUS_WR_FLUSH_ERR);
	expect_state(b, QP_STATE_ERR);
}

/*
 * protocol-map 161, 162: any key that is not a window of this queue pair
 * hostile H-37: invalidating a key of another queue pair.
 */
Test(invalidate, other_keys_are_refused_and_stay_valid)
{
	story();
	uint32_t keys[] = {
		b->key, /* an ordinary region */
		node_window(&b->node, b->key, 0, 64, ACCESS_REMOTE_WRITE, 0), /* type 1 */
		node_window(&b->node, b->key, 0, 64, ACCESS_REMOTE_WRITE, 0x99), /* another's */
		node_register(&b->node, 0, 64, BASE, PD_2, ACCESS_ALL, 1), /* another domain */
		0,
		0x12345678,
		window_of_b() ^ 1, /* the wrong variant */
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(keys); i++) {
		bool there = valid(b, keys[i]);

		connect_again(b);
		post_receive(b, i, 100);
		expect_reason(inject(b, OPB_SEND_ONLY_INV, A_PSN, .payload_length = 8,
				     .invalidate_rkey = keys[i]),
			      REASON_INVALIDATE_KEY);
		expect_nak(b, SYNDROME_NAK_REMOTE_ACCESS, A_PSN, 0);
		expect_receive(b, i, STATUS_REM_ACCESS_ERR, 0);
		expect_state(b, QP_STATE_ERR);
		expect_untouched(b, LANDS + i * 0x1000, 8);
		cr_assert_eq(valid(b, keys[i]), there, "row %u", i);
	}
}

/* protocol-map 162 */
Test(invalidate, the_requester_learns_of_a_refusal)
{
	story();
	post_receive(b, 1, 100);
	post(a, .wr_id = 1, .opcode = WORK_SEND_WITH_INV, .length = 8, .imm = b->key);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 8);
	exchange();
	expect_completion(a, 1, STATUS_REM_ACCESS_ERR);
	expect_completion(a, 2, STATUS_WR_FLUSH_ERR);
}

/* protocol-map 87: a duplicate is not executed again */
Test(invalidate, a_repetition_is_acknowledged_only)
{
	story();
	uint32_t key = window_of_b(), again;

	post_receive(b, 1, 100);
	post_receive(b, 2, 100);
	post(a, .wr_id = 1, .opcode = WORK_SEND_WITH_INV, .length = 8, .imm = key);
	pass(a, "RC SEND ONLY+INV", A_PSN);
	expect_ack(b, A_PSN, 1);
	again = window_of_b();
	at(ms(5));
	cr_assert_eq(pass(a, "RC SEND ONLY+INV", A_PSN)->invalidate_rkey, key);
	pass_ack(b, A_PSN, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_receive(b, 1, STATUS_SUCCESS, 8);
	expect_no_completion(b);
	cr_assert(valid(b, again));
}

/* protocol-map 96: a receiver that is not ready invalidates nothing */
Test(invalidate, nothing_is_invalidated_before_there_is_a_receive_request)
{
	story();
	uint32_t key = window_of_b();

	post(a, .wr_id = 1, .opcode = WORK_SEND_WITH_INV, .length = 8, .imm = key);
	pass(a, "RC SEND ONLY+INV", A_PSN);
	pass_nak(b, SYNDROME_RNR | 12, A_PSN, 0);
	cr_assert(valid(b, key));
	post_receive(b, 1, 100);
	at(ms(1));
	exchange();
	expect_receive(b, 1, STATUS_SUCCESS, 8);
	cr_assert_not(valid(b, key));
}

/* protocol-map 62: only the end of a SEND can carry it */
Test(invalidate, inside_a_write_it_is_out_of_sequence)
{
	story();
	uint32_t key = window_of_b();

	inject(b, OPB_WRITE_FIRST, A_PSN, at_memory(b, LANDS, 300), .payload_length = MTU);
	expect_reason(inject(b, OPB_SEND_LAST_INV, A_PSN + 1, .payload_length = 44,
			     .invalidate_rkey = key),
		      REASON_OPCODE_SEQUENCE);
	cr_assert(valid(b, key));
}

/* protocol-map 135: reports from before the reset are ignored */
Test(invalidate, a_reset_forgets_both_tickets)
{
	story(.delay_copies = true);
	uint32_t key = window_of_b();

	post_receive(b, 1, 100);
	post(a, .wr_id = 1, .opcode = WORK_SEND_WITH_INV, .length = 8, .imm = key);
	pass(a, "RC SEND ONLY+INV", A_PSN);
	connect_again(b);
	qp_copied(b->q->core, 1, true);
	qp_copied(b->q->core, 2, false);
	expect_state(b, QP_STATE_RTS);
	expect_no_completion(b);
	expect_silence(b);
}

/*
 * protocol-map 152: an operation under way stops at the next packet, in both directions
 * hostile H-38: invalidation during accesses.
 */
Test(invalidate, a_read_through_the_window_ends_with_it)
{
	story();
	uint32_t key = node_window(&b->node, b->key, LANDS, 0x1000, ACCESS_REMOTE_READ, B_QPN);

	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 700, .rkey = key);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	post(b, .wr_id = 2, .opcode = WORK_LOCAL_INV, .imm = key);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 2); /* owed before the operation is looked at */
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_operation(b);
	operate(b, STATUS_SUCCESS);
	expect_completion(b, 2, STATUS_SUCCESS);
	inject(b, OPB_READ_REQUEST, A_PSN + 1, .va = BASE + LANDS + MTU, .rkey = key,
	       .dma_length = 700 - MTU);
	expect_nak(b, SYNDROME_NAK_REMOTE_ACCESS, A_PSN + 1, 1);
}

/* hostile H-38: invalidation during accesses. */
Test(invalidate, a_write_through_the_window_ends_with_it)
{
	story();
	uint32_t key = window_of_b();

	post(b, .wr_id = 2, .opcode = WORK_LOCAL_INV, .imm = key);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 700, .rkey = key);
	pass(a, "RC WRITE FIRST", A_PSN);
	expect_operation(b);
	pass(a, "RC WRITE MIDDLE", A_PSN + 1);
	operate(b, STATUS_SUCCESS);
	pass(a, "RC WRITE LAST", A_PSN + 2);
	expect_same(b, LANDS, a, 0, 2 * MTU);
	expect_untouched(b, LANDS + 2 * MTU, 700 - 2 * MTU);
	expect_completion(b, 2, STATUS_SUCCESS);
	pass_nak(b, SYNDROME_NAK_REMOTE_ACCESS, A_PSN + 2, 0);
	expect_completion(a, 1, STATUS_REM_ACCESS_ERR);
}
