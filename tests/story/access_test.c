/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"

/* b refuses both a WRITE and a READ of `length` octets at `va` with this key. */
static void expect_refused(uint32_t key, uint64_t va, uint32_t length)
{
	connect_again(b);
	inject(b, OPB_WRITE_ONLY, A_PSN, .va = va, .rkey = key, .dma_length = length,
	       .payload_length = length);
	expect_nak(b, SYNDROME_NAK_REMOTE_ACCESS, A_PSN, 0);
	expect_state(b, QP_STATE_ERR);
	expect_events(b, QP_EVENT_ACCESS_ERR | QP_EVENT_REFUSED_ACCESS);
	connect_again(b);
	inject(b, OPB_READ_REQUEST, A_PSN, .va = va, .rkey = key, .dma_length = length);
	expect_nak(b, SYNDROME_NAK_REMOTE_ACCESS, A_PSN, 0);
	expect_silence(b);
	expect_untouched(b, 0, MEMORY);
}

/*
 * protocol-map 73, 150
 * hostile H-34: keys of another domain, unused keys, keys with other low bits.
 */
Test(access, a_key_is_matched_in_all_its_bits)
{
	story();
	for (uint32_t bit = 0; bit < 32; bit++)
		expect_refused(b->key ^ 1u << bit, BASE, 8);
	expect_refused(0, BASE, 8);
}

/* protocol-map 150 */
Test(access, a_range_ends_with_the_region)
{
	story();
	uint32_t key = node_register(&b->node, 0x1000, 0x100, BASE + 0x1000, PD, ACCESS_ALL, 1);

	expect_refused(key, BASE + 0x0fff, 8);
	expect_refused(key, BASE + 0x10f9, 8);
	expect_refused(key, BASE + 0x1100, 1);
	expect_refused(key, BASE, 8);
	connect_again(b);
	inject(b, OPB_WRITE_ONLY, A_PSN, .va = BASE + 0x10f8, .rkey = key, .dma_length = 8,
	       .payload_length = 8);
	expect_state(b, QP_STATE_RTS);
}

/*
 * protocol-map 150: sums do not wrap
 * hostile H-16: a range that wraps around.
 */
Test(access, a_range_does_not_wrap)
{
	story();
	uint32_t top = node_register(&b->node, 0, 0x400, UINT64_C(0) - 0x800, PD, ACCESS_ALL, 1);

	expect_refused(b->key, UINT64_MAX - 0xff, 0x100);
	expect_refused(b->key, UINT64_MAX, 8);
	expect_refused(top, UINT64_C(0) - 0x404, 8);
	expect_refused(top, UINT64_C(0) - 4, 8);
}

/*
 * protocol-map 150
 * hostile H-34: keys of another domain, unused keys, keys with other low bits.
 */
Test(access, a_key_of_another_protection_domain_is_refused)
{
	story();
	expect_refused(node_register(&b->node, 0, 0x1000, BASE, PD + 1, ACCESS_ALL, 1), BASE, 8);
}

/* protocol-map 150 */
Test(access, a_region_allows_what_it_was_registered_for)
{
	story();
	uint32_t key = node_register(&b->node, 0, 0x1000, BASE, PD, ACCESS_LOCAL_WRITE, 1);

	expect_refused(key, BASE, 8);
}

/*
 * protocol-map 150
 * hostile H-34: keys of another domain, unused keys, keys with other low bits.
 */
Test(access, a_withdrawn_key_is_refused)
{
	story();
	uint32_t key = node_register(&b->node, 0, 0x1000, BASE, PD, ACCESS_ALL, 1);

	node_deregister(&b->node, key);
	expect_refused(key, BASE, 8);
}

/* protocol-map 151: the first packet checks the whole range */
Test(access, nothing_of_a_write_is_placed_if_its_end_is_outside)
{
	story();
	inject(b, OPB_WRITE_FIRST, A_PSN, at_memory(b, MEMORY - 300, 301), .payload_length = MTU);
	expect_nak(b, SYNDROME_NAK_REMOTE_ACCESS, A_PSN, 0);
	expect_untouched(b, MEMORY - 300, 300);
}

/* protocol-map 152 */
Test(access, a_key_that_goes_away_ends_the_write_at_the_next_packet)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 600);
	pass(a, "RC WRITE FIRST", A_PSN);
	node_deregister(&b->node, b->key);
	pass(a, "RC WRITE MIDDLE", A_PSN + 1);
	expect_same(b, LANDS, a, 0, MTU);
	expect_untouched(b, LANDS + MTU, MTU);
	pass_nak(b, SYNDROME_NAK_REMOTE_ACCESS, A_PSN + 1, 0);
	expect_completion(a, 1, STATUS_REM_ACCESS_ERR);
}

/* A packet of four octets with headers that the peer does not use. */
static enum reason odd_packet(uint8_t opcode, uint32_t psn, uint16_t pkey)
{
	struct packet p = { .opcode = opcode,
			    .psn = psn,
			    .pkey = pkey,
			    .dest_qpn = B_QPN,
			    .va = BASE,
			    .rkey = b->key,
			    .dma_length = 4,
			    .payload_length = 4 };

	return story_inject(b, &p);
}

/* protocol-map 34 */
Test(access, packets_of_another_service_are_dropped)
{
	static const uint8_t services[] = { SERVICE_UC, SERVICE_UD, SERVICE_XRC };

	story();
	post_receive(b, 1, 100);
	for (uint32_t i = 0; i < ARRAY_SIZE(services); i++)
		expect_reason(odd_packet(OPCODE(services[i], OPB_SEND_ONLY), A_PSN, 0xffff),
			      REASON_SERVICE_MISMATCH);
	expect_silence(b);
	expect_no_completion(b);
	expect_state(b, QP_STATE_RTS);
}

/*
 * protocol-map 36
 * hostile H-61: foreign P_Keys.
 */
Test(access, partition_keys_match_in_fifteen_bits)
{
	static const uint16_t foreign[] = { 0x1234, 0x8000, 0, 0xfffe };

	story();
	for (uint32_t i = 0; i < ARRAY_SIZE(foreign); i++)
		expect_reason(odd_packet(OPB_WRITE_ONLY, A_PSN, foreign[i]), REASON_PKEY);
	expect_silence(b);
	expect_untouched(b, 0, 8);
	expect_reason(odd_packet(OPB_WRITE_ONLY, A_PSN, 0x7fff), REASON_NONE);
	expect_reason(odd_packet(OPB_WRITE_ONLY, A_PSN + 1, 0xffff), REASON_NONE);
}

/*
 * protocol-map 10: packets that are not from the peer
 * hostile H-53: packets from another address.
 */
Test(access, packets_of_strangers_are_dropped)
{
	struct packet p = { .opcode = OPCODE(SERVICE_RC, OPB_WRITE_ONLY),
			    .pkey = 0xffff,
			    .psn = A_PSN,
			    .dest_qpn = B_QPN,
			    .dst_gid = { { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 } },
			    .src_gid = { { [10] = 0xff, [11] = 0xff, 10, 0, 0, 3 } } };

	story();
	expect_reason(node_received(b->q, &p, ms(1000)), REASON_ADDRESS_MISMATCH);
	p.src_gid.octet[15] = 1;
	p.dst_gid.octet[15] = 9;
	expect_reason(node_received(b->q, &p, ms(1000)), REASON_ADDRESS_MISMATCH);
	expect_silence(b);
	p.dst_gid.octet[15] = 2;
	expect_reason(node_received(b->q, &p, ms(1000)), REASON_NONE);
}

/*
 * Only packets from the peer's address can end a connection or slow it down. hostile H-44: forged
 * NAKs; H-58: endless notifications; H-59: notifications from strangers.
 */
Test(access, a_stranger_neither_ends_nor_slows_a_connection)
{
	static const uint8_t syndromes[] = { 0x60, 0x61, 0x62, 0x63, 0x64, 0x20, 0x1f };
	struct packet p = { .pkey = 0xffff,
			    .psn = A_PSN,
			    .dest_qpn = A_QPN,
			    .dst_gid = { { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 } },
			    .src_gid = { { [10] = 0xff, [11] = 0xff, 10, 0, 0, 3 } } };

	story(.no_timeout = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 8);
	lose(a, "RC WRITE ONLY", A_PSN);
	p.opcode = OPCODE_CNP;
	expect_reason(node_received(a->q, &p, ms(1)), REASON_ADDRESS_MISMATCH);
	p.opcode = OPCODE(SERVICE_RC, OPB_ACK);
	for (uint32_t i = 0; i < ARRAY_SIZE(syndromes); i++) {
		p.syndrome = syndromes[i];
		expect_reason(node_received(a->q, &p, ms(1)), REASON_ADDRESS_MISMATCH);
	}
	expect_no_completion(a);
	expect_state(a, QP_STATE_RTS);
	p.src_gid.octet[15] = 2;
	p.syndrome = 0x1f;
	expect_reason(node_received(a->q, &p, ms(1)), REASON_NONE);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/*
 * hostile H-54: for a packet that never left the engine, the engine knows which queue pair sent it.
 */
Test(access, inside_the_engine_packets_of_strangers_are_dropped)
{
	struct packet p = { .opcode = OPCODE(SERVICE_RC, OPB_WRITE_ONLY),
			    .pkey = 0xffff,
			    .psn = A_PSN,
			    .dest_qpn = B_QPN,
			    .dst_gid = { { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 } },
			    .src_gid = { { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 } } };
	static const uint8_t answers[] = { OPB_ACK, OPB_ATOMIC_ACK, OPB_READ_RESPONSE_ONLY };

	story();
	p.sender = A_QPN + 1;
	expect_reason(node_received(b->q, &p, ms(1000)), REASON_SENDER_FOREIGN);
	for (uint32_t i = 0; i < ARRAY_SIZE(answers); i++) {
		p.opcode = OPCODE(SERVICE_RC, answers[i]);
		expect_reason(node_received(b->q, &p, ms(1000)), REASON_SENDER_FOREIGN);
	}
	p.opcode = OPCODE_CNP;
	expect_reason(node_received(b->q, &p, ms(1000)), REASON_SENDER_FOREIGN);
	expect_silence(b);
	expect_state(b, QP_STATE_RTS);
	p.opcode = OPCODE(SERVICE_RC, OPB_WRITE_ONLY);
	p.sender = A_QPN;
	expect_reason(node_received(b->q, &p, ms(1000)), REASON_NONE);
}

/*
 * protocol-map 38: both values of MigReq are accepted
 * hostile H-9: versions and reserved bits.
 */
Test(access, the_migration_bit_is_ignored)
{
	story();
	expect_reason(inject(b, OPB_WRITE_ONLY, A_PSN, .mig_req = true), REASON_NONE);
	expect_reason(inject(b, OPB_WRITE_ONLY, A_PSN + 1, .mig_req = false), REASON_NONE);
	post(a, .opcode = WORK_RDMA_WRITE);
	cr_assert(expect_packet(a, "RC WRITE ONLY", A_PSN)->mig_req);
}
