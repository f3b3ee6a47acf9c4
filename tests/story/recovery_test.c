/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Losses cost round trips only: probes, overtaken packets, packets that wait behind a gap. A round
 * trip is 20 us.
 */
#include "story/story.h"
#include "transport/path.h"
#include "transport/qp.h"

#define PATIENCE us(LIMIT_PROBE_MIN_US) /* times 20 us: two round trips are not longer */
#define WINDOW	 us(LIMIT_REORDER_US) /* in which packets may still change places */

/* protocol-map 105 */
Test(recovery, a_lost_tail_is_probed_for)
{
	story(.recovery = true);
	post_writes(1);
	lose(a, "RC WRITE ONLY", A_PSN);
	at(PATIENCE - 1);
	expect_silence(a);
	at(PATIENCE);
	cr_assert(pass(a, "RC WRITE ONLY", A_PSN)->ack_req);
	pass_ack(b, A_PSN, 1);
	expect_written(1);
	cr_assert_eq(qp_timeouts(a->q->core), 0);
	cr_assert_eq(a->q->deadline, TIME_NEVER);
}

/* protocol-map 106: probes double their wait and take no retry */
Test(recovery, probes_are_not_retries)
{
	nanotime wait = PATIENCE, end;

	story(.recovery = true, .retry_cnt = -1);
	post_writes(1);
	lose(a, "RC WRITE ONLY", A_PSN);
	for (end = wait; end < us(4194); wait *= 2, end += wait) {
		at(end - 1);
		expect_silence(a);
		at(end);
		lose(a, "RC WRITE ONLY", A_PSN);
	}
	expect_no_completion(a);
	at(us(4195));
	expect_completion(a, 1, STATUS_RETRY_EXC_ERR);
}

/* ... also where the ACK timeout is long */
Test(recovery, probes_become_rare)
{
	uint32_t probes = 0;

	story(.recovery = true, .retry_cnt = -1, .timeout = 16);
	post_writes(1);
	lose(a, "RC WRITE ONLY", A_PSN);
	for (nanotime t = 0; t < us(268000); t += PATIENCE) {
		at(t);
		if (a->q->core->path->events[PATH_PROBE] == probes)
			continue;
		lose(a, "RC WRITE ONLY", A_PSN);
		probes++;
	}
	cr_expect_eq(probes, 12, "%u: 40 us, 80 us... 82 ms", probes);
}

/* ... and a lost acknowledgement, too */
Test(recovery, a_lost_acknowledgement_is_asked_for_again)
{
	story(.recovery = true);
	post_writes(3);
	for (uint32_t i = 0; i < 3; i++)
		pass(a, "RC WRITE ONLY", A_PSN + i);
	expect_ack(b, A_PSN + 2, 3);
	at(PATIENCE);
	pass(a, "RC WRITE ONLY", A_PSN);
	expect_silence(a);
	pass_ack(b, A_PSN + 2, 3);
	expect_written(3);
}

/* protocol-map 59, 61: the peer does not repeat its NAK */
Test(recovery, a_lost_nak_costs_round_trips)
{
	story(.recovery = true);
	post_writes(4);
	lose(a, "RC WRITE ONLY", A_PSN);
	for (uint32_t i = 1; i < 4; i++)
		pass(a, "RC WRITE ONLY", A_PSN + i);
	expect_silence(b);
	at(WINDOW);
	expect_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN, 0);
	at(2 * WINDOW);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass_ack(b, A_PSN + 3, 4); /* what waited behind the gap came with it */
	expect_written(4);
	cr_assert_eq(qp_timeouts(a->q->core), 0);
}

/*
 * A peer that drops packets behind a gap. The acknowledgement is for the probe alone, so the
 * packets before the probe did not arrive either.
 */
Test(recovery, what_was_sent_before_an_answered_probe_is_lost)
{
	story(.recovery = true);
	post_writes(4);
	for (uint32_t i = 0; i < 4; i++)
		lose(a, "RC WRITE ONLY", A_PSN + i);
	at(PATIENCE);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	expect_silence(a); /* the acknowledgement may have been a late one */
	at(PATIENCE + WINDOW);
	for (uint32_t i = 1; i < 4; i++)
		pass(a, "RC WRITE ONLY", A_PSN + i);
	exchange();
	expect_written(4);
	cr_assert_eq(qp_timeouts(a->q->core), 0);
}

/* ... but not if the acknowledgement was only late */
Test(recovery, a_needless_probe_sends_nothing_else_again)
{
	story(.recovery = true);
	post_writes(4);
	for (uint32_t i = 0; i < 4; i++)
		lose(a, "RC WRITE ONLY", A_PSN + i);
	at(PATIENCE);
	lose(a, "RC WRITE ONLY", A_PSN);
	inject(a, OPB_ACK, A_PSN, .syndrome = 31, .msn = 1);
	at(PATIENCE + us(5));
	inject(a, OPB_ACK, A_PSN + 3, .syndrome = 31, .msn = 4);
	at(ms(3));
	expect_silence(a);
	for (uint32_t i = 0; i < 4; i++)
		expect_completion(a, 1 + i, STATUS_SUCCESS);
}

/* Another queue pair of the path has probed. If there is no answer, this one probes. */
Test(recovery, another_queue_pairs_probe_is_waited_for)
{
	story(.recovery = true);
	post_writes(1);
	lose(a, "RC WRITE ONLY", A_PSN);
	path_ask(a->q->core->path, false, ms(1000), ms(1000), ms(1000) + 2 * PATIENCE);
	at(2 * PATIENCE - 1);
	expect_silence(a);
	at(2 * PATIENCE);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	expect_written(1);
	cr_expect_eq(qp_timeouts(a->q->core), 0);
}

/* ... but not for one of a queue pair that is alone, whose peer may be gone. */
Test(recovery, a_probe_of_one_that_is_alone_is_not_waited_for)
{
	const nanotime until = ms(1000) + 2 * PATIENCE;
	struct path *path;

	story(.recovery = true);
	path = a->q->core->path;
	post_writes(1);
	lose(a, "RC WRITE ONLY", A_PSN);
	path_ask(path, true, ms(1000), ms(1000), until);
	cr_expect_eq(path_ask(path, true, ms(1000), ms(1000), TIME_NEVER), until,
		     "others that are alone wait");
	at(PATIENCE);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	expect_written(1);
	for (uint32_t i = 0; i < 2 * LIMIT_PROBES_ALONE; i++)
		path_ask(path, true, ms(2000), ms(2000 + i), 0);
	cr_expect_eq(path->given_up, 0);
}

/* ... and if one queue pair is answered, those without an answer probe at once. */
Test(recovery, an_answered_probe_is_told_to_the_path)
{
	struct path *path;

	story(.recovery = true);
	path = a->q->core->path;
	post_writes(1);
	lose(a, "RC WRITE ONLY", A_PSN);
	at(PATIENCE);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	cr_expect_eq(path_ask(path, false, ms(1000), ms(1000) + PATIENCE, TIME_NEVER),
		     ms(1000) + PATIENCE);
	cr_expect_eq(path_ask(path, false, ms(1000) + PATIENCE, ms(1000) + PATIENCE, TIME_NEVER),
		     ms(1000) + PATIENCE, "nobody asks any more");
	cr_expect_gt(path_ask(path, false, ms(1000) + PATIENCE, ms(1000) + PATIENCE, TIME_NEVER),
		     ms(1000) + PATIENCE, "... but this one");
}

/* Karn: the answer may be to any of them, so it gives no sample. The next silence may be longer. */
Test(recovery, answered_probes_raise_doubt)
{
	struct path *path;

	story(.recovery = true);
	path = a->q->core->path;
	post_writes(1);
	lose(a, "RC WRITE ONLY", A_PSN);
	at(PATIENCE);
	lose(a, "RC WRITE ONLY", A_PSN);
	at(3 * PATIENCE);
	cr_expect_eq(path->doubt, 0, "nobody has answered");
	pass(a, "RC WRITE ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	cr_expect_eq(path->doubt, 2);
	expect_written(1);
}

/* Several acknowledgements of one window: only what left after the probe shows that none was needed. */
Test(recovery, what_left_before_a_probe_does_not_end_doubt)
{
	struct path *path;

	story(.recovery = true);
	path = a->q->core->path;
	post_writes(2);
	lose(a, "RC WRITE ONLY", A_PSN);
	lose(a, "RC WRITE ONLY", A_PSN + 1);
	at(PATIENCE);
	lose(a, "RC WRITE ONLY", A_PSN);
	inject(a, OPB_ACK, A_PSN, .syndrome = 31, .msn = 1);
	cr_expect_eq(path->doubt, 1);
	inject(a, OPB_ACK, A_PSN + 1, .syndrome = 31, .msn = 2);
	cr_expect_eq(path->doubt, 1);
	cr_expect_eq(path->samples, 1, "none but the story's own");
	post_writes(1);
	lose(a, "RC WRITE ONLY", A_PSN + 2);
	inject(a, OPB_ACK, A_PSN + 2, .syndrome = 31, .msn = 3);
	cr_expect_eq(path->doubt, 0);
}

/* An acknowledgement without a probe ends the doubt about the path, even if it gives no sample. */
Test(recovery, an_answer_without_a_probe_ends_doubt)
{
	struct path *path;

	story(.recovery = true);
	path = a->q->core->path;
	path->doubt = 3;
	post_writes(2);
	lose(a, "RC WRITE ONLY", A_PSN);
	pass(a, "RC WRITE ONLY", A_PSN + 1);
	at(WINDOW);
	pass_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN, 0);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass_ack(b, A_PSN + 1, 2);
	expect_written(2);
	cr_expect_eq(path->samples, 1, "none but the story's own");
	cr_expect_eq(path->doubt, 0);
}

/* The repetition is lost, too: probes go on. */
Test(recovery, a_lost_repetition_costs_round_trips)
{
	story(.recovery = true);
	post_writes(2);
	lose(a, "RC WRITE ONLY", A_PSN);
	pass(a, "RC WRITE ONLY", A_PSN + 1);
	at(WINDOW);
	lose(a, "RC WRITE ONLY", A_PSN); /* the probe, at the same time */
	pass_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN, 0);
	lose(a, "RC WRITE ONLY", A_PSN);
	lose(a, "RC WRITE ONLY", A_PSN + 1);
	at(us(4000));
	pass(a, "RC WRITE ONLY", A_PSN);
	exchange();
	expect_written(2);
	cr_assert_eq(qp_timeouts(a->q->core), 0);
}

/*
 * A host that is sometimes late may answer that late. But a packet that is known to be lost does
 * not wait for that.
 */
Test(recovery, a_late_host_is_waited_for_until_something_is_lost)
{
	static struct path late;

	story(.recovery = true);
	path_init(&late);
	path_rtt(&late, ROUND_TRIP, 1);
	late.rttvar = 0;
	path_looked(&late);
	late.peer_late = us(500);
	qp_give_path(a->q->core, &late);
	post_writes(2);
	lose(a, "RC WRITE ONLY", A_PSN);
	lose(a, "RC WRITE ONLY", A_PSN + 1);
	at(us(500) + PATIENCE - 1);
	expect_silence(a);
	at(us(500) + PATIENCE);
	lose(a, "RC WRITE ONLY", A_PSN); /* the probe */
	inject(a, OPB_ACK, A_PSN, .syndrome = 0x60, .msn = 0);
	lose(a, "RC WRITE ONLY", A_PSN);
	lose(a, "RC WRITE ONLY", A_PSN + 1);
	/* twice as long, because a probe was needed */
	at(us(500) + PATIENCE + 2 * (PATIENCE + ROUND_TRIP / 2));
	pass(a, "RC WRITE ONLY", A_PSN);
	exchange();
	at(us(500) + 4 * PATIENCE + WINDOW);
	exchange();
	expect_written(2);
	cr_assert_eq(qp_timeouts(a->q->core), 0);
}

/* protocol-map 59: packets that only changed places are not requested again */
Test(recovery, packets_that_change_places_are_not_sent_again)
{
	struct packet first;

	story(.recovery = true);
	post_writes(3);
	first = *lose(a, "RC WRITE ONLY", A_PSN);
	pass(a, "RC WRITE ONLY", A_PSN + 1);
	pass(a, "RC WRITE ONLY", A_PSN + 2);
	at(us(10));
	expect_silence(b);
	expect_untouched(b, LANDS + 8, 16);
	first.payload = octets(a, 0);
	story_inject(b, &first);
	pass_ack(b, A_PSN + 2, 3);
	at(ms(3));
	expect_silence(a);
	expect_silence(b);
	for (uint32_t i = 0; i < 3; i++)
		expect_completion(a, 1 + i, STATUS_SUCCESS);
}

/*
 * protocol-map 111, 113: a READ with a hole requests the rest of it again, and keeps what has
 * arrived
 */
Test(recovery, a_read_with_a_hole)
{
	story(.recovery = true);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 4 * MTU);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	lose(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 2);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 3);
	expect_silence(a);
	at(WINDOW);
	pass(a, "RC READ REQUEST", A_PSN + 1);
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_same(a, 0, b, LANDS, 4 * MTU);
	cr_assert_eq(qp_timeouts(a->q->core), 0);
}

/* protocol-map 91: an atomic whose answer is lost is executed once */
Test(recovery, an_atomic_is_replayed)
{
	story(.recovery = true);
	set_word(b, LANDS, 40);
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_FETCH_AND_ADD, .compare_add = 2);
	pass(a, "RC FETCH ADD", A_PSN);
	lose(b, "RC ATOMIC ACK", A_PSN);
	at(PATIENCE);
	pass(a, "RC FETCH ADD", A_PSN);
	pass(b, "RC ATOMIC ACK", A_PSN);
	expect_completion(a, 1, STATUS_SUCCESS);
	cr_assert_eq(word(a, 0), 40);
	cr_assert_eq(word(b, LANDS), 42);
}

/* protocol-map 84, 111: an atomic's answer that arrives before a READ's waits for it */
Test(recovery, responses_change_places)
{
	struct packet read;

	story(.recovery = true);
	set_word(b, LANDS, 5);
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 8, .from = 64, .to = LANDS + 64);
	post(a, .wr_id = 2, .opcode = WORK_ATOMIC_FETCH_AND_ADD, .compare_add = 1);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(a, "RC FETCH ADD", A_PSN + 1);
	read = *lose(b, "RC READ RESPONSE ONLY", A_PSN);
	pass(b, "RC ATOMIC ACK", A_PSN + 1);
	expect_no_completion(a);
	story_inject(a, &read);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
	cr_assert_eq(word(a, 0), 5);
	at(ms(3));
	expect_silence(a);
}

/* protocol-map 53, 57 */
Test(recovery, across_the_wrap)
{
	story(.recovery = true, .sq_psn = 0xfffffe);
	post_writes(4);
	pass(a, "RC WRITE ONLY", 0xfffffe);
	lose(a, "RC WRITE ONLY", 0xffffff);
	pass(a, "RC WRITE ONLY", 0);
	lose(a, "RC WRITE ONLY", 1);
	at(WINDOW);
	pass_nak(b, SYNDROME_NAK_SEQUENCE, 0xffffff, 1);
	for (uint32_t i = 0; i < 3; i++)
		pass(a, "RC WRITE ONLY", 0xffffff + i);
	exchange();
	expect_written(4);
	cr_assert_eq(qp_timeouts(a->q->core), 0);
}

/* protocol-map 96, 99: no probe is sent during an RNR wait */
Test(recovery, an_rnr_wait_is_waited_for)
{
	story(.recovery = true);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 8);
	pass(a, "RC SEND ONLY", A_PSN);
	pass_nak(b, SYNDROME_RNR | 12, A_PSN, 0);
	at(us(639));
	expect_silence(a);
	post_receive(b, 1, 8);
	at(us(641));
	pass(a, "RC SEND ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
}
