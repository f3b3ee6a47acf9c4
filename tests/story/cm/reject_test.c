/* SPDX-License-Identifier: BSD-3-Clause */
/* REJs of both sides, and peers that restarted. */
#include "story/cm/parties.h"

TestSuite(cm_reject, .init = begin);

/* protocol-map 193 */
Test(cm_reject, the_program_says_no)
{
	uint8_t data[149];
	struct cm_rejection r = { CM_REJECT_CONSUMER, data, 148, "why", 3 };
	const struct cm_message *m;

	memset(data, 0x5a, sizeof(data));
	ask();
	pass(a, "REQ");
	expect_events(b, CM_EVENT_REQUEST);
	r.private_length = 149;
	cr_expect_eq(cm_reject(&b->c, &r, now), EINVAL);
	r.private_length = 148;
	r.information_length = 73;
	cr_expect_eq(cm_reject(&b->c, &r, now), EINVAL);
	expect_silence(b);
	r.information_length = 3;
	cr_expect_eq(cm_reject(&b->c, &r, now), 0);
	m = pass(b, "REJ");
	cr_expect_eq(m->about, CM_ABOUT_REQ);
	cr_expect_eq(m->transaction, a->message.transaction);
	expect_events(a, CM_EVENT_REJECTED);
	expect_state(a, CM_IDLE);
	m = cm_peer_message(&a->c);
	cr_expect_eq(m->reason, CM_REJECT_CONSUMER);
	cr_expect_arr_eq(m->private_data, data, 148);
	cr_expect_eq(m->information_length, 3);
	cr_expect_arr_eq(m->information, "why", 3);
	expect_events(b, 0);
	at(now + INTERVAL);
	expect_state(b, CM_IDLE);
	expect_events(b, 0);
}

/* protocol-map 190: a repeated REQ that was rejected is not a new one */
Test(cm_reject, a_lost_rej_is_sent_again)
{
	nanotime start = now;

	ask();
	pass(a, "REQ");
	expect_events(b, CM_EVENT_REQUEST);
	reject(b, CM_REJECT_CONSUMER);
	lose(b, "REJ");
	at(start + INTERVAL - 1);
	expect_state(b, CM_REJECTED);
	deliver(b, &a->message);
	lose(b, "REJ");
	at(start + 2 * INTERVAL - 2);
	lose(a, "REQ"); /* repeated by its timer meanwhile */
	expect_state(b, CM_REJECTED);
	deliver(b, &a->message);
	pass(b, "REJ");
	expect_events(b, 0);
	expect_events(a, CM_EVENT_REJECTED);
	at(now + INTERVAL);
	expect_state(b, CM_IDLE);
}

/* protocol-map 191: one connection for each id; a connection that is alive is not dropped */
Test(cm_reject, a_rejected_connection_makes_room)
{
	ask();
	pass(a, "REQ");
	expect_events(b, CM_EVENT_REQUEST);
	cm_forget(&b->c);
	expect_state(b, CM_REQ_RECEIVED);
	reject(b, CM_REJECT_CONSUMER);
	pass(b, "REJ");
	expect_state(b, CM_REJECTED);
	cm_forget(&b->c);
	expect_state(b, CM_IDLE);
	cr_expect_eq(cm_deadline(&b->c), TIME_NEVER);
	expect_silence(b);
	expect_events(b, 0);
	for (enum cm_state s = CM_REQ_SENT; s < CM_STATES; s++) {
		struct party *p =
			s == CM_REQ_SENT || s == CM_REP_RECEIVED || s == CM_SIDR_REQ_SENT ? a : b;

		begin_in(p, s);
		cm_forget(&p->c);
		expect_state(p, s == CM_REJECTED ? CM_IDLE : s);
	}
}

Test(cm_reject, the_active_side_rejects_the_rep)
{
	nanotime start = now;
	const struct cm_message *m;

	ask();
	pass(a, "REQ");
	accept_it();
	pass(b, "REP");
	reject(a, CM_REJECT_CONSUMER);
	m = lose(a, "REJ");
	cr_expect_eq(m->about, CM_ABOUT_REP);
	at(start + INTERVAL - 1);
	deliver(a, &b->message);
	lose(a, "REJ");
	at(start + INTERVAL);
	pass(b, "REP");
	pass(a, "REJ");
	expect_events(b, CM_EVENT_REQUEST | CM_EVENT_REJECTED);
	expect_state(b, CM_IDLE);
	at(now + INTERVAL - 1);
	expect_state(a, CM_REJECTED);
	at(now + 1);
	expect_state(a, CM_IDLE);
	expect_events(a, CM_EVENT_REPLY);
}

/*
 * Our REP is under way. The peer may already use the queue pair, so its number must stay unused for
 * a while.
 */
Test(cm_reject, after_the_rep_ids_rest)
{
	begin_in(b, CM_REP_SENT);
	reject(b, CM_REJECT_CONSUMER);
	cr_expect_eq(pass(b, "REJ")->about, CM_ABOUT_OTHER);
	expect_state(b, CM_TIMEWAIT);
	expect_state(a, CM_IDLE);
	expect_events(a, CM_EVENT_REJECTED);
	at(now + TIMEWAIT);
	expect_events(b, CM_EVENT_TIMEWAIT_EXIT);
}

/* protocol-map 193: there is no listener */
Test(cm_reject, no_listener)
{
	struct cm_message m = req_of(a);

	ask();
	lose(a, "REQ");
	cr_assert(cm_stray(&m, &b->stray));
	b->has_stray = true;
	cr_expect_eq(pass(b, "REJ")->reason, CM_REJECT_INVALID_SERVICE_ID);
	expect_events(a, CM_EVENT_REJECTED);
	expect_state(a, CM_IDLE);
}

/* protocol-map 191: the peer knows our queue pair from an older connection */
Test(cm_reject, stale_queue_pairs_rest)
{
	struct cm_message m = req_of(a);

	ask();
	lose(a, "REQ");
	cm_refuse(&m, CM_REJECT_STALE, &b->stray);
	b->has_stray = true;
	pass(b, "REJ");
	expect_events(a, CM_EVENT_REJECTED);
	expect_state(a, CM_TIMEWAIT);
	at(now + FLIGHT - 1);
	expect_state(a, CM_TIMEWAIT);
	at(now + 1);
	expect_events(a, CM_EVENT_TIMEWAIT_EXIT);
	expect_state(a, CM_IDLE);
}

/* protocol-map 191, hostile H-71: a restarted peer uses the same queue pair number */
Test(cm_reject, a_peer_that_restarted)
{
	struct cm_message req, answer;

	establish_both();
	req = req_of(a);
	req.local_id = 0xa2a2;
	req.starting_psn = 0x333;
	cr_assert_eq(cm_compare(&b->c, &req), CM_STALE);
	cm_refuse(&req, CM_REJECT_STALE, &answer);
	cr_expect_eq(answer.attribute, CM_REJ);
	cr_expect_eq(answer.reason, CM_REJECT_STALE);
	cr_expect_eq(answer.remote_id, 0xa2a2);
	disconnect(b);
	memset(&a->c, 0, sizeof(a->c)); /* it has lost its state */
	pass(b, "DREQ");
	pass(a, "DREP");
	expect_events(b, CM_EVENT_DISCONNECTED);
	expect_state(b, CM_TIMEWAIT);
	cr_expect_eq(cm_compare(&b->c, &req), CM_STALE);
	at(now + TIMEWAIT);
	expect_events(b, CM_EVENT_TIMEWAIT_EXIT);
	cr_expect_eq(cm_compare(&b->c, &req), CM_UNRELATED);
}

/* protocol-map 193: a REP to a REQ that was never sent, or was forgotten */
Test(cm_reject, a_late_rep)
{
	begin_in(b, CM_REP_SENT);
	cm_abandon(&a->c, now); /* it has not handled our REP yet */
	lose(a, "REJ");
	begin_in(b, CM_REP_SENT);
	memset(&a->c, 0, sizeof(a->c));
	deliver(a, &b->message);
	cr_expect_eq(pass(a, "REJ")->reason, CM_REJECT_INVALID_COMM_ID);
	expect_events(b, CM_EVENT_REJECTED);
	expect_state(b, CM_IDLE);
}

/* hostile H-66 */
Test(cm_reject, a_rep_with_an_invalid_queue_pair)
{
	static const uint32_t qpns[] = { 0, 1, 0xffffff };

	for (size_t i = 0; i < ARRAY_SIZE(qpns); i++) {
		struct cm_message rep;

		begin_in(a, CM_REQ_SENT);
		rep = from_peer_of(a, CM_REP);
		rep.qpn = qpns[i];
		deliver(a, &rep);
		expect_events(a, CM_EVENT_UNREACHABLE);
		expect_state(a, CM_REJECTED);
		cr_expect_eq(lose(a, "REJ")->reason, CM_REJECT_UNSUPPORTED);
		cr_expect_eq(a->message.about, CM_ABOUT_REP);
		cr_expect_eq(a->message.remote_id, b->id);
		cr_expect_eq(cm_ready(&a->c, NULL, 0, now), EINVAL);
		at(now + INTERVAL);
		expect_state(a, CM_IDLE);
	}
}

/* A REJ from another host. */
Test(cm_reject, only_the_peer_rejects)
{
	static const enum cm_state states[] = { CM_REP_RECEIVED, CM_ESTABLISHED, CM_DREQ_SENT };

	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		struct cm_message rej;

		begin_in(a, states[i]);
		rej = from_peer_of(a, CM_REJ);
		rej.local_id ^= 1;
		cr_expect_eq(deliver(a, &rej), CM_IGNORED);
		rej.local_id = 0;
		cr_expect_eq(deliver(a, &rej), CM_IGNORED);
		rej.local_id = b->id;
		rej.remote_id ^= 1;
		cr_expect_eq(deliver(a, &rej), CM_IGNORED);
		expect_events(a, 0);
		expect_state(a, states[i]);
	}
}

/* ... nor does one with another CA's GUID. */
Test(cm_reject, giving_up_needs_the_right_guid)
{
	struct cm_message rej = { .attribute = CM_REJ, .reason = CM_REJECT_TIMEOUT };

	begin_in(b, CM_REQ_RECEIVED);
	rej.local_id = a->id;
	cr_expect_eq(deliver(b, &rej), CM_IGNORED);
	rej.information_length = 8;
	store_be64(rej.information, a->guid ^ 1);
	cr_expect_eq(deliver(b, &rej), CM_IGNORED);
	store_be64(rej.information, a->guid);
	rej.reason = CM_REJECT_CONSUMER;
	cr_expect_eq(deliver(b, &rej), CM_IGNORED);
	rej.reason = CM_REJECT_TIMEOUT;
	cr_expect_eq(deliver(b, &rej), CM_ACCEPTED);
	expect_events(b, CM_EVENT_REJECTED);
}
