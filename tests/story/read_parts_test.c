/* SPDX-License-Identifier: BSD-3-Clause */
/* READs that the path's window cuts into parts: two are under way at most. */
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

/* Half of the first part, of four packets, has come. The second one may be asked for now. */
static void have_half_a_part(void)
{
	have_window(4);
	post_read(1, 8, 0);
	cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN)->dma_length, 4 * MTU);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	expect_silence(a); /* there is no room for half of the window */
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
}

static void expect_read(uint32_t packets)
{
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, packets * MTU);
	cr_assert_eq(a->q->core->path->flying, 0);
	cr_assert_eq(a->q->core->req.rd_atomic, 0);
}

Test(read_parts, the_next_one_follows_when_there_is_room)
{
	story(.recovery = true);
	have_half_a_part();
	cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN + 4)->dma_length, 4 * MTU);
	cr_assert_eq(a->q->core->path->flying, 6 * RESPONSE);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 2);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 3);
	pass(b, "RC READ RESPONSE FIRST", A_PSN + 4);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 5);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 6);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 7);
	expect_read(8);
	expect_silence(a);
}

/* ... but not before the peer has begun to answer. A third part waits for the second one likewise. */
Test(read_parts, two_are_under_way_at_most)
{
	story(.recovery = true);
	have_window(4);
	post_read(1, 30, 0);
	pass(a, "RC READ REQUEST", A_PSN);
	have_window(16);
	expect_silence(a);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN + 4)->dma_length, 16 * MTU);
	have_window(64);
	for (uint32_t i = 1; i < 4; i++)
		pass(b, i < 3 ? "RC READ RESPONSE MIDDLE" : "RC READ RESPONSE LAST", A_PSN + i);
	expect_silence(a);
	pass(b, "RC READ RESPONSE FIRST", A_PSN + 4);
	pass(a, "RC READ REQUEST", A_PSN + 20);
	exchange();
	expect_read(30);
}

/* protocol-map 115: each part takes a record of the peer's. */
Test(read_parts, both_count_as_outstanding)
{
	story(.recovery = true, .max_rd_atomic = 2, .max_dest_rd_atomic = 2);
	have_half_a_part();
	post_read(2, 1, 8);
	pass(a, "RC READ REQUEST", A_PSN + 4);
	have_window(64);
	expect_silence(a);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 2);
	expect_silence(a);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 3);
	pass(a, "RC READ REQUEST", A_PSN + 8);
	exchange();
	expect_read(9);
	expect_completion(a, 2, STATUS_SUCCESS);
}

Test(read_parts, one_after_the_other_if_the_peer_has_room_for_one)
{
	story(.recovery = true, .max_rd_atomic = 1, .max_dest_rd_atomic = 1);
	have_half_a_part();
	have_window(64);
	expect_silence(a);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 2);
	expect_silence(a);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 3);
	pass(a, "RC READ REQUEST", A_PSN + 4);
	exchange();
	expect_read(8);
}

/* A repetition ends where the part ended that the peer was asked for. */
Test(read_parts, what_is_lost_of_the_first_is_asked_for_alone)
{
	for (uint32_t selective = 0; selective < 2; selective++) {
		story(.recovery = true, .selective = selective);
		have_half_a_part();
		pass(a, "RC READ REQUEST", A_PSN + 4);
		lose(b, "RC READ RESPONSE MIDDLE", A_PSN + 2);
		pass(b, "RC READ RESPONSE LAST", A_PSN + 3);
		have_window(64);
		at(WINDOW);
		cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN + 2)->dma_length,
			     selective ? MTU : 2 * MTU);
		exchange();
		expect_read(8);
		node_free(&a->node);
		node_free(&b->node);
	}
}

/* Behind a gap the next part waits: the repetition may end this one early. */
Test(read_parts, the_next_one_waits_for_what_is_lost)
{
	story(.recovery = true, .selective = true);
	have_window(4);
	post_read(1, 8, 0);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	lose(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 2);
	expect_silence(a);
	at(WINDOW);
	cr_assert_eq(expect_packet(a, "RC READ REQUEST", A_PSN + 1)->dma_length, MTU);
	inject(a, OPB_READ_RESPONSE_ONLY, A_PSN + 1, .payload_length = MTU,
	       .payload = b->node.memory + LANDS + MTU);
	have_window(64);
	expect_silence(a);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 3);
	pass(a, "RC READ REQUEST", A_PSN + 4);
	exchange();
	expect_read(8);
}

Test(read_parts, all_of_both_is_lost)
{
	story(.recovery = true, .no_timeout = true);
	have_half_a_part();
	lose(a, "RC READ REQUEST", A_PSN + 4);
	lose(b, "RC READ RESPONSE MIDDLE", A_PSN + 2);
	lose(b, "RC READ RESPONSE LAST", A_PSN + 3);
	at(us(LIMIT_PROBE_MIN_US));
	cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN + 2)->dma_length, 2 * MTU);
	exchange();
	at(ms(1));
	cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN + 4)->dma_length, 4 * MTU);
	exchange();
	expect_read(8);
}

/* A response at the end of the first part that is not its last one is wrong, as at the end of a READ. */
Test(read_parts, the_first_ends_with_a_last_response)
{
	story(.recovery = true);
	have_half_a_part();
	pass(a, "RC READ REQUEST", A_PSN + 4);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 2);
	expect_packet(b, "RC READ RESPONSE LAST", A_PSN + 3);
	b->packet.opcode = OPCODE(SERVICE_RC, OPB_READ_RESPONSE_MIDDLE);
	deliver(b);
	expect_completion(a, 1, STATUS_BAD_RESP_ERR);
}

/* What a slot of the send queue says of a READ long ago is not true of a WRITE. */
Test(read_parts, a_write_has_none)
{
	story(.recovery = true, .max_rd_atomic = 1, .max_dest_rd_atomic = 1);
	have_window(4);
	post_read(1, 8, 0);
	exchange();
	expect_read(8);
	for (uint32_t i = 2; i < 9; i++) {
		post(a, .wr_id = i, .opcode = WORK_RDMA_WRITE, .length = 8);
		exchange();
		expect_completion(a, i, STATUS_SUCCESS);
	}
	post(a, .wr_id = 9, .opcode = WORK_RDMA_WRITE, .length = 8);
	post_read(10, 1, 0);
	pass(a, "RC WRITE ONLY", A_PSN + 15);
	pass(a, "RC READ REQUEST", A_PSN + 16);
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
