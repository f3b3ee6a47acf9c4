/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections over a path that loses, duplicates and reorders, between programs that act at random
 * times. For every seed:
 *
 *	both ends reach IDLE by themselves, in bounded time and with a bounded number of messages
 *	a program gets one event of the end of its connection, and after it only TIMEWAIT_EXIT; it
 *	gets no event after it has abandoned its id
 *	nothing happens twice: one REQUEST, REPLY, ESTABLISHED
 *	without loss no side finds the other unreachable, and both agree on the end
 */
#include <stdio.h>

#include "story/cm/parties.h"

#define SEEDS	  20000
#define IN_FLIGHT 64
#define MESSAGES  200 /* per run */
#define LONGEST	  (2000 * TIME_S)
#define THE_END                                                             \
	(CM_EVENT_REJECTED | CM_EVENT_UNREACHABLE | CM_EVENT_DISCONNECTED | \
	 CM_EVENT_DISCONNECT_TIMEOUT)

struct flying {
	struct party *to;
	nanotime arrives_at;
	struct cm_message message;
};

/* What the program of one side will do, and which events it got. */
struct program {
	nanotime acts_at; /* TIME_NEVER: at its next event */
	bool says_no, abandoned;
	uint32_t heard, ended;
};

static struct flying path[IN_FLIGHT];
static struct program programs[2];
static uint64_t random_state, seed;
static uint32_t messages, loss, doubles; /* of 100 */

static uint64_t random_below(uint64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % n;
}

static bool percent(uint32_t n)
{
	return random_below(100) < n;
}

static struct program *program_of(struct party *p)
{
	return &programs[p == b];
}

static void fly(struct party *to, const struct cm_message *m)
{
	for (int i = 0; i < IN_FLIGHT; i++) {
		if (path[i].arrives_at != TIME_NEVER)
			continue;
		path[i] = (struct flying){ to, now + 1 + random_below(FLIGHT / 2), *m };
		return;
	}
	cr_assert_fail("seed %lu: too many messages at once", seed);
}

static void send_all(struct party *p)
{
	struct cm_message m;

	while (take(p, &m)) {
		cr_assert_lt(++messages, MESSAGES, "seed %lu", seed);
		if (!percent(loss))
			fly(p->peer, &m);
		if (percent(doubles))
			fly(p->peer, &m);
	}
}

static void hear(struct party *p)
{
	struct program *program = program_of(p);
	uint32_t events = cm_take_events(&p->c);

	if (events == 0)
		return;
	if (events & CM_EVENT_REQUEST) /* of the next attempt, when this side is done */
		*program = (struct program){ .says_no = program->says_no };
	cr_assert_not(program->abandoned, "seed %lu: events %#x after all", seed, events);
	cr_assert_eq(program->heard & events, 0, "seed %lu: %#x again, after %#x", seed, events,
		     program->heard);
	cr_assert(!(program->heard & THE_END) || events == CM_EVENT_TIMEWAIT_EXIT,
		  "seed %lu: %#x after %#x", seed, events, program->heard);
	program->heard |= events;
	/* an MRA asks for the time that the program needs, but there is none for a DREP */
	program->acts_at =
		now + random_below(percent(20) && !(events & THE_END) ? 20 * TIME_S : TIME_S);
}

/* Acts on an event; an established connection ends sooner or later. */
static void act(struct party *p)
{
	struct program *program = program_of(p);
	struct cm_rejection no = { .reason = CM_REJECT_CONSUMER };

	program->acts_at = TIME_NEVER;
	if ((program->heard & THE_END && percent(50)) || percent(3)) {
		if (cm_state(&p->c) == CM_DREQ_RECEIVED && percent(50))
			disconnect(p);
		cm_abandon(&p->c, now);
		program->abandoned = true;
		return;
	}
	switch (cm_state(&p->c)) {
	case CM_REQ_RECEIVED:
		if (program->says_no)
			cm_reject(&p->c, &no, now);
		else
			accept_it();
		if (percent(10))
			program->acts_at = now + FLIGHT + random_below(INTERVAL);
		break;
	case CM_REP_SENT: /* data arrived, or the program says so */
		cm_establish(&p->c, now);
		break;
	case CM_REP_RECEIVED:
		if (program->says_no)
			cm_reject(&p->c, &no, now);
		else
			ready();
		program->acts_at = now + random_below(60 * TIME_S);
		break;
	case CM_ESTABLISHED:
	case CM_DREQ_RECEIVED:
		disconnect(p);
		break;
	default:
		break;
	}
}

static struct flying *next_arrival(void)
{
	struct flying *first = &path[0];

	for (int i = 1; i < IN_FLIGHT; i++) {
		if (path[i].arrives_at < first->arrives_at)
			first = &path[i];
	}
	return first;
}

static bool step_of(struct party *p, nanotime t)
{
	if (cm_deadline(&p->c) == t)
		cm_expired(&p->c, t);
	else if (program_of(p)->acts_at == t)
		act(p);
	else
		return false;
	return true;
}

/* Moves to the next thing that can happen; false: nothing will. */
static bool step(void)
{
	struct flying *f = next_arrival();
	nanotime t = f->arrives_at;

	for (int i = 0; i < 2; i++) {
		t = time_earlier(t, cm_deadline(i == 0 ? &a->c : &b->c));
		t = time_earlier(t, programs[i].acts_at);
	}
	if (t == TIME_NEVER)
		return false;
	now = t;
	if (!step_of(a, t) && !step_of(b, t)) {
		f->arrives_at = TIME_NEVER;
		deliver(f->to, &f->message);
	}
	for (int i = 0; i < 2; i++) {
		hear(i == 0 ? a : b);
		send_all(i == 0 ? a : b);
	}
	return true;
}

static void begin_run(uint64_t number)
{
	begin();
	seed = number;
	random_state = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
	messages = 0;
	loss = percent(30) ? 0 : (uint32_t)random_below(60);
	doubles = percent(30) ? 0 : (uint32_t)random_below(60);
	for (int i = 0; i < IN_FLIGHT; i++)
		path[i].arrives_at = TIME_NEVER;
	for (int i = 0; i < 2; i++)
		programs[i] = (struct program){ .acts_at = TIME_NEVER, .says_no = percent(15) };
}

static void expect_agreement(void)
{
	uint32_t unheard = CM_EVENT_UNREACHABLE | CM_EVENT_DISCONNECT_TIMEOUT;
	bool seen_by_a = programs[0].heard & CM_EVENT_DISCONNECTED;
	bool seen_by_b = programs[1].heard & CM_EVENT_DISCONNECTED;

	cr_assert_eq((programs[0].heard | programs[1].heard) & unheard, 0, "seed %lu", seed);
	for (int i = 0; i < 2; i++) {
		if (programs[i].abandoned || programs[i].says_no)
			return;
	}
	cr_assert_eq(seen_by_a, seen_by_b, "seed %lu", seed);
}

/* Counts the ends: a test in which no connection fails proves little. */
static uint32_t ends[2][16];

static void count_ends(void)
{
	for (int i = 0; i < 2; i++) {
		for (int bit = 0; bit < 16; bit++)
			ends[i][bit] += programs[i].heard >> bit & 1;
	}
}

static void expect_every_end(void)
{
	static const uint32_t of_a = CM_EVENT_REPLY | CM_EVENT_TIMEWAIT_EXIT | THE_END;
	static const uint32_t of_b =
		CM_EVENT_REQUEST | CM_EVENT_ESTABLISHED | CM_EVENT_TIMEWAIT_EXIT | THE_END;

	for (int bit = 0; bit < 16; bit++) {
		cr_expect(!(of_a >> bit & 1) || ends[0][bit] > 20, "a: event %#x %u times",
			  1u << bit, ends[0][bit]);
		cr_expect(!(of_b >> bit & 1) || ends[1][bit] > 20, "b: event %#x %u times",
			  1u << bit, ends[1][bit]);
	}
}

Test(cm_lossy, many_seeds)
{
	for (uint64_t n = 0; n < SEEDS; n++) {
		nanotime start;

		begin_run(n);
		start = now;
		ask();
		send_all(a);
		while (step())
			cr_assert_lt(now - start, LONGEST, "seed %lu", seed);
		cr_assert_eq(cm_state(&a->c), CM_IDLE, "seed %lu: %s", seed,
			     cm_state_name(cm_state(&a->c)));
		cr_assert_eq(cm_state(&b->c), CM_IDLE, "seed %lu: %s", seed,
			     cm_state_name(cm_state(&b->c)));
		if (loss == 0)
			expect_agreement();
		count_ends();
	}
	expect_every_end();
}

/* ---- a peer that sends anything ---- */

/* Fields that are checked are correct more often than not. */
static struct cm_message lie(struct party *p)
{
	static const uint8_t attributes[] = { CM_REQ,  CM_MRA,	CM_REJ, CM_REP,	     CM_RTU,
					      CM_DREQ, CM_DREP, CM_LAP, CM_SIDR_REQ, CM_SIDR_REP,
					      CM_APR,  0,	0x0f,	0x1b,	     0xff };
	struct cm_message m = from_peer_of(p, attributes[random_below(ARRAY_SIZE(attributes))]);

	m.about = (uint8_t)random_below(4);
	m.service_timeout = (uint8_t)random_below(32);
	if (percent(50))
		m.reason = (uint16_t)random_below(40);
	if (percent(10))
		m.local_id = (uint32_t)random_below(3);
	if (percent(10))
		m.remote_id = (uint32_t)random_below(3);
	if (percent(10))
		m.qpn = (uint32_t)random_below(1 << 24);
	if (percent(10))
		m.ca_guid = random_below(3);
	if (percent(10))
		m.information_length = (uint8_t)random_below(73);
	return m;
}

/* One message in: at most one answer out. An ignored one has no effect; deadlines are bounded. */
static void hear_a_lie(struct party *p, enum cm_state before)
{
	struct cm_message m = lie(p), out;
	nanotime deadline = cm_deadline(&p->c);
	enum cm_verdict verdict;
	uint32_t answers = 0;

	cm_take_events(&p->c);
	verdict = cm_received(&p->c, &m, now);
	while (cm_take_message(&p->c, &out))
		answers++;
	cr_assert_leq(answers, 1);
	if (verdict == CM_IGNORED) {
		cr_assert_eq(cm_state(&p->c), before);
		cr_assert_eq(cm_deadline(&p->c), deadline);
		cr_assert_eq(cm_take_events(&p->c), 0);
		cr_assert_eq(answers, 0);
	}
	if (cm_deadline(&p->c) != TIME_NEVER)
		cr_assert_leq(cm_deadline(&p->c), now + PATIENCE + 2 * INTERVAL);
}

Test(cm_lossy, any_message_in_any_state)
{
	seed = 0;
	random_state = 1;
	for (int n = 0; n < 20000; n++) {
		enum cm_state state = (enum cm_state)random_below(CM_STATES);
		bool passive = state == CM_REQ_RECEIVED || state == CM_REP_SENT ||
			       state >= CM_SIDR_REQ_RECEIVED ||
			       (state >= CM_ESTABLISHED && state <= CM_REJECTED && percent(50));
		struct party *p = passive ? b : a;

		begin_in(p, state);
		for (int k = 0; k < 20; k++) {
			now += random_below(TIME_S);
			hear_a_lie(p, cm_state(&p->c));
		}
		cm_abandon(&p->c, now);
		for (int k = 0; cm_state(&p->c) != CM_IDLE; k++) {
			cr_assert_lt(k, 20);
			now = cm_deadline(&p->c);
			cm_expired(&p->c, now);
		}
	}
}
