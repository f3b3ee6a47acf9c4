/* SPDX-License-Identifier: BSD-3-Clause */
/* REQ, REP, RTU, and the loss of each. */
#include "story/cm/parties.h"

TestSuite(cm_open, .init = begin);

Test(cm_open, three_messages)
{
	const struct cm_message *m;

	ask();
	m = pass(a, "REQ");
	cr_expect_eq(m->local_id, a->id);
	cr_expect_eq(m->transaction, (uint64_t)CM_REQ << 32 | a->id);
	expect_events(b, CM_EVENT_REQUEST);
	expect_state(b, CM_REQ_RECEIVED);
	cr_expect_eq(cm_peer_message(&b->c)->qpn, a->qpn);
	accept_it();
	m = pass(b, "REP");
	cr_expect_eq(m->local_id, b->id);
	cr_expect_eq(m->remote_id, a->id);
	cr_expect_eq(m->transaction, a->message.transaction);
	expect_events(a, CM_EVENT_REPLY);
	expect_events(b, 0);
	cr_expect_eq(cm_peer_message(&a->c)->starting_psn, b->psn);
	cr_expect_eq(cm_deadline(&a->c), TIME_NEVER);
	ready();
	m = pass(a, "RTU");
	cr_expect_eq(m->local_id, a->id);
	cr_expect_eq(m->remote_id, b->id);
	cr_expect_eq(m->transaction, b->message.transaction);
	expect_events(a, 0);
	expect_events(b, CM_EVENT_ESTABLISHED);
	cr_expect_eq(a->c.remote_qpn, b->qpn);
	cr_expect_eq(b->c.remote_qpn, a->qpn);
	at(now + 1000 * TIME_S);
	expect_silence(a);
	expect_silence(b);
	expect_state(a, CM_ESTABLISHED);
	expect_state(b, CM_ESTABLISHED);
}

/* protocol-map 190 */
Test(cm_open, a_lost_req_comes_again)
{
	nanotime start = now;
	struct cm_message first;

	ask();
	first = *lose(a, "REQ");
	at(start + INTERVAL - 1);
	expect_silence(a);
	at(start + INTERVAL);
	pass(a, "REQ");
	cr_expect_arr_eq(&first, &a->message, sizeof(first));
	expect_events(b, CM_EVENT_REQUEST);
	accept_it();
	pass(b, "REP");
	expect_events(a, CM_EVENT_REPLY);
	ready();
	pass(a, "RTU");
	at(start + 10 * INTERVAL);
	expect_silence(a);
	expect_silence(b);
}

Test(cm_open, a_req_without_an_answer)
{
	nanotime start = now;
	const struct cm_message *m;

	ask();
	lose(a, "REQ");
	for (uint32_t n = 1; n <= RETRIES; n++) {
		at(start + n * INTERVAL);
		lose(a, "REQ");
	}
	at(start + (RETRIES + 1) * INTERVAL - 1);
	expect_silence(a);
	expect_events(a, 0);
	at(start + (RETRIES + 1) * INTERVAL);
	expect_events(a, CM_EVENT_UNREACHABLE);
	expect_state(a, CM_IDLE);
	m = lose(a, "REJ");
	cr_expect_eq(m->reason, CM_REJECT_TIMEOUT);
	cr_expect_eq(m->about, CM_ABOUT_OTHER);
	cr_expect_eq(m->local_id, a->id);
	cr_expect_eq(m->remote_id, 0);
	cr_expect_eq(m->information_length, 8);
	cr_expect_eq(load_be64(m->information), a->guid);
	at(start + 100 * INTERVAL);
	expect_silence(a);
	expect_events(a, 0);
}

/*
 * The peer does not know our id yet, so it finds the connection by its own id and our CA GUID.
 * hostile H-70: a REJ in between.
 */
Test(cm_open, a_peer_that_gave_up_is_told)
{
	ask();
	pass(a, "REQ");
	expect_events(b, CM_EVENT_REQUEST);
	cm_abandon(&a->c, now);
	expect_state(a, CM_IDLE);
	pass(a, "REJ");
	expect_events(b, CM_EVENT_REJECTED);
	expect_state(b, CM_IDLE);
	expect_silence(b);
}

/*
 * hostile H-70: the REJ arrives before the program answers
 */
Test(cm_open, an_answer_after_a_rejection_is_refused)
{
	struct cm_message rep = rep_of(b);

	ask();
	pass(a, "REQ");
	cm_abandon(&a->c, now);
	pass(a, "REJ");
	cr_expect_eq(cm_accept(&b->c, &rep, now), EINVAL);
	cr_expect_eq(cm_reject(&b->c, &(struct cm_rejection){ .reason = 28 }, now), EINVAL);
	cm_abandon(&b->c, now);
	expect_silence(b);
	expect_state(b, CM_IDLE);
}

Test(cm_open, a_lost_rep_comes_again)
{
	nanotime start = now;

	ask();
	pass(a, "REQ");
	at(start + TIME_S);
	accept_it();
	lose(b, "REP");
	at(start + TIME_S + INTERVAL - 1);
	pass(a, "REQ"); /* because of its own timer */
	pass(b, "REP"); /* ... is answered with the REP */
	expect_events(a, CM_EVENT_REPLY);
	ready();
	pass(a, "RTU");
	expect_events(b, CM_EVENT_REQUEST | CM_EVENT_ESTABLISHED);
	at(start + 10 * INTERVAL);
	expect_silence(b);
}

Test(cm_open, the_rep_has_a_timer_of_its_own)
{
	nanotime start;

	ask();
	pass(a, "REQ");
	at(now + INTERVAL / 2);
	accept_it();
	start = now;
	lose(b, "REP");
	at(start + INTERVAL / 2);
	pass(a, "REQ");
	lose(b, "REP"); /* the answer to the repeated REQ */
	at(start + INTERVAL);
	pass(b, "REP");
	expect_events(a, CM_EVENT_REPLY);
	expect_silence(b);
}

Test(cm_open, a_rep_without_an_answer)
{
	nanotime start = now;
	const struct cm_message *m;

	ask();
	pass(a, "REQ");
	cm_take_events(&b->c);
	accept_it();
	pass(b, "REP");
	ready();
	lose(a, "RTU");
	for (uint32_t n = 1; n <= RETRIES; n++) {
		at(start + n * INTERVAL);
		lose(b, "REP");
	}
	at(start + (RETRIES + 1) * INTERVAL);
	expect_events(b, CM_EVENT_UNREACHABLE);
	expect_state(b, CM_TIMEWAIT);
	m = pass(b, "REJ");
	cr_expect_eq(m->reason, CM_REJECT_TIMEOUT);
	cr_expect_eq(m->local_id, b->id);
	cr_expect_eq(m->remote_id, a->id);
	cr_expect_eq(load_be64(m->information), b->guid);
	expect_events(a, CM_EVENT_REPLY | CM_EVENT_DISCONNECTED);
	expect_rest();
}

/* hostile H-69 */
Test(cm_open, a_lost_rtu_comes_again)
{
	nanotime start = now;
	struct cm_message first;

	ask();
	pass(a, "REQ");
	cm_take_events(&b->c);
	accept_it();
	pass(b, "REP");
	ready();
	first = *lose(a, "RTU");
	at(start + INTERVAL);
	pass(b, "REP");
	pass(a, "RTU");
	cr_expect_arr_eq(&first, &a->message, sizeof(first));
	expect_events(a, CM_EVENT_REPLY);
	expect_events(b, CM_EVENT_ESTABLISHED);
}

/* protocol-map 194 */
Test(cm_open, data_establishes)
{
	nanotime start = now;

	ask();
	pass(a, "REQ");
	cm_take_events(&b->c);
	cr_expect_eq(cm_establish(&b->c, now), EINVAL);
	accept_it();
	pass(b, "REP");
	ready();
	lose(a, "RTU");
	cr_expect_eq(cm_establish(&b->c, now), 0);
	expect_events(b, CM_EVENT_ESTABLISHED);
	cr_expect_eq(cm_establish(&b->c, now), EISCONN);
	cr_expect_eq(deliver(b, &a->message), CM_REPEATED);
	expect_events(b, 0);
	at(start + 10 * INTERVAL);
	expect_silence(b);
}

/* ... or the program said so too early: the REP was lost */
Test(cm_open, established_without_a_peer)
{
	nanotime start = now;

	ask();
	pass(a, "REQ");
	accept_it();
	lose(b, "REP");
	cr_expect_eq(cm_establish(&b->c, now), 0);
	at(start + INTERVAL);
	pass(a, "REQ");
	pass(b, "REP");
	expect_events(a, CM_EVENT_REPLY);
}

/*
 * hostile H-69: every message twice, but each takes effect once
 */
Test(cm_open, everything_twice)
{
	ask();
	pass_twice(a, "REQ");
	expect_events(b, CM_EVENT_REQUEST);
	lose(b, "MRA");
	accept_it();
	pass_twice(b, "REP");
	expect_events(a, CM_EVENT_REPLY);
	lose(a, "MRA");
	ready();
	pass_twice(a, "RTU");
	expect_events(b, CM_EVENT_ESTABLISHED);
	expect_silence(a);
	expect_silence(b);
	deliver(a, &b->message); /* the REP once more */
	pass(a, "RTU");
	expect_events(b, 0);
	expect_events(a, 0);
}

/* protocol-map 195 */
Test(cm_open, an_mra_extends_the_wait)
{
	nanotime start = now;
	const struct cm_message *m;

	ask();
	pass(a, "REQ");
	at(start + INTERVAL);
	pass(a, "REQ");
	expect_events(b, CM_EVENT_REQUEST);
	m = pass(b, "MRA");
	cr_expect_eq(m->about, CM_ABOUT_REQ);
	cr_expect_eq(m->service_timeout, LIMIT_CM_MRA_TIMEOUT);
	cr_expect_eq(m->local_id, b->id);
	cr_expect_eq(m->remote_id, a->id);
	at(start + INTERVAL + PATIENCE + FLIGHT - 1);
	expect_silence(a);
	accept_it();
	pass(b, "REP");
	expect_events(a, CM_EVENT_REPLY);
}

Test(cm_open, patience_ends)
{
	nanotime start = now;

	ask();
	pass(a, "REQ");
	cr_expect_eq(cm_delay(&b->c, 22, now), 0);
	pass(b, "MRA");
	at(start + (UINT64_C(4096) << 22) + FLIGHT - 1);
	expect_silence(a);
	for (uint32_t n = 0; n < RETRIES; n++) {
		at(start + (UINT64_C(4096) << 22) + FLIGHT + n * INTERVAL);
		lose(a, "REQ");
	}
	at(now + INTERVAL);
	lose(a, "REJ");
	expect_events(a, CM_EVENT_UNREACHABLE);
}

/*
 * hostile H-81: one extension for each repetition, however many MRAs come, and whatever they ask
 * for
 */
Test(cm_open, patience_is_bounded)
{
	nanotime start = now, longest = PATIENCE + FLIGHT;
	struct cm_message mra = { .attribute = CM_MRA, .service_timeout = 31 };
	uint32_t repetitions = 0;

	mra.local_id = b->id;
	mra.remote_id = a->id;
	ask();
	lose(a, "REQ");
	while (cm_state(&a->c) == CM_REQ_SENT) {
		cr_expect_eq(deliver(a, &mra), CM_ACCEPTED);
		for (int n = 0; n < 100; n++) {
			now += TIME_MS;
			cr_expect_eq(deliver(a, &mra), CM_REPEATED);
		}
		cr_expect_leq(cm_deadline(&a->c), now + longest);
		at(cm_deadline(&a->c));
		lose(a, cm_state(&a->c) == CM_REQ_SENT ? "REQ" : "REJ");
		cr_assert_leq(++repetitions, RETRIES + 1);
	}
	cr_expect_leq(now - start, (RETRIES + 1) * longest);
	expect_events(a, CM_EVENT_UNREACHABLE);
}

Test(cm_open, an_mra_never_shortens)
{
	nanotime start = now;

	ask();
	pass(a, "REQ");
	cr_expect_eq(cm_delay(&b->c, 0, now), 0);
	pass(b, "MRA");
	at(start + INTERVAL - 1);
	expect_silence(a);
	at(start + INTERVAL);
	lose(a, "REQ");
}

Test(cm_open, the_active_side_may_need_time_too)
{
	nanotime start = now;
	const struct cm_message *m;

	ask();
	pass(a, "REQ");
	accept_it();
	pass(b, "REP");
	at(start + INTERVAL);
	pass(b, "REP");
	expect_events(a, CM_EVENT_REPLY);
	m = pass(a, "MRA");
	cr_expect_eq(m->about, CM_ABOUT_REP);
	at(start + INTERVAL + PATIENCE + FLIGHT - 1);
	expect_silence(b);
	ready();
	pass(a, "RTU");
	expect_events(b, CM_EVENT_REQUEST | CM_EVENT_ESTABLISHED);
}

/* An MRA that refers to a message other than the awaited one. */
Test(cm_open, mras_about_other_messages)
{
	struct cm_message mra = { .attribute = CM_MRA, .about = CM_ABOUT_REP };

	begin_in(a, CM_REQ_SENT);
	mra.local_id = b->id;
	mra.remote_id = a->id;
	cr_expect_eq(deliver(a, &mra), CM_IGNORED);
	mra.about = CM_ABOUT_OTHER;
	cr_expect_eq(deliver(a, &mra), CM_IGNORED);
	mra.about = CM_ABOUT_REQ;
	cr_expect_eq(deliver(a, &mra), CM_ACCEPTED);
}

/* protocol-map 188 */
Test(cm_open, private_data_is_carried_whole)
{
	struct cm_message req = req_of(a), rep = rep_of(b);
	uint8_t data[MAD_PRIVATE_MAX];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + 1);
	memcpy(req.private_data, data, 92);
	memcpy(rep.private_data, data, 196);
	cr_assert_eq(cm_connect(&a->c, &req, now), 0);
	pass(a, "REQ");
	cr_expect_arr_eq(cm_peer_message(&b->c)->private_data, data, 92);
	cr_assert_eq(cm_accept(&b->c, &rep, now), 0);
	pass(b, "REP");
	cr_expect_arr_eq(cm_peer_message(&a->c)->private_data, data, 196);
	cr_expect_eq(cm_ready(&a->c, data, 225, now), EINVAL);
	expect_silence(a);
	cr_expect_eq(cm_ready(&a->c, data, 224, now), 0);
	cr_expect_arr_eq(pass(a, "RTU")->private_data, data, 224);
	cr_expect_eq(cm_disconnect(&a->c, data, 221, now), EINVAL);
	expect_silence(a);
	cr_expect_eq(cm_disconnect(&a->c, data, 220, now), 0);
	cr_expect_arr_eq(pass(a, "DREQ")->private_data, data, 220);
	cr_expect_eq(cm_disconnect(&b->c, data, 225, now), EINVAL);
	cr_expect_eq(cm_disconnect(&b->c, data, 224, now), 0);
	cr_expect_arr_eq(pass(b, "DREP")->private_data, data, 224);
}

/*
 * hostile H-80: both depths are the lesser offer, and 0 is legal
 */
Test(cm_open, depths_are_agreed)
{
	static const struct {
		uint8_t req_initiator, req_responder, rep_initiator, rep_responder;
		uint8_t initiator, responder; /* of a */
	} row[] = {
		{ 8, 4, 2, 4, 4, 2 },	  { 1, 1, 16, 16, 1, 1 },	    { 0, 0, 16, 16, 0, 0 },
		{ 255, 255, 0, 0, 0, 0 }, { 255, 255, 255, 255, 255, 255 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct cm_message req, rep;

		begin();
		req = req_of(a);
		rep = rep_of(b);
		req.initiator_depth = row[i].req_initiator;
		req.responder_resources = row[i].req_responder;
		rep.initiator_depth = row[i].rep_initiator;
		rep.responder_resources = row[i].rep_responder;
		cr_assert_eq(cm_connect(&a->c, &req, now), 0);
		pass(a, "REQ");
		cr_assert_eq(cm_accept(&b->c, &rep, now), 0);
		pass(b, "REP");
		cr_expect_eq(a->c.initiator_depth, row[i].initiator, "row %zu", i);
		cr_expect_eq(a->c.responder_resources, row[i].responder, "row %zu", i);
		cr_expect_eq(b->c.initiator_depth, row[i].responder, "row %zu", i);
		cr_expect_eq(b->c.responder_resources, row[i].initiator, "row %zu", i);
		cr_expect_eq(b->message.initiator_depth, row[i].responder, "row %zu", i);
		cr_expect_eq(b->message.responder_resources, row[i].initiator, "row %zu", i);
	}
}

/*
 * The same if the REP is wrong.
 * hostile H-80: depths that a peer chooses.
 */
Test(cm_open, a_rep_that_promises_too_much)
{
	struct cm_message rep;

	begin_in(a, CM_REQ_SENT);
	rep = from_peer_of(a, CM_REP);
	rep.initiator_depth = rep.responder_resources = 255;
	cr_expect_eq(deliver(a, &rep), CM_ACCEPTED);
	cr_expect_eq(a->c.initiator_depth, 8);
	cr_expect_eq(a->c.responder_resources, 4);
}

/* protocol-map 195: path migration is not supported, and is not promised */
Test(cm_open, an_alternate_path_is_not_accepted)
{
	struct cm_message req = req_of(a);

	req.alternate = req.primary;
	cr_assert_eq(cm_connect(&a->c, &req, now), 0);
	pass(a, "REQ");
	accept_it();
	cr_expect_eq(pass(b, "REP")->failover_accepted, 1);
	begin();
	ask();
	pass(a, "REQ");
	accept_it();
	cr_expect_eq(pass(b, "REP")->failover_accepted, 0);
}

/*
 * hostile H-81: the field has five bits, but uroce neither waits 2.4 hours nor repeats every 4 us
 */
Test(cm_open, exponents_are_bounded)
{
	for (unsigned int n = 0; n < 256; n++) {
		cr_expect_geq(cm_time((uint8_t)n), UINT64_C(4096) << 8);
		cr_expect_leq(cm_time((uint8_t)n), UINT64_C(4096) << 24);
	}
	for (unsigned int n = 8; n <= 24; n++)
		cr_expect_eq(cm_time((uint8_t)n), UINT64_C(4096) << n);
}

Test(cm_open, a_peers_times_are_bounded)
{
	struct cm_message req = req_of(a);

	req.local_response_timeout = req.remote_response_timeout = req.primary.ack_timeout = 31;
	req.max_cm_retries = 15;
	deliver(b, &req);
	accept_it();
	for (int n = 0; n < 16; n++) {
		lose(b, "REP");
		cr_assert_leq(cm_deadline(&b->c), now + 2 * PATIENCE);
		at(cm_deadline(&b->c));
	}
	expect_state(b, CM_TIMEWAIT);
	lose(b, "REJ");
	cr_assert_leq(cm_deadline(&b->c), now + 2 * PATIENCE);
}

/* Without retries the message is sent once. */
Test(cm_open, no_retries)
{
	struct cm_message req = req_of(a);
	nanotime start = now;

	req.max_cm_retries = 0;
	cr_assert_eq(cm_connect(&a->c, &req, now), 0);
	lose(a, "REQ");
	at(start + INTERVAL);
	lose(a, "REJ");
	expect_events(a, CM_EVENT_UNREACHABLE);
}

Test(cm_open, only_a_req_with_an_id_connects)
{
	struct cm_message req = req_of(a);

	req.local_id = 0;
	cr_expect_eq(cm_connect(&a->c, &req, now), EINVAL);
	req = req_of(a);
	req.attribute = CM_REP;
	cr_expect_eq(cm_connect(&a->c, &req, now), EINVAL);
	expect_silence(a);
}

/* An ended connection can begin again. */
Test(cm_open, a_struct_is_used_again)
{
	establish_both();
	disconnect(a);
	pass(a, "DREQ");
	disconnect(b);
	pass(b, "DREP");
	cm_take_events(&a->c);
	cm_take_events(&b->c);
	expect_rest();
	cm_abandon(&a->c, now);
	cm_abandon(&b->c, now);
	establish_both();
}

/* The MRA arrives before a repetition was sent. */
Test(cm_open, an_mra_saves_a_repetition)
{
	struct cm_message mra;

	begin_in(a, CM_REQ_SENT);
	mra = from_peer_of(a, CM_MRA);
	now = cm_deadline(&a->c);
	cm_expired(&a->c, now);
	cr_expect_eq(deliver(a, &mra), CM_ACCEPTED);
	expect_silence(a);
}

/* hostile H-81: times that overflow. */
Test(cm_open, the_longest_delay_that_can_be_said)
{
	begin_in(b, CM_REQ_RECEIVED);
	cr_expect_eq(cm_delay(&b->c, 32, now), EINVAL);
	expect_silence(b);
	cr_expect_eq(cm_delay(&b->c, 31, now), 0);
	cr_expect_eq(lose(b, "MRA")->service_timeout, 31);
}
