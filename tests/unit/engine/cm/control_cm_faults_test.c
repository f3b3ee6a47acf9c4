/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory is missing, at each place where the connection manager asks for some (H-72, H-73, H-78):
 * the call or the connection fails and leaves nothing, and the next one succeeds.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "cm_rig.h"
#include "control/cm/cm_manager.h"

#define PORT 7471u

/* The engine's allocations go through here (meson.build: --wrap). */
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);

static int left; /* allocations until the one that fails; negative: none */

static bool fails(void)
{
	return __atomic_load_n(&left, __ATOMIC_RELAXED) > 0 &&
	       __atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED) == 0;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

static bool failed(void)
{
	return __atomic_load_n(&left, __ATOMIC_RELAXED) == 0;
}

TestSuite(control_cm_faults, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

/* A step that works, unless memory failed: then what hangs on it does not follow. */
#define STEP(call)                                                                       \
	do {                                                                             \
		int error_ = (call);                                                     \
                                                                                         \
		if (error_ != 0) {                                                       \
			cr_assert(failed(), "%s: %s", #call, strerror(error_));          \
			cr_expect_eq(error_, ENOMEM, "%s: %s", #call, strerror(error_)); \
			return;                                                          \
		}                                                                        \
	} while (0)

/* 0: the event came. Whatever was to be said may be what there was no memory for. */
static int await(struct party *p, uint32_t wanted, struct reply_cm_event *e)
{
	struct pollfd ready = { .fd = p->events, .events = POLLIN };
	uint8_t octet;

	for (int ms = 0; ms < ENOUGH_MS; ms += 50) {
		if (poll(&ready, 1, 50) == 1) {
			cr_assert_eq(read(p->events, &octet, 1), 1);
			cr_assert_eq(cm_get(p, e), 0);
			if (e->event == wanted)
				return 0;
			cr_assert(failed(), "event %u instead of %u", e->event, wanted);
			return ENOMEM;
		}
		if (failed())
			return ENOMEM;
	}
	cr_assert_fail("event %u did not come", wanted);
	return ENOMEM;
}

static int join(struct party *p, uint32_t id)
{
	struct request_cm_join q = { .id = id,
				     .join_flags = 1,
				     .group = address_of("230.1.2.3", 0) };
	struct reply_handle r;

	return ask(p->fd, COMMAND_CM_JOIN, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

/* A listener, a connection with it, a lookup and a group: all that asks for memory. */
static void live(struct party *server, struct party *client, uint32_t round)
{
	uint32_t listener, service, caller, looker, member;
	struct reply_cm_event e;

	STEP(cm_create(server, TCP, &listener));
	STEP(cm_bind(server, listener, "127.0.0.1", PORT));
	STEP(cm_listen(server, listener, 4));
	STEP(cm_create(server, UDP, &service));
	STEP(cm_bind(server, service, "127.0.0.1", PORT));
	STEP(cm_listen(server, service, 4));
	STEP(cm_create(client, TCP, &caller));
	STEP(cm_resolve(client, caller, "127.0.0.1", PORT, 1000));
	STEP(await(client, ADDR_RESOLVED, &e));
	STEP(cm_route(client, caller));
	STEP(await(client, ROUTE_RESOLVED, &e));
	STEP(cm_connect_as(client, COMMAND_CM_CONNECT, caller, 0x1000 + round, NULL));
	STEP(await(server, CONNECT_REQUEST, &e));
	STEP(cm_connect_as(server, COMMAND_CM_ACCEPT, e.id, 0x2000 + round, NULL));
	STEP(await(client, CONNECT_RESPONSE, &e));
	STEP(cm_handle(client, COMMAND_CM_ESTABLISH, caller));
	STEP(await(server, ESTABLISHED, &e));
	STEP(cm_handle(client, COMMAND_CM_DISCONNECT, caller));
	STEP(await(server, DISCONNECTED, &e));
	STEP(cm_create(client, UDP, &looker));
	STEP(cm_resolve(client, looker, "127.0.0.1", PORT, 1000));
	STEP(await(client, ADDR_RESOLVED, &e));
	STEP(cm_route(client, looker));
	STEP(await(client, ROUTE_RESOLVED, &e));
	STEP(cm_connect_as(client, COMMAND_CM_CONNECT, looker, 0, NULL));
	STEP(await(server, CONNECT_REQUEST, &e));
	STEP(cm_connect_as(server, COMMAND_CM_ACCEPT, e.id, 0x3000, NULL));
	STEP(await(client, ESTABLISHED, &e));
	STEP(cm_create(client, UDP, &member));
	STEP(cm_bind(client, member, "127.0.0.1", 0));
	STEP(join(client, member));
	STEP(await(client, MULTICAST_JOIN, &e));
}

/* Nothing hangs on a program any more, and what goes on by itself has somewhere to go. */
static void expect_nothing_left(int at)
{
	struct engine *e = (struct engine *)engine;
	struct reply_statistics s;
	struct cm_link *l;

	for (int ms = 0; ms < ENOUGH_MS; ms++) {
		statistics(&s);
		if (s.objects[OBJECT_CM_ID] + s.objects[OBJECT_CM_CHANNEL] +
			    s.objects[OBJECT_CM_JOIN] ==
		    0)
			break;
		poll(NULL, 0, 1);
	}
	cr_expect_eq(s.objects[OBJECT_CM_ID], 0, "allocation %d", at);
	cr_expect_eq(s.objects[OBJECT_CM_CHANNEL], 0, "allocation %d", at);
	cr_expect_eq(s.objects[OBJECT_CM_JOIN], 0, "allocation %d", at);
	pthread_mutex_lock(&e->control_lock);
	LIST_FOREACH(l, &e->control->cm->links, all_link)
	{
		cr_expect_null(l->id, "allocation %d", at);
		cr_expect_neq(cm_state(&l->core), CM_IDLE, "allocation %d", at);
		cr_expect_neq(cm_deadline(&l->core), TIME_NEVER, "allocation %d: for ever in %s",
			      at, cm_state_name(cm_state(&l->core)));
	}
	pthread_mutex_unlock(&e->control_lock);
}

static bool live_with_fault(int at)
{
	struct party server, client;
	bool was_reached;

	party_begin(&server);
	party_begin(&client);
	__atomic_store_n(&left, at, __ATOMIC_RELAXED);
	live(&server, &client, (uint32_t)at);
	was_reached = failed();
	__atomic_store_n(&left, -1, __ATOMIC_RELAXED);
	party_end(&client);
	party_end(&server);
	expect_nothing_left(at);
	return was_reached;
}

/* hostile H-72, H-73: errors half-way; H-78: a listener that fails half-way. */
Test(control_cm_faults, at_each_allocation)
{
	int at = 1;

	while (live_with_fault(at))
		at++;
	cr_expect_gt(at, 20, "only %d allocations", at);
	cr_expect(!live_with_fault(1000), "and without one all works");
	expect_serving();
}

/* The connection's deadline, then the connection itself. */
Test(control_cm_faults, memory_is_not_taken_for_a_limit)
{
	struct request_cm_connect q = { .parameters = { .retry_count = 1 } };
	struct reply_empty r;
	struct party p;

	party_begin(&p);
	q.id = id_towards(&p, UDP, PORT);
	for (int at = 1; at <= 2; at++) {
		__atomic_store_n(&left, at, __ATOMIC_RELAXED);
		cr_expect_eq(
			ask(p.fd, COMMAND_CM_CONNECT, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL),
			ENOMEM);
		cr_expect(failed(), "allocation %d", at);
		__atomic_store_n(&left, -1, __ATOMIC_RELAXED);
		cr_expect_str_eq(r.h.why, "the engine has no memory for the connection");
	}
	cr_expect_eq(cm_connect_as(&p, COMMAND_CM_CONNECT, q.id, 0, NULL), 0);
	party_end(&p);
}

Test(control_cm_faults, memory_for_an_id_is_not_taken_for_a_limit)
{
	struct request_cm_create_id q = { .port_space = TCP, .qp_type = QP_TYPE_RC };
	struct reply_handle r;
	struct party p;

	party_begin(&p);
	q.channel = p.channel;
	__atomic_store_n(&left, 1, __ATOMIC_RELAXED);
	cr_expect_eq(ask(p.fd, COMMAND_CM_CREATE_ID, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL),
		     ENOMEM);
	cr_expect(failed());
	__atomic_store_n(&left, -1, __ATOMIC_RELAXED);
	cr_expect_str_eq(r.h.why, "the engine has no memory for the id", "%s", r.h.why);
	party_end(&p);
}

static int make_channel(int fd)
{
	struct carrier_descriptors out = { 0 };
	struct request_empty q;
	struct reply_handle r;
	int error =
		ask(fd, COMMAND_CM_CREATE_CHANNEL, &q.h, sizeof(q), &r.h, sizeof(r), NULL, &out);

	for (uint32_t i = 0; i < out.count; i++)
		close(out.fd[i]);
	return error;
}

/* hostile H-72, H-73: errors half-way. */
Test(control_cm_faults, of_a_channel)
{
	int fd = attach(), before = count_descriptors();

	__atomic_store_n(&left, 1, __ATOMIC_RELAXED);
	cr_expect_eq(make_channel(fd), ENOMEM);
	cr_expect(failed());
	__atomic_store_n(&left, -1, __ATOMIC_RELAXED);
	cr_expect_eq(count_descriptors(), before);
	cr_expect_eq(make_channel(fd), 0);
	close(fd);
	expect_nothing_left(1);
}
