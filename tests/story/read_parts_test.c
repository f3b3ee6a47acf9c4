/* SPDX-License-Identifier: BSD-3-Clause */
/* READs that are asked for in parts. To the peer, each part is a READ of its own. */
#include "story/story.h"
#include "transport/path.h"
#include "transport/qp.h"

#define RESPONSE (MTU + 74) /* octets of a response */
#define WINDOW	 us(LIMIT_REORDER_US)

static void have_window(uint32_t packets)
{
	struct path *path = a->q->core->path;

	path->starting = false;
	path->window = (uint64_t)packets * RESPONSE;
}

static void post_read(uint64_t wr_id, uint32_t packets, uint32_t at)
{
	post(a, .wr_id = wr_id, .opcode = WORK_RDMA_READ, .length = packets * MTU, .from = at * MTU,
	     .to = LANDS + at * MTU);
}

static void expect_read(uint32_t packets)
{
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, packets * MTU);
	cr_assert_eq(a->q->core->path->flying, 0);
	cr_assert_eq(a->q->core->req.rd_atomic, 0);
	cr_assert_eq(a->q->core->req.more_parts, 0);
}

static void expect_part(uint32_t psn, uint32_t packets)
{
	cr_assert_eq(pass(a, "RC READ REQUEST", psn)->dma_length, packets * MTU);
}

/* All responses to a part that has so many packets. */
static void answer(uint32_t psn, uint32_t packets)
{
	cr_assert_gt(packets, 1);
	for (uint32_t i = 0; i < packets; i++)
		pass(b,
		     i == 0	       ? "RC READ RESPONSE FIRST"
		     : i + 1 < packets ? "RC READ RESPONSE MIDDLE"
				       : "RC READ RESPONSE LAST",
		     psn + i);
}

Test(read_parts, four_fill_the_window)
{
	story(.recovery = true, .max_rd_atomic = 8, .max_dest_rd_atomic = 8);
	have_window(8);
	post_read(1, 19, 0);
	for (uint32_t i = 0; i < 8; i += 2)
		expect_part(A_PSN + i, 2);
	expect_silence(a);
	cr_assert_eq(a->q->core->path->flying, 8 * RESPONSE);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	expect_silence(a);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 1);
	expect_part(A_PSN + 8, 2);
	expect_silence(a);
	exchange();
	expect_read(19);
}

/* A bad cable loses requests, and there is no queue to share. */
Test(read_parts, two_fill_the_window_of_a_bad_cable)
{
	story(.recovery = true, .max_rd_atomic = 8, .max_dest_rd_atomic = 8);
	have_window(8);
	a->q->core->path->lone = LIMIT_PATH_LONE;
	post_read(1, 10, 0);
	expect_part(A_PSN, 4);
	expect_part(A_PSN + 4, 4);
	expect_silence(a);
	exchange();
	expect_read(10);
}

/* They are longer if the peer has room for few. protocol-map 115: each takes one of the peer's records. */
Test(read_parts, each_counts_as_outstanding)
{
	story(.recovery = true, .max_rd_atomic = 2, .max_dest_rd_atomic = 2);
	have_window(8);
	post_read(1, 12, 0);
	post_read(2, 1, 12);
	expect_part(A_PSN, 4);
	expect_part(A_PSN + 4, 4);
	have_window(64);
	expect_silence(a);
	for (uint32_t i = 0; i < 3; i++)
		pass(b, i == 0 ? "RC READ RESPONSE FIRST" : "RC READ RESPONSE MIDDLE", A_PSN + i);
	expect_silence(a);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 3);
	expect_part(A_PSN + 8, 4);
	expect_silence(a);
	answer(A_PSN + 4, 4);
	expect_part(A_PSN + 12, 1);
	exchange();
	expect_read(13);
	expect_completion(a, 2, STATUS_SUCCESS);
}

Test(read_parts, one_after_the_other_if_the_peer_has_room_for_one)
{
	story(.recovery = true, .max_rd_atomic = 1, .max_dest_rd_atomic = 1);
	have_window(4);
	post_read(1, 8, 0);
	expect_part(A_PSN, 4);
	have_window(64);
	expect_silence(a);
	answer(A_PSN, 4);
	expect_part(A_PSN + 4, 4);
	exchange();
	expect_read(8);
}

/* Those of the size before are answered first, so that two sizes are under way at most. */
Test(read_parts, their_size_follows_the_window)
{
	story(.recovery = true);
	have_window(8);
	post_read(1, 60, 0);
	for (uint32_t i = 0; i < 8; i += 2)
		expect_part(A_PSN + i, 2);
	have_window(16);
	answer(A_PSN, 2);
	expect_part(A_PSN + 8, 4);
	have_window(64);
	answer(A_PSN + 2, 2);
	expect_part(A_PSN + 12, 4);
	answer(A_PSN + 4, 2);
	expect_part(A_PSN + 16, 4);
	answer(A_PSN + 6, 2);
	expect_part(A_PSN + 20, 16);
	answer(A_PSN + 8, 4);
	expect_part(A_PSN + 36, 16);
	have_window(8);
	answer(A_PSN + 12, 4);
	expect_silence(a);
	answer(A_PSN + 16, 4);
	expect_silence(a);
	answer(A_PSN + 20, 16);
	answer(A_PSN + 36, 16);
	expect_part(A_PSN + 52, 2);
	exchange();
	expect_read(60);
}

/* A repetition ends where the part ended that the peer was asked for. */
Test(read_parts, what_is_lost_of_one_is_asked_for_alone)
{
	for (uint32_t selective = 0; selective < 2; selective++) {
		story(.recovery = true, .selective = selective);
		have_window(16);
		post_read(1, 20, 0);
		for (uint32_t i = 0; i < 16; i += 4)
			expect_part(A_PSN + i, 4);
		pass(b, "RC READ RESPONSE FIRST", A_PSN);
		lose(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
		pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 2);
		pass(b, "RC READ RESPONSE LAST", A_PSN + 3);
		for (uint32_t i = 4; i < 16; i += 4)
			answer(A_PSN + i, 4);
		at(WINDOW);
		expect_part(A_PSN + 1, selective ? 1 : 3);
		exchange();
		expect_read(20);
		node_free(&a->node);
		node_free(&b->node);
	}
}

/* The peer holds the requests behind the one that it lacks, so none of them is sent again. */
Test(read_parts, a_lost_request_is_that_of_one_part)
{
	story(.recovery = true, .selective = true);
	have_window(16);
	post_read(1, 16, 0);
	expect_part(A_PSN, 4);
	lose(a, "RC READ REQUEST", A_PSN + 4);
	expect_part(A_PSN + 8, 4);
	expect_part(A_PSN + 12, 4);
	answer(A_PSN, 4);
	expect_selection(b, A_PSN + 4, 2, (uint32_t[]){ A_PSN + 8, A_PSN + 12 });
	deliver(b);
	at(WINDOW);
	expect_part(A_PSN + 4, 4);
	expect_silence(a);
	exchange();
	expect_read(16);
	cr_assert_eq(a->q->core->path->events[PATH_AGAIN], 1);
}

/* ... nor if other messages are under way. */
Test(read_parts, a_lost_request_is_that_of_one_part_beside_a_write)
{
	story(.recovery = true, .selective = true);
	have_window(16);
	post_read(1, 8, 0);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = MTU, .from = 8 * MTU,
	     .to = LANDS + 16 * MTU);
	lose(a, "RC READ REQUEST", A_PSN);
	expect_part(A_PSN + 4, 4);
	pass(a, "RC WRITE ONLY", A_PSN + 8);
	expect_selection(b, A_PSN, 2, (uint32_t[]){ A_PSN + 4, A_PSN + 8 });
	deliver(b);
	at(WINDOW);
	expect_part(A_PSN, 4);
	expect_silence(a);
	exchange();
	expect_read(8);
	expect_completion(a, 2, STATUS_SUCCESS);
	cr_assert_eq(a->q->core->path->events[PATH_AGAIN], 1);
}

/* A probe knows of one lost packet. The peer knows the part, so it takes any piece of it for a repetition. */
Test(read_parts, a_probe_asks_for_one_packet_of_a_part_that_has_begun)
{
	story(.recovery = true, .selective = true, .no_timeout = true);
	have_window(16);
	post_read(1, 4, 0);
	expect_part(A_PSN, 4);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	lose(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	lose(b, "RC READ RESPONSE MIDDLE", A_PSN + 2);
	lose(b, "RC READ RESPONSE LAST", A_PSN + 3);
	at(us(LIMIT_PROBE_MIN_US));
	expect_part(A_PSN + 1, 1);
	exchange();
	at(ms(1));
	exchange();
	expect_read(4);
}

Test(read_parts, all_of_several_is_lost)
{
	story(.recovery = true, .no_timeout = true, .max_rd_atomic = 2, .max_dest_rd_atomic = 2);
	have_window(8);
	post_read(1, 8, 0);
	expect_part(A_PSN, 4);
	lose(a, "RC READ REQUEST", A_PSN + 4);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	lose(b, "RC READ RESPONSE MIDDLE", A_PSN + 2);
	lose(b, "RC READ RESPONSE LAST", A_PSN + 3);
	at(us(LIMIT_PROBE_MIN_US));
	expect_part(A_PSN + 2, 2);
	exchange();
	at(ms(1));
	expect_part(A_PSN + 4, 4);
	exchange();
	expect_read(8);
}

/* The port took the request of the second one later. */
Test(read_parts, one_that_did_not_leave_counts_once)
{
	struct packet p;

	story(.recovery = true, .max_rd_atomic = 2, .max_dest_rd_atomic = 2);
	have_window(8);
	post_read(1, 12, 0);
	expect_part(A_PSN, 4);
	p = *expect_packet(a, "RC READ REQUEST", A_PSN + 4);
	qp_unsent(a->q->core, &p, now);
	expect_part(A_PSN + 4, 4);
	expect_silence(a);
	answer(A_PSN, 4);
	expect_part(A_PSN + 8, 4);
	exchange();
	expect_read(12);
}

Test(read_parts, reset_forgets_those_under_way)
{
	story(.recovery = true, .max_rd_atomic = 2, .max_dest_rd_atomic = 2);
	have_window(8);
	post_read(1, 12, 0);
	expect_part(A_PSN, 4);
	expect_part(A_PSN + 4, 4);
	connect_again(a);
	connect_again(b);
	cr_assert_eq(a->q->core->req.more_parts, 0);
	post_read(1, 12, 0);
	expect_part(A_PSN, 4);
	expect_part(A_PSN + 4, 4);
	exchange();
	expect_read(12);
}

/* A response at the end of a part that is not its last one is wrong, as at the end of a READ. */
Test(read_parts, each_ends_with_a_last_response)
{
	story(.recovery = true);
	have_window(16);
	post_read(1, 8, 0);
	expect_part(A_PSN, 4);
	expect_part(A_PSN + 4, 4);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 2);
	expect_packet(b, "RC READ RESPONSE LAST", A_PSN + 3);
	b->packet.opcode = OPCODE(SERVICE_RC, OPB_READ_RESPONSE_MIDDLE);
	deliver(b);
	expect_completion(a, 1, STATUS_BAD_RESP_ERR);
}

/* The first response of all is ahead of the queue that the READ makes. */
Test(read_parts, the_first_is_not_timed_if_another_follows)
{
	const struct requester *r;

	story(.recovery = true);
	r = &a->q->core->req;
	have_window(16);
	post_read(1, 8, 0);
	expect_part(A_PSN, 4);
	cr_assert_eq(r->sampling, 0);
	expect_part(A_PSN + 4, 4);
	cr_assert_eq(r->sampling, 1);
	cr_assert_eq(r->sample[0].psn, A_PSN + 4);
	exchange();
	expect_read(8);
}

/* ... but if the path has no room for another, it is the only one that can be. */
Test(read_parts, the_first_is_timed_if_it_is_alone)
{
	const struct requester *r;

	story(.recovery = true);
	r = &a->q->core->req;
	have_window(1);
	post_read(1, 2, 0);
	expect_part(A_PSN, 1);
	cr_assert_eq(r->sampling, 1);
	exchange();
	expect_read(2);
}

/* A READ's request is one packet, and so is each of its responses. */
Test(read_parts, losses_count_in_packets)
{
	const struct path *path;

	story(.recovery = true, .selective = true);
	path = a->q->core->path;
	have_window(64);
	post_read(1, 8, 0);
	lose(a, "RC READ REQUEST", A_PSN);
	at(us(LIMIT_PROBE_MIN_US));
	cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN)->dma_length, 8 * MTU);
	cr_assert_eq(path->batch_again, RESPONSE);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	lose(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	lose(b, "RC READ RESPONSE MIDDLE", A_PSN + 2);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 3);
	at(us(LIMIT_PROBE_MIN_US) + WINDOW);
	cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN + 1)->dma_length, 2 * MTU);
	cr_assert_eq(path->batch_again, 3 * RESPONSE);
	exchange();
	expect_read(8);
}
