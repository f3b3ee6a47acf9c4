/* SPDX-License-Identifier: BSD-3-Clause */
/* SIDR_REQ, SIDR_REP. */
#include "story/cm/parties.h"

#define SIDR_INTERVAL (UINT64_C(4096) << RESPONSE)

TestSuite(cm_sidr, .init = begin);

static void ask_for(void)
{
	struct cm_message m = { .attribute = CM_SIDR_REQ, .pkey = 0xffff };

	m.local_id = a->id;
	m.service_id = SERVICE;
	memset(m.private_data, 0x11, 216);
	cr_assert_eq(cm_sidr_connect(&a->c, &m, RESPONSE, RETRIES, now), 0);
}

static void reply(uint8_t status)
{
	struct cm_message m = { .qpn = b->qpn, .qkey = 0x01234567, .status = status };

	memset(m.private_data, 0x22, 136);
	cr_assert_eq(cm_sidr_reply(&b->c, &m, now), 0);
}

Test(cm_sidr, two_messages)
{
	const struct cm_message *m;

	ask_for();
	m = pass(a, "SIDR_REQ");
	cr_expect_neq(m->transaction, 0);
	expect_events(b, CM_EVENT_REQUEST);
	cr_expect_eq(cm_peer_message(&b->c)->private_data[215], 0x11);
	reply(CM_SIDR_VALID);
	m = pass(b, "SIDR_REP");
	cr_expect_eq(m->local_id, a->id);
	cr_expect_eq(m->transaction, a->message.transaction);
	cr_expect_eq(m->service_id, SERVICE);
	expect_events(a, CM_EVENT_SIDR_REPLY);
	expect_state(a, CM_IDLE);
	m = cm_peer_message(&a->c);
	cr_expect_eq(m->qpn, b->qpn);
	cr_expect_eq(m->qkey, 0x01234567);
	cr_expect_eq(m->private_data[135], 0x22);
	at(now + 100 * TIME_S);
	expect_silence(a);
	expect_silence(b);
}

Test(cm_sidr, a_lost_request_comes_again)
{
	nanotime start = now;

	ask_for();
	lose(a, "SIDR_REQ");
	at(start + SIDR_INTERVAL - 1);
	expect_silence(a);
	at(start + SIDR_INTERVAL);
	pass(a, "SIDR_REQ");
	expect_events(b, CM_EVENT_REQUEST);
}

Test(cm_sidr, a_request_without_an_answer)
{
	nanotime start = now;

	ask_for();
	for (uint32_t n = 0; n <= RETRIES; n++) {
		at(start + n * SIDR_INTERVAL);
		lose(a, "SIDR_REQ");
		expect_events(a, 0);
	}
	at(start + (RETRIES + 1) * SIDR_INTERVAL);
	expect_events(a, CM_EVENT_UNREACHABLE);
	expect_state(a, CM_IDLE);
	expect_silence(a);
}

/* protocol-map 190: a repetition is never a new request */
Test(cm_sidr, a_lost_reply_comes_again)
{
	struct cm_message first;

	ask_for();
	pass_twice(a, "SIDR_REQ");
	expect_events(b, CM_EVENT_REQUEST);
	expect_silence(b);
	reply(CM_SIDR_VALID);
	first = *lose(b, "SIDR_REP");
	cm_abandon(&b->c, now); /* the program is done with it */
	at(now + SIDR_INTERVAL);
	pass(a, "SIDR_REQ");
	pass(b, "SIDR_REP");
	cr_expect_arr_eq(&first, &b->message, sizeof(first));
	expect_events(a, CM_EVENT_SIDR_REPLY);
	expect_events(b, 0);
}

/* An exchange ends when neither the program nor the requester can need it any more. */
Test(cm_sidr, how_long_a_reply_is_kept)
{
	nanotime start = now;

	ask_for();
	pass(a, "SIDR_REQ");
	reply(CM_SIDR_VALID);
	pass(b, "SIDR_REP");
	cm_abandon(&b->c, now);
	at(start + LIMIT_CM_SIDR_LINGER - 1);
	expect_state(b, CM_SIDR_REPLIED);
	at(start + LIMIT_CM_SIDR_LINGER);
	expect_state(b, CM_IDLE);

	begin();
	ask_for();
	pass(a, "SIDR_REQ");
	reply(CM_SIDR_VALID);
	pass(b, "SIDR_REP");
	at(now + 1000 * TIME_S);
	expect_state(b, CM_SIDR_REPLIED);
	cm_abandon(&b->c, now);
	expect_state(b, CM_IDLE);
}

Test(cm_sidr, the_program_says_no)
{
	ask_for();
	pass(a, "SIDR_REQ");
	reply(CM_SIDR_REJECTED);
	pass(b, "SIDR_REP");
	expect_events(a, CM_EVENT_SIDR_REPLY);
	cr_expect_eq(cm_peer_message(&a->c)->status, CM_SIDR_REJECTED);
}

Test(cm_sidr, a_request_that_the_program_drops_is_rejected)
{
	ask_for();
	pass(a, "SIDR_REQ");
	cm_abandon(&b->c, now);
	cr_expect_eq(pass(b, "SIDR_REP")->status, CM_SIDR_REJECTED);
}

Test(cm_sidr, a_reply_to_another_request)
{
	struct cm_message m;

	begin_in(a, CM_SIDR_REQ_SENT);
	m = from_peer_of(a, CM_SIDR_REP);
	m.local_id++;
	cr_expect_eq(deliver(a, &m), CM_IGNORED);
	m.local_id--;
	cr_expect_eq(deliver(a, &m), CM_ACCEPTED);
	cr_expect_eq(deliver(a, &m), CM_IGNORED);
	expect_events(a, CM_EVENT_SIDR_REPLY);
}

Test(cm_sidr, another_service_is_another_request)
{
	struct cm_message m;

	begin_in(b, CM_SIDR_REPLIED);
	m = from_peer_of(b, CM_SIDR_REQ);
	cr_expect_eq(cm_sidr_compare(&b->c, &m), CM_REPETITION);
	m.service_id++;
	cr_expect_eq(cm_sidr_compare(&b->c, &m), CM_UNRELATED);
	cr_expect_eq(deliver(b, &m), CM_IGNORED);
	m.service_id--;
	m.local_id++;
	cr_expect_eq(cm_sidr_compare(&b->c, &m), CM_UNRELATED);
}

Test(cm_sidr, calls_in_other_states)
{
	struct cm_message m = from_peer_of(b, CM_SIDR_REQ), rep = { .qpn = 5 };

	cr_expect_eq(cm_sidr_reply(&b->c, &rep, now), EINVAL);
	m.local_id = 0;
	cr_expect_eq(cm_sidr_connect(&a->c, &m, RESPONSE, RETRIES, now), EINVAL);
	begin_in(b, CM_SIDR_REQ_RECEIVED);
	rep.information_length = 73;
	cr_expect_eq(cm_sidr_reply(&b->c, &rep, now), EINVAL);
	cr_expect_eq(cm_accept(&b->c, &rep, now), EINVAL);
	cr_expect_eq(cm_disconnect(&b->c, NULL, 0, now), EINVAL);
	expect_silence(b);
	rep.information_length = 72;
	cr_expect_eq(cm_sidr_reply(&b->c, &rep, now), 0);
	begin_in(b, CM_SIDR_REPLIED);
	rep.information_length = 0;
	cr_expect_eq(cm_sidr_reply(&b->c, &rep, now), EINVAL);
}

/* The struct of an abandoned exchange can be used again. */
Test(cm_sidr, a_struct_is_used_again)
{
	for (int n = 0; n < 2; n++) {
		ask_for();
		pass(a, "SIDR_REQ");
		expect_events(b, CM_EVENT_REQUEST);
		reply(CM_SIDR_VALID);
		pass(b, "SIDR_REP");
		expect_events(a, CM_EVENT_SIDR_REPLY);
		cm_abandon(&a->c, now);
		cm_abandon(&b->c, now);
		at(now + LIMIT_CM_SIDR_LINGER);
	}
}
