/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/bits.h"
#include "cm/mad.h"
#include "connects.h"
#include "host.h"
#include "sim/extent.h"
#include "sim/must.h"
#include "transfer.h"
#include "wire/decode.h"

#define SALT	   UINT64_C(0x636f6e6e65637400)
#define EVERY	   (40 * TIME_US) /* between the beginnings of two connections */
#define STAYS	   (200 * TIME_US) /* connected */
#define STRIDE	   512u /* a MAD behind a GRH, and guards */
#define RESPONSE   LIMIT_CM_EXPONENT_MIN /* 1.05 ms */
#define ACK	   4u /* 66 us */
#define PORT	   7174u
#define GUID	   UINT64_C(0xc0ffee) /* of the asker; the listener's GUID is one more */
#define FIRST_QPN  1000u
#define MOST_BEGUN (1u << 20)

static_assert(STRIDE >= MAD_OCTETS + GRH_LENGTH + 2 * GUARD_OCTETS, "a slot holds a MAD");

size_t connects_memory(void)
{
	return (size_t)2 * CONNECTS_DEPTH * STRIDE;
}

static uint32_t slot(uint32_t first, uint32_t n)
{
	return first + n % CONNECTS_DEPTH * STRIDE + GUARD_OCTETS;
}

static bool is_asker(const struct connects *s, const struct connects_side *side)
{
	return side == &s->asker;
}

/* ---- datagrams ---- */

static void post_receive(struct connects_side *side)
{
	uint32_t n = side->receives++;
	const struct work_sge sge = { TRANSFER_BASE + slot(side->sink_at, n),
				      GRH_LENGTH + MAD_OCTETS, side->key };

	node_post_receive(side->e->q, n, &sge, 1);
}

/* A port that is slower loses the datagram, as a full send queue does: the message is repeated. */
static void send_message(struct connects *s, struct fabric *f, struct connects_side *side,
			 const struct cm_message *m)
{
	struct connects_side *other = is_asker(s, side) ? &s->listener : &s->asker;
	uint32_t n = side->posted;
	const struct work_sge sge = { TRANSFER_BASE + slot(side->source_at, n), MAD_OCTETS,
				      side->key };
	struct send_work w = { .wr_id = n,
			       .opcode = WORK_SEND,
			       .flags = WORK_SIGNALED,
			       .num_sge = 1,
			       .remote_qpn = other->e->q->caps.qpn,
			       .remote_qkey = ENDPOINT_QKEY };

	if (n - side->completed == CONNECTS_DEPTH)
		return;
	cm_message_encode(m, side->host->node.memory + slot(side->source_at, n));
	if (!node_post_send(side->e->q, &w, &sge, f->now))
		fabric_wrong(f, "connects: the send window was open and then full");
	side->posted++;
}

/* ---- the programs ---- */

static void fill_private(uint8_t *data, size_t octets, uint32_t number, bool reply)
{
	pattern_make(data, octets, SALT + 2 * number + reply);
}

static void expect_private(struct fabric *f, const struct connect *c, size_t skip, bool reply)
{
	const struct cm_message *m = cm_peer_message(&c->c);
	size_t octets = cm_private_size(m->attribute) - skip;
	uint8_t wanted[MAD_PRIVATE_MAX];

	fill_private(wanted, octets, c->number, reply);
	if (memcmp(m->private_data + skip, wanted, octets) != 0)
		fabric_wrong(f, "connects: private data of connection %u changed", c->number);
}

static struct cm_message request_of(const struct connects *s, uint32_t number)
{
	const struct gid own = endpoint_gid(s->asker.host->number);
	const struct gid peer = endpoint_gid(s->listener.host->number);
	struct cm_message m = {
		.attribute = CM_REQ,
		.local_id = number,
		.service_id = cm_service_id(CM_SPACE_TCP, PORT),
		.ca_guid = GUID,
		.qpn = FIRST_QPN + number,
		.responder_resources = 1,
		.initiator_depth = 1,
		.remote_response_timeout = RESPONSE,
		.local_response_timeout = RESPONSE,
		.retry_count = 7,
		.max_cm_retries = LIMIT_CM_RETRIES,
		.path_mtu = 1,
		.pkey = 0xffff,
		.primary = { .local_gid = own, .remote_gid = peer, .ack_timeout = ACK }
	};
	const struct cm_ip_header h = { .ip_version = 4,
					.source_port = (uint16_t)(1024 + number % 60000),
					.source = own,
					.destination = peer };

	fill_private(m.private_data + CM_IP_HEADER, cm_private_size(CM_REQ) - CM_IP_HEADER, number,
		     false);
	cm_ip_header_encode(&h, m.private_data);
	return m;
}

/* True once for each number. */
static bool is_new(struct connects *s, uint32_t number)
{
	bool before = s->seen[number / 8] >> number % 8 & 1;

	s->seen[number / 8] |= (uint8_t)(1u << number % 8);
	return !before;
}

static void answer_request(struct connects *s, struct fabric *f, struct connect *c)
{
	struct cm_message rep = { .ca_guid = GUID + 1,
				  .qpn = 2 * FIRST_QPN + c->number,
				  .responder_resources = 1,
				  .initiator_depth = 1,
				  .target_ack_delay = ACK };

	if (c->number > s->begun || !is_new(s, c->number))
		fabric_wrong(f, "connects: request %u arrives twice", c->number);
	expect_private(f, c, CM_IP_HEADER, false);
	s->requested++;
	fill_private(rep.private_data, cm_private_size(CM_REP), c->number, true);
	if (cm_accept(&c->c, &rep, f->now) != 0)
		fabric_wrong(f, "connects: %u cannot be accepted", c->number);
}

static void connected(struct connects_side *side, struct connect *c, nanotime now)
{
	if (!c->connected)
		side->established++;
	c->connected = true;
	c->leave_at = now + STAYS;
}

static void disconnect(struct fabric *f, struct connect *c)
{
	c->leave_at = 0;
	if (cm_disconnect(&c->c, NULL, 0, f->now) != 0)
		fabric_wrong(f, "connects: %u cannot be ended", c->number);
}

static void take_events(struct connects *s, struct fabric *f, struct connects_side *side,
			struct connect *c)
{
	uint32_t events = cm_take_events(&c->c);

	if (events & (CM_EVENT_UNREACHABLE | CM_EVENT_REJECTED | CM_EVENT_DISCONNECT_TIMEOUT))
		fabric_wrong(f, "connects: %u fails at the %s (events 0x%x)", c->number,
			     is_asker(s, side) ? "asker" : "listener", events);
	if (events & CM_EVENT_REQUEST)
		answer_request(s, f, c);
	if (events & CM_EVENT_REPLY) {
		expect_private(f, c, 0, true);
		if (c->c.remote_qpn != 2 * FIRST_QPN + c->number ||
		    cm_ready(&c->c, NULL, 0, f->now) != 0)
			fabric_wrong(f, "connects: the reply to %u is another's", c->number);
		connected(side, c, f->now);
	}
	if (events & CM_EVENT_ESTABLISHED)
		connected(side, c, f->now);
	/* the listener may see the end first */
	if (events & CM_EVENT_DISCONNECTED && cm_state(&c->c) == CM_DREQ_RECEIVED) {
		connected(side, c, f->now);
		disconnect(f, c);
	}
	if (events & CM_EVENT_DISCONNECTED)
		c->leave_at = 0;
}

/* After any event of a connection: its messages, and its program's answers. */
static void act(struct connects *s, struct fabric *f, struct connects_side *side, struct connect *c)
{
	struct cm_message m;

	do {
		take_events(s, f, side, c);
		while (cm_take_message(&c->c, &m))
			send_message(s, f, side, &m);
	} while (c->c.events != 0);
}

/* ---- messages ---- */

static struct connect *find(struct connects_side *side, uint32_t number)
{
	for (uint32_t i = 0; i < CONNECTS_TABLE; i++)
		if (cm_state(&side->entry[i].c) != CM_IDLE && side->entry[i].number == number)
			return &side->entry[i];
	return NULL;
}

static struct connect *find_room(struct connects_side *side)
{
	for (uint32_t i = 0; i < CONNECTS_TABLE; i++)
		if (cm_state(&side->entry[i].c) == CM_IDLE)
			return &side->entry[i];
	return NULL;
}

/* A listener without room does not answer: the request is repeated. */
static void begin_at_listener(struct connects *s, struct fabric *f, const struct cm_message *m)
{
	const struct cm_port_view port = { .own_gid = true, .own_pkey = true, .mtu = 5 };
	struct connect *c = find_room(&s->listener);
	struct cm_ip_header h;

	if (cm_check_request(m, &port) != 0 || cm_check_ip_header(m, &h) != 0)
		fabric_wrong(f, "connects: request %u is refused", m->local_id);
	if (c == NULL)
		return;
	*c = (struct connect){ .number = m->local_id };
	cm_requested(&c->c, m, m->local_id);
	act(s, f, &s->listener, c);
}

static void handle(struct connects *s, struct fabric *f, struct connects_side *side,
		   const struct cm_message *m)
{
	/* both ends use the asker's number as their id */
	struct connect *c = find(side, m->attribute == CM_REQ ? m->local_id : m->remote_id);
	struct cm_message answer;

	if (c != NULL && cm_belongs(&c->c, m)) {
		cm_received(&c->c, m, f->now);
		act(s, f, side, c);
	} else if (m->attribute == CM_REQ && !is_asker(s, side)) {
		/* a late copy of a request whose connection has already ended */
		if (!(s->seen[m->local_id / 8] >> m->local_id % 8 & 1))
			begin_at_listener(s, f, m);
	} else if (cm_stray(m, &answer)) {
		send_message(s, f, side, &answer);
	}
}

static void arrived(struct connects *s, struct fabric *f, struct connects_side *side,
		    const struct completion *c)
{
	const uint8_t *mad =
		side->host->node.memory + slot(side->sink_at, (uint32_t)c->wr_id) + GRH_LENGTH;
	struct cm_message m;

	if (c->status != STATUS_SUCCESS || c->byte_len != MAD_OCTETS + GRH_LENGTH ||
	    cm_message_decode(&m, mad, MAD_OCTETS) != CM_DECODED)
		fabric_wrong(f, "connects: a datagram arrives with status %u", c->status);
	else
		handle(s, f, side, &m);
	post_receive(side);
}

void connects_settle(struct connects *s, struct fabric *f, struct endpoint *e)
{
	struct connects_side *side = e == s->asker.e ? &s->asker : &s->listener;
	struct node_completion c;

	while (node_take(e->q, &c)) {
		if (c.from_receive)
			arrived(s, f, side, &c.c);
		else
			side->completed++;
	}
	fabric_at(f, &s->tick, f->now); /* deadlines may have changed */
}

/* ---- time ---- */

static void begin(struct connects *s, struct fabric *f)
{
	struct connect *c = find_room(&s->asker);
	struct cm_message m;

	s->next = s->stopped ? TIME_NEVER : f->now + EVERY;
	if (s->stopped || c == NULL || s->begun + 1 == MOST_BEGUN)
		return;
	m = request_of(s, ++s->begun);
	*c = (struct connect){ .number = s->begun };
	if (cm_connect(&c->c, &m, f->now) != 0)
		fabric_wrong(f, "connects: %u cannot begin", c->number);
	act(s, f, &s->asker, c);
}

/* The time at which the connections of an end have something to do. */
static nanotime expire(struct connects *s, struct fabric *f, struct connects_side *side)
{
	nanotime next = TIME_NEVER;

	for (uint32_t i = 0; i < CONNECTS_TABLE; i++) {
		struct connect *c = &side->entry[i];
		bool leaves = is_asker(s, side) && c->leave_at != 0;

		if (leaves && c->leave_at <= f->now) {
			disconnect(f, c);
			leaves = false;
		}
		if (cm_deadline(&c->c) <= f->now)
			cm_expired(&c->c, f->now);
		act(s, f, side, c);
		next = time_earlier(next, cm_deadline(&c->c));
		if (leaves)
			next = time_earlier(next, c->leave_at);
	}
	return next;
}

static void tick(struct event *event, struct fabric *f)
{
	struct connects *s = container_of_type(event, struct connects, tick);
	uint32_t asked = s->asker.posted, answered = s->listener.posted;
	nanotime next;

	if (s->next <= f->now)
		begin(s, f);
	next = time_earlier(expire(s, f, &s->asker), expire(s, f, &s->listener));
	if (s->asker.posted != asked)
		host_touched(s->asker.host, f, s->asker.e);
	if (s->listener.posted != answered)
		host_touched(s->listener.host, f, s->listener.e);
	next = time_earlier(next, s->next);
	if (next != TIME_NEVER)
		fabric_at(f, &s->tick, next);
}

void connects_start(struct connects *s, struct fabric *f)
{
	s->seen = must(calloc(MOST_BEGUN / 8, 1));
	for (uint32_t i = 0; i < CONNECTS_DEPTH; i++) {
		post_receive(&s->asker);
		post_receive(&s->listener);
	}
	s->tick.happen = tick;
	s->next = f->now;
	fabric_at(f, &s->tick, f->now);
}

static bool side_is_idle(const struct connects_side *side)
{
	for (uint32_t i = 0; i < CONNECTS_TABLE; i++)
		if (cm_state(&side->entry[i].c) != CM_IDLE)
			return false;
	return true;
}

bool connects_done(const struct connects *s)
{
	return side_is_idle(&s->asker) && side_is_idle(&s->listener);
}

void connects_end(struct connects *s, struct fabric *f)
{
	free(s->seen);
	if (!connects_done(s))
		fabric_wrong(f, "connects: some are not over at the end");
	if (s->requested != s->begun || s->asker.established != s->begun ||
	    s->listener.established != s->begun)
		fabric_wrong(f, "connects: of %u, %u were asked for, %u and %u connected", s->begun,
			     s->requested, s->asker.established, s->listener.established);
}
