/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"

#define GLOBAL	   .flush_type = FLUSH_GLOBAL
#define PERSISTENT .flush_type = FLUSH_PERSISTENT
#define BOTH	   .flush_type = FLUSH_GLOBAL | FLUSH_PERSISTENT

/* protocol-map 85, 198 */
Test(flush, a_range_is_one_packet_without_payload)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_FLUSH, GLOBAL, .flush_length = 1000);
	const struct packet *p = pass(a, "RC FLUSH", A_PSN);

	cr_assert(p->payload_length == 0 && p->feth == 0x01);
	cr_assert(p->va == BASE + LANDS && p->rkey == b->key && p->dma_length == 1000);
	p = pass(b, "RC READ RESPONSE ONLY", A_PSN);
	cr_assert(p->payload_length == 0 && p->msn == 1);
	cr_assert_eq(expect_completion(a, 1, STATUS_SUCCESS).opcode, COMPLETION_FLUSH);
	expect_no_completion(b);
	expect_silence(a);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 8);
	pass(a, "RC WRITE ONLY", A_PSN + 1);
}

/* protocol-map 198 */
Test(flush, a_whole_region_needs_no_range)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_FLUSH, BOTH, .flush_level = FLUSH_REGION,
	     .remote_addr = 1, .flush_length = 0xffffffff);
	cr_assert_eq(pass(a, "RC FLUSH", A_PSN)->feth, 0x13);
	pass(b, "RC READ RESPONSE ONLY", A_PSN);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 199 */
Test(flush, it_is_answered_when_earlier_writes_are_in_memory)
{
	story(.delay_copies = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 300);
	post(a, .wr_id = 2, .opcode = WORK_FLUSH, GLOBAL, .flush_length = 300);
	pass(a, "RC WRITE FIRST", A_PSN);
	pass(a, "RC WRITE LAST", A_PSN + 1);
	pass(a, "RC FLUSH", A_PSN + 2);
	settle(b, true);
	expect_silence(b);
	settle(b, true);
	expect_same(b, LANDS, a, 0, 300);
	pass(b, "RC READ RESPONSE ONLY", A_PSN + 2);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
}

/* protocol-map 199: octets that could not be written are not flushed */
Test(flush, a_failed_earlier_write_is_reported_instead)
{
	story(.delay_copies = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 8);
	post(a, .wr_id = 2, .opcode = WORK_FLUSH, GLOBAL, .flush_length = 8);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass(a, "RC FLUSH", A_PSN + 1);
	settle(b, false);
	pass_nak(b, SYNDROME_NAK_REMOTE_ACCESS, A_PSN, 0);
	expect_completion(a, 1, STATUS_REM_ACCESS_ERR);
	expect_completion(a, 2, STATUS_WR_FLUSH_ERR);
	expect_silence(b);
}

/*
 * protocol-map 198, hostile: reserved types, levels and bits
 * hostile H-40: an illegal FLUSH.
 */
Test(flush, reserved_bits_are_invalid)
{
	story();
	for (uint32_t bit = 0; bit < 34; bit++) {
		/*
		 * One bit each, none (32), all (33). At level 1, bits such as 0x1 and 0x2 are
		 * valid.
		 */
		uint32_t feth = bit == 32 ? 0 : bit == 33 ? UINT32_MAX : 1u << bit | (bit > 3);
		bool good = bit == 0 || bit == 1 || bit == 4;
		enum reason why;

		connect_again(b);
		why = inject(b, OPB_FLUSH, A_PSN, at_memory(b, LANDS, 8), .feth = feth);
		expect_reason(why, good ? REASON_NONE : REASON_FLUSH_TYPE);
		if (good)
			expect_packet(b, "RC READ RESPONSE ONLY", A_PSN);
		else
			expect_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN, 0);
		expect_state(b, good ? QP_STATE_RTS : QP_STATE_ERR);
	}
}

/*
 * protocol-map 65, 198: each type needs its right of the queue pair
 * hostile H-40: an illegal FLUSH.
 */
Test(flush, each_type_needs_its_right_of_the_queue_pair)
{
	static const struct {
		uint32_t without, type;
		bool good;
	} rows[] = {
		{ ACCESS_FLUSH_GLOBAL, FLUSH_GLOBAL, false },
		{ ACCESS_FLUSH_GLOBAL, FLUSH_PERSISTENT, true },
		{ ACCESS_FLUSH_GLOBAL, FLUSH_GLOBAL | FLUSH_PERSISTENT, false },
		{ ACCESS_FLUSH_PERSISTENT, FLUSH_GLOBAL, true },
		{ ACCESS_FLUSH_PERSISTENT, FLUSH_PERSISTENT, false },
		{ ACCESS_FLUSH_PERSISTENT, FLUSH_GLOBAL | FLUSH_PERSISTENT, false },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		story(.no_access = rows[i].without);
		post(a, .wr_id = i, .opcode = WORK_FLUSH, .flush_type = rows[i].type,
		     .flush_length = 8);
		exchange();
		expect_completion(a, i, rows[i].good ? STATUS_SUCCESS : STATUS_REM_INV_REQ_ERR);
	}
}

/*
 * protocol-map 198: ... and of the region
 * hostile H-40: an illegal FLUSH.
 */
Test(flush, each_type_needs_its_right_of_the_region)
{
	static const struct {
		uint32_t access, type, level;
		bool good;
	} rows[] = {
		{ ACCESS_REMOTE_WRITE, FLUSH_GLOBAL, FLUSH_RANGE, false },
		{ ACCESS_REMOTE_WRITE, FLUSH_GLOBAL, FLUSH_REGION, false },
		{ ACCESS_FLUSH_GLOBAL, FLUSH_GLOBAL, FLUSH_RANGE, true },
		{ ACCESS_FLUSH_GLOBAL, FLUSH_GLOBAL, FLUSH_REGION, true },
		{ ACCESS_FLUSH_GLOBAL, FLUSH_PERSISTENT, FLUSH_REGION, false },
		{ ACCESS_FLUSH_GLOBAL, FLUSH_GLOBAL | FLUSH_PERSISTENT, FLUSH_RANGE, false },
		{ ACCESS_FLUSH_PERSISTENT, FLUSH_PERSISTENT, FLUSH_RANGE, true },
	};

	story();
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint32_t key = node_register(&b->node, 0, 0x1000, BASE, PD,
					     ACCESS_LOCAL_WRITE | rows[i].access, 1);

		connect_again(a);
		connect_again(b);
		post(a, .wr_id = i, .opcode = WORK_FLUSH, .flush_type = rows[i].type,
		     .flush_level = rows[i].level, .rkey = key, .to = 0x10, .flush_length = 8);
		exchange();
		expect_completion(a, i, rows[i].good ? STATUS_SUCCESS : STATUS_REM_ACCESS_ERR);
	}
}

/*
 * protocol-map 150, 198: the key is checked even if the range is empty, and ranges do not wrap
 * hostile H-40: an illegal FLUSH.
 */
Test(flush, the_range_is_inside_the_region)
{
	static const struct {
		uint64_t va;
		uint32_t length;
		bool good;
	} rows[] = {
		{ BASE, MEMORY, true },
		{ BASE, MEMORY + 1, false },
		{ BASE + MEMORY, 0, true },
		{ BASE + MEMORY + 1, 0, false },
		{ BASE - 1, 1, false },
		{ UINT64_MAX - 7, 8, false },
		{ 0xfffffffffffffc00, 0x400, false },
		{ BASE, 0, true },
	};

	story();
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		connect_again(b);
		expect_reason(inject(b, OPB_FLUSH, A_PSN, .va = rows[i].va, .rkey = b->key,
				     .dma_length = rows[i].length, .feth = FLUSH_GLOBAL),
			      rows[i].good ? REASON_NONE : REASON_KEY_RANGE);
		if (!rows[i].good)
			expect_nak(b, SYNDROME_NAK_REMOTE_ACCESS, A_PSN, 0);
	}
	for (uint32_t level = FLUSH_RANGE; level <= FLUSH_REGION; level++) {
		connect_again(b);
		expect_reason(inject(b, OPB_FLUSH, A_PSN, .va = BASE, .rkey = 0xbad,
				     .feth = FLUSH_GLOBAL | level << 4),
			      REASON_KEY_UNKNOWN);
	}
}

/*
 * protocol-map 150: the key is of another protection domain
 * hostile H-40: an illegal FLUSH.
 */
Test(flush, a_key_of_another_domain_is_refused)
{
	story();
	uint32_t key = node_register(&b->node, 0, 0x1000, BASE, PD_2, ACCESS_ALL, 1);

	for (uint32_t level = FLUSH_RANGE; level <= FLUSH_REGION; level++) {
		connect_again(b);
		expect_reason(inject(b, OPB_FLUSH, A_PSN, .va = BASE, .rkey = key,
				     .feth = FLUSH_GLOBAL | level << 4),
			      REASON_KEY_PD);
	}
}

/*
 * protocol-map 44, 198
 * hostile H-40: an illegal FLUSH.
 */
Test(flush, impossible_payloads_and_lengths_are_invalid)
{
	story();
	expect_reason(inject(b, OPB_FLUSH, A_PSN, at_memory(b, LANDS, 8), .feth = FLUSH_GLOBAL,
			     .payload_length = 8),
		      REASON_LENGTH_PAYLOAD);
	expect_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN, 0);
	connect_again(b);
	expect_reason(
		inject(b, OPB_FLUSH, A_PSN, at_memory(b, LANDS, 0x80000001u), .feth = FLUSH_GLOBAL),
		REASON_LENGTH_MESSAGE);
	expect_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN, 0);
	expect_untouched(b, LANDS, 16);
}

/* protocol-map 91 */
Test(flush, a_repetition_is_answered_again)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_FLUSH, GLOBAL, .flush_length = 8);
	lose(a, "RC FLUSH", A_PSN);
	at(ms(5));
	pass(a, "RC FLUSH", A_PSN);
	lose(b, "RC READ RESPONSE ONLY", A_PSN);
	at(ms(14)); /* the second timer is twice as long */
	pass(a, "RC FLUSH", A_PSN);
	cr_assert_eq(pass(b, "RC READ RESPONSE ONLY", A_PSN)->msn, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* It uses a record at the peer, as a READ does. */
Test(flush, counts_against_max_rd_atomic)
{
	story(.max_rd_atomic = 1);
	post(a, .wr_id = 1, .opcode = WORK_FLUSH, GLOBAL);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_READ, .length = 8);
	pass(a, "RC FLUSH", A_PSN);
	expect_silence(a);
	pass(b, "RC READ RESPONSE ONLY", A_PSN);
	pass(a, "RC READ REQUEST", A_PSN + 1);
}

/* protocol-map 67: there is no record to keep the answer in */
Test(flush, with_max_dest_rd_atomic_0_a_flush_is_invalid)
{
	story(.max_dest_rd_atomic = -1);
	expect_reason(inject(b, OPB_FLUSH, A_PSN, at_memory(b, LANDS, 8), .feth = FLUSH_GLOBAL),
		      REASON_RD_ATOMIC_LIMIT);
	expect_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN, 0);
}

/* protocol-map 63 */
Test(flush, inside_a_message_it_is_out_of_sequence)
{
	static const uint8_t bases[] = { OPB_FLUSH, OPB_ATOMIC_WRITE };

	story();
	for (uint32_t i = 0; i < ARRAY_SIZE(bases); i++) {
		connect_again(b);
		inject(b, OPB_WRITE_FIRST, A_PSN, at_memory(b, LANDS, 300), .payload_length = MTU);
		expect_reason(inject(b, bases[i], A_PSN + 1, at_memory(b, LANDS, 8),
				     .feth = FLUSH_GLOBAL,
				     .payload_length = bases[i] == OPB_FLUSH ? 0 : 8),
			      REASON_OPCODE_SEQUENCE);
	}
}

/* Requests that a program may not post. */
Test(flush, a_request_without_type_or_level_is_a_local_error)
{
	static const struct {
		uint32_t type, level, length;
		uint8_t status;
	} rows[] = {
		{ 0, FLUSH_RANGE, 8, STATUS_LOC_QP_OP_ERR },
		{ 4, FLUSH_RANGE, 8, STATUS_LOC_QP_OP_ERR },
		{ FLUSH_GLOBAL | 0x100, FLUSH_RANGE, 8, STATUS_LOC_QP_OP_ERR },
		{ FLUSH_GLOBAL, 2, 8, STATUS_LOC_QP_OP_ERR },
		{ FLUSH_GLOBAL, FLUSH_RANGE, 0x80000001u, STATUS_LOC_LEN_ERR },
	};

	story();
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		connect_again(a);
		post(a, .wr_id = i, .opcode = WORK_FLUSH, .flush_type = rows[i].type,
		     .flush_level = rows[i].level, .flush_length = rows[i].length);
		expect_silence(a);
		expect_completion(a, i, rows[i].status);
	}
}
