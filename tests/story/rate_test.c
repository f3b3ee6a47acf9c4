/* SPDX-License-Identifier: BSD-3-Clause */
/* A rate limit delays packets, and nothing else. */
#include "story/story.h"

static const uint32_t types[] = { QP_TYPE_RC, QP_TYPE_UC, QP_TYPE_UD, QP_TYPE_RAW_PACKET };

/* Octets sent until then; everything that arrives is answered at once. */
static uint32_t run_until(nanotime end)
{
	uint32_t octets = 0;

	for (;;) {
		while (node_next(a->q, now + ms(1000), &a->packet, a->payload)) {
			octets += a->packet.payload_length;
			node_sent(a->q, &a->packet, now + ms(1000));
			a->packet.src_gid = a->q->caps.type == QP_TYPE_RC
						    ? attributes_of(a).path.sgid
						    : a->packet.src_gid;
			a->packet.dst_gid = attributes_of(a).path.dgid;
			if (a->q->caps.type == QP_TYPE_RC)
				node_received(b->q, &a->packet, now + ms(1000));
		}
		while (a->q->caps.type == QP_TYPE_RC &&
		       node_next(b->q, now + ms(1000), &b->packet, b->payload)) {
			b->packet.src_gid = attributes_of(b).path.sgid;
			b->packet.dst_gid = attributes_of(b).path.dgid;
			node_received(a->q, &b->packet, now + ms(1000));
		}
		if (qp_has_packet(a->q->core))
			continue;
		if (a->q->deadline > end + ms(1000))
			return octets;
		cr_assert_geq(a->q->deadline, now + ms(1000), "a deadline in the past");
		now = a->q->deadline - ms(1000);
		node_expire(a->q, a->q->deadline);
	}
}

/* protocol-map 142, 143: 8 Mbit/s are 1,000 octets a millisecond */
Test(rate, is_kept_on_every_service)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(types); i++) {
		bool connected = types[i] == QP_TYPE_RC || types[i] == QP_TYPE_UC;
		uint32_t sent_octets;

		if (i > 0)
			node_free(&a->node), node_free(&b->node);
		story(.type = types[i], .rate_limit = 8000, .max_send_wr = 64, .port_mtu = 3);
		for (uint32_t n = 0; n < 64; n++)
			post(a, .wr_id = n, .length = 1000,
			     .opcode = connected ? WORK_RDMA_WRITE : WORK_SEND);
		sent_octets = run_until(ms(20));
		/* With headers 20 ms are 20,000 octets, plus the burst. */
		cr_assert(sent_octets >= 14000 && sent_octets <= 24100,
			  "type %u: %u octets in 20 ms", types[i], sent_octets);
		sent_octets = run_until(ms(40));
		cr_assert(sent_octets >= 14000 && sent_octets <= 20500, "type %u: %u octets more",
			  types[i], sent_octets);
		expect_state(a, QP_STATE_RTS);
		cr_assert_eq(qp_timeouts(a->q->core), 0, "a timer ran for an unsent packet");
	}
}

Test(rate, a_packet_waits_however_often_it_is_polled)
{
	struct span_list gather;
	struct packet p;
	nanotime t = 0;

	story(.type = QP_TYPE_UD, .rate_limit = 1000, .max_send_wr = 64);
	for (uint32_t n = 0; n < 64; n++)
		post(a, .wr_id = n, .length = 1000, .opcode = WORK_SEND);
	run_until(0);
	cr_assert_not(qp_has_packet(a->q->core));
	cr_assert_eq(qp_next_packet(a->q->core, &a->node.keys, ms(1000), &p, &gather, &t),
		     NEXT_NOT_BEFORE);
	cr_assert(t > ms(1000) && t == qp_deadline(a->q->core));
	cr_assert_eq(qp_next_packet(a->q->core, &a->node.keys, t - 1, &p, &gather, &t),
		     NEXT_NOT_BEFORE);
	cr_assert_eq(qp_next_packet(a->q->core, &a->node.keys, t, &p, &gather, &t), NEXT_PACKET);
}

/* The retry timer is shorter than the time of sixteen packets, so each one asks. */
Test(rate, slow_packets_ask_for_their_acknowledgement)
{
	story(.rate_limit = 100, .timeout = 11, .retry_cnt = -1, .max_send_wr = 64);
	post(a, .wr_id = 1, .length = 5000, .opcode = WORK_RDMA_WRITE);
	run_until(ms(1000));
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_same(b, LANDS, a, 0, 5000);
}

/* The limit does not apply to acknowledgements and READ responses. */
Test(rate, replies_do_not_wait)
{
	story(.rate_limit = 1, .mtu = 5);
	for (uint32_t i = 0; i < 8; i++) {
		post(b, .wr_id = i, .opcode = WORK_RDMA_READ, .length = 4000);
		exchange();
		expect_completion(b, i, STATUS_SUCCESS);
	}
}

/* A packet that the port refused is not counted. */
Test(rate, an_unsent_packet_costs_nothing)
{
	struct packet p;

	story(.type = QP_TYPE_UC, .rate_limit = 8, .hold_sent = true, .max_send_wr = 64);
	for (uint32_t n = 0; n < 64; n++)
		post(a, .wr_id = n, .length = 200, .opcode = WORK_RDMA_WRITE);
	for (uint32_t n = 0; n < 100; n++) {
		p = *expect_packet(a, "UC WRITE ONLY", A_PSN);
		unsent(a, &p);
	}
	for (uint32_t n = 0; n < 2; n++)
		expect_packet(a, "UC WRITE ONLY", A_PSN + n);
	expect_silence(a);
}

Test(rate, a_new_limit_takes_effect_at_once)
{
	struct qp_attributes none = { 0 };

	story(.type = QP_TYPE_UC, .rate_limit = 1, .max_send_wr = 64);
	for (uint32_t n = 0; n < 64; n++)
		post(a, .wr_id = n, .length = 1000, .opcode = WORK_RDMA_WRITE);
	cr_assert_lt(run_until(ms(1)), 3000);
	cr_assert_eq(modify(a, QP_STATE_RTS, QP_ATTR_RATE_LIMIT, &none), 0);
	cr_assert_gt(run_until(ms(2)), 60000, "there is no limit any more");
}
