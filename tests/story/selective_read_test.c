/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * READs between two uroce engines whose requests or responses were lost: responses behind a gap have their places, and
 * only the missing part is requested again. A round trip is 20 us.
 */
#include "story/story.h"
#include "transport/qp.h"

#define PATIENCE us(LIMIT_PROBE_MIN_US)
#define WINDOW	 us(LIMIT_REORDER_US)

/* The window is so wide that each READ is asked for at once. */
static void story_of_whole_reads(void)
{
	story(.recovery = true, .selective = true);
	a->q->core->path->window = UINT64_C(128) * (MTU + 74);
}

/*
 * The peer executes nothing after a READ that it has not received, so all later requests would wait
 * for a probe.
 */
Test(selective_read, a_lost_request_of_a_read_is_noticed)
{
	story(.recovery = true, .selective = true);
	for (uint32_t i = 0; i < 2; i++)
		post(a, .wr_id = 1 + i, .opcode = WORK_RDMA_READ, .length = 4 * MTU,
		     .from = 4 * MTU * i, .to = LANDS + 4 * MTU * i);
	lose(a, "RC READ REQUEST", A_PSN);
	pass(a, "RC READ REQUEST", A_PSN + 4);
	expect_selection(b, A_PSN, 1, (uint32_t[]){ A_PSN + 4 });
	deliver(b);
	expect_silence(a); /* they may only have changed places */
	at(WINDOW);
	cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN)->dma_length, 4 * MTU);
	cr_assert_eq(a->q->core->path->events[PATH_OVERTAKEN], 1);
	cr_assert_eq(a->q->core->path->events[PATH_PROBE], 0);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, 8 * MTU);
}

/*
 * Two READs, or a WRITE and a READ. b holds the second message, and waits for the first one, whose packet is late. The
 * round trip is known.
 */
static struct packet delay_the_first(uint8_t opcode)
{
	struct packet late;

	story(.recovery = true, .selective = true);
	a->q->core->path->starting = false;
	for (uint32_t i = 0; i < 2; i++)
		post(a, .wr_id = 1 + i, .opcode = i == 0 ? opcode : WORK_RDMA_READ,
		     .length = 2 * MTU, .from = 2 * MTU * i, .to = LANDS + 2 * MTU * i);
	if (opcode == WORK_RDMA_WRITE) {
		pass(a, "RC WRITE FIRST", A_PSN);
		late = *expect_packet(a, "RC WRITE LAST", A_PSN + 1);
	} else {
		late = *expect_packet(a, "RC READ REQUEST", A_PSN);
	}
	pass(a, "RC READ REQUEST", A_PSN + 2);
	return late;
}

/* ... soon, because meanwhile the peer only waits. */
Test(selective_read, a_lost_request_of_a_read_is_noticed_soon)
{
	delay_the_first(WORK_RDMA_READ);
	expect_selection(b, A_PSN, 1, (uint32_t[]){ A_PSN + 2 });
	deliver(b);
	at(us(20) / 8 - 1);
	expect_silence(a);
	at(us(20) / 8); /* of a round trip */
	pass(a, "RC READ REQUEST", A_PSN);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, 4 * MTU);
	cr_assert_eq(a->q->core->path->events[PATH_OVERTAKEN], 1);
}

/* ... whatever the peer holds the READ behind. */
Test(selective_read, a_lost_packet_before_a_read_is_noticed_soon)
{
	delay_the_first(WORK_RDMA_WRITE);
	expect_selection(b, A_PSN + 1, 1, (uint32_t[]){ A_PSN + 2 });
	deliver(b);
	at(us(20) / 8 - 1);
	expect_silence(a);
	at(us(20) / 8);
	pass(a, "RC WRITE LAST", A_PSN + 1);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
}

/* ... but not if a packet that moves octets shows it, too: then only the order may have changed. */
Test(selective_read, a_packet_that_a_write_overtook_may_be_late)
{
	story(.recovery = true, .selective = true);
	a->q->core->path->starting = false;
	post_writes(2);
	post(a, .wr_id = 3, .opcode = WORK_RDMA_READ, .length = 8, .from = MTU, .to = LANDS + MTU);
	lose(a, "RC WRITE ONLY", A_PSN);
	pass(a, "RC WRITE ONLY", A_PSN + 1);
	pass(a, "RC READ REQUEST", A_PSN + 2);
	expect_selection(b, A_PSN, 2, (uint32_t[]){ A_PSN + 1, A_PSN + 2 });
	deliver(b);
	at(WINDOW - 1);
	expect_silence(a);
	at(WINDOW);
	pass(a, "RC WRITE ONLY", A_PSN);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
	expect_completion(a, 3, STATUS_SUCCESS);
}

/* That was haste: one more answer, which is a duplicate. */
Test(selective_read, a_request_that_comes_after_all_costs_one_answer)
{
	struct packet late = delay_the_first(WORK_RDMA_READ);

	expect_selection(b, A_PSN, 1, (uint32_t[]){ A_PSN + 2 });
	deliver(b);
	at(us(20) / 8);
	expect_packet(a, "RC READ REQUEST", A_PSN);
	expect_reason(story_inject(b, &late), REASON_NONE);
	for (uint32_t i = 0; i < 4; i++)
		pass(b, i % 2 == 0 ? "RC READ RESPONSE FIRST" : "RC READ RESPONSE LAST", A_PSN + i);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
	deliver(a);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 1);
	expect_same(a, 0, b, LANDS, 4 * MTU);
	expect_no_completion(a);
	expect_silence(a);
}

/*
 * protocol-map 111: responses behind a gap are placed when they come, and complete their READs when it closes, with what
 * was acknowledged between them.
 */
Test(selective_read, responses_behind_a_gap_have_their_places)
{
	story(.recovery = true, .selective = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 2 * MTU);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 8, .from = 8 * MTU,
	     .to = LANDS + 8 * MTU);
	post(a, .wr_id = 3, .opcode = WORK_RDMA_READ, .length = 2 * MTU, .from = 4 * MTU,
	     .to = LANDS + 4 * MTU);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(a, "RC WRITE ONLY", A_PSN + 2);
	pass(a, "RC READ REQUEST", A_PSN + 3);
	lose(b, "RC READ RESPONSE FIRST", A_PSN);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 1);
	pass(b, "RC READ RESPONSE FIRST", A_PSN + 3);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 4);
	expect_same(a, MTU, b, LANDS + MTU, MTU);
	expect_same(a, 4 * MTU, b, LANDS + 4 * MTU, 2 * MTU);
	cr_assert_eq(a->node.kept, 0, "no frame waits");
	expect_no_completion(a);
	at(WINDOW);
	cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN)->dma_length, MTU);
	pass(b, "RC READ RESPONSE ONLY", A_PSN);
	for (uint32_t i = 0; i < 3; i++)
		expect_completion(a, 1 + i, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, 2 * MTU);
	expect_silence(a);
	cr_assert_eq(a->q->core->req.rd_atomic, 0);
	cr_assert_eq(a->q->core->path->flying, 0);
}

/* Only the missing responses are requested. */
Test(selective_read, a_read_with_two_holes)
{
	story_of_whole_reads();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 6 * MTU);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	lose(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 2);
	lose(b, "RC READ RESPONSE MIDDLE", A_PSN + 3);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 4);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 5);
	at(WINDOW);
	cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN + 1)->dma_length, MTU);
	expect_silence(a);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 1);
	at(2 * WINDOW); /* the packets that overtook the second hole arrived later */
	cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN + 3)->dma_length, MTU);
	expect_silence(a);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, 6 * MTU);
	cr_assert_eq(qp_timeouts(a->q->core), 0);
}

/*
 * The request itself may have been lost. Then the peer would take each piece of it for a READ of
 * its own, and it accepts one at a time. Found by a campaign.
 */
Test(selective_read, a_read_that_may_not_have_arrived_is_asked_for_whole)
{
	story(.recovery = true, .selective = true, .max_rd_atomic = 1, .max_dest_rd_atomic = 1);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 4 * MTU);
	lose(a, "RC READ REQUEST", A_PSN);
	at(PATIENCE);
	cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN)->dma_length, 4 * MTU, "the probe");
	expect_silence(a);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, 4 * MTU);
	expect_state(b, QP_STATE_RTS);
	cr_assert_eq(qp_timeouts(a->q->core), 0);
}

/*
 * One response that waits behind the first shows that the request arrived: only the rest is
 * missing.
 */
Test(selective_read, a_read_that_was_answered_is_asked_for_in_pieces)
{
	story(.recovery = true, .selective = true, .max_rd_atomic = 1, .max_dest_rd_atomic = 1);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 4 * MTU);
	pass(a, "RC READ REQUEST", A_PSN);
	lose(b, "RC READ RESPONSE FIRST", A_PSN);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	lose(b, "RC READ RESPONSE MIDDLE", A_PSN + 2);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 3);
	at(WINDOW);
	cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN)->dma_length, MTU);
	exchange();
	at(2 * WINDOW);
	cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN + 2)->dma_length, MTU);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, 4 * MTU);
}

/* protocol-map 88: parts of a READ that are requested at once are answered one after the other */
Test(selective_read, parts_of_a_read)
{
	story(.recovery = true, .selective = true);
	inject(b, OPB_READ_REQUEST, A_PSN, at_memory(b, 0, 8 * MTU));
	for (uint32_t i = 0; i < 4; i++)
		expect_packet(b, i == 0 ? "RC READ RESPONSE FIRST" : "RC READ RESPONSE MIDDLE",
			      A_PSN + i);
	inject(b, OPB_READ_REQUEST, A_PSN + 1, at_memory(b, MTU, MTU));
	inject(b, OPB_READ_REQUEST, A_PSN + 2, at_memory(b, 2 * MTU, 2 * MTU));
	inject(b, OPB_READ_REQUEST, A_PSN + 5, at_memory(b, 5 * MTU, MTU)); /* it comes anyway */
	for (uint32_t i = 4; i < 7; i++)
		expect_packet(b, "RC READ RESPONSE MIDDLE", A_PSN + i);
	expect_packet(b, "RC READ RESPONSE LAST", A_PSN + 7);
	expect_packet(b, "RC READ RESPONSE LAST", A_PSN + 1);
	expect_packet(b, "RC READ RESPONSE MIDDLE", A_PSN + 2);
	cr_assert_arr_eq(b->packet.payload, octets(b, 2 * MTU), MTU);
	expect_packet(b, "RC READ RESPONSE LAST", A_PSN + 3);
	expect_silence(b);
}

/*
 * The missing responses were only overtaken: the initiator now has all of them, and sends its next
 * READ while the part that it requested again is still owed. Found with fio's READs, one
 * outstanding, on a busy machine.
 */
Test(selective_read, a_part_that_is_not_needed_any_more_takes_no_room)
{
	story(.recovery = true, .selective = true, .max_dest_rd_atomic = 1);
	inject(b, OPB_READ_REQUEST, A_PSN, at_memory(b, 0, 4 * MTU));
	expect_packet(b, "RC READ RESPONSE FIRST", A_PSN);
	expect_packet(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	inject(b, OPB_READ_REQUEST, A_PSN, at_memory(b, 0, MTU));
	inject(b, OPB_READ_REQUEST, A_PSN + 1, at_memory(b, MTU, MTU));
	expect_packet(b, "RC READ RESPONSE MIDDLE", A_PSN + 2);
	expect_packet(b, "RC READ RESPONSE LAST", A_PSN + 3);
	inject(b, OPB_READ_REQUEST, A_PSN + 4, at_memory(b, 0, 8));
	expect_packet(b, "RC READ RESPONSE ONLY", A_PSN + 4);
	expect_state(b, QP_STATE_RTS);
	expect_silence(b);
}

/*
 * The peer answers the oldest READ first, even if it was asked for a later one before: that does not
 * mean that packets changed places.
 */
Test(selective_read, a_missing_response_comes_before_those_of_a_later_read)
{
	struct path *path;

	story_of_whole_reads();
	path = a->q->core->path;
	path->starting = false;
	for (uint32_t i = 0; i < 2; i++)
		post(a, .wr_id = 1 + i, .opcode = WORK_RDMA_READ, .length = 8 * MTU,
		     .from = 8 * MTU * i, .to = LANDS + 8 * MTU * i);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(a, "RC READ REQUEST", A_PSN + 8);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	lose(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	for (uint32_t i = 2; i < 6; i++)
		pass(b, "RC READ RESPONSE MIDDLE", A_PSN + i);
	cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN + 1)->dma_length, MTU);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 6);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 7);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 1);
	cr_assert_eq(path_places(path, ms(1000)), LIMIT_REORDER_FIRST);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, 16 * MTU);
	cr_assert_eq(path->events[PATH_PROBE], 0);
}

/* ... nor does a response behind the gap: a network that changed the order once is trusted again after some time. */
Test(selective_read, responses_behind_a_gap_kept_their_order)
{
	struct path *path;

	story_of_whole_reads();
	path = a->q->core->path;
	path->places = 20;
	path->reordered_at = ms(900);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 8 * MTU);
	pass(a, "RC READ REQUEST", A_PSN);
	lose(b, "RC READ RESPONSE FIRST", A_PSN);
	for (uint32_t i = 1; i < 7; i++)
		pass(b, "RC READ RESPONSE MIDDLE", A_PSN + i);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 7);
	cr_assert_eq(path->reordered_at, ms(900));
	at(WINDOW);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
}

/*
 * A READ of ten packets. Of the first eight responses these are late (bit n: response n). As more than four later ones
 * have come, they are about to be asked for again.
 */
static void responses_are_late(uint32_t late)
{
	story_of_whole_reads();
	a->q->core->path->starting = false;
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 10 * MTU);
	pass(a, "RC READ REQUEST", A_PSN);
	for (uint32_t i = 0; i < 8; i++) {
		const char *what = i == 0 ? "RC READ RESPONSE FIRST" : "RC READ RESPONSE MIDDLE";

		if (late & 1u << i)
			lose(b, what, A_PSN + i);
		else
			pass(b, what, A_PSN + i);
	}
}

static void expect_again(uint32_t which, uint32_t packets)
{
	cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN + which)->dma_length, packets * MTU);
}

static void comes_late(uint32_t which)
{
	inject(a, OPB_READ_RESPONSE_MIDDLE, A_PSN + which, .payload_length = MTU,
	       .payload = b->node.memory + LANDS + which * MTU);
}

static void last_two_come(void)
{
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 8);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 9);
}

/* By how many places the network is seen to change the order; then all ten arrive. */
static void expect_places(uint32_t places)
{
	cr_expect_eq(a->q->core->path->places, 2 * places);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, 10 * MTU);
}

/* A repetition of one packet has a LAST as its answer. So this is the first answer: it was overtaken, not lost. */
Test(selective_read, a_first_response_behind_its_repetition_shows_that_the_order_changed)
{
	responses_are_late(1u << 1);
	expect_again(1, 1);
	comes_late(1);
	expect_places(7);
}

/* ... also if another one before it is missing. */
Test(selective_read, so_does_one_behind_a_gap)
{
	responses_are_late(1u << 0 | 1u << 2);
	expect_again(0, 1);
	expect_again(2, 1);
	comes_late(2);
	expect_places(6);
}

Test(selective_read, the_answer_to_a_repetition_does_not)
{
	responses_are_late(1u << 1);
	expect_again(1, 1);
	last_two_come();
	pass(b, "RC READ RESPONSE LAST", A_PSN + 1);
	expect_places(0);
}

Test(selective_read, nor_does_one_in_the_middle_of_a_repetition)
{
	responses_are_late(1u << 1 | 1u << 2);
	expect_again(1, 2);
	last_two_come();
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	expect_places(0);
}

/* An older repetition may have asked for more, and be answered meanwhile. */
Test(selective_read, nor_does_an_answer_to_one_of_two_repetitions)
{
	responses_are_late(1u << 1);
	expect_again(1, 1);
	last_two_come();
	at(ms(2));
	expect_again(1, 1);
	comes_late(1);
	expect_places(0);
}
