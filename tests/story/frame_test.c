/* SPDX-License-Identifier: BSD-3-Clause */
/* RAW_PACKET: whole Ethernet frames are sent and received. */
#include "story/story.h"

#define raw(...) story(.type = QP_TYPE_RAW_PACKET, ##__VA_ARGS__)

/* protocol-map 180 */
Test(frame, a_frame_is_sent_and_received_whole)
{
	raw(.hold_sent = true);
	post_receive(b, 1, 2000);
	post(a, .wr_id = 7, .opcode = WORK_SEND, .length = FRAME);
	const struct packet *p = pass_frame(a);

	cr_assert(p->payload_length == FRAME && p->mss == 0 && !p->checksum);
	struct completion c = expect_receive(b, 1, STATUS_SUCCESS, FRAME);

	cr_assert(c.opcode == COMPLETION_RECV && c.wc_flags == 0 && !c.solicited);
	expect_same(b, LANDS + 0x1000, a, 0, FRAME);
	expect_no_completion(a);
	sent(a, p);
	expect_completion(a, 7, STATUS_SUCCESS);
	expect_silence(b);
}

Test(frame, a_frame_of_any_octets_is_received)
{
	struct packet p = { .opcode = 0xff, /* these fields are not set by a peer */
			    .pkey = 0x1234,
			    .psn = 0xffffff,
			    .pad = 3,
			    .solicited = true,
			    .payload_length = 61,
			    .checksum = true,
			    .vlan_tci = 0x6005,
			    .flow_tag = 0xabcd };
	raw();
	post_receive(b, 1, 61);
	expect_reason(story_inject(b, &p), REASON_NONE);
	struct completion c = expect_receive(b, 1, STATUS_SUCCESS, 61);

	cr_assert(c.src_qp == 0xabcd && c.slid == 0x6005 && c.imm == 0);
	cr_assert_eq(c.wc_flags, COMPLETION_IP_CSUM_OK);
}

Test(frame, a_frame_without_a_request_or_room_is_dropped)
{
	struct packet p = { .payload_length = 100 };

	raw();
	expect_reason(story_inject(b, &p), REASON_RECEIVE_NOT_READY);
	post_receive(b, 1, 99);
	expect_reason(story_inject(b, &p), REASON_LENGTH_RECEIVE);
	expect_untouched(b, 0, MEMORY);
	p.payload_length = 99;
	expect_reason(story_inject(b, &p), REASON_NONE);
	expect_receive(b, 1, STATUS_SUCCESS, 99);
	expect_state(b, QP_STATE_RTS);
}

Test(frame, inline_octets_are_the_frame)
{
	raw();
	post_receive(b, 1, 100);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 60, .flags = WORK_INLINE | WORK_IP_CSUM);
	cr_assert(pass_frame(a)->checksum);
	expect_receive(b, 1, STATUS_SUCCESS, 60);
	expect_same(b, LANDS + 0x1000, a, 0, 60);
}

Test(frame, invalid_frame_lengths_are_local_errors)
{
	static const uint32_t lengths[] = { 0, 13, FRAME + 1, 0x10000 };
	struct qp_attributes none = { 0 };

	raw();
	for (uint32_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		post(a, .wr_id = i, .opcode = WORK_SEND, .length = lengths[i]);
		expect_silence(a);
		expect_completion(a, i, STATUS_LOC_LEN_ERR);
		expect_state(a, QP_STATE_SQE);
		cr_assert_eq(modify(a, QP_STATE_RTS, 0, &none), 0);
	}
	post(a, .wr_id = 9, .opcode = WORK_SEND, .length = 14);
	expect_frame(a);
	expect_completion(a, 9, STATUS_SUCCESS);
}

#define HEADER "ethernet....ip..and.tcp."

/* A long frame that is cut later: the header comes first, then the octets of the elements. */
Test(frame, tso_is_one_packet_with_its_header_in_front)
{
	raw();
	post(a, .wr_id = 1, .opcode = WORK_TSO, .length = 3000, .header = HEADER, .mss = 1000,
	     .flags = WORK_IP_CSUM);
	const struct packet *p = expect_frame(a);
	uint32_t header = (uint32_t)strlen(HEADER);

	cr_assert(p->mss == 1000 && p->tso_header == header && p->checksum);
	cr_assert_eq(p->payload_length, header + 3000);
	cr_assert_arr_eq(p->payload, HEADER, header);
	cr_assert_arr_eq(p->payload + header, octets(a, 0), 3000);
	cr_assert_eq(expect_completion(a, 1, STATUS_SUCCESS).opcode, COMPLETION_TSO);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 100);
	p = expect_frame(a);
	cr_assert(p->mss == 0 && p->tso_header == 0 && p->payload_length == 100);
}

Test(frame, invalid_tso_requests_are_local_errors)
{
	static const struct tso_row rows[] = {
		{ 1000, HEADER, 0, 0, STATUS_LOC_QP_OP_ERR },
		{ 1000, NULL, 500, 0, STATUS_LOC_QP_OP_ERR },
		{ 1000, "too short", 500, 0, STATUS_LOC_QP_OP_ERR },
		{ 50, HEADER, 500, WORK_INLINE, STATUS_LOC_QP_OP_ERR },
		{ LIMIT_TSO + 1, HEADER, 500, 0, STATUS_LOC_LEN_ERR },
		{ 1000, HEADER, FRAME - 23, 0, STATUS_LOC_LEN_ERR },
		{ 1000, HEADER, 65535, 0, STATUS_LOC_LEN_ERR },
		{ 1000, HEADER, FRAME - 24, 0, STATUS_SUCCESS },
	};

	raw();
	expect_tso(rows, ARRAY_SIZE(rows));
}

/* A program wrote a header length that exceeds its slot. */
Test(frame, a_tso_header_lies_inside_the_slot)
{
	struct send_work w = {
		.wr_id = 1, .opcode = WORK_TSO, .flags = WORK_SIGNALED, .mss = 1000
	};
	struct send_work *slot;
	uint32_t room;

	raw();
	room = send_work_stride(a->q->caps.max_send_sge, a->q->caps.max_inline) - sizeof(w);
	for (uint32_t more = 0; more < 2; more++) {
		w.tso_header = (uint16_t)(room + more);
		slot = qp_window_slot(a->q->core);
		*slot = w;
		qp_posted(a->q->core);
		node_collect(a->q, 0);
		if (more == 0) {
			cr_assert_eq(expect_frame(a)->payload_length, room);
			expect_completion(a, 1, STATUS_SUCCESS);
		} else {
			expect_silence(a);
			expect_completion(a, 1, STATUS_LOC_QP_OP_ERR);
		}
	}
}

Test(frame, immediate_data_is_not_carried)
{
	raw();
	post(a, .wr_id = 1, .opcode = WORK_SEND_WITH_IMM, .length = 100);
	expect_silence(a);
	expect_completion(a, 1, STATUS_LOC_QP_OP_ERR);
}

/* A frame that its sender may not send: its request fails, and later requests are flushed. */
Test(frame, one_that_is_refused_fails_in_its_turn)
{
	struct qp_attributes none = { 0 };
	struct packet p[3];

	raw(.hold_sent = true);
	for (uint32_t i = 0; i < 3; i++) {
		post(a, .wr_id = i, .opcode = WORK_SEND, .length = 100);
		p[i] = *expect_frame(a);
	}
	qp_refused(a->q->core, &p[1], STATUS_LOC_QP_OP_ERR, REASON_RAW_ROCE);
	node_collect(a->q, 0);
	expect_no_completion(a);
	sent(a, &p[0]);
	expect_completion(a, 0, STATUS_SUCCESS);
	cr_assert_eq(expect_completion(a, 1, STATUS_LOC_QP_OP_ERR).vendor_err, REASON_RAW_ROCE);
	expect_completion(a, 2, STATUS_WR_FLUSH_ERR);
	expect_state(a, QP_STATE_SQE);
	cr_assert_eq(modify(a, QP_STATE_RTS, 0, &none), 0);
	post(a, .wr_id = 9, .opcode = WORK_SEND, .length = 100);
	p[0] = *expect_frame(a);
	sent(a, &p[0]);
	expect_completion(a, 9, STATUS_SUCCESS);
}
