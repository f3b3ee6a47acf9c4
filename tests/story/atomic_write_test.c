/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"

#define WORD LANDS

/* protocol-map 85, 197 */
Test(atomic_write, eight_octets_arrive_and_an_empty_response_answers)
{
	story();
	set_word(a, 0x40, UINT64_C(0x1122334455667788));
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_WRITE, .from = 0x40);
	const struct packet *p = pass(a, "RC ATOMIC WRITE", A_PSN);

	cr_assert(p->payload_length == 8 && p->dma_length == 8 && p->pad == 0);
	cr_assert(p->va == BASE + WORD && p->rkey == b->key);
	cr_assert_eq(word(b, WORD), UINT64_C(0x1122334455667788), "as it was in memory");
	expect_untouched(b, WORD + 8, 8);
	expect_untouched(b, WORD - 8, 8);
	p = pass(b, "RC READ RESPONSE ONLY", A_PSN);
	cr_assert(p->payload_length == 0 && p->msn == 1);
	struct completion c = expect_completion(a, 1, STATUS_SUCCESS);

	cr_assert(c.opcode == COMPLETION_ATOMIC_WRITE);
	expect_no_completion(b);
	expect_silence(a);
}

/* protocol-map 51, 197 */
Test(atomic_write, its_octets_may_be_inline)
{
	story();
	set_word(a, 0, 77);
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_WRITE, .flags = WORK_INLINE, .lkey = 0xbad);
	set_word(a, 0, 78);
	exchange();
	cr_assert_eq(word(b, WORD), 77);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/*
 * protocol-map 197, hostile: other lengths than eight octets store nothing
 * hostile H-15: an ATOMIC WRITE without payload.
 */
Test(atomic_write, any_other_length_is_invalid)
{
	static const uint32_t lengths[][2] = { { 0, 0 },	 { 0, 8 },   { 8, 0 },
					       { 8, 7 },	 { 7, 8 },   { 8, 9 },
					       { 9, 8 },	 { 16, 16 }, { 4, 4 },
					       { 8, 256 },	 { 256, 8 }, { 256, 256 },
					       { 8, UINT32_MAX } };

	story();
	for (uint32_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		connect_again(b);
		expect_reason(inject(b, OPB_ATOMIC_WRITE, A_PSN, at_memory(b, WORD, lengths[i][1]),
				     .payload_length = lengths[i][0]),
			      lengths[i][1] == UINT32_MAX ? REASON_LENGTH_MESSAGE
							  : REASON_LENGTH_RETH);
		expect_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN, 0);
		expect_silence(b);
		expect_state(b, QP_STATE_ERR);
		expect_untouched(b, WORD, 256);
	}
}

/* protocol-map 197 */
Test(atomic_write, a_misaligned_address_is_invalid)
{
	story();
	for (uint32_t i = 1; i < 8; i++) {
		connect_again(b);
		expect_reason(inject(b, OPB_ATOMIC_WRITE, A_PSN, at_memory(b, WORD + i, 8),
				     .payload_length = 8),
			      REASON_ATOMIC_ALIGNMENT);
		expect_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN, 0);
		expect_untouched(b, WORD, 16);
	}
}

/* protocol-map 197: an aligned address over misaligned memory cannot be stored to atomically */
Test(atomic_write, a_misaligned_region_is_refused)
{
	story();
	uint32_t key = node_register(&b->node, 4, 64, BASE, PD, ACCESS_ALL, 1);

	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_WRITE, .rkey = key, .remote_addr = BASE + 8);
	exchange();
	expect_completion(a, 1, STATUS_REM_ACCESS_ERR);
	expect_untouched(b, 0, 64);
}

/* protocol-map 65, 197 */
Test(atomic_write, needs_remote_write_of_the_queue_pair)
{
	story(.no_access = ACCESS_REMOTE_WRITE);
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_WRITE);
	exchange();
	expect_reason(b->q->reason, REASON_ACCESS_FLAGS);
	expect_completion(a, 1, STATUS_REM_INV_REQ_ERR);
	expect_untouched(b, WORD, 8);
}

/* protocol-map 150, 197 */
Test(atomic_write, needs_remote_write_of_the_region_and_room_in_it)
{
	story();
	uint32_t keys[] = {
		node_register(&b->node, 0, 0x1000, BASE, PD, ACCESS_ALL & ~ACCESS_REMOTE_WRITE, 1),
		node_register(&b->node, 0, 0x104, BASE, PD, ACCESS_ALL, 1),
		node_register(&b->node, 0, 0x1000, BASE, PD_2, ACCESS_ALL, 1),
		0xbad,
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(keys); i++) {
		connect_again(a);
		connect_again(b);
		post(a, .wr_id = i, .opcode = WORK_ATOMIC_WRITE, .rkey = keys[i], .to = 0x100);
		exchange();
		expect_completion(a, i, STATUS_REM_ACCESS_ERR);
		expect_untouched(b, 0x100, 8);
	}
}

/* protocol-map 91, 197: it has a replay record, like an atomic */
Test(atomic_write, a_repetition_is_answered_and_not_stored_again)
{
	story();
	set_word(a, 0, 1);
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_WRITE);
	pass(a, "RC ATOMIC WRITE", A_PSN);
	lose(b, "RC READ RESPONSE ONLY", A_PSN);
	set_word(b, WORD, 2); /* its owner wrote it again */
	at(ms(5));
	pass(a, "RC ATOMIC WRITE", A_PSN);
	cr_assert_eq(word(b, WORD), 2, "stored once");
	pass(b, "RC READ RESPONSE ONLY", A_PSN);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 91, 92 */
Test(atomic_write, a_repetition_without_its_record_is_dropped)
{
	story(.max_dest_rd_atomic = 1);
	for (uint32_t i = 0; i < 2; i++) {
		inject(b, OPB_ATOMIC_WRITE, A_PSN + i, at_memory(b, WORD, 8), .payload_length = 8);
		expect_packet(b, "RC READ RESPONSE ONLY", A_PSN + i);
	}
	expect_reason(
		inject(b, OPB_ATOMIC_WRITE, A_PSN, at_memory(b, WORD, 8), .payload_length = 8),
		REASON_DUPLICATE_UNKNOWN);
	expect_silence(b);
}

/* protocol-map 91: another operation at a recorded PSN is not a duplicate */
Test(atomic_write, a_repetition_of_another_kind_is_dropped)
{
	story();
	inject(b, OPB_ATOMIC_WRITE, A_PSN, at_memory(b, WORD, 8), .payload_length = 8);
	expect_packet(b, "RC READ RESPONSE ONLY", A_PSN);
	expect_reason(inject(b, OPB_FETCH_ADD, A_PSN, at_memory(b, WORD, 8), .swap_add = 1),
		      REASON_DUPLICATE_UNKNOWN);
	expect_reason(inject(b, OPB_READ_REQUEST, A_PSN, at_memory(b, WORD, 8)),
		      REASON_DUPLICATE_UNKNOWN);
	expect_silence(b);
}

/* protocol-map 197: the response says that its octets and those of earlier WRITEs are in memory */
Test(atomic_write, the_response_waits_for_the_copies)
{
	story(.delay_copies = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 8, .to = LANDS + 0x1000);
	post(a, .wr_id = 2, .opcode = WORK_ATOMIC_WRITE);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass(a, "RC ATOMIC WRITE", A_PSN + 1);
	expect_silence(b);
	settle(b, true);
	expect_silence(b);
	settle(b, true);
	pass(b, "RC READ RESPONSE ONLY", A_PSN + 1);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
}

/* protocol-map 152, 155 */
Test(atomic_write, a_store_that_fails_is_refused)
{
	story(.delay_copies = true);
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_WRITE);
	pass(a, "RC ATOMIC WRITE", A_PSN);
	settle(b, false);
	pass_nak(b, SYNDROME_NAK_REMOTE_ACCESS, A_PSN, 0);
	expect_completion(a, 1, STATUS_REM_ACCESS_ERR);
	expect_silence(b);
}

/* protocol-map 115 */
Test(atomic_write, counts_against_max_rd_atomic)
{
	story(.max_rd_atomic = 1);
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_WRITE);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_READ, .length = 8, .from = 64);
	pass(a, "RC ATOMIC WRITE", A_PSN);
	expect_silence(a);
	pass(b, "RC READ RESPONSE ONLY", A_PSN);
	pass(a, "RC READ REQUEST", A_PSN + 1);
}

/* protocol-map 115 */
Test(atomic_write, with_max_rd_atomic_0_none_is_sent)
{
	story(.max_rd_atomic = -1);
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_WRITE);
	expect_silence(a);
	expect_completion(a, 1, STATUS_LOC_QP_OP_ERR);
}

/* protocol-map 67, 68 */
Test(atomic_write, more_than_max_dest_rd_atomic_are_refused)
{
	story(.max_dest_rd_atomic = 1, .delay_copies = true);
	inject(b, OPB_ATOMIC_WRITE, A_PSN, at_memory(b, WORD, 8), .payload_length = 8);
	expect_reason(inject(b, OPB_ATOMIC_WRITE, A_PSN + 1, at_memory(b, WORD + 8, 8),
			     .payload_length = 8),
		      REASON_RD_ATOMIC_LIMIT);
	settle(b, true);
	expect_packet(b, "RC READ RESPONSE ONLY", A_PSN);
	expect_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN + 1, 1);
	expect_untouched(b, WORD + 8, 8);
}

/* protocol-map 111 */
Test(atomic_write, a_plain_acknowledgement_is_a_sign_of_loss)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_WRITE);
	pass(a, "RC ATOMIC WRITE", A_PSN);
	lose(b, "RC READ RESPONSE ONLY", A_PSN);
	inject(a, OPB_ACK, A_PSN, .msn = 1);
	expect_no_completion(a);
	pass(a, "RC ATOMIC WRITE", A_PSN);
	pass(b, "RC READ RESPONSE ONLY", A_PSN);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 113: the response places nothing, whatever it carries */
Test(atomic_write, a_response_with_data_is_an_error)
{
	static const struct {
		uint8_t base;
		uint32_t length;
		enum reason why;
	} rows[] = {
		{ OPB_READ_RESPONSE_ONLY, 8, REASON_RESPONSE_LENGTH },
		{ OPB_READ_RESPONSE_ONLY, 1, REASON_RESPONSE_LENGTH },
		{ OPB_READ_RESPONSE_FIRST, 256, REASON_RESPONSE_OPCODE },
		{ OPB_READ_RESPONSE_MIDDLE, 256, REASON_RESPONSE_OPCODE },
		{ OPB_READ_RESPONSE_LAST, 8, REASON_RESPONSE_OPCODE },
		{ OPB_ATOMIC_ACK, 0, REASON_RESPONSE_OPCODE },
	};

	story();
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		connect_again(a);
		post(a, .wr_id = i, .opcode = WORK_ATOMIC_WRITE);
		lose(a, "RC ATOMIC WRITE", A_PSN);
		expect_reason(
			inject(a, rows[i].base, A_PSN, .msn = 1, .payload_length = rows[i].length),
			rows[i].why);
		expect_completion(a, i, STATUS_BAD_RESP_ERR);
		expect_untouched(a, 0, 256);
	}
}

/* protocol-map 119: it reads nothing, but counts among the operations that do */
Test(atomic_write, a_fence_waits_for_it)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_WRITE);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 8, .flags = WORK_FENCE);
	pass(a, "RC ATOMIC WRITE", A_PSN);
	expect_silence(a);
	pass(b, "RC READ RESPONSE ONLY", A_PSN);
	pass(a, "RC WRITE ONLY", A_PSN + 1);
}

/* protocol-map 155 */
Test(atomic_write, an_unreadable_source_is_a_local_error)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_WRITE, .lkey = 0xbad);
	exchange();
	expect_completion(a, 1, STATUS_LOC_PROT_ERR);
	expect_untouched(b, WORD, 8);
}

/* XRC has no such packet. */
Test(atomic_write, an_xrc_initiator_does_not_carry_it)
{
	static const uint8_t opcodes[] = { WORK_ATOMIC_WRITE, WORK_FLUSH };

	story(.xrc = true);
	for (uint32_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		connect_again(a);
		post(a, .wr_id = i, .opcode = opcodes[i], .flush_type = FLUSH_GLOBAL);
		expect_silence(a);
		expect_completion(a, i, STATUS_LOC_QP_OP_ERR);
	}
}
