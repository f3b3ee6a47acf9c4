/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections and requests under way when their owner goes: each ends by itself, once, and leaves
 * nothing.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "cm_rig.h"
#include "control/cm/cm_manager.h"

#define PORT 7471u

static struct party server, client;

/* The engine joins groups on the link through these functions (meson.build: --wrap). */
int __real_neighbour_agent_join(struct engine *e, const struct gid *group);
int __wrap_neighbour_agent_join(struct engine *e, const struct gid *group);
void __real_neighbour_agent_leave(struct engine *e, const struct gid *group);
void __wrap_neighbour_agent_leave(struct engine *e, const struct gid *group);

static int joined, left;

int __wrap_neighbour_agent_join(struct engine *e, const struct gid *group)
{
	__atomic_add_fetch(&joined, 1, __ATOMIC_RELAXED);
	return __real_neighbour_agent_join(e, group);
}

void __wrap_neighbour_agent_leave(struct engine *e, const struct gid *group)
{
	__atomic_add_fetch(&left, 1, __ATOMIC_RELAXED);
	__real_neighbour_agent_leave(e, group);
}

static void open_both(void)
{
	control_rig_open();
	party_begin(&server);
	party_begin(&client);
}

static void close_both(void)
{
	expect_serving();
	party_end(&client);
	party_end(&server);
	control_rig_close();
}

TestSuite(control_cm_ends, .init = open_both, .fini = close_both, .timeout = 60);

static uint32_t links(void)
{
	struct engine *e = (struct engine *)engine;
	uint32_t n;

	pthread_mutex_lock(&e->control_lock);
	n = cm_link_count(e);
	pthread_mutex_unlock(&e->control_lock);
	return n;
}

static uint32_t asked(uint32_t qpn)
{
	uint32_t id = id_towards(&client, TCP, PORT);

	cr_assert_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, id, qpn, NULL), 0);
	return id;
}

/* H-76: the programs are gone, and each connection is freed by its own timer. */
Test(control_cm_ends, connections_without_an_owner_end_themselves)
{
	struct reply_cm_event e;
	uint32_t active;

	listener_at(&server, TCP, PORT, 50);
	for (uint32_t i = 0; i < 20; i++) {
		active = asked(0x1000 + i);
		expect_event(&server, CONNECT_REQUEST, 0, &e);
		if (i % 4 == 3) /* rejected: it may be asked for the reason again */
			continue;
		cr_assert_eq(cm_connect_as(&server, COMMAND_CM_ACCEPT, e.id, 0x2000 + i, NULL), 0);
		expect_event(&client, CONNECT_RESPONSE, 0, NULL);
		if (i % 4 == 2)
			continue;
		cr_assert_eq(cm_handle(&client, COMMAND_CM_ESTABLISH, active), 0);
		expect_event(&server, ESTABLISHED, 0, NULL);
		if (i % 4 == 1)
			cr_assert_eq(cm_handle(&client, COMMAND_CM_DISCONNECT, active), 0);
		if (i % 4 == 1)
			expect_event(&server, DISCONNECTED, 0, NULL);
	}
	party_end(&client);
	party_end(&server);
	for (int ms = 0; links() > 0 && ms < ENOUGH_MS; ms += 10)
		poll(NULL, 0, 10);
	cr_expect_eq(links(), 0);
	party_begin(&server);
	party_begin(&client);
}

/* What `uroce stat --cm` calls late, of the connection that is asked for or of the one that asks. */
static void expect_late_at_deadline(bool passive, enum cm_state state, uint32_t more)
{
	struct engine *e = (struct engine *)engine;
	struct cm_link *l;
	uint32_t before;

	pthread_mutex_lock(&e->control_lock);
	LIST_FOREACH(l, &e->control->cm->links, all_link)
	if (l->passive == passive)
		break;
	cr_assert_not_null(l);
	cr_assert_eq(cm_state(&l->core), state, "%s", cm_state_name(cm_state(&l->core)));
	before = l->timeouts;
	cm_timers_tick(e, cm_deadline(&l->core));
	cr_expect_eq(l->timeouts, before + more, "%u more in %s", l->timeouts - before,
		     cm_state_name(state));
	pthread_mutex_unlock(&e->control_lock);
}

/* A deadline may be that of a message, or the end of a rest. */
Test(control_cm_ends, only_messages_are_late)
{
	struct reply_cm_event e;

	listener_at(&server, TCP, PORT, 5);
	asked(0x1000);
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	expect_late_at_deadline(false, CM_REQ_SENT, 1);
	cr_assert_eq(cm_reject_with(&server, e.id, "no"), 0);
	expect_late_at_deadline(true, CM_REJECTED, 0);
}

/* H-77: an id that ends before it learns of its group has left the group nevertheless. */
Test(control_cm_ends, groups_that_no_program_was_told_of)
{
	struct request_cm_join q = { .join_flags = 1, .group = address_of("230.1.2.3", 0) };
	struct reply_handle r;
	struct party other;

	party_begin(&other);
	for (int i = 0; i < 2; i++) {
		struct party *p = i == 0 ? &client : &other;

		cr_assert_eq(cm_create(p, UDP, &q.id), 0);
		cr_assert_eq(cm_bind(p, q.id, "127.0.0.1", 0), 0);
		cr_assert_eq(
			ask(p->fd, COMMAND_CM_JOIN, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL),
			0);
		if (i == 0)
			cr_assert_eq(cm_destroy(p, q.id, NULL), 0);
	}
	cr_expect_eq(__atomic_load_n(&joined, __ATOMIC_RELAXED), 2);
	cr_expect_eq(__atomic_load_n(&left, __ATOMIC_RELAXED), 1);
	expect_no_event(&client);
	party_end(&other);
	for (int ms = 0; __atomic_load_n(&left, __ATOMIC_RELAXED) < 2 && ms < ENOUGH_MS; ms++)
		poll(NULL, 0, 1);
	cr_expect_eq(__atomic_load_n(&left, __ATOMIC_RELAXED), 2);
}

static int join(struct party *p, struct request_cm_join *q)
{
	struct reply_handle r;

	return ask(p->fd, COMMAND_CM_JOIN, &q->h, sizeof(*q), &r.h, sizeof(r), NULL, NULL);
}

/*
 * H-122: one program's joins are bounded, and do not count for another program; a program that only
 * sends takes no share. hostile H-63: groups without end.
 */
Test(control_cm_ends, one_program_does_not_join_all_groups)
{
	struct request_cm_join q = { .join_flags = 1 };
	struct party other;
	uint32_t i, id;
	char group[32];

	party_begin(&other);
	for (i = 0; i < LIMIT_MCAST_GROUPS + 1; i++) {
		if (i % LIMIT_CM_JOINS == 0) {
			cr_assert_eq(cm_create(&client, UDP, &q.id), 0);
			cr_assert_eq(cm_bind(&client, q.id, "127.0.0.1", 0), 0);
		}
		snprintf(group, sizeof(group), "230.1.%u.%u", i / 200, i % 200);
		q.group = address_of(group, 0);
		if (join(&client, &q) != 0)
			break;
	}
	cr_expect_eq(i, LIMIT_MCAST_GROUPS, "%u joins", i);
	q.join_flags = 2;
	cr_expect_eq(join(&client, &q), 0, "to send only");
	q.join_flags = 1;
	cr_expect_eq(join(&client, &q), ENOMEM);
	id = q.id;
	cr_assert_eq(cm_create(&other, UDP, &q.id), 0);
	cr_assert_eq(cm_bind(&other, q.id, "127.0.0.1", 0), 0);
	cr_expect_eq(join(&other, &q), 0, "another program");
	cr_assert_eq(cm_destroy(&client, id - 1, NULL), 0, "it leaves as many as it joined");
	q.id = id;
	cr_expect_eq(join(&client, &q), 0, "there is room again");
	party_end(&other);
}

/*
 * H-85: a request fails when its listener is gone: only the owner of its id is told. hostile H-156:
 * requests that end at any time.
 */
Test(control_cm_ends, requests_fail_without_their_listener)
{
	uint32_t listener = listener_at(&server, TCP, PORT, 5), id[2];
	struct pollfd ready = { .fd = server.events, .events = POLLIN };
	struct reply_cm_event e;

	id[0] = asked(0x123);
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	id[1] = asked(0x124);
	cr_assert_eq(poll(&ready, 1, ENOUGH_MS), 1, "the second request did not come");
	/* one was told of, the other waits; both callers give up around the listener's end */
	cr_assert_eq(cm_destroy(&client, id[1], NULL), 0);
	cr_assert_eq(cm_destroy(&server, listener, NULL), 0);
	cr_assert_eq(cm_destroy(&client, id[0], NULL), 0);
	expect_event(&server, REJECTED, 4, &e);
	expect_no_event(&server);
	cr_expect_eq(cm_connect_as(&server, COMMAND_CM_ACCEPT, e.id, 0x456, NULL), EINVAL);
	cr_assert_eq(cm_destroy(&server, e.id, NULL), 0);
	cr_assert_eq(cm_handle(&server, COMMAND_CM_DESTROY_CHANNEL, server.channel), 0);
}
