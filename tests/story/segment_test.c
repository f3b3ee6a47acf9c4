/* SPDX-License-Identifier: BSD-3-Clause */
/* TSO on UD: a request becomes one datagram per segment, and completes with the last one. */
#include "story/story.h"

#define ud(...) story(.type = QP_TYPE_UD, ##__VA_ARGS__)

#define HEADER	      "a header, given as it is"
#define HEADER_LENGTH 24u
#define MSS	      1000u

#define post_stream(side, id, octets, ...)                                              \
	post(side, .wr_id = id, .opcode = WORK_TSO, .length = octets, .header = HEADER, \
	     .mss = MSS, ##__VA_ARGS__)

/* Checks one segment of a stream that begins at the start of a's memory. */
static void check(const struct packet *p, uint32_t number, uint32_t n, bool last)
{
	cr_assert(p->mss == MSS && p->tso_header == HEADER_LENGTH && p->tso_segment == number &&
		  p->tso_last == last);
	cr_assert_eq(p->payload_length, HEADER_LENGTH + n);
	cr_assert_eq(p->pad, -p->payload_length & 3);
	cr_assert_arr_eq(p->payload, HEADER, HEADER_LENGTH);
	cr_assert_arr_eq(p->payload + HEADER_LENGTH, octets(a, number * MSS), n);
}

/* protocol-map 180 */
Test(segment, each_segment_is_a_datagram_with_the_header)
{
	ud(.hold_sent = true);
	struct packet p[3];

	for (uint32_t i = 1; i <= 3; i++)
		post_receive(b, i, 2000);
	post_stream(a, 7, 2501, .ah = 77, .flags = WORK_SOLICITED);
	for (uint32_t i = 0; i < 3; i++) {
		bool last = i == 2;

		p[i] = *pass(a, "UD SEND ONLY", A_PSN + i);
		check(&p[i], i, last ? 501 : MSS, last);
		cr_assert(p[i].ah == 77 && p[i].qkey == QKEY && p[i].src_qpn == A_QPN &&
			  p[i].dest_qpn == B_QPN && !p[i].ack_req && p[i].solicited == last);
		struct completion c = expect_receive(b, i + 1, STATUS_SUCCESS,
						     GRH + HEADER_LENGTH + (last ? 501 : MSS));

		cr_assert_eq(c.solicited, last);
		expect_same(b, LANDS + (i + 1) * 0x1000 + GRH + HEADER_LENGTH, a, i * MSS,
			    last ? 501 : MSS);
	}
	expect_silence(a);
	for (uint32_t i = 0; i < 3; i++) {
		expect_no_completion(a);
		sent(a, &p[i]);
	}
	struct completion c = expect_completion(a, 7, STATUS_SUCCESS);

	cr_assert_eq(c.opcode, COMPLETION_TSO);
	expect_no_completion(a);
	post(a, .wr_id = 8, .opcode = WORK_SEND, .length = 10);
	cr_assert_eq(expect_packet(a, "UD SEND ONLY", A_PSN + 3)->mss, 0);
}

Test(segment, lengths_around_a_segment)
{
	static const uint32_t lengths[] = { 0, 1, MSS - 1, MSS, MSS + 1, 2 * MSS };
	uint32_t psn = A_PSN;

	ud();
	for (uint32_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint32_t segments = lengths[i] == 0 ? 1 : (lengths[i] + MSS - 1) / MSS;

		post_stream(a, i, lengths[i]);
		for (uint32_t k = 0; k < segments; k++)
			check(expect_packet(a, "UD SEND ONLY", psn++), k,
			      MIN_OF(lengths[i] - k * MSS, MSS), k + 1 == segments);
		expect_silence(a);
		expect_completion(a, i, STATUS_SUCCESS);
	}
}

Test(segment, a_header_may_be_one_octet)
{
	ud();
	post(a, .wr_id = 1, .opcode = WORK_TSO, .length = MSS + 1, .header = "h", .mss = MSS);
	for (uint32_t i = 0; i < 2; i++) {
		const struct packet *p = expect_packet(a, "UD SEND ONLY", A_PSN + i);

		cr_assert_eq(p->payload_length, 1 + (i == 0 ? MSS : 1));
		cr_assert_eq(p->payload[0], 'h');
		cr_assert_eq(p->payload[1], *octets(a, i * MSS));
	}
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* The maximum for one request: one octet each, past the wrap of the PSNs. */
Test(segment, as_many_segments_as_octets)
{
	ud(.sq_psn = 0xffff00);
	post(a, .wr_id = 1, .opcode = WORK_TSO, .length = LIMIT_TSO, .header = HEADER, .mss = 1);
	for (uint32_t i = 0; i < LIMIT_TSO; i++) {
		const struct packet *p = expect_packet(a, "UD SEND ONLY", psn_add(0xffff00, i));

		cr_assert_eq(p->tso_segment, i);
		cr_assert_eq(p->tso_last, i + 1 == LIMIT_TSO);
		cr_assert_eq(p->payload[HEADER_LENGTH], *octets(a, i));
	}
	expect_silence(a);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* A lost datagram affects no other; its request completes. */
Test(segment, a_lost_segment_is_lost_alone)
{
	ud();
	post_receive(b, 1, 2000);
	post_receive(b, 2, 2000);
	post_stream(a, 1, 3 * MSS);
	pass(a, "UD SEND ONLY", A_PSN);
	lose(a, "UD SEND ONLY", A_PSN + 1);
	pass(a, "UD SEND ONLY", A_PSN + 2);
	expect_completion(a, 1, STATUS_SUCCESS);
	for (uint32_t i = 1; i <= 2; i++)
		expect_receive(b, i, STATUS_SUCCESS, GRH + HEADER_LENGTH + MSS);
	expect_same(b, LANDS + 0x2000 + GRH + HEADER_LENGTH, a, 2 * MSS, MSS);
}

/*
 * The port was full: the rest of the stream is sent again, unchanged, with the requests behind it.
 */
Test(segment, an_unsent_segment_is_sent_next)
{
	ud(.hold_sent = true);
	struct packet p[5];

	post_stream(a, 1, 4 * MSS);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	for (uint32_t i = 0; i < 5; i++)
		p[i] = *expect_packet(a, "UD SEND ONLY", A_PSN + i);
	for (uint32_t i = 5; i-- > 2;)
		unsent(a, &p[i]);
	sent(a, &p[0]);
	sent(a, &p[1]);
	expect_no_completion(a);
	for (uint32_t i = 2; i < 4; i++) {
		p[i] = *expect_packet(a, "UD SEND ONLY", A_PSN + i);
		check(&a->packet, i, MSS, i == 3);
	}
	p[4] = *expect_packet(a, "UD SEND ONLY", A_PSN + 4);
	cr_assert_eq(p[4].mss, 0);
	for (uint32_t i = 2; i < 5; i++)
		sent(a, &p[i]);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
}

/* Earlier segments were sent; the request fails, and those behind it are flushed. */
Test(segment, missing_octets_stop_the_send_queue)
{
	struct qp_attributes none = { 0 };

	ud(.hold_sent = true);
	struct packet p[3];

	post_stream(a, 1, 3 * MSS);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	for (uint32_t i = 0; i < 3; i++)
		p[i] = *expect_packet(a, "UD SEND ONLY", A_PSN + i);
	sent(a, &p[0]);
	gather_failed(a, &p[1]);
	sent(a, &p[2]);
	expect_completion(a, 1, STATUS_LOC_PROT_ERR);
	expect_completion(a, 2, STATUS_WR_FLUSH_ERR);
	expect_state(a, QP_STATE_SQE);
	expect_events(a, QP_EVENT_SQ_ERROR);
	cr_assert_eq(modify(a, QP_STATE_RTS, 0, &none), 0);
	post_stream(a, 3, 10);
	p[0] = *expect_frame(a);
	check(&a->packet, 0, 10, true);
	cr_assert_neq(p[0].psn, p[1].psn, "a PSN was used twice");
	sent(a, &p[0]);
	expect_completion(a, 3, STATUS_SUCCESS);
}

/* Its header turned out not to be TCP. */
Test(segment, one_that_is_refused_fails_in_its_turn)
{
	ud(.hold_sent = true);
	struct packet p[3];

	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	post_stream(a, 2, 2 * MSS);
	for (uint32_t i = 0; i < 3; i++)
		p[i] = *expect_packet(a, "UD SEND ONLY", A_PSN + i);
	unsent(a, &p[2]);
	qp_refused(a->q->core, &p[1], STATUS_LOC_QP_OP_ERR, REASON_WORK_MALFORMED);
	node_collect(a->q, 0);
	expect_no_completion(a);
	expect_silence(a);
	sent(a, &p[0]);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_LOC_QP_OP_ERR);
	expect_state(a, QP_STATE_SQE);
}

/* The key covers only the first segment. */
Test(segment, memory_that_ends_too_early)
{
	ud();
	post_stream(a, 1, 2 * MSS, .from = MEMORY - MSS - 100);
	lose(a, "UD SEND ONLY", A_PSN);
	expect_silence(a);
	expect_completion(a, 1, STATUS_LOC_PROT_ERR);
	expect_state(a, QP_STATE_SQE);
}

/* SQD: a request that has begun is finished, then the queue is drained. */
Test(segment, a_stream_that_has_begun_drains)
{
	struct qp_attributes drain = { .en_sqd_async_notify = 1 };

	ud();
	post_stream(a, 1, 3 * MSS);
	post_stream(a, 2, MSS);
	lose(a, "UD SEND ONLY", A_PSN);
	cr_assert_eq(modify(a, QP_STATE_SQD, QP_ATTR_EN_SQD_ASYNC_NOTIFY, &drain), 0);
	lose(a, "UD SEND ONLY", A_PSN + 1);
	expect_events(a, 0);
	lose(a, "UD SEND ONLY", A_PSN + 2);
	expect_silence(a);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_no_completion(a);
	expect_events(a, QP_EVENT_SQ_DRAINED);
}

Test(segment, invalid_requests_are_local_errors)
{
	static const struct tso_row rows[] = {
		{ 1000, HEADER, 0, 0, STATUS_LOC_QP_OP_ERR },
		{ 1000, NULL, 500, 0, STATUS_LOC_QP_OP_ERR },
		{ 50, HEADER, 500, WORK_INLINE, STATUS_LOC_QP_OP_ERR },
		{ LIMIT_TSO + 1, HEADER, 500, 0, STATUS_LOC_LEN_ERR },
		{ 1000, HEADER, 4096 - HEADER_LENGTH + 1, 0, STATUS_LOC_LEN_ERR },
		{ 10, HEADER, 65535, 0, STATUS_LOC_LEN_ERR },
		{ 1000, HEADER, 4096 - HEADER_LENGTH, 0, STATUS_SUCCESS },
	};

	ud();
	expect_tso(rows, ARRAY_SIZE(rows));
}
