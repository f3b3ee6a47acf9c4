/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs that a path holds back, and the packets that may leave nevertheless. */
#include "story/story.h"
#include "transport/path.h"
#include "transport/qp.h"

#define TIMEOUT	  UINT64_C(4194304) /* ns: 4.096 us * 2^10 */
#define ALL_TRIES (11 * TIMEOUT) /* with three retries: 1, 2, 4 and 4 timeouts */

static struct path path;

/* A path whose window is so many packets of the story's MTU. */
static void begin(uint32_t packets)
{
	path_init(&path);
	story();
	qp_give_path(a->q->core, &path);
	path.starting = false;
	path_looked(&path);
	path.window = (uint64_t)packets * (MTU + 74);
	for (uint32_t i = 1; i < 8; i++)
		post_receive(b, i, 10);
}

static enum next_packet next(void)
{
	struct packet p;
	struct span_list gather;
	nanotime not_before;

	return qp_next_packet(a->q->core, &a->node.keys, ms(1000) + now, &p, &gather, &not_before);
}

/* The last packet that fits the window asks for an acknowledgement, which opens the window. */
Test(held, the_window_of_the_path_bounds_what_is_on_its_way)
{
	begin(4);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 6 * MTU);
	pass(a, "RC WRITE FIRST", A_PSN);
	cr_assert(pass(a, "RC WRITE MIDDLE", A_PSN + 1)->ack_req,
		  "more than a quarter of the window");
	cr_assert_not(pass(a, "RC WRITE MIDDLE", A_PSN + 2)->ack_req);
	cr_assert(pass(a, "RC WRITE MIDDLE", A_PSN + 3)->ack_req);
	expect_silence(a);
	cr_assert(qp_is_held(a->q->core));
	cr_assert_eq(path.held, 1);
	pass_ack(b, A_PSN + 3, 0);
	cr_assert_eq(path.flying, 0);
	pass(a, "RC WRITE MIDDLE", A_PSN + 4);
	pass(a, "RC WRITE LAST", A_PSN + 5);
	cr_assert_eq(path.held, 0);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_same(b, LANDS, a, 0, 6 * MTU);
}

/* A READ counts with the octets of its response, and requests only as many as there is room for. */
Test(held, a_read_asks_for_what_the_path_has_room_for)
{
	begin(4);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 10 * MTU);
	for (uint32_t i = 0; i < 4; i++)
		cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN + i)->dma_length, MTU);
	cr_assert_eq(path.flying, 4 * (MTU + 74));
	expect_silence(a);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, 10 * MTU);
	cr_assert_eq(path.flying, 0);
}

/*
 * Other queue pairs have a window's worth under way: this one waits, but acknowledges what it
 * receives.
 */
Test(held, replies_are_not_held_back)
{
	begin(4);
	path.flying = path.window;
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	cr_assert_eq(next(), NEXT_HELD);
	cr_assert_eq(next(), NEXT_NOTHING, "it is asked again by qp_resume alone");
	cr_assert_eq(qp_deadline(a->q->core), ms(1000) + now + TIMEOUT, "until then no timer");
	post(b, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 10);
	pass(b, "RC WRITE ONLY", B_PSN);
	pass_ack(a, B_PSN, 1);
	expect_silence(a);
	path.flying = 0;
	qp_resume(a->q->core);
	pass(a, "RC SEND ONLY", A_PSN);
}

/*
 * The queue pair that waited first goes first: meanwhile others are held back, even if there is
 * room.
 */
Test(held, who_comes_later_waits_behind)
{
	begin(4);
	path.held = 1;
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	cr_assert_eq(next(), NEXT_HELD);
	cr_assert_eq(path.held, 2);
	qp_resume(a->q->core);
	cr_assert_eq(path.held, 1);
	cr_assert_eq(next(), NEXT_PACKET, "its turn");
}

Test(held, a_queue_pair_that_fails_waits_no_more)
{
	struct qp_attributes none = { 0 };

	begin(4);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 2 * MTU);
	lose(a, "RC WRITE FIRST", A_PSN);
	path.held = 1;
	cr_assert_eq(next(), NEXT_PACKET, "what is on its way is asked for");
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	cr_assert_eq(next(), NEXT_HELD);
	cr_assert_eq(modify(a, QP_STATE_ERR, 0, &none), 0);
	cr_assert_eq(path.held, 1);
	cr_assert_eq(path.flying, 0, "nothing of it is on its way any more");
	cr_assert_not(qp_is_held(a->q->core));
}

/* Lost packets do not count as under way: a loss does not close the path for other queue pairs. */
Test(held, a_loss_gives_its_room_back)
{
	begin(4);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 4 * MTU);
	for (uint32_t i = 0; i < 4; i++)
		lose(a,
		     i == 0   ? "RC WRITE FIRST"
		     : i == 3 ? "RC WRITE LAST"
			      : "RC WRITE MIDDLE",
		     A_PSN + i);
	cr_assert_eq(path.flying, 4 * (MTU + 74));
	at(ms(5)); /* the program's timer at the latest */
	cr_assert_eq(path.flying, 0);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	cr_assert_eq(path.flying, 0);
}

/* Lets the time pass until `until`. Returns how many packets left; none of them arrives. */
static uint32_t lose_all(nanotime until)
{
	uint32_t sent = 0;

	while (now < until) {
		while (node_next(a->q, ms(1000) + now, &a->packet, a->payload)) {
			cr_assert_eq(a->packet.psn, A_PSN, "the oldest alone");
			sent++;
		}
		at(now + us(100));
	}
	return sent;
}

/*
 * Other queue pairs wait for a peer that is gone, each until its timer fires. This one finds out at
 * the same time as they do.
 */
Test(held, nobody_waits_for_turns_on_a_silent_path)
{
	begin(4);
	path.flying = path.window;
	path.held = 1;
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	cr_assert_eq(lose_all(TIMEOUT - us(200)), 0);
	cr_assert(qp_is_held(a->q->core));
	cr_assert_gt(lose_all(ALL_TRIES), 3);
	expect_no_completion(a);
	lose_all(TIMEOUT + ALL_TRIES + ms(1));
	expect_completion(a, 1, STATUS_RETRY_EXC_ERR);
	expect_completion(a, 2, STATUS_WR_FLUSH_ERR);
	cr_assert_eq(path.held, 1);
}

/* A queue pair has the same number of retries whether it is held between them or not. */
Test(held, its_retries_do_not_wait_for_turns_on_a_silent_path)
{
	begin(4);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	lose(a, "RC SEND ONLY", A_PSN);
	path.flying = path.window;
	path.held = 1;
	lose_all(ALL_TRIES - us(200));
	expect_no_completion(a);
	lose_all(ALL_TRIES + ms(1));
	expect_completion(a, 1, STATUS_RETRY_EXC_ERR);
}

/* A full path whose peer answers gives every queue pair its turn. */
Test(held, who_hears_others_waits_for_its_turn)
{
	begin(4);
	path.flying = path.window;
	path.held = 1;
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	cr_assert_eq(lose_all(us(100)), 0);
	for (uint32_t i = 1; i <= 20; i++) {
		path.heard++;
		cr_assert_eq(lose_all(i * TIMEOUT), 0);
	}
	cr_assert(qp_is_held(a->q->core));
	expect_no_completion(a);
	path.flying = 0;
	qp_resume(a->q->core);
	pass(a, "RC SEND ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* Four WRITEs are in flight, and fill the path's window. */
static void fill(void)
{
	path.srtt = us(100);
	for (uint32_t i = 0; i < 4; i++) {
		post(a, .wr_id = i + 1, .opcode = WORK_RDMA_WRITE, .length = MTU);
		lose(a, "RC WRITE ONLY", A_PSN + i);
	}
	post(a, .wr_id = 5, .opcode = WORK_RDMA_WRITE, .length = MTU);
	cr_assert_eq(path.flying, path.window);
}

/* Its peer is gone, and others on the path are answered. */
Test(held, who_is_not_answered_keeps_no_room)
{
	uint64_t window;

	begin(4);
	fill();
	window = path.window;
	while (now < 7 * TIMEOUT) { /* the first timers: one, and two more */
		path.heard++;
		path.answered = ms(1000) + now;
		lose_all(now + us(100));
		if (now > us(3500)) /* before the first timer */
			cr_assert_eq(path.flying, 0);
	}
	cr_assert_eq(path.window, window, "the way is well");
	pass(a, "RC WRITE ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	for (uint32_t i = 1; i < 4; i++)
		pass(a, "RC WRITE ONLY", A_PSN + i);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
}

/*
 * No queue pair is answered, and no timer fires: the path must stay free for queue pairs that will
 * be answered.
 */
Test(held, a_silent_path_is_given_up)
{
	begin(4);
	a->q->core->req.timeout = TIME_NEVER;
	fill();
	lose_all(ms(4));
	cr_assert_eq(path.given_up, 1);
	cr_assert_eq(path.flying, 0);
	at(ms(7));
	pass(a, "RC WRITE ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	pass(a, "RC WRITE ONLY", A_PSN + 4);
	cr_assert_eq(path.flying, MTU + 74);
}

/* ... at each further probe without an answer, but one silence shrinks the window once. */
Test(held, a_silence_shrinks_the_window_once)
{
	uint64_t window;

	begin(16);
	for (uint32_t i = 0; i <= LIMIT_PROBES_ALONE; i++) {
		cr_assert_eq(path.given_up, 0);
		path_ask(&path, false, ms(1000), ms(1000 + i), 0);
	}
	window = path.window;
	cr_assert_eq(window, 8 * (MTU + 74));
	for (uint32_t i = 2; i < 6; i++) {
		path_ask(&path, false, ms(1000), ms(1010 + i), 0);
		cr_assert_eq(path.given_up, i);
	}
	cr_assert_eq(path.window, window);
	path.heard++;
	for (uint32_t i = 0; i <= LIMIT_PROBES_ALONE; i++)
		path_ask(&path, false, ms(1000), ms(1020 + i), 0);
	cr_assert_eq(path.window, window / 2);
}

/* A queue pair whose peer is gone probes on, and others may have nothing to send meanwhile. */
Test(held, who_is_alone_does_not_speak_for_the_path)
{
	uint64_t window;

	begin(16);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	lose(a, "RC SEND ONLY", A_PSN);
	lose_all(TIMEOUT + us(200));
	cr_assert(a->q->core->req.alone);
	window = path.window;
	lose_all(3 * (nanotime)TIMEOUT);
	expect_no_completion(a);
	cr_assert_eq(path.window, window, "its timers do not shrink it");
	cr_assert_leq(path.given_up, 1);
	cr_assert_eq(path.doubt, 0, "no probe was answered");
}

/* A timer that fires before any probe speaks for the path, unless others were answered meanwhile. */
Test(held, a_timer_shrinks_the_window_if_nobody_is_answered)
{
	for (uint32_t heard = 0; heard < 2; heard++) {
		begin(16);
		path.srtt = ms(4); /* a probe would come after 8 ms */
		post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
		lose(a, "RC SEND ONLY", A_PSN);
		path.heard += heard;
		lose_all(TIMEOUT + us(200));
		cr_assert_eq(qp_timeouts(a->q->core), 1);
		cr_assert_eq(path.events[PATH_PROBE], 0);
		cr_assert_eq(path.window, (heard ? 16 : 8) * (MTU + 74));
	}
}

/* Those that wait for a silent path send one packet, a round trip's window of them in its time. */
Test(held, who_waits_for_a_silent_path_sends_one_packet)
{
	const uint32_t frame = MTU + 74;

	begin(4);
	path.srtt = us(100);
	path.flying = path.window;
	path.held = 1;
	for (uint32_t i = 0; i < 3; i++)
		post(a, .wr_id = i + 1, .opcode = WORK_RDMA_WRITE, .length = MTU);
	cr_assert_eq(next(), NEXT_HELD);
	path.given_up++;
	path.flying = 0;
	qp_resume(a->q->core);
	pass(a, "RC WRITE ONLY", A_PSN);
	expect_silence(a);
	cr_assert_eq(path.flying, 0);
	cr_assert_eq(path_opens_at(&path, frame, ms(1000) + now), ms(1000) + us(25));
	at(us(25));
	pass_ack(b, A_PSN, 1);
	pass(a, "RC WRITE ONLY", A_PSN + 1);
	pass(a, "RC WRITE ONLY", A_PSN + 2);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	for (uint32_t i = 0; i < 100; i++)
		path_sent_alone(&path, frame, ms(2000));
	cr_assert_leq(path_opens_at(&path, frame, ms(2000)), ms(2000) + us(100),
		      "no later than the answer to the last one");
}

/* ... but a queue pair that had nothing to send then waits for the path as ever. */
Test(held, who_was_idle_on_a_silent_path_keeps_its_turn)
{
	begin(4);
	path.given_up++;
	path.flying = path.window;
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = MTU);
	cr_assert_eq(next(), NEXT_HELD);
	cr_assert(!a->q->core->req.alone);
}

/* ... and an answer says that the peer is there. */
Test(held, answers_to_any_queue_pair_are_heard)
{
	begin(4);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	exchange();
	cr_assert_eq(path.heard, 1);
}

Test(held, a_cnp_shrinks_the_window_of_the_path)
{
	struct packet cnp = { .opcode = OPCODE_CNP, .pkey = 0xffff, .dest_qpn = A_QPN };

	begin(16);
	expect_reason(story_inject(a, &cnp), REASON_CNP_RECEIVED);
	cr_assert_eq(path.events[PATH_CNP_RECEIVED], 1);
	cr_assert_eq(path.window, 8 * (MTU + 74));
}

/*
 * A READ waits for room for half of the window. What is missing of the one before it is a packet, and waits for that
 * alone.
 */
Test(held, a_missing_response_does_not_wait_for_the_room_of_a_read)
{
	const uint32_t frame = MTU + 74;
	struct path *p;

	story(.recovery = true, .selective = true);
	p = a->q->core->path;
	p->starting = false;
	p->window = 40 * frame;
	for (uint32_t i = 0; i < 2; i++)
		post(a, .wr_id = 1 + i, .opcode = WORK_RDMA_READ, .length = 8 * MTU,
		     .from = 8 * MTU * i, .to = LANDS + 8 * MTU * i);
	pass(a, "RC READ REQUEST", A_PSN);
	p->flying += 36 * frame; /* of others */
	expect_silence(a);
	cr_assert(qp_is_held(a->q->core));
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	lose(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	for (uint32_t i = 2; i < 5; i++)
		pass(b, "RC READ RESPONSE MIDDLE", A_PSN + i);
	expect_silence(a);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 5);
	cr_assert_gt(p->flying + 8 * frame, p->window, "no room for the other one");
	cr_assert_eq(pass(a, "RC READ REQUEST", A_PSN + 1)->dma_length, MTU);
	expect_silence(a);
	p->flying -= 36 * frame;
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, 16 * MTU);
	cr_assert_eq(p->flying, 0);
	cr_assert_eq(p->held, 0);
}
