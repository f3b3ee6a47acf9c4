/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that a program takes from its arena: in order, each once, and whatever it claims to have taken. */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cm_rig.h"
#include "control/cm/cm_manager.h"

#define TCACHE 7u /* blocks of a size that glibc keeps for each thread as they are */

TestSuite(cm_ring, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

struct reader {
	struct party p;
	char *arena;
	struct event_page *page;
	uint32_t taken;
};

static struct event_page *open_ring(struct reader *r, struct party *p)
{
	struct request_empty q;
	struct reply_cm_channel reply;
	struct carrier_descriptors out = { 0 };

	cr_assert_eq(ask(r->p.fd, COMMAND_CM_CREATE_CHANNEL, &q.h, sizeof(q), &reply.h,
			 sizeof(reply), NULL, &out),
		     0);
	cr_assert_eq(out.count, 1);
	p->fd = r->p.fd;
	p->channel = reply.handle;
	p->events = out.fd[0];
	cr_assert_neq(reply.ring_offset, 0);
	return (struct event_page *)(void *)(r->arena + reply.ring_offset);
}

static void reader_open(struct reader *r)
{
	struct reply_hello hello;
	int fd;

	memset(r, 0, sizeof(*r));
	r->p.fd = attach_keeping(&hello, &fd);
	r->arena = mmap(NULL, hello.arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			fd, 0);
	cr_assert_neq(r->arena, MAP_FAILED);
	close(fd);
	r->page = open_ring(r, &r->p);
}

/* The next record that shows an event, or NULL; copied, because its place is used again. */
static const struct reply_cm_event *next(struct reader *r)
{
	static struct reply_cm_event copy;
	const void *record;

	while ((record = event_ring_oldest(r->page, r->taken, sizeof(copy))) != NULL) {
		memcpy(&copy, record, sizeof(copy));
		event_ring_take(r->page, ++r->taken);
		if (copy.event != CM_EVENT_WITHDRAWN)
			return &copy;
	}
	return NULL;
}

static uint32_t resolved_id(struct party *p)
{
	uint32_t id;

	cr_assert_eq(cm_create(p, TCP, &id), 0);
	cr_assert_eq(cm_resolve(p, id, "127.0.0.1", 7471, 100), 0);
	return id;
}

/* How many octets lie on the channel's descriptor. They are gone then. */
static uint32_t octets(const struct party *p)
{
	uint32_t n = 0;
	uint8_t octet;

	while (recv(p->events, &octet, 1, MSG_DONTWAIT) == 1)
		n++;
	return n;
}

Test(cm_ring, no_command_is_needed_while_there_is_room)
{
	const struct reply_cm_event *e;
	uint32_t id[LIMIT_CM_SHOWN];
	struct reader r;

	reader_open(&r);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < LIMIT_CM_SHOWN; i++)
			id[i] = resolved_id(&r.p);
		for (uint32_t i = 0; i < LIMIT_CM_SHOWN; i++) {
			e = next(&r);
			cr_assert_not_null(e, "round %u, event %u", round, i);
			cr_expect_eq(e->event, ADDR_RESOLVED);
			cr_expect_eq(e->id, id[i]);
		}
		cr_assert_null(next(&r));
	}
	expect_no_event(&r.p);
	party_end(&r.p);
}

Test(cm_ring, what_has_no_room_is_asked_for_in_order)
{
	enum {
		MANY = 4 * LIMIT_CM_SHOWN
	};
	const struct reply_cm_event *shown;
	struct reply_cm_event asked;
	uint32_t id[MANY], commands = 0;
	struct reader r;

	reader_open(&r);
	for (uint32_t i = 0; i < MANY; i++)
		id[i] = resolved_id(&r.p);
	for (uint32_t i = 0; i < MANY; i++) {
		shown = next(&r);
		if (shown == NULL) {
			cr_assert_eq(cm_get(&r.p, &asked), 0, "event %u", i);
			shown = &asked;
			commands++;
		}
		cr_assert_eq(shown->id, id[i], "event %u", i);
	}
	cr_expect_leq(commands, MANY / LIMIT_CM_SHOWN);
	cr_expect_eq(octets(&r.p), MANY, "each event has its octet");
	expect_no_event(&r.p);
	party_end(&r.p);
}

/* hostile H-75: no event of an id follows its end, and its octets are counted. */
Test(cm_ring, events_of_an_id_that_ends_are_withdrawn)
{
	const struct reply_cm_event *e;
	struct request_handle q = { 0 };
	struct reply_cm_gone gone;
	uint32_t first, second;
	struct reader r;

	reader_open(&r);
	first = resolved_id(&r.p);
	second = resolved_id(&r.p);
	q.handle = first;
	cr_assert_eq(ask(r.p.fd, COMMAND_CM_DESTROY_ID, &q.h, sizeof(q), &gone.h, sizeof(gone),
			 NULL, NULL),
		     0);
	cr_expect_eq(gone.octets, 1);
	cr_expect_eq(gone.events, 0);
	e = next(&r);
	cr_assert_not_null(e);
	cr_expect_eq(e->id, second);
	cr_assert_null(next(&r));
	q.handle = second;
	cr_assert_eq(ask(r.p.fd, COMMAND_CM_DESTROY_ID, &q.h, sizeof(q), &gone.h, sizeof(gone),
			 NULL, NULL),
		     0);
	cr_expect_eq(gone.octets, 0, "its event was taken");
	cr_expect_eq(gone.events, 1);
	party_end(&r.p);
}

Test(cm_ring, events_move_to_another_channel)
{
	struct reader r, other;
	uint32_t id;

	reader_open(&r);
	other = r;
	other.page = open_ring(&r, &other.p);
	id = resolved_id(&r.p);
	cr_assert_eq(cm_migrate(&r.p, id, other.p.channel), 0);
	cr_assert_null(next(&r));
	cr_assert_not_null(next(&other));
	cr_assert_null(next(&other));
	close(other.p.events);
	party_end(&r.p);
}

/* Waits for an octet, as programs do. */
static const struct reply_cm_event *await(struct reader *r)
{
	struct pollfd ready = { .fd = r->p.events, .events = POLLIN };
	const struct reply_cm_event *e;
	uint8_t octet;

	cr_assert_eq(poll(&ready, 1, ENOUGH_MS), 1, "no event came");
	cr_assert_eq(read(r->p.events, &octet, 1), 1);
	e = next(r);
	cr_assert_not_null(e);
	return e;
}

/*
 * A request that was taken leaves the backlog, and its id outlives the listener, though the program has
 * sent no command since.
 */
Test(cm_ring, requests_are_taken)
{
	const struct reply_cm_event *e;
	struct reply_cm_query about;
	uint32_t listener, made[3];
	struct reader server;
	struct party client;

	reader_open(&server);
	party_begin(&client);
	listener = listener_at(&server.p, TCP, 7471, 1);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t id = id_towards(&client, TCP, 7471);

		cr_assert_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, id, 0x123 + i, NULL), 0);
		e = await(&server);
		cr_expect_eq(e->event, CONNECT_REQUEST);
		cr_expect_eq(e->listen_id, listener);
		cr_expect_eq(e->route.bound, 1);
		made[i] = e->id;
		if (i > 0)
			continue;
		cr_assert_eq(cm_query(&server.p, made[0], &about), 0);
		cr_expect_eq(memcmp(&about.route, &e->route, sizeof(about.route)), 0,
			     "it says what the id would");
	}
	cr_assert_eq(cm_destroy(&server.p, listener, NULL), 0);
	for (uint32_t i = 0; i < 3; i++)
		cr_expect_eq(cm_query(&server.p, made[i], &about), 0, "id %u", i);
	party_end(&client);
	party_end(&server.p);
}

static void await_octet(const struct party *p)
{
	struct pollfd ready = { .fd = p->events, .events = POLLIN };
	uint8_t octet;

	cr_assert_eq(poll(&ready, 1, ENOUGH_MS), 1, "no event came");
	cr_assert_eq(read(p->events, &octet, 1), 1);
}

/*
 * A program waits at the channel to which a listener moves. It takes the listener's requests as soon as
 * they are shown there, which may be before all of their ids have moved. The test says so in advance:
 * it does not count before they are shown.
 */
Test(cm_ring, requests_are_taken_while_their_listener_moves)
{
	const uint32_t requests = 2 * TCACHE;
	struct reader server, other;
	struct party client;
	uint32_t listener;

	mallopt(M_PERTURB, 0x5a); /* what is freed cannot be used, but for what a thread keeps */
	reader_open(&server);
	other = server;
	other.page = open_ring(&server, &other.p);
	party_begin(&client);
	listener = listener_at(&server.p, TCP, 7471, (int)requests);
	for (uint32_t i = 0; i < requests; i++) {
		uint32_t id = id_towards(&client, TCP, 7471);

		cr_assert_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, id, 0x123 + i, NULL), 0);
		await_octet(&server.p);
	}
	event_ring_take(other.page, requests);
	cr_assert_eq(cm_migrate(&server.p, listener, other.p.channel), 0);
	cr_expect_eq(cm_handle(&server.p, COMMAND_CM_DESTROY_CHANNEL, server.p.channel), 0,
		     "not all ids have moved");
	cr_assert_eq(cm_destroy(&server.p, listener, NULL), 0);
	expect_no_event(&other.p);
	close(server.p.events);
	party_end(&client);
	party_end(&other.p);
}

/* hostile H-146: a program that claims to have taken what was never shown. */
Test(cm_ring, forged_positions)
{
	static const uint32_t forged[] = { 1,	       LIMIT_CM_SHOWN, LIMIT_CM_SHOWN + 1,
					   0x7fffffff, 0x80000000,     0xffffffff };
	struct reply_cm_event e;
	struct reader r;
	uint32_t id;

	for (uint32_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		reader_open(&r);
		event_ring_take(r.page, forged[i]);
		event_ring_post(r.page, forged[i] + 5);
		id = resolved_id(&r.p);
		event_ring_take(r.page, forged[i] + 3);
		for (uint32_t k = 0; k < 2 * LIMIT_CM_SHOWN; k++)
			resolved_id(&r.p);
		event_ring_take(r.page, forged[i]);
		while (cm_get(&r.p, &e) == 0)
			cr_assert_eq(e.event, ADDR_RESOLVED);
		cr_expect_eq(cm_destroy(&r.p, id, NULL), 0);
		party_end(&r.p);
	}
}
