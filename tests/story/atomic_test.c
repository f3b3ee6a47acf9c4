/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"

#define WORD LANDS

/* protocol-map 85, 153 */
Test(atomic, fetch_add_returns_the_value_before_and_wraps)
{
	story();
	set_word(b, WORD, UINT64_MAX - 1);
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_FETCH_AND_ADD, .compare_add = 5);
	cr_assert_eq(pass(a, "RC FETCH ADD", A_PSN)->swap_add, 5);
	cr_assert_eq(word(b, WORD), 3);
	cr_assert_eq(pass(b, "RC ATOMIC ACK", A_PSN)->msn, 1);
	cr_assert_eq(word(a, 0), UINT64_MAX - 1, "the value is in host order");
	cr_assert_eq(expect_completion(a, 1, STATUS_SUCCESS).opcode, COMPLETION_FETCH_ADD);
	expect_untouched(b, WORD + 8, 8);
	expect_untouched(b, WORD - 8, 8);
}

/* protocol-map 153 */
Test(atomic, compare_swap_writes_when_equal)
{
	story();
	set_word(b, WORD, 40);
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_CMP_AND_SWP, .compare_add = 40, .swap = 41);
	const struct packet *p = pass(a, "RC CMP SWAP", A_PSN);

	cr_assert(p->swap_add == 41 && p->compare == 40);
	cr_assert_eq(word(b, WORD), 41);
	pass(b, "RC ATOMIC ACK", A_PSN);
	cr_assert_eq(word(a, 0), 40);
	cr_assert_eq(expect_completion(a, 1, STATUS_SUCCESS).opcode, COMPLETION_COMP_SWAP);
}

/* protocol-map 153 */
Test(atomic, compare_swap_leaves_alone_when_different)
{
	story();
	set_word(b, WORD, 39);
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_CMP_AND_SWP, .compare_add = 40, .swap = 41);
	exchange();
	cr_assert_eq(word(b, WORD), 39);
	cr_assert_eq(word(a, 0), 39);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/*
 * protocol-map 153
 * hostile H-39: misaligned atomics.
 */
Test(atomic, a_misaligned_address_is_invalid)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_FETCH_AND_ADD, .to = WORD + 4);
	pass(a, "RC FETCH ADD", A_PSN);
	expect_untouched(b, WORD, 16);
	pass_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN, 0);
	expect_completion(a, 1, STATUS_REM_INV_REQ_ERR);
	expect_state(b, QP_STATE_ERR);
}

/* protocol-map 73, 150 */
Test(atomic, beyond_the_region_is_refused)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_FETCH_AND_ADD, .to = MEMORY);
	exchange();
	expect_completion(a, 1, STATUS_REM_ACCESS_ERR);
}

/*
 * protocol-map 150, 153: a region that ends in the middle of the word
 * hostile H-39: misaligned atomics.
 */
Test(atomic, straddling_the_end_of_the_region_is_refused)
{
	story();
	uint32_t key = node_register(&b->node, 0, 0x104, BASE, PD, ACCESS_ALL, 1);

	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_FETCH_AND_ADD, .to = 0x100, .rkey = key,
	     .compare_add = 1);
	exchange();
	expect_completion(a, 1, STATUS_REM_ACCESS_ERR);
	expect_untouched(b, 0x100, 8);
}

/* protocol-map 150 */
Test(atomic, needs_remote_atomic_of_the_region)
{
	story();
	uint32_t key =
		node_register(&b->node, 0, 0x1000, BASE, PD, ACCESS_ALL & ~ACCESS_REMOTE_ATOMIC, 1);

	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_FETCH_AND_ADD, .to = 0x100, .rkey = key,
	     .compare_add = 1);
	exchange();
	expect_completion(a, 1, STATUS_REM_ACCESS_ERR);
	expect_untouched(b, 0x100, 8);
}

/* protocol-map 91 */
Test(atomic, a_duplicate_is_answered_from_memory_of_the_first)
{
	story();
	set_word(b, WORD, 10);
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_FETCH_AND_ADD, .compare_add = 1);
	pass(a, "RC FETCH ADD", A_PSN);
	lose(b, "RC ATOMIC ACK", A_PSN);
	at(ms(20));
	pass(a, "RC FETCH ADD", A_PSN);
	cr_assert_eq(word(b, WORD), 11, "executed once");
	pass(b, "RC ATOMIC ACK", A_PSN);
	cr_assert_eq(word(a, 0), 10);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/*
 * protocol-map 91, 92
 * hostile H-27: a repetition without a record.
 */
Test(atomic, a_duplicate_without_its_record_is_dropped)
{
	story(.max_dest_rd_atomic = 1);
	for (uint32_t i = 0; i < 2; i++) {
		inject(b, OPB_FETCH_ADD, A_PSN + i, at_memory(b, WORD, 0), .swap_add = 1);
		expect_packet(b, "RC ATOMIC ACK", A_PSN + i);
	}
	uint64_t before = word(b, WORD);

	expect_reason(inject(b, OPB_FETCH_ADD, A_PSN, at_memory(b, WORD, 0), .swap_add = 1),
		      REASON_DUPLICATE_UNKNOWN);
	expect_silence(b);
	cr_assert_eq(word(b, WORD), before);
}

/*
 * protocol-map 91: memory is not accessed again
 * hostile H-28: a repetition without its region.
 */
Test(atomic, a_duplicate_does_not_need_the_region)
{
	story();
	set_word(b, WORD, 10);
	inject(b, OPB_FETCH_ADD, A_PSN, at_memory(b, WORD, 0), .swap_add = 1);
	expect_packet(b, "RC ATOMIC ACK", A_PSN);
	node_deregister(&b->node, b->key);
	inject(b, OPB_FETCH_ADD, A_PSN, at_memory(b, WORD, 0), .swap_add = 1);
	cr_assert_eq(expect_packet(b, "RC ATOMIC ACK", A_PSN)->original, 10);
	cr_assert_eq(word(b, WORD), 11);
}

/* protocol-map 91: a duplicate that arrives before the first was executed */
Test(atomic, a_duplicate_waits_for_the_value_like_the_first)
{
	story(.delay_copies = true);
	set_word(b, WORD, 10);
	inject(b, OPB_FETCH_ADD, A_PSN, at_memory(b, WORD, 0), .swap_add = 1);
	inject(b, OPB_FETCH_ADD, A_PSN, at_memory(b, WORD, 0), .swap_add = 1);
	expect_silence(b);
	settle(b, true);
	cr_assert_eq(expect_packet(b, "RC ATOMIC ACK", A_PSN)->original, 10);
	cr_assert_eq(word(b, WORD), 11);
}

/*
 * protocol-map 155
 * hostile H-96: wrong local keys.
 */
Test(atomic, landing_in_read_only_memory_is_a_local_error)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_FETCH_AND_ADD, .lkey = 0xbad);
	exchange();
	expect_completion(a, 1, STATUS_LOC_PROT_ERR);
}

/* protocol-map 115 */
Test(atomic, counts_against_max_rd_atomic)
{
	story(.max_rd_atomic = 1);
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_FETCH_AND_ADD, .compare_add = 1);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_READ, .length = 8, .from = 64);
	pass(a, "RC FETCH ADD", A_PSN);
	expect_silence(a);
	pass(b, "RC ATOMIC ACK", A_PSN);
	pass(a, "RC READ REQUEST", A_PSN + 1);
}

/*
 * protocol-map 113
 * hostile H-46: a response of the wrong kind.
 */
Test(atomic, an_acknowledgement_without_the_value_is_a_sign_of_loss)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_FETCH_AND_ADD, .compare_add = 1);
	pass(a, "RC FETCH ADD", A_PSN);
	lose(b, "RC ATOMIC ACK", A_PSN);
	inject(a, OPB_ACK, A_PSN, .msn = 1);
	expect_no_completion(a);
	pass(a, "RC FETCH ADD", A_PSN);
	pass(b, "RC ATOMIC ACK", A_PSN);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 113 */
Test(atomic, the_length_of_its_element_is_eight)
{
	story();
	struct send_work w = { .wr_id = 1,
			       .opcode = WORK_ATOMIC_FETCH_AND_ADD,
			       .num_sge = 1,
			       .remote_addr = BASE,
			       .rkey = b->key };
	struct work_sge sge = { .addr = BASE, .length = 4, .lkey = a->key };

	node_post_send(a->q, &w, &sge, ms(1000));
	expect_silence(a);
	expect_completion(a, 1, STATUS_LOC_LEN_ERR);
}
