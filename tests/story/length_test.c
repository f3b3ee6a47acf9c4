/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"

/* A packet is refused as invalid and does not change memory. */
#define expect_invalid(opb, why, ...)                                     \
	do {                                                              \
		connect_again(b);                                         \
		post_receive(b, 1, 1000);                                 \
		expect_reason(inject(b, opb, A_PSN, ##__VA_ARGS__), why); \
		expect_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN, 0);    \
		expect_state(b, QP_STATE_ERR);                            \
		expect_untouched(b, 0, 0x1000);                           \
		expect_untouched(b, LANDS, 0x3000);                       \
	} while (0)

/*
 * protocol-map 37, 43, 72
 * hostile H-20: payloads of a wrong length for their position.
 */
Test(length, first_is_full)
{
	story();
	expect_invalid(OPB_SEND_FIRST, REASON_LENGTH_PAYLOAD, .payload_length = MTU - 4);
	expect_invalid(OPB_SEND_FIRST, REASON_LENGTH_PAYLOAD, .payload_length = MTU + 4);
	expect_invalid(OPB_SEND_FIRST, REASON_LENGTH_PAYLOAD, .payload_length = 0);
	expect_invalid(OPB_SEND_FIRST, REASON_LENGTH_PAYLOAD, .payload_length = MTU, .pad = 2);
	expect_invalid(OPB_WRITE_FIRST, REASON_LENGTH_PAYLOAD, .payload_length = MTU - 4,
		       at_memory(b, 0, 1000));
}

/*
 * protocol-map 43
 * hostile H-20: payloads of a wrong length for their position.
 */
Test(length, only_is_no_longer_than_the_path_mtu)
{
	story();
	expect_invalid(OPB_SEND_ONLY, REASON_LENGTH_PAYLOAD, .payload_length = MTU + 1);
	expect_invalid(OPB_WRITE_ONLY, REASON_LENGTH_PAYLOAD, .payload_length = MTU + 1,
		       at_memory(b, 0, MTU + 1));
}

static void open_send(void)
{
	connect_again(b);
	post_receive(b, 1, 1000);
	inject(b, OPB_SEND_FIRST, A_PSN, .payload_length = MTU);
}

/*
 * protocol-map 43, 77
 * hostile H-20: payloads of a wrong length for their position.
 */
Test(length, middle_is_full_and_last_is_not_empty)
{
	static const struct {
		uint8_t base;
		uint32_t length;
	} bad[] = { { OPB_SEND_MIDDLE, MTU - 1 },
		    { OPB_SEND_MIDDLE, 0 },
		    { OPB_SEND_LAST, 0 },
		    { OPB_SEND_LAST, MTU + 1 } };

	story();
	for (uint32_t i = 0; i < ARRAY_SIZE(bad); i++) {
		open_send();
		expect_reason(inject(b, bad[i].base, A_PSN + 1, .payload_length = bad[i].length),
			      REASON_LENGTH_PAYLOAD);
		expect_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN + 1, 0);
		expect_receive(b, 1, STATUS_LOC_LEN_ERR, 0);
		expect_untouched(b, LANDS + 0x1000 + MTU, 0x1000);
	}
}

/*
 * protocol-map 44
 * hostile H-19: a length that differs from the data sent.
 */
Test(length, two_gigabytes_are_the_maximum)
{
	story();
	expect_invalid(OPB_READ_REQUEST, REASON_LENGTH_MESSAGE, at_memory(b, 0, 0x80000001u));
	expect_invalid(OPB_READ_REQUEST, REASON_LENGTH_MESSAGE, at_memory(b, 0, UINT32_MAX));
	expect_invalid(OPB_WRITE_FIRST, REASON_LENGTH_MESSAGE, at_memory(b, 0, 0x80000001u),
		       .payload_length = MTU);
}

/*
 * protocol-map 45
 * hostile H-19: a length that differs from the data sent; H-21: padding that the length does not need.
 */
Test(length, a_write_of_one_packet_is_as_long_as_it_says)
{
	story();
	expect_invalid(OPB_WRITE_ONLY, REASON_LENGTH_RETH, at_memory(b, 0, 7), .payload_length = 8);
	expect_invalid(OPB_WRITE_ONLY, REASON_LENGTH_RETH, at_memory(b, 0, 9), .payload_length = 8);
	expect_invalid(OPB_WRITE_ONLY, REASON_LENGTH_RETH, at_memory(b, 0, 0), .payload_length = 8);
	expect_invalid(OPB_WRITE_ONLY, REASON_LENGTH_RETH, at_memory(b, 0, 8), .payload_length = 0);
	expect_invalid(OPB_WRITE_FIRST, REASON_LENGTH_RETH, at_memory(b, 0, MTU),
		       .payload_length = MTU);
	expect_invalid(OPB_WRITE_ONLY, REASON_LENGTH_PAYLOAD, at_memory(b, 0, 8),
		       .payload_length = 8, .pad = 1);
}

/*
 * protocol-map 45: one octet short, one octet long, one packet too many; never an octet outside
 * hostile H-19: a length that differs from the data sent.
 */
Test(length, a_write_of_more_packets_is_as_long_as_it_says)
{
	static const uint32_t last[] = { 99, 101 };

	story();
	for (uint32_t i = 0; i < ARRAY_SIZE(last); i++) {
		connect_again(b);
		inject(b, OPB_WRITE_FIRST, A_PSN, at_memory(b, 0, MTU + 100),
		       .payload_length = MTU);
		expect_reason(inject(b, OPB_WRITE_LAST, A_PSN + 1, .payload_length = last[i]),
			      REASON_LENGTH_RETH);
		expect_untouched(b, MTU, 1000);
	}
	connect_again(b);
	inject(b, OPB_WRITE_FIRST, A_PSN, at_memory(b, 0, MTU + 100), .payload_length = MTU);
	expect_reason(inject(b, OPB_WRITE_MIDDLE, A_PSN + 1, .payload_length = MTU),
		      REASON_LENGTH_RETH);
	expect_untouched(b, MTU, 1000);
}

/* protocol-map 72, 77: longer than the receive request */
Test(length, a_message_that_does_not_fit_is_invalid)
{
	story();
	post_receive(b, 1, 9);
	post_receive(b, 2, 9);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	pass(a, "RC SEND ONLY", A_PSN);
	expect_receive(b, 1, STATUS_LOC_LEN_ERR, 0);
	expect_receive(b, 2, STATUS_WR_FLUSH_ERR, 0);
	pass_nak(b, SYNDROME_NAK_INVALID_REQUEST, A_PSN, 0);
	expect_completion(a, 1, STATUS_REM_INV_REQ_ERR);
	expect_untouched(b, LANDS + 0x1000, 0x1000);
}

/* protocol-map 72 */
Test(length, a_message_that_grows_too_long_ends_at_the_request)
{
	story();
	post_receive(b, 1, 300);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 600);
	pass(a, "RC SEND FIRST", A_PSN);
	pass(a, "RC SEND MIDDLE", A_PSN + 1);
	expect_receive(b, 1, STATUS_LOC_LEN_ERR, 0);
	expect_untouched(b, LANDS + 0x1000 + MTU, 0x1000);
}

/* protocol-map 43: every path MTU */
Test(length, every_path_mtu)
{
	for (uint32_t mtu = 1; mtu <= 5; mtu++) {
		uint32_t octets_of = 128u << mtu;

		story(.mtu = mtu);
		post_receive(b, 1, 9000);
		post(a, .wr_id = 1, .opcode = WORK_SEND, .length = octets_of + 1);
		cr_assert_eq(pass(a, "RC SEND FIRST", A_PSN)->payload_length, octets_of);
		cr_assert_eq(pass(a, "RC SEND LAST", A_PSN + 1)->payload_length, 1);
		expect_receive(b, 1, STATUS_SUCCESS, octets_of + 1);
		node_free(&a->node);
		node_free(&b->node);
	}
}
