/* SPDX-License-Identifier: BSD-3-Clause */
/* DREQ, DREP, and TIMEWAIT. */
#include "story/cm/parties.h"

static void established(void)
{
	begin();
	establish_both();
}

TestSuite(cm_close, .init = established);

Test(cm_close, two_messages)
{
	const struct cm_message *m;

	disconnect(a);
	m = pass(a, "DREQ");
	cr_expect_eq(m->qpn, b->qpn);
	cr_expect_eq(m->local_id, a->id);
	cr_expect_eq(m->remote_id, b->id);
	expect_events(b, CM_EVENT_DISCONNECTED);
	expect_state(b, CM_DREQ_RECEIVED);
	expect_silence(b);
	expect_events(a, 0);
	disconnect(b);
	m = pass(b, "DREP");
	cr_expect_eq(m->transaction, a->message.transaction);
	expect_events(a, CM_EVENT_DISCONNECTED);
	expect_events(b, 0);
	expect_rest();
}

Test(cm_close, the_side_that_was_asked_may_begin)
{
	disconnect(b);
	cr_expect_eq(pass(b, "DREQ")->qpn, a->qpn);
	expect_events(a, CM_EVENT_DISCONNECTED);
	disconnect(a);
	pass(a, "DREP");
	expect_events(b, CM_EVENT_DISCONNECTED);
	expect_rest();
}

/* protocol-map 192: not before its time */
Test(cm_close, timewait_is_a_round_trip_and_the_peers_delay)
{
	nanotime start = now;

	disconnect(a);
	pass(a, "DREQ");
	disconnect(b);
	pass(b, "DREP");
	at(start + TIMEWAIT - 1);
	expect_state(a, CM_TIMEWAIT);
	expect_state(b, CM_TIMEWAIT);
	expect_events(a, CM_EVENT_DISCONNECTED);
	at(start + TIMEWAIT);
	expect_events(a, CM_EVENT_TIMEWAIT_EXIT);
	expect_state(a, CM_IDLE);
}

Test(cm_close, a_lost_dreq_comes_again)
{
	nanotime start = now;
	struct cm_message first;

	disconnect(a);
	first = *lose(a, "DREQ");
	at(start + INTERVAL);
	pass(a, "DREQ");
	cr_expect_arr_eq(&first, &a->message, sizeof(first));
	expect_events(b, CM_EVENT_DISCONNECTED);
}

/* hostile H-69 */
Test(cm_close, a_lost_drep_comes_again)
{
	disconnect(a);
	pass(a, "DREQ");
	cr_assert_eq(cm_disconnect(&b->c, "bye", 3, now), 0);
	lose(b, "DREP");
	expect_events(b, CM_EVENT_DISCONNECTED);
	cr_expect_eq(deliver(b, &a->message), CM_REPEATED);
	cr_expect_arr_eq(pass(b, "DREP")->private_data, "bye", 3);
	expect_events(a, CM_EVENT_DISCONNECTED);
	expect_events(b, 0);
	expect_rest();
}

/* ... also when the connection is forgotten */
Test(cm_close, a_dreq_of_a_forgotten_connection_is_answered)
{
	disconnect(a);
	pass(a, "DREQ");
	disconnect(b);
	lose(b, "DREP");
	at(now + INTERVAL);
	expect_state(b, CM_IDLE);
	pass(a, "DREQ");
	cr_expect_eq(pass(b, "DREP")->local_id, b->id);
	expect_events(a, CM_EVENT_DISCONNECTED);
}

/* protocol-map 194 */
Test(cm_close, a_dreq_without_an_answer)
{
	nanotime start = now;

	disconnect(a);
	lose(a, "DREQ");
	for (uint32_t n = 1; n <= RETRIES; n++) {
		at(start + n * INTERVAL);
		lose(a, "DREQ");
	}
	at(start + (RETRIES + 1) * INTERVAL - 1);
	expect_events(a, 0);
	at(start + (RETRIES + 1) * INTERVAL);
	expect_events(a, CM_EVENT_DISCONNECT_TIMEOUT);
	expect_state(a, CM_TIMEWAIT);
	expect_silence(a);
	at(now + TIMEWAIT);
	expect_events(a, CM_EVENT_TIMEWAIT_EXIT);
}

/* protocol-map 194, hostile H-69 */
Test(cm_close, dreqs_cross)
{
	disconnect(a);
	disconnect(b);
	lose(a, "DREQ");
	lose(b, "DREQ");
	deliver(b, &a->message);
	deliver(a, &b->message);
	expect_events(a, CM_EVENT_DISCONNECTED);
	expect_events(b, CM_EVENT_DISCONNECTED);
	cr_expect_eq(pass(a, "DREP")->transaction, (uint64_t)CM_DREQ << 32 | b->id);
	pass(b, "DREP");
	expect_events(a, 0);
	expect_events(b, 0);
	expect_rest();
}

Test(cm_close, dreqs_cross_and_one_is_lost)
{
	disconnect(a);
	disconnect(b);
	lose(a, "DREQ");
	pass(b, "DREQ");
	expect_events(a, CM_EVENT_DISCONNECTED);
	lose(a, "DREP");
	at(now + TIMEWAIT - 1);
	cr_expect_eq(deliver(a, &b->message), CM_REPEATED);
	pass(a, "DREP");
	expect_events(b, CM_EVENT_DISCONNECTED);
}

/* hostile H-69: every message twice. */
Test(cm_close, everything_twice)
{
	disconnect(a);
	pass_twice(a, "DREQ");
	expect_events(b, CM_EVENT_DISCONNECTED);
	expect_silence(b);
	disconnect(b);
	pass_twice(b, "DREP");
	expect_events(a, CM_EVENT_DISCONNECTED);
	cr_expect_eq(cm_disconnect(&a->c, NULL, 0, now), EINVAL);
	cr_expect_eq(cm_disconnect(&b->c, NULL, 0, now), EINVAL);
	expect_rest();
}

/* The RTU is lost before the connection is closed. */
Test(cm_close, a_dreq_after_a_lost_rtu)
{
	begin_in(b, CM_REP_SENT);
	deliver(a, &b->message);
	ready();
	lose(a, "RTU");
	disconnect(a);
	pass(a, "DREQ");
	expect_events(b, CM_EVENT_DISCONNECTED);
	disconnect(b);
	pass(b, "DREP");
	cm_take_events(&a->c);
	expect_rest();
}

/* A DREQ names the queue pair of the receiver. */
Test(cm_close, a_dreq_for_another_queue_pair)
{
	struct cm_message m = from_peer_of(b, CM_DREQ);

	m.qpn++;
	cr_expect_eq(deliver(b, &m), CM_IGNORED);
	m.qpn--;
	m.local_id++;
	cr_expect_eq(deliver(b, &m), CM_IGNORED);
	m.local_id--;
	m.remote_id++;
	cr_expect_eq(deliver(b, &m), CM_IGNORED);
	expect_events(b, 0);
	m.remote_id--;
	cr_expect_eq(deliver(b, &m), CM_ACCEPTED);
}

/* The peer rejects a connection that this side considers established: it timed out or restarted. */
Test(cm_close, a_rej_ends_a_connection)
{
	struct cm_message rej = from_peer_of(a, CM_REJ);

	cr_expect_eq(deliver(a, &rej), CM_ACCEPTED);
	expect_events(a, CM_EVENT_DISCONNECTED);
	expect_state(a, CM_TIMEWAIT);
	expect_silence(a);
}

Test(cm_close, a_rej_answers_a_dreq_as_well)
{
	struct cm_message rej = from_peer_of(a, CM_REJ);

	disconnect(a);
	lose(a, "DREQ");
	cr_expect_eq(deliver(a, &rej), CM_ACCEPTED);
	expect_events(a, CM_EVENT_DISCONNECTED);
	at(now + 10 * INTERVAL);
	expect_silence(a);
	expect_state(a, CM_IDLE);
}

/* protocol-map 191: a REQ is repeated for a connection that has ended */
Test(cm_close, an_old_req_is_stale)
{
	struct cm_message req = req_of(a);

	disconnect(b);
	pass(b, "DREQ");
	disconnect(a);
	pass(a, "DREP");
	cr_expect_eq(deliver(b, &req), CM_REPEATED);
	cr_expect_eq(lose(b, "REJ")->reason, CM_REJECT_STALE);
	expect_state(b, CM_TIMEWAIT);
	expect_events(b, CM_EVENT_DISCONNECTED);
}

/* protocol-map 195 */
Test(cm_close, a_lap_is_answered_and_changes_nothing)
{
	struct cm_message lap = from_peer_of(b, CM_LAP);

	for (int n = 0; n < 3; n++) {
		cr_expect_eq(deliver(b, &lap), CM_REPEATED);
		cr_expect_eq(lose(b, "APR")->status, CM_APR_UNSUPPORTED);
		cr_expect_eq(b->message.transaction, lap.transaction);
		cr_expect_eq(b->message.local_id, b->id);
		cr_expect_eq(b->message.remote_id, a->id);
	}
	expect_state(b, CM_ESTABLISHED);
	expect_events(b, 0);
}

/*
 * The program destroys the id: the peer is still told, and the connection ends without the program.
 */
Test(cm_close, abandoned_when_established)
{
	nanotime start = now;

	cm_abandon(&a->c, now);
	lose(a, "DREQ");
	at(start + INTERVAL);
	pass(a, "DREQ");
	expect_events(b, CM_EVENT_DISCONNECTED);
	cm_abandon(&b->c, now);
	pass(b, "DREP");
	expect_events(a, 0);
	at(now + TIMEWAIT);
	expect_state(a, CM_IDLE);
	expect_state(b, CM_IDLE);
	expect_events(a, 0);
	expect_events(b, 0);
}

/* hostile H-72, H-73, H-79: from every state, without an event, in bounded time */
Test(cm_close, abandoned_in_every_state)
{
	static const struct {
		enum cm_state state;
		bool passive;
		const char *says; /* at once */
	} row[] = {
		{ CM_IDLE, false, NULL },	    { CM_REQ_SENT, false, "REJ" },
		{ CM_REQ_RECEIVED, true, "REJ" },   { CM_REP_SENT, true, "REJ" },
		{ CM_REP_RECEIVED, false, "REJ" },  { CM_ESTABLISHED, false, "DREQ" },
		{ CM_ESTABLISHED, true, "DREQ" },   { CM_DREQ_SENT, false, NULL },
		{ CM_DREQ_RECEIVED, true, "DREP" }, { CM_TIMEWAIT, true, NULL },
		{ CM_REJECTED, true, NULL },	    { CM_REJECTED, false, NULL },
		{ CM_SIDR_REQ_SENT, false, NULL },  { CM_SIDR_REQ_RECEIVED, true, "SIDR_REP" },
		{ CM_SIDR_REPLIED, true, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct party *p = row[i].passive ? b : a;
		nanotime start;

		begin_in(p, row[i].state);
		start = now;
		cm_abandon(&p->c, now);
		if (row[i].says != NULL)
			lose(p, row[i].says);
		expect_silence(p);
		for (int n = 0; cm_state(&p->c) != CM_IDLE; n++) {
			struct cm_message m;

			cr_assert_lt(n, 20, "row %zu", i);
			cr_assert_neq(cm_deadline(&p->c), TIME_NEVER, "row %zu", i);
			now = cm_deadline(&p->c);
			cm_expired(&p->c, now);
			expect_events(p, 0);
			while (cm_take_message(&p->c, &m))
				cr_expect_eq(m.attribute, CM_DREQ, "row %zu", i);
		}
		cr_expect_leq(now - start, (RETRIES + 2) * INTERVAL, "row %zu", i);
		cr_expect_eq(cm_deadline(&p->c), TIME_NEVER);
	}
}
