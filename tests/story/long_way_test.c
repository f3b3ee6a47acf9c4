/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A path with a long round trip, to a peer that acknowledges selectively. More packets are under
 * way than LIMIT_WINDOW. The packets that the peer holds reach further than one selection.
 */
#include "story/story_sides.h"
#include "transport/qp.h"
#include "transport/requester/board.h"

#define LONG	 ms(10)
#define MANY	 600u /* packets */
#define REPORTED us(LIMIT_PATIENCE_US)

static struct path way;

static void take_way(nanotime trip)
{
	path_init(&way);
	path_rtt(&way, trip, ms(1000));
	way.rttvar = 0;
	path_looked(&way);
	way.window = LIMIT_PATH_WINDOW;
	way.starting = false;
	way.packet =
		1 << 17; /* of which some leave at once: time does not go on while a story sends */
	qp_give_path(a->q->core, &way);
}

/* The next packet of this side, whatever it is. */
static bool take_packet(struct side *s)
{
	s->packet = (struct packet){ 0 };
	if (!node_next(s->q, story_clock(), &s->packet, s->payload))
		return false;
	s->packet.src_gid = story_gid(s);
	s->packet.dst_gid = story_gid(s->peer);
	return true;
}

static uint32_t packets_in_a_row(void)
{
	uint32_t n = 0;

	while (take_packet(a))
		n++;
	return n;
}

/* Sends that many packets, of messages of 16 packets each, before any is acknowledged. */
static uint32_t window_of(uint32_t max_send_wr, nanotime trip, bool selective)
{
	uint32_t n;

	story(.max_send_wr = max_send_wr, .recovery = true, .selective = selective);
	take_way(trip);
	for (uint32_t i = 0; i < max_send_wr; i++)
		post(a, .wr_id = i, .opcode = WORK_RDMA_WRITE, .length = 16 * MTU);
	n = packets_in_a_row();
	node_free(&a->node);
	node_free(&b->node);
	return n;
}

Test(long_way, has_as_large_a_window_as_the_queue_allows)
{
	cr_expect_eq(window_of(64, LONG, true), 64 * LIMIT_WINDOW_SLOT);
	cr_expect_eq(window_of(64, LONG, false), LIMIT_WINDOW, "who drops what is behind a gap");
	cr_expect_eq(window_of(64, us(20), true), LIMIT_WINDOW, "a short one");
	cr_expect_eq(window_of(64, us(100), true), 100 * LIMIT_WINDOW_US);
	cr_expect_eq(window_of(16, LONG, true), LIMIT_WINDOW);
}

/* `lost` of many WRITEs are lost, the others arrive; b has not reported anything yet. */
static void lose_some(uint32_t count, const uint32_t lost[])
{
	story(.max_send_wr = MANY, .recovery = true, .selective = true);
	take_way(LONG);
	post_writes(MANY);
	for (uint32_t i = 0, k = 0; i < MANY; i++) {
		if (k < count && lost[k] == i) {
			lose(a, "RC WRITE ONLY", A_PSN + i);
			k++;
		} else {
			pass(a, "RC WRITE ONLY", A_PSN + i);
		}
	}
}

/* Reports that lie further apart than a selection: the oldest, then the newest. */
Test(long_way, news_that_are_far_apart_take_two_selections)
{
	const struct packet *p;

	lose_some(1, (uint32_t[]){ 0 });
	p = expect_packet(b, "SELECTIVE ACK", A_PSN - 1);
	cr_expect_eq(p->selection_step, 0);
	cr_expect_eq(p->selection[0], UINT64_MAX - 1);
	p = expect_packet(b, "SELECTIVE ACK", A_PSN - 1);
	cr_expect_eq(p->selection_step,
		     (MANY - SELECTION_BITS + SELECTION_STEP - 1) / SELECTION_STEP);
	cr_expect(psn_within(A_PSN + MANY - 1, A_PSN + SELECTION_STEP * p->selection_step,
			     SELECTION_BITS));
	expect_silence(b);
}

/*
 * The next packet of a arrives, unless it is one of these for the first time; then the answer of b
 * arrives.
 */
static bool step(uint32_t count, const uint32_t lost[])
{
	bool drop = false;

	if (!take_packet(a))
		return false;
	for (uint32_t i = 0; i < count; i++)
		drop |= !a->packet.again && a->packet.psn == A_PSN + lost[i];
	if (!drop)
		deliver(a);
	while (take_packet(b))
		deliver(b);
	return true;
}

/* Each arrival is reported at once, so only lost packets are sent again. */
Test(long_way, only_what_is_missing_is_sent_again)
{
	static const uint32_t lost[] = { 0, 300, 301, 500 };

	story(.max_send_wr = MANY, .recovery = true, .selective = true);
	take_way(LONG);
	post_writes(MANY);
	while (step(ARRAY_SIZE(lost), lost))
		;
	expect_written(MANY);
	cr_expect_eq(way.events[PATH_AGAIN], ARRAY_SIZE(lost));
}

/* The gap has been known for long: a NAK, which other peers need, adds nothing. */
Test(long_way, a_nak_for_a_gap_that_was_told_changes_nothing)
{
	lose_some(1, (uint32_t[]){ 0 });
	expect_packet(b, "SELECTIVE ACK", A_PSN - 1);
	deliver(b);
	expect_packet(b, "SELECTIVE ACK", A_PSN - 1);
	deliver(b);
	packets_in_a_row(); /* again, and the story ends before they arrive */
	at(REPORTED);
	expect_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN, 0);
	deliver(b);
	expect_silence(a);
	cr_expect_eq(way.events[PATH_REPORTED], 0);
}

/* ... and packets that arrive after the NAK are reported nevertheless. */
Test(long_way, a_nak_is_not_the_end_of_the_news)
{
	story(.recovery = true, .selective = true);
	post_writes(4);
	lose(a, "RC WRITE ONLY", A_PSN);
	pass(a, "RC WRITE ONLY", A_PSN + 1);
	expect_selection(b, A_PSN, 1, (uint32_t[]){ A_PSN + 1 });
	at(REPORTED);
	expect_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN, 0);
	inject(b, OPB_WRITE_ONLY, A_PSN + 2);
	expect_selection(b, A_PSN, 2, (uint32_t[]){ A_PSN + 1, A_PSN + 2 });
	at(4 * REPORTED);
	expect_silence(b);
}

/*
 * A receiver without room for packets behind a gap drops them, and sends a NAK as other
 * implementations do.
 */
Test(long_way, a_peer_without_room_goes_back)
{
	story(.recovery = true, .selective = true);
	b->node.keeps = false;
	post_writes(4);
	lose(a, "RC WRITE ONLY", A_PSN);
	pass(a, "RC WRITE ONLY", A_PSN + 1);
	expect_ack(b, A_PSN - 1, 0);
	pass(a, "RC WRITE ONLY", A_PSN + 2);
	expect_silence(b);
	at(us(LIMIT_REORDER_US));
	pass_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN, 0);
	for (uint32_t i = 0; i < 4; i++)
		pass(a, "RC WRITE ONLY", A_PSN + i);
	exchange();
	expect_written(4);
}

static void answer(uint8_t opcode, uint32_t psn, uint64_t first)
{
	story_inject(a, &(struct packet){ .opcode = opcode,
					  .pkey = 0xffff,
					  .dest_qpn = A_QPN,
					  .psn = psn,
					  .syndrome = 31,
					  .selection = { first } });
}

/*
 * A growing queue is noticed within a round trip, even if packets are being sent again all the
 * time.
 */
Test(long_way, has_several_samples_of_a_round_trip)
{
	uint64_t before;

	story(.max_send_wr = MANY, .recovery = true, .selective = true, .no_timeout = true);
	take_way(LONG);
	post_writes(MANY);
	for (uint32_t i = 0; i < MANY; i++) {
		lose(a, "RC WRITE ONLY", A_PSN + i);
		at(i * us(10));
	}
	before = way.samples;
	at(LONG);
	answer(OPCODE(SERVICE_RC, OPB_ACK), A_PSN + 299, 0);
	answer(OPCODE(SERVICE_RC, OPB_ACK), A_PSN + 399, 0);
	cr_expect_eq(way.samples, before + 2);
	answer(OPCODE_SELECTIVE_ACK, A_PSN + 399, UINT64_MAX - 1);
	cr_expect_eq(way.samples, before + 3, "the second one behind the gap");
	lose(a, "RC WRITE ONLY", A_PSN + 400); /* again */
	answer(OPCODE(SERVICE_RC, OPB_ACK), A_PSN + 499, 0);
	cr_expect_eq(way.samples, before + 3, "they may have waited for the repetition");
	cr_expect_leq(way.last, LONG);
}
