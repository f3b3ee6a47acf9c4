/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/cm/parties.h"

static struct party parties[2];
struct party *const a = &parties[0], *const b = &parties[1];
nanotime now;

static const struct gid addresses[2] = { { { [10] = 0xff, [11] = 0xff, 10, 9, 0, 1 } },
					 { { [10] = 0xff, [11] = 0xff, 10, 9, 0, 2 } } };

void begin(void)
{
	memset(parties, 0, sizeof(parties));
	now = 1000 * TIME_S;
	*a = (struct party){ .peer = b, .guid = 0xa0a0, .id = 0xaaaa, .qpn = 0x10a, .psn = 0x111 };
	*b = (struct party){ .peer = a, .guid = 0xb0b0, .id = 0xbbbb, .qpn = 0x10b, .psn = 0x222 };
}

struct cm_message req_of(const struct party *p)
{
	struct cm_message m = { .attribute = CM_REQ };

	m.local_id = p->id;
	m.service_id = SERVICE;
	m.ca_guid = p->guid;
	m.qpn = p->qpn;
	m.starting_psn = p->psn;
	m.responder_resources = 4;
	m.initiator_depth = 8;
	m.remote_response_timeout = RESPONSE;
	m.local_response_timeout = RESPONSE;
	m.retry_count = 7;
	m.rnr_retry_count = 7;
	m.max_cm_retries = RETRIES;
	m.path_mtu = 3;
	m.pkey = 0xffff;
	m.primary.local_gid = addresses[p == b];
	m.primary.remote_gid = addresses[p != b];
	m.primary.ack_timeout = ACK;
	return m;
}

struct cm_message rep_of(const struct party *p)
{
	struct cm_message m = { .ca_guid = p->guid };

	m.qpn = p->qpn;
	m.starting_psn = p->psn;
	m.responder_resources = 4;
	m.initiator_depth = 2;
	m.target_ack_delay = ACK_DELAY;
	m.rnr_retry_count = 7;
	return m;
}

/* ---- the programs ---- */

void ask(void)
{
	struct cm_message req = req_of(a);

	cr_assert_eq(cm_connect(&a->c, &req, now), 0);
}

void accept_it(void)
{
	struct cm_message rep = rep_of(b);

	cr_assert_eq(cm_accept(&b->c, &rep, now), 0);
}

void ready(void)
{
	cr_assert_eq(cm_ready(&a->c, NULL, 0, now), 0);
}

void reject(struct party *p, uint16_t reason)
{
	struct cm_rejection r = { .reason = reason };

	cr_assert_eq(cm_reject(&p->c, &r, now), 0);
}

void disconnect(struct party *p)
{
	cr_assert_eq(cm_disconnect(&p->c, NULL, 0, now), 0);
}

void establish_both(void)
{
	ask();
	pass(a, "REQ");
	expect_events(b, CM_EVENT_REQUEST);
	accept_it();
	pass(b, "REP");
	expect_events(a, CM_EVENT_REPLY);
	ready();
	pass(a, "RTU");
	expect_events(b, CM_EVENT_ESTABLISHED);
	expect_state(a, CM_ESTABLISHED);
	expect_state(b, CM_ESTABLISHED);
}

/* ---- messages ---- */

bool take(struct party *p, struct cm_message *m)
{
	if (cm_take_message(&p->c, m))
		return true;
	*m = p->stray;
	if (!p->has_stray)
		return false;
	p->has_stray = false;
	return true;
}

/* The message as the other end decodes it. */
static struct cm_message across(const struct cm_message *m)
{
	uint8_t mad[MAD_OCTETS];
	struct cm_message decoded;

	cm_message_encode(m, mad);
	cr_assert_eq(cm_message_decode(&decoded, mad, sizeof(mad)), CM_DECODED);
	return decoded;
}

/* b listens; other messages without a connection are strays. */
static enum cm_verdict without_connection(struct party *p, const struct cm_message *m)
{
	if (p == b && m->attribute == CM_REQ) {
		cm_requested(&p->c, m, p->id);
		return CM_ACCEPTED;
	}
	if (p == b && m->attribute == CM_SIDR_REQ) {
		cm_sidr_requested(&p->c, m);
		return CM_ACCEPTED;
	}
	p->has_stray = cm_stray(m, &p->stray);
	return CM_IGNORED;
}

enum cm_verdict deliver(struct party *p, const struct cm_message *m)
{
	struct cm_message came = across(m);

	return cm_state(&p->c) == CM_IDLE ? without_connection(p, &came)
					  : cm_received(&p->c, &came, now);
}

const struct cm_message *lose(struct party *p, const char *name)
{
	cr_assert(take(p, &p->message), "%s: nothing to send, expected %s", p == a ? "a" : "b",
		  name);
	cr_assert_str_eq(cm_attribute_name(p->message.attribute), name);
	return &p->message;
}

const struct cm_message *pass(struct party *p, const char *name)
{
	lose(p, name);
	deliver(p->peer, &p->message);
	return &p->message;
}

const struct cm_message *pass_twice(struct party *p, const char *name)
{
	pass(p, name);
	deliver(p->peer, &p->message);
	return &p->message;
}

struct cm_message from_peer_of(const struct party *p, uint8_t attribute)
{
	struct cm_message m = { .attribute = attribute };

	if (attribute == CM_REQ)
		m = req_of(p->peer);
	else if (attribute == CM_REP)
		m = rep_of(p->peer);
	m.attribute = attribute;
	m.transaction = 0x7777;
	m.local_id = p->peer->id;
	if (attribute != CM_REQ)
		m.remote_id = p->id;
	if (attribute == CM_DREQ || attribute == CM_LAP)
		m.qpn = p->qpn;
	if (attribute == CM_SIDR_REQ || attribute == CM_SIDR_REP)
		m.service_id = SERVICE;
	if (attribute == CM_SIDR_REP)
		m.local_id = p->id;
	if (attribute == CM_REJ)
		m.reason = CM_REJECT_CONSUMER;
	return m;
}

/* ---- time ---- */

void at(nanotime t)
{
	for (;;) {
		nanotime da = cm_deadline(&a->c), db = cm_deadline(&b->c);
		struct party *first = da <= db ? a : b;

		if (time_earlier(da, db) > t)
			break;
		cr_assert_eq(first->c.owed, 0, "a message waits while time passes");
		now = time_earlier(da, db);
		cm_expired(&first->c, now);
	}
	now = t;
}

/* ---- checks ---- */

void expect_silence(struct party *p)
{
	struct cm_message m;

	cr_assert_not(take(p, &m), "%s sends %s", p == a ? "a" : "b",
		      cm_attribute_name(m.attribute));
}

void expect_state(struct party *p, enum cm_state state)
{
	cr_assert_str_eq(cm_state_name(cm_state(&p->c)), cm_state_name(state));
}

void expect_events(struct party *p, uint32_t events)
{
	uint32_t seen = cm_take_events(&p->c);

	cr_assert_eq(seen, events, "%s: events %#x, expected %#x", p == a ? "a" : "b", seen,
		     events);
}

void expect_rest(void)
{
	expect_silence(a);
	expect_silence(b);
	expect_state(a, CM_TIMEWAIT);
	expect_state(b, CM_TIMEWAIT);
	at(now + TIMEWAIT);
	expect_events(a, CM_EVENT_TIMEWAIT_EXIT);
	expect_events(b, CM_EVENT_TIMEWAIT_EXIT);
	expect_state(a, CM_IDLE);
	expect_state(b, CM_IDLE);
	expect_silence(a);
	expect_silence(b);
}

/* ---- every state ---- */

/* The active side is a, the passive side b. */
static void halfway(enum cm_state state)
{
	static const enum cm_state order[] = { CM_REQ_SENT, CM_REQ_RECEIVED, CM_REP_SENT,
					       CM_REP_RECEIVED, CM_ESTABLISHED };
	size_t steps = 0;

	while (steps < ARRAY_SIZE(order) && order[steps] != state)
		steps++;
	ask();
	lose(a, "REQ");
	if (steps >= 1)
		deliver(b, &a->message);
	if (steps >= 2) {
		accept_it();
		lose(b, "REP");
	}
	if (steps >= 3)
		deliver(a, &b->message);
	if (steps >= 4) {
		ready();
		pass(a, "RTU");
	}
}

static void closing(struct party *p, enum cm_state state)
{
	struct party *first = state == CM_DREQ_RECEIVED ? p->peer : p;

	halfway(CM_ESTABLISHED);
	disconnect(first);
	lose(first, "DREQ");
	if (state == CM_DREQ_SENT)
		return;
	deliver(first->peer, &first->message);
	if (state == CM_TIMEWAIT) {
		disconnect(first->peer);
		pass(first->peer, "DREP");
	}
}

static void sidr(enum cm_state state)
{
	struct cm_message m = from_peer_of(b, CM_SIDR_REQ);

	cr_assert_eq(cm_sidr_connect(&a->c, &m, RESPONSE, RETRIES, now), 0);
	lose(a, "SIDR_REQ");
	if (state == CM_SIDR_REQ_SENT)
		return;
	deliver(b, &a->message);
	if (state == CM_SIDR_REPLIED) {
		m = (struct cm_message){ .qpn = b->qpn };
		cr_assert_eq(cm_sidr_reply(&b->c, &m, now), 0);
		lose(b, "SIDR_REP");
	}
}

void begin_in(struct party *p, enum cm_state state)
{
	begin();
	if (state == CM_REJECTED) {
		halfway(p == a ? CM_REP_RECEIVED : CM_REQ_RECEIVED);
		reject(p, CM_REJECT_CONSUMER);
		lose(p, "REJ");
	} else if (state >= CM_SIDR_REQ_SENT) {
		sidr(state);
	} else if (state >= CM_DREQ_SENT) {
		closing(p, state);
	} else if (state != CM_IDLE) {
		halfway(state);
	}
	cm_take_events(&a->c);
	cm_take_events(&b->c);
	expect_state(p, state);
}
