/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Selective acknowledgement between two uroce engines (docs/wire-extensions.md). A round trip is 20
 * us.
 */
#include "story/story.h"
#include "transport/qp.h"

#define PATIENCE us(LIMIT_PROBE_MIN_US)
#define WINDOW	 us(LIMIT_REORDER_US)
#define RNR_12	 (SYNDROME_RNR | 12) /* 0.64 ms */

/* Two WRITEs. b has received the second one, and a knows it. */
static void lose_the_first_of_two(void)
{
	story(.recovery = true, .selective = true);
	post_writes(2);
	lose(a, "RC WRITE ONLY", A_PSN);
	pass(a, "RC WRITE ONLY", A_PSN + 1);
	expect_selection(b, A_PSN, 1, (uint32_t[]){ A_PSN + 1 });
	deliver(b);
}

/* What is overtaken is lost soon where the network keeps the order and loses packets without being full. */
Test(selective, a_loss_is_noticed_soon_on_a_bad_cable)
{
	static const struct {
		uint8_t lone, places;
		bool soon;
	} rows[] = { { LIMIT_PATH_LONE, 0, true },
		     { LIMIT_PATH_LONE - 1, 0, false },
		     { LIMIT_PATH_LONE, LIMIT_REORDER_FIRST + 1, false } };

	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct path *path;

		story(.recovery = true, .selective = true);
		path = a->q->core->path;
		path->starting = false;
		path->lone = rows[i].lone;
		path->places = rows[i].places;
		path->reordered_at = ms(1000);
		post_writes(2);
		lose(a, "RC WRITE ONLY", A_PSN);
		pass(a, "RC WRITE ONLY", A_PSN + 1);
		expect_selection(b, A_PSN, 1, (uint32_t[]){ A_PSN + 1 });
		deliver(b);
		at(us(5) - 1);
		expect_silence(a);
		at(us(5)); /* a quarter of a round trip */
		if (!rows[i].soon) {
			expect_silence(a);
			at(WINDOW);
		}
		pass(a, "RC WRITE ONLY", A_PSN);
		exchange();
		expect_written(2);
		node_free(&a->node);
		node_free(&b->node);
	}
}

/* A probe overtook the second packet. No READ waits for that, so it has the usual time. */
Test(selective, what_was_sent_before_a_probe_may_be_late)
{
	story(.recovery = true, .selective = true);
	a->q->core->path->starting = false;
	post_writes(2);
	lose(a, "RC WRITE ONLY", A_PSN);
	lose(a, "RC WRITE ONLY", A_PSN + 1);
	at(PATIENCE);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	at(PATIENCE + WINDOW - 1);
	expect_silence(a);
	at(PATIENCE + WINDOW);
	pass(a, "RC WRITE ONLY", A_PSN + 1);
	exchange();
	expect_written(2);
}

static const uint32_t wraps[] = { A_PSN, 0xfffffe };

/* The next packet of `a`, which arrives much later; its payload is kept in `payload`. */
static struct packet delay(uint32_t psn, uint8_t payload[8])
{
	struct packet late = *expect_packet(a, "RC WRITE ONLY", psn);

	memcpy(payload, late.payload, 8);
	late.payload = payload;
	return late;
}

Test(selective, what_is_missing_is_sent_again_and_nothing_else)
{
	for (uint32_t w = 0; w < ARRAY_SIZE(wraps); w++) {
		uint32_t p = wraps[w];
		uint32_t second = psn_add(p, 2), fourth = psn_add(p, 4);

		story(.recovery = true, .selective = true, .sq_psn = p);
		post_writes(6);
		pass(a, "RC WRITE ONLY", p);
		lose(a, "RC WRITE ONLY", p + 1);
		pass(a, "RC WRITE ONLY", second);
		lose(a, "RC WRITE ONLY", p + 3);
		pass(a, "RC WRITE ONLY", fourth);
		lose(a, "RC WRITE ONLY", p + 5);
		expect_selection(b, p + 1, 2, (uint32_t[]){ second, fourth });
		deliver(b);
		expect_silence(a); /* they may only have changed places */
		at(WINDOW);
		pass(a, "RC WRITE ONLY", p + 1);
		pass(a, "RC WRITE ONLY", p + 3);
		expect_silence(a);
		pass_ack(b, p + 4, 5);
		at(3 * WINDOW);
		pass(a, "RC WRITE ONLY", p + 5); /* the probe */
		pass_ack(b, p + 5, 6);
		expect_written(6);
		cr_assert_eq(qp_timeouts(a->q->core), 0);
		node_free(&a->node);
		node_free(&b->node);
	}
}

/* Losses of one window are one event for the path, even if they are found one after the other. */
Test(selective, losses_of_a_window_shrink_it_once)
{
	uint8_t payload[8];
	struct packet late;

	story(.recovery = true, .selective = true);
	post_writes(6);
	lose(a, "RC WRITE ONLY", A_PSN);
	pass(a, "RC WRITE ONLY", A_PSN + 1);
	expect_selection(b, A_PSN, 1, (uint32_t[]){ A_PSN + 1 });
	deliver(b);
	for (uint32_t i = 2; i < 5; i++)
		lose(a, "RC WRITE ONLY", A_PSN + i);
	late = delay(A_PSN + 5, payload);
	at(WINDOW);
	lose(a, "RC WRITE ONLY", A_PSN);
	cr_assert_eq(a->q->core->path->events[PATH_OVERTAKEN], 1);
	expect_reason(story_inject(b, &late), REASON_PSN_AHEAD);
	expect_selection(b, A_PSN, 2, (uint32_t[]){ A_PSN + 1, A_PSN + 5 });
	deliver(b);
	at(2 * WINDOW);
	exchange();
	expect_written(6);
	cr_assert_eq(a->q->core->path->events[PATH_OVERTAKEN], 1);
}

/*
 * The peer has reported a packet, but then acknowledged only the packets before it. An
 * acknowledgement is requested again, because the peer's may be lost.
 */
Test(selective, what_the_peer_holds_is_probed_for)
{
	lose_the_first_of_two();
	at(WINDOW);
	pass(a, "RC WRITE ONLY", A_PSN);
	expect_ack(b, A_PSN + 1, 2);
	inject(a, OPB_ACK, A_PSN, .syndrome = 31, .msn = 1);
	expect_silence(a);
	at(WINDOW + PATIENCE);
	pass(a, "RC WRITE ONLY", A_PSN + 1);
	pass_ack(b, A_PSN + 1, 2);
	expect_written(2);
}

/*
 * A gap has closed, which is to be acknowledged, when a copy fails. The NAK may be lost: an ACK
 * after it would say that all octets are in memory.
 */
Test(selective, nothing_is_acknowledged_behind_a_copy_that_failed)
{
	uint8_t payload[8];
	struct packet late;

	story(.recovery = true, .selective = true, .delay_copies = true);
	post_writes(2);
	late = *expect_packet(a, "RC WRITE ONLY", A_PSN);
	memcpy(payload, late.payload, sizeof(payload));
	late.payload = payload;
	pass(a, "RC WRITE ONLY", A_PSN + 1);
	expect_reason(story_inject(b, &late), REASON_NONE);
	settle(b, false);
	expect_state(b, QP_STATE_ERR);
	expect_nak(b, SYNDROME_NAK_REMOTE_ACCESS, A_PSN, 0);
	expect_silence(b);
}

/* The loss of a repetition is noticed when something newer than it has arrived. */
Test(selective, a_lost_repetition_is_noticed)
{
	lose_the_first_of_two();
	at(WINDOW);
	lose(a, "RC WRITE ONLY", A_PSN);
	post(a, .wr_id = 3, .opcode = WORK_RDMA_WRITE, .length = 8, .from = 16, .to = LANDS + 16);
	pass(a, "RC WRITE ONLY", A_PSN + 2);
	expect_selection(b, A_PSN, 2, (uint32_t[]){ A_PSN + 1, A_PSN + 2 });
	deliver(b);
	at(2 * WINDOW);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass_ack(b, A_PSN + 2, 3);
	expect_written(3);
}

/* An atomic waits behind the gap with the other packets, and is executed once. */
Test(selective, an_atomic_behind_a_gap)
{
	story(.recovery = true, .selective = true);
	set_word(b, LANDS + 0x100, 7);
	post_writes(1);
	post(a, .wr_id = 2, .opcode = WORK_ATOMIC_FETCH_AND_ADD, .compare_add = 1, .from = 64,
	     .to = LANDS + 0x100);
	lose(a, "RC WRITE ONLY", A_PSN);
	pass(a, "RC FETCH ADD", A_PSN + 1);
	expect_selection(b, A_PSN, 1, (uint32_t[]){ A_PSN + 1 });
	deliver(b);
	cr_assert_eq(word(b, LANDS + 0x100), 7);
	at(PATIENCE);
	pass(a, "RC WRITE ONLY", A_PSN);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
	cr_assert_eq(word(b, LANDS + 0x100), 8);
	cr_assert_eq(word(a, 64), 7);
}

/* A peer that has not announced the extension gets a NAK, and its selections are ignored. hostile H-158 */
Test(selective, nobody_else_is_sent_any)
{
	static const uint64_t bits[SELECTION_BITS / 64] = { 2 };
	struct packet p = { .opcode = OPCODE_SELECTIVE_ACK,
			    .pkey = 0xffff,
			    .dest_qpn = A_QPN,
			    .psn = A_PSN - 1,
			    .syndrome = 31 };

	story(.recovery = true);
	post_writes(2);
	lose(a, "RC WRITE ONLY", A_PSN);
	lose(a, "RC WRITE ONLY", A_PSN + 1);
	memcpy(p.selection, bits, sizeof(bits));
	expect_reason(story_inject(a, &p), REASON_SELECTIVE_ALIEN);
	inject(b, OPB_WRITE_ONLY, A_PSN + 1);
	at(WINDOW);
	expect_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN, 0);
}

/* The first packets of both sides announce it, and RESET forgets it. */
Test(selective, the_peers_say_so_to_each_other)
{
	story(.recovery = true, .negotiates = true);
	post_writes(1);
	cr_assert(pass(a, "RC WRITE ONLY", A_PSN)->selective);
	pass_ack(b, A_PSN, 1);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 8);
	post(a, .wr_id = 3, .opcode = WORK_RDMA_WRITE, .length = 8);
	lose(a, "RC WRITE ONLY", A_PSN + 1);
	pass(a, "RC WRITE ONLY", A_PSN + 2);
	expect_selection(b, A_PSN + 1, 1, (uint32_t[]){ A_PSN + 2 });
	connect_again(b);
	inject(b, OPB_WRITE_ONLY, A_PSN + 1);
	at(ms(1));
	expect_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN, 0);
}

/* A stray bit disables the extension, and the NAK comes nevertheless. hostile H-158 */
Test(selective, a_forged_bit_delays_a_nak)
{
	story(.recovery = true, .negotiates = true);
	inject(b, OPB_WRITE_ONLY, A_PSN, .selective = true);
	inject(b, OPB_WRITE_ONLY, A_PSN + 2);
	expect_selection(b, A_PSN + 1, 1, (uint32_t[]){ A_PSN + 2 });
	at(us(LIMIT_PATIENCE_US));
	expect_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN + 1, 1);
	/* The bit of a packet that failed a check is ignored. */
	connect_again(b);
	inject(b, OPB_WRITE_ONLY, A_PSN + 3, .selective = true);
	expect_silence(b);
	at(ms(3));
	expect_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN, 0);
}

/* Acknowledgements of packets that were never sent change nothing. hostile H-157 */
Test(selective, lies_are_dropped)
{
	static const struct {
		uint32_t psn;
		uint64_t first, last; /* words of the selection */
		enum reason reason;
		uint8_t step;
	} lies[] = {
		{ A_PSN - 1, 1 << 4, 0, REASON_SELECTIVE_WRONG }, /* the next that will be sent */
		{ A_PSN - 1, UINT64_MAX, UINT64_MAX, REASON_SELECTIVE_WRONG },
		{ A_PSN - 1, 0, UINT64_C(1) << 63, REASON_SELECTIVE_WRONG },
		{ A_PSN + 3, 1, 0, REASON_SELECTIVE_WRONG },
		{ A_PSN - 1, 2, 0, REASON_SELECTIVE_WRONG, 1 },
		{ A_PSN - 1, 0, UINT64_C(1) << 63, REASON_SELECTIVE_WRONG, 127 },
		{ A_PSN + 4, 0, 0, REASON_ACK_STALE },
		{ A_PSN - 2, 2, 0, REASON_ACK_STALE },
		{ A_PSN + 0x800000, 2, 0, REASON_ACK_STALE },
	};

	story(.recovery = true, .selective = true);
	post_writes(4);
	for (uint32_t i = 0; i < 4; i++)
		lose(a, "RC WRITE ONLY", A_PSN + i);
	for (uint32_t i = 0; i < ARRAY_SIZE(lies); i++) {
		struct packet p = { .opcode = OPCODE_SELECTIVE_ACK,
				    .pkey = 0xffff,
				    .dest_qpn = A_QPN,
				    .psn = lies[i].psn & PSN_MASK,
				    .syndrome = 31 };

		p.selection_step = lies[i].step;
		p.selection[0] = lies[i].first;
		p.selection[SELECTION_BITS / 64 - 1] = lies[i].last;
		expect_reason(story_inject(a, &p), lies[i].reason);
		p.syndrome = SYNDROME_NAK_SEQUENCE;
		p.selection[0] = p.selection[SELECTION_BITS / 64 - 1] = 0;
		p.psn = A_PSN - 1;
		expect_reason(story_inject(a, &p), REASON_SYNDROME_RESERVED);
		expect_silence(a);
		expect_no_completion(a);
	}
	at(PATIENCE);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/*
 * A peer claims to have everything, but never acknowledges it: the timer then ignores the claims.
 * hostile H-157
 */
Test(selective, a_peer_that_claims_what_it_has_not)
{
	struct packet p = { .opcode = OPCODE_SELECTIVE_ACK,
			    .pkey = 0xffff,
			    .dest_qpn = A_QPN,
			    .psn = A_PSN - 1,
			    .syndrome = 31,
			    .selection = { 15 } };

	story(.recovery = true, .selective = true);
	post_writes(4);
	for (uint32_t i = 0; i < 4; i++)
		lose(a, "RC WRITE ONLY", A_PSN + i);
	story_inject(a, &p);
	at(us(4195));
	pass(a, "RC WRITE ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	for (uint32_t i = 1; i < 4; i++)
		pass(a, "RC WRITE ONLY", A_PSN + i);
	exchange();
	expect_written(4);
}

/*
 * Packets further ahead than a window are not kept, nor are packets that are already kept. hostile
 * H-159
 */
Test(selective, what_is_kept_has_a_bound)
{
	story(.recovery = true, .selective = true);
	for (uint32_t i = 1; i < 2 * LIMIT_WINDOW_MOST; i++) {
		uint32_t psn = (A_PSN + i) & PSN_MASK;
		bool room = b->node.kept < NODE_KEPT;

		inject(b, OPB_WRITE_ONLY, psn);
		cr_assert_eq((b->q->outcome.flags & OUTCOME_HOLD) != 0, i < LIMIT_WINDOW_MOST);
		inject(b, OPB_WRITE_ONLY, psn);
		cr_assert_eq((b->q->outcome.flags & OUTCOME_HOLD) != 0,
			     !room && i < LIMIT_WINDOW_MOST);
	}
	cr_assert_eq(b->node.kept, NODE_KEPT);
	inject(b, OPB_WRITE_ONLY, A_PSN);
	cr_assert_eq(b->node.kept, 0);
	cr_assert(TAILQ_EMPTY(&b->q->kept[0]));
}

/* The peer is not ready for the same packet several times. */
Test(selective, each_rnr_nak_is_followed_by_a_repetition)
{
	story(.recovery = true, .selective = true);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	for (uint32_t i = 0; i < 3; i++) {
		pass(a, "RC SEND ONLY", A_PSN);
		pass(a, "RC SEND ONLY", A_PSN + 1);
		pass_nak(b, RNR_12, A_PSN, 0);
		expect_silence(a);
		at(ms(i + 1));
	}
	post_receive(b, 1, 10);
	post_receive(b, 2, 10);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
	cr_assert_eq(qp_timeouts(a->q->core), 0);
}

/* A packet that is refused when its gap has closed is no longer held. */
Test(selective, what_was_held_and_finds_no_receive_request)
{
	story(.recovery = true, .selective = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 8, .to = LANDS);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	post(a, .wr_id = 3, .opcode = WORK_SEND, .length = 10);
	lose(a, "RC WRITE ONLY", A_PSN);
	pass(a, "RC SEND ONLY", A_PSN + 1);
	pass(a, "RC SEND ONLY", A_PSN + 2);
	expect_selection(b, A_PSN, 2, (uint32_t[]){ A_PSN + 1, A_PSN + 2 });
	deliver(b);
	at(WINDOW);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass_nak(b, RNR_12, A_PSN + 1, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
	post_receive(b, 1, 10);
	post_receive(b, 2, 10);
	at(ms(1));
	pass(a, "RC SEND ONLY", A_PSN + 1);
	exchange();
	expect_completion(a, 2, STATUS_SUCCESS);
	expect_completion(a, 3, STATUS_SUCCESS);
	cr_assert_eq(qp_timeouts(a->q->core), 0);
}

/* The packets from `from` to before `until` arrive and are reported. */
static void pass_and_tell(uint32_t from, uint32_t until, uint32_t gap)
{
	for (uint32_t psn = from; psn < until; psn++) {
		pass(a, "RC WRITE ONLY", psn);
		expect_packet(b, "SELECTIVE ACK", gap - 1);
		deliver(b);
	}
}

/* 40 WRITEs are posted on a path that is past its start, and the first one is lost. */
static struct path *begin_with_a_loss(void)
{
	story(.recovery = true, .selective = true, .max_send_wr = 64);
	a->q->core->path->starting = false;
	post_writes(40);
	lose(a, "RC WRITE ONLY", A_PSN);
	return a->q->core->path;
}

/*
 * A few places are enough to find a loss, until packets are seen to change places by more: a packet
 * arrives late, after it was sent again.
 */
Test(selective, places_that_packets_change_are_learnt)
{
	struct path *path = begin_with_a_loss();
	struct packet late;
	uint8_t payload[8];

	pass_and_tell(A_PSN + 1, A_PSN + 1 + LIMIT_REORDER_FIRST, A_PSN);
	pass(a, "RC WRITE ONLY", A_PSN); /* lost indeed */
	pass_ack(b, A_PSN + LIMIT_REORDER_FIRST, LIMIT_REORDER_FIRST + 1);
	cr_assert_eq(path_places(path, ms(1000)), LIMIT_REORDER_FIRST);

	late = delay(A_PSN + 5, payload);
	for (uint32_t i = 6; i < 20; i++)
		pass(a, "RC WRITE ONLY", A_PSN + i);
	expect_packet(b, "SELECTIVE ACK", A_PSN + 4);
	for (uint32_t i = 20; i < 30; i++)
		lose(a, "RC WRITE ONLY", A_PSN + i); /* or they are under way still */
	deliver(b);
	lose(a, "RC WRITE ONLY", A_PSN + 5); /* again, behind those */
	expect_reason(story_inject(b, &late), REASON_NONE);
	pass_ack(b, A_PSN + 19, 20);
	cr_assert_eq(path_places(path, ms(1000)), 30,
		     "it was behind fifteen, and others may be behind more");
}

/*
 * Repetitions are sent in order. So one that arrives shows what happened to those before it, and no
 * newer packet is needed. It arrived before ten packets that left after an older repetition, but
 * packets did not change places.
 */
Test(selective, a_lost_repetition_is_noticed_by_a_later_one)
{
	struct path *path = begin_with_a_loss();
	struct packet late;
	uint8_t payload[8];

	pass_and_tell(A_PSN + 1, A_PSN + 3, A_PSN);
	lose(a, "RC WRITE ONLY", A_PSN + 3);
	pass_and_tell(A_PSN + 4, A_PSN + 5, A_PSN);
	late = delay(A_PSN, payload); /* again, and it is lost again, or late */
	pass_and_tell(A_PSN + 5, A_PSN + 8, A_PSN);
	pass(a, "RC WRITE ONLY", A_PSN + 3); /* again */
	expect_packet(b, "SELECTIVE ACK", A_PSN - 1);
	for (uint32_t i = 8; i < 18; i++)
		lose(a, "RC WRITE ONLY", A_PSN + i); /* or they are under way still */
	deliver(b);
	lose(a, "RC WRITE ONLY", A_PSN); /* once more */
	cr_assert_eq(path->events[PATH_PROBE], 0);
	expect_reason(story_inject(b, &late), REASON_NONE);
	pass_ack(b, A_PSN + 7, 8);
	cr_assert_eq(path_places(path, ms(1000)), LIMIT_REORDER_FIRST);
}

/* ... by the next one. */
Test(selective, a_lost_repetition_is_noticed_by_the_one_behind_it)
{
	struct path *path = begin_with_a_loss();

	lose(a, "RC WRITE ONLY", A_PSN + 1);
	pass_and_tell(A_PSN + 2, A_PSN + 5, A_PSN);
	lose(a, "RC WRITE ONLY", A_PSN); /* again */
	pass_and_tell(A_PSN + 5, A_PSN + 6, A_PSN);
	pass(a, "RC WRITE ONLY", A_PSN + 1); /* again */
	expect_packet(b, "SELECTIVE ACK", A_PSN - 1);
	deliver(b);
	pass(a, "RC WRITE ONLY", A_PSN); /* once more */
	pass_ack(b, A_PSN + 5, 6);
	cr_assert_eq(path->events[PATH_PROBE], 0);
}

/* A report has 256 bits, in four words. */
Test(selective, many_are_held_behind_a_gap)
{
	enum {
		HELD = 70
	};
	uint32_t held[HELD];

	story(.recovery = true, .selective = true, .max_send_wr = 128);
	a->q->core->path->starting = false;
	post_writes(HELD + 1);
	lose(a, "RC WRITE ONLY", A_PSN);
	for (uint32_t i = 0; i < HELD; i++) {
		held[i] = A_PSN + 1 + i;
		pass(a, "RC WRITE ONLY", held[i]);
		expect_selection(b, A_PSN, i + 1, held);
	}
	deliver(b);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass_ack(b, A_PSN + HELD, HELD + 1);
}
