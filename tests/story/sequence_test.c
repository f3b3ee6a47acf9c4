/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"

/* Every request packet as the peer could send it at this PSN. */
static const struct {
	uint8_t base;
	bool begins, ends;
	enum packet_kind kind;
} table[] = {
	{ OPB_SEND_FIRST, true, false, KIND_SEND },
	{ OPB_SEND_MIDDLE, false, false, KIND_SEND },
	{ OPB_SEND_LAST, false, true, KIND_SEND },
	{ OPB_SEND_LAST_IMM, false, true, KIND_SEND },
	{ OPB_SEND_ONLY, true, true, KIND_SEND },
	{ OPB_SEND_ONLY_IMM, true, true, KIND_SEND },
	{ OPB_WRITE_FIRST, true, false, KIND_WRITE },
	{ OPB_WRITE_MIDDLE, false, false, KIND_WRITE },
	{ OPB_WRITE_LAST, false, true, KIND_WRITE },
	{ OPB_WRITE_LAST_IMM, false, true, KIND_WRITE },
	{ OPB_WRITE_ONLY, true, true, KIND_WRITE },
	{ OPB_WRITE_ONLY_IMM, true, true, KIND_WRITE },
	{ OPB_READ_REQUEST, true, true, KIND_READ_REQUEST },
	{ OPB_CMP_SWAP, true, true, KIND_CMP_SWAP },
	{ OPB_FETCH_ADD, true, true, KIND_FETCH_ADD },
};

/* WRITEs that begin have three packets: two full ones and one of 8 octets. */
static void arrive(uint32_t i, uint32_t psn)
{
	bool fetches = table[i].kind != KIND_SEND && table[i].kind != KIND_WRITE;
	bool only = table[i].begins && table[i].ends;
	uint32_t length = fetches ? 0 : table[i].ends ? 8 : MTU;
	uint32_t reth = fetches || only ? 8 : 2 * MTU + 8;

	inject(b, table[i].base, psn, at_memory(b, 0x100, reth), .payload_length = length);
}

static void drop_replies(void)
{
	while (node_next(b->q, ms(1000), &b->packet, b->payload))
		;
}

/*
 * Two packets, the first one at the start of a message. The second one is legal if the first one's
 * message allows it.
 */
static void pair_of(uint32_t first, uint32_t second)
{
	bool legal = table[first].ends
			     ? table[second].begins
			     : !table[second].begins && table[second].kind == table[first].kind;
	/* The first packet's WRITE has not ended yet. */
	bool early = legal && table[first].base == OPB_WRITE_FIRST && table[second].ends;

	arrive(first, A_PSN);
	cr_assert_eq(qp_state(b->q->core), QP_STATE_RTS);
	drop_replies();
	arrive(second, A_PSN + 1);
	if (legal && !early) {
		expect_state(b, QP_STATE_RTS);
		return;
	}
	expect_reason(b->q->reason, early ? REASON_LENGTH_RETH : REASON_OPCODE_SEQUENCE);
	expect_state(b, QP_STATE_ERR);
	expect_packet(b, "RC ACK", A_PSN + 1);
	cr_assert_eq(b->packet.syndrome, SYNDROME_NAK_INVALID_REQUEST);
}

/*
 * protocol-map 62, 63, 64
 * hostile H-24: every opcode after every other.
 */
Test(sequence, every_ordered_pair_of_opcodes)
{
	story();
	for (uint32_t i = 0; i < ARRAY_SIZE(table); i++) {
		for (uint32_t j = 0; j < ARRAY_SIZE(table); j++) {
			if (!table[i].begins)
				continue;
			connect_again(b);
			for (uint64_t r = 1; r <= 2; r++)
				post_receive(b, r, 1000);
			pair_of(i, j);
		}
	}
}

/*
 * protocol-map 62
 * hostile H-24: every opcode after every other.
 */
Test(sequence, a_message_does_not_begin_in_the_middle)
{
	story();
	for (uint32_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (table[i].begins)
			continue;
		connect_again(b);
		post_receive(b, 1, 1000);
		arrive(i, A_PSN);
		expect_reason(b->q->reason, REASON_OPCODE_SEQUENCE);
		expect_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN, 0);
		expect_untouched(b, 0x100, MTU);
	}
}

/*
 * protocol-map 63: an open message leaves nothing behind
 * hostile H-24: every opcode after every other.
 */
Test(sequence, a_new_connection_knows_nothing_of_an_open_message)
{
	story();
	post_receive(b, 1, 1000);
	inject(b, OPB_SEND_FIRST, A_PSN, .payload_length = MTU);
	connect_again(b);
	post_receive(b, 2, 1000);
	inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 4);
	expect_receive(b, 2, STATUS_SUCCESS, 4);
}

/*
 * protocol-map 56, 59
 * hostile H-32: jumps in the PSN.
 */
Test(sequence, half_of_all_psns_are_ahead_and_half_behind)
{
	static const struct {
		uint32_t jump;
		enum reason reason;
	} jumps[] = {
		{ 0x7fffff, REASON_PSN_AHEAD }, { 1, REASON_PSN_AHEAD_AGAIN },
		{ 0x800000, REASON_DUPLICATE }, { 0x800001, REASON_DUPLICATE },
		{ 0xffffff, REASON_DUPLICATE },
	};

	story();
	for (uint32_t i = 0; i < ARRAY_SIZE(jumps); i++)
		expect_reason(inject(b, OPB_WRITE_ONLY, A_PSN + jumps[i].jump, at_memory(b, 0, 8),
				     .payload_length = 8),
			      jumps[i].reason);
	expect_untouched(b, 0, 8);
	expect_state(b, QP_STATE_RTS);
}

/*
 * protocol-map 59: a burst ahead gets one NAK, a burst behind gets ACKs that coalesce
 * hostile H-32: jumps in the PSN.
 */
Test(sequence, a_burst_is_not_answered_by_a_burst)
{
	uint32_t answers = 0;

	story();
	for (uint32_t i = 1; i < 1000; i++)
		inject(b, OPB_WRITE_ONLY, A_PSN + i, at_memory(b, 0, 8), .payload_length = 8,
		       .ack_req = true);
	for (uint32_t i = 1; i < 1000; i++)
		inject(b, OPB_WRITE_ONLY, A_PSN - i, at_memory(b, 0, 8), .payload_length = 8,
		       .ack_req = true);
	while (node_next(b->q, ms(1000), &b->packet, b->payload))
		answers++;
	cr_assert(answers >= 1 && answers <= 2, "%u answers", answers);
	expect_untouched(b, 0, 8);
}

/* protocol-map 65 */
Test(sequence, operations_that_the_queue_pair_does_not_allow_are_invalid)
{
	static const uint8_t bases[] = { OPB_WRITE_ONLY, OPB_READ_REQUEST, OPB_CMP_SWAP,
					 OPB_FETCH_ADD };

	story(.access = ACCESS_LOCAL_WRITE);
	for (uint32_t i = 0; i < ARRAY_SIZE(bases); i++) {
		connect_again(b);
		inject(b, bases[i], A_PSN, at_memory(b, 0, 8),
		       .payload_length = bases[i] == OPB_WRITE_ONLY ? 8 : 0);
		expect_reason(b->q->reason, REASON_ACCESS_FLAGS);
		expect_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN, 0);
		expect_untouched(b, 0, 8);
	}
	connect_again(b);
	post_receive(b, 1, 100);
	inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 8);
	expect_receive(b, 1, STATUS_SUCCESS, 8);
}

/* protocol-map 69: PSN, opcode, operation, resources, length, key: the first fault counts */
Test(sequence, checks_are_made_in_order)
{
	story(.no_access = ACCESS_REMOTE_READ);
	expect_reason(inject(b, OPB_SEND_MIDDLE, A_PSN + 1, .payload_length = 1), REASON_PSN_AHEAD);
	expect_reason(inject(b, OPB_SEND_ONLY, A_PSN, .payload_length = 5000),
		      REASON_RECEIVE_NOT_READY);
	connect_again(b);
	expect_reason(inject(b, OPB_WRITE_ONLY, A_PSN, .rkey = 0xbad, .dma_length = 9,
			     .payload_length = 8),
		      REASON_LENGTH_RETH);
	connect_again(b);
	expect_reason(inject(b, OPB_READ_REQUEST, A_PSN, .rkey = 0xbad, .dma_length = UINT32_MAX),
		      REASON_ACCESS_FLAGS);
	connect_again(b);
	expect_reason(inject(b, OPB_CMP_SWAP, A_PSN, .rkey = 0xbad, .va = 1),
		      REASON_ATOMIC_ALIGNMENT);
}

/* protocol-map 53, 57 */
Test(sequence, psns_wrap)
{
	story(.sq_psn = 0xfffffe);
	post_receive(b, 1, 2000);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 1000);
	pass(a, "RC SEND FIRST", 0xfffffe);
	pass(a, "RC SEND MIDDLE", 0xffffff);
	lose(a, "RC SEND MIDDLE", 0);
	pass(a, "RC SEND LAST", 1);
	pass_nak(b, SYNDROME_NAK_SEQUENCE, 0, 0);
	pass(a, "RC SEND MIDDLE", 0);
	pass(a, "RC SEND LAST", 1);
	expect_receive(b, 1, STATUS_SUCCESS, 1000);
	pass_ack(b, 1, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 57 */
Test(sequence, a_read_response_wraps)
{
	story(.sq_psn = 0xfffffe);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 1000);
	pass(a, "RC READ REQUEST", 0xfffffe);
	pass(b, "RC READ RESPONSE FIRST", 0xfffffe);
	pass(b, "RC READ RESPONSE MIDDLE", 0xffffff);
	lose(b, "RC READ RESPONSE MIDDLE", 0);
	lose(b, "RC READ RESPONSE LAST", 1);
	at(ms(20));
	pass(a, "RC READ REQUEST", 0);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, 1000);
}
