/* SPDX-License-Identifier: BSD-3-Clause */
/* Two programs of one engine and their connections, by raw commands. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "cm_rig.h"
#include "control/control.h"
#include "memory/key.h"

#define PORT 7471u

static struct party server, client;

static void open_both(void)
{
	parties_begin(&server, &client);
}

static void close_both(void)
{
	parties_end(&server, &client);
}

TestSuite(control_cm_connect, .init = open_both, .fini = close_both, .timeout = 60);

/* As far as both have accepted; returns the ids. */
static void connect_both(uint32_t listener, uint32_t *passive, uint32_t *active)
{
	struct reply_cm_event e;

	*active = id_towards(&client, TCP, PORT);
	cr_assert_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, *active, 0x123, "hello"), 0);
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	cr_assert_eq(e.listen_id, listener);
	*passive = e.id;
	cr_assert_eq(cm_connect_as(&server, COMMAND_CM_ACCEPT, *passive, 0x456, "welcome"), 0);
	expect_event(&client, CONNECT_RESPONSE, 0, &e);
	cr_assert_eq(e.id, *active);
	cr_assert_eq(cm_handle(&client, COMMAND_CM_ESTABLISH, *active), 0);
	expect_event(&server, ESTABLISHED, 0, &e);
	cr_assert_eq(e.id, *passive);
}

/* The server listens, and the client asks it: *e is the request. Returns the client's id. */
static uint32_t ask_server(struct reply_cm_event *e)
{
	uint32_t id;

	listener_at(&server, TCP, PORT, 5);
	id = id_towards(&client, TCP, PORT);
	cr_assert_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, id, 0x123, NULL), 0);
	expect_event(&server, CONNECT_REQUEST, 0, e);
	return id;
}

Test(control_cm_connect, what_each_hears_of_the_other)
{
	uint32_t listener = listener_at(&server, TCP, PORT, 5);
	uint32_t id = id_towards(&client, TCP, PORT);
	struct reply_cm_event e;
	struct reply_cm_query mine, theirs;

	cr_assert_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, id, 0x123, "hello"), 0);
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	cr_expect_eq(e.listen_id, listener);
	cr_expect_eq(e.events, 1, "the listener's");
	cr_expect_eq(e.parameters.qpn, 0x123);
	cr_expect_eq(e.parameters.responder_resources, 3, "what the peer may ask of us");
	cr_expect_eq(e.parameters.initiator_depth, 4);
	cr_expect_eq(e.parameters.retry_count, 5);
	cr_expect_eq(e.parameters.rnr_retry_count, 6);
	cr_expect_eq(e.parameters.private_length, 56, "a REQ without the RDMA CM's header");
	cr_expect_str_eq((char *)e.parameters.private_data, "hello");
	cr_assert_eq(cm_query(&client, id, &mine), 0);
	cr_assert_eq(cm_query(&server, e.id, &theirs), 0);
	cr_expect_eq(
		memcmp(&mine.route.source, &theirs.route.destination, sizeof(mine.route.source)),
		0);
	cr_expect_eq(
		memcmp(&mine.route.destination, &theirs.route.source, sizeof(mine.route.source)),
		0);
	cr_expect_eq(theirs.route.bound, 1);
	cr_expect_eq(theirs.route.path_mtu, mine.route.path_mtu);
	cr_assert_eq(cm_connect_as(&server, COMMAND_CM_ACCEPT, e.id, 0x456, "welcome"), 0);
	expect_event(&client, CONNECT_RESPONSE, 0, &e);
	cr_expect_eq(e.parameters.qpn, 0x456);
	cr_expect_eq(e.parameters.private_length, 196);
	cr_expect_eq(e.parameters.responder_resources, 3);
	cr_expect_eq(e.parameters.initiator_depth, 3, "asked for four, three are given");
	cr_expect_str_eq((char *)e.parameters.private_data, "welcome");
}

Test(control_cm_connect, established_and_ended_by_one_side)
{
	uint32_t listener = listener_at(&server, TCP, PORT, 5), passive, active;

	connect_both(listener, &passive, &active);
	cr_assert_eq(cm_handle(&client, COMMAND_CM_DISCONNECT, active), 0);
	expect_event(&server, DISCONNECTED, 0, NULL);
	cr_assert_eq(cm_handle(&server, COMMAND_CM_DISCONNECT, passive), 0);
	expect_event(&client, DISCONNECTED, 0, NULL);
	cr_expect_eq(cm_handle(&client, COMMAND_CM_DISCONNECT, active), 0, "again: no harm");
	expect_event(&client, TIMEWAIT_EXIT, 0, NULL);
	expect_event(&server, TIMEWAIT_EXIT, 0, NULL);
	expect_no_event(&client);
	cr_expect_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, active, 0x123, NULL), EINVAL);
	cr_assert_eq(cm_destroy(&client, active, NULL), 0);
	cr_assert_eq(cm_destroy(&server, passive, NULL), 0);
}

Test(control_cm_connect, ends_that_cross)
{
	uint32_t listener = listener_at(&server, TCP, PORT, 5), passive, active;

	connect_both(listener, &passive, &active);
	cr_assert_eq(cm_handle(&client, COMMAND_CM_DISCONNECT, active), 0);
	cr_assert_eq(cm_handle(&server, COMMAND_CM_DISCONNECT, passive), 0);
	expect_event(&client, DISCONNECTED, 0, NULL);
	expect_event(&server, DISCONNECTED, 0, NULL);
}

Test(control_cm_connect, rejected_with_words)
{
	struct reply_cm_event e;
	uint32_t id = ask_server(&e);

	cr_assert_eq(cm_reject_with(&server, e.id, "not today"), 0);
	cr_expect_eq(cm_reject_with(&server, e.id, "not today"), EINVAL);
	expect_event(&client, REJECTED, 28, &e);
	cr_expect_eq(e.id, id);
	cr_expect_eq(e.parameters.private_length, 148);
	cr_expect_str_eq((char *)e.parameters.private_data, "not today");
}

/* The engine's addresses change: the entry of an id's own is another's. */
static struct gid change_address(uint32_t index, struct gid to)
{
	struct engine *e = (struct engine *)engine;
	struct gid before;

	pthread_mutex_lock(&e->control_lock);
	before = e->gid[index].gid;
	e->gid[index].gid = to;
	e->control->refresh_at = TIME_NEVER;
	pthread_mutex_unlock(&e->control_lock);
	return before;
}

/* An id that is bound to a removed address does not send from another one. */
Test(control_cm_connect, from_an_address_that_is_gone)
{
	const struct gid other = { { [10] = 0xff, [11] = 0xff, 192, 0, 2, 77 } };
	uint32_t resolved, routed;
	struct reply_cm_query q;
	struct gid own;

	listener_at(&server, TCP, PORT, 5);
	routed = id_towards(&client, TCP, PORT);
	cr_assert_eq(cm_create(&client, TCP, &resolved), 0);
	cr_assert_eq(cm_resolve(&client, resolved, "127.0.0.1", PORT, 100), 0);
	expect_event(&client, ADDR_RESOLVED, 0, NULL);
	cr_assert_eq(cm_query(&client, routed, &q), 0);
	own = change_address(q.route.gid_index, other);
	cr_expect_eq(cm_route(&client, resolved), 0);
	expect_event(&client, ROUTE_ERROR, -ENODEV, NULL);
	cr_expect_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, routed, 0x123, NULL), ENODEV);
	expect_no_event(&server);
	change_address(q.route.gid_index, own);
	cr_expect_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, routed, 0x123, NULL), 0);
	expect_event(&server, CONNECT_REQUEST, 0, NULL);
}

Test(control_cm_connect, nobody_listens)
{
	uint32_t id = id_towards(&client, TCP, PORT);

	cr_assert_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, id, 0x123, NULL), 0);
	expect_event(&client, REJECTED, 8, NULL);
	id = id_towards(&client, UDP, PORT);
	cr_assert_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, id, 0, NULL), 0);
	expect_event(&client, UNREACHABLE, 1, NULL);
}

/* A port of another space, or one that is bound and does not listen, has no listener. */
Test(control_cm_connect, nobody_listens_there)
{
	uint32_t id;

	listener_at(&server, UDP, PORT, 5);
	cr_assert_eq(cm_create(&server, TCP, &id), 0);
	cr_assert_eq(cm_bind(&server, id, "0.0.0.0", PORT), 0);
	id = id_towards(&client, TCP, PORT);
	cr_assert_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, id, 0x123, NULL), 0);
	expect_event(&client, REJECTED, 8, NULL);
}

Test(control_cm_connect, the_passive_side_goes_before_it_answers)
{
	struct reply_cm_event e;

	ask_server(&e);
	cr_assert_eq(cm_destroy(&server, e.id, NULL), 0);
	expect_event(&client, REJECTED, 28, NULL);
}

/* A request that its program never took is refused when the listener goes. */
Test(control_cm_connect, the_listener_goes_with_its_requests)
{
	uint32_t listener = listener_at(&server, TCP, PORT, 5);
	uint32_t id = id_towards(&client, TCP, PORT);
	struct pollfd ready = { .fd = server.events, .events = POLLIN };

	cr_assert_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, id, 0x123, NULL), 0);
	cr_assert_eq(poll(&ready, 1, ENOUGH_MS), 1, "the request did not come");
	cr_assert_eq(cm_destroy(&server, listener, NULL), 0);
	expect_no_event(&server);
	expect_event(&client, REJECTED, 28, NULL);
	cr_assert_eq(cm_handle(&server, COMMAND_CM_DESTROY_CHANNEL, server.channel), 0);
}

Test(control_cm_connect, the_active_side_goes_before_it_is_answered)
{
	struct reply_cm_event e;
	uint32_t id = ask_server(&e);

	cr_assert_eq(cm_destroy(&client, id, NULL), 0);
	expect_event(&server, REJECTED, 4, NULL);
	cr_expect_eq(cm_connect_as(&server, COMMAND_CM_ACCEPT, e.id, 0x456, NULL), EINVAL);
}

Test(control_cm_connect, a_program_that_dies_is_heard_of)
{
	uint32_t listener = listener_at(&server, TCP, PORT, 5), passive, active;
	struct reply_cm_event e;

	connect_both(listener, &passive, &active);
	party_end(&client);
	expect_event(&server, DISCONNECTED, 0, &e);
	cr_expect_eq(e.id, passive);
	cr_assert_eq(cm_handle(&server, COMMAND_CM_DISCONNECT, passive), 0);
	expect_event(&server, TIMEWAIT_EXIT, 0, NULL);
	party_begin(&client);
	party_end(&server);
	party_begin(&server);
	active = id_towards(&client, TCP, PORT);
	cr_assert_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, active, 0x123, NULL), 0);
	expect_event(&client, REJECTED, 8, NULL);
}

/*
 * The backlog counts requests that the program has not asked for; each one that it takes makes room
 * for another. A request that finds no room is not refused: it comes again after five seconds.
 */
Test(control_cm_connect, a_backlog_is_one)
{
	const nanotime again = clock_now() + 4 * TIME_S; /* before that nothing comes again */
	struct reply_cm_event e;
	uint32_t id[4], third;

	listener_at(&server, TCP, PORT, 2);
	for (int i = 0; i < 3; i++) {
		id[i] = id_towards(&client, TCP, PORT);
		cr_assert_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, id[i], 0x123u + i, NULL),
			     0);
	}
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	id[3] = id_towards(&client, TCP, PORT);
	cr_assert_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, id[3], 0x200, NULL), 0);
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	cr_expect_eq(e.parameters.qpn, 0x124);
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	third = e.parameters.qpn;
	cr_expect(third == 0x200 || (third == 0x125 && clock_now() >= again), "0x%x", third);
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	cr_expect_eq(e.parameters.qpn, third == 0x200 ? 0x125 : 0x200, "who found no room");
	cr_expect_eq(cm_get(&client, &e), EAGAIN, "nobody was refused");
}

/*
 * The same queue pair again, without an end of the first connection: both ends of the first
 * connection are told.
 */
Test(control_cm_connect, a_queue_pair_that_begins_anew)
{
	uint32_t listener = listener_at(&server, TCP, PORT, 5), passive, active, id;

	connect_both(listener, &passive, &active);
	id = id_towards(&client, TCP, PORT);
	cr_assert_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, id, 0x123, NULL), 0);
	expect_event(&client, REJECTED, 10, NULL);
	expect_event(&client, DISCONNECTED, 0, NULL);
}

Test(control_cm_connect, datagrams)
{
	struct reply_cm_event e;
	uint32_t id;

	listener_at(&server, UDP, PORT, 5);
	id = id_towards(&client, UDP, PORT);
	cr_assert_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, id, 0, "who"), 0);
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	cr_expect_eq(e.parameters.private_length, 180);
	cr_expect_str_eq((char *)e.parameters.private_data, "who");
	cr_assert_eq(cm_connect_as(&server, COMMAND_CM_ACCEPT, e.id, 0x456, "me"), 0);
	expect_event(&client, ESTABLISHED, 0, &e);
	cr_expect_eq(e.parameters.qpn, 0x456);
	cr_expect_eq(e.parameters.qkey, 0x01234567);
	cr_expect_eq(e.parameters.private_length, 136);
	cr_expect_str_eq((char *)e.parameters.private_data, "me");
	cr_expect_eq(e.path.is_global, 1);
	cr_expect_eq(e.path.port_num, 1);
	id = id_towards(&client, UDP, PORT);
	cr_assert_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, id, 0, NULL), 0);
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	cr_assert_eq(cm_reject_with(&server, e.id, "no"), 0);
	expect_event(&client, UNREACHABLE, 2, &e);
	cr_expect_str_eq((char *)e.parameters.private_data, "no");
}

static int join(struct party *p, uint32_t id, const char *group, uint32_t flags, uint32_t *made)
{
	struct request_cm_join q = {
		.id = id, .join_flags = flags, .group = address_of(group, 0), .cookie = 77
	};
	struct reply_handle r;
	int error = ask(p->fd, COMMAND_CM_JOIN, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);

	*made = error == 0 ? r.handle : 0;
	return error;
}

Test(control_cm_connect, groups)
{
	struct request_cm_leave leave;
	struct cm_address group = address_of("230.1.2.3", 0);
	struct reply_cm_event e;
	struct reply_empty r;
	uint32_t id, tcp, made;

	cr_assert_eq(cm_create(&client, UDP, &id), 0);
	cr_assert_eq(cm_create(&client, TCP, &tcp), 0);
	cr_expect_eq(join(&client, id, "230.1.2.3", 1, &made), EINVAL, "bound to no device");
	cr_assert_eq(cm_bind(&client, id, "127.0.0.1", 0), 0);
	cr_assert_eq(cm_bind(&client, tcp, "127.0.0.1", 0), 0);
	cr_expect_eq(join(&client, tcp, "230.1.2.3", 1, &made), EINVAL);
	cr_expect_eq(join(&client, id, "10.1.2.3", 1, &made), EINVAL);
	cr_expect_eq(join(&client, id, "230.1.2.3", 0, &made), EINVAL);
	cr_expect_eq(join(&client, id, "230.1.2.3", 4, &made), EINVAL);
	cr_expect_eq(join(&client, id, "ff02::1", 1, &made), EINVAL);
	cr_assert_eq(join(&client, id, "230.1.2.3", 1, &made), 0);
	expect_event(&client, MULTICAST_JOIN, 0, &e);
	cr_expect_eq(e.id, id);
	cr_expect_eq(e.join, made);
	cr_expect_eq(e.cookie, 77);
	cr_expect_eq(e.parameters.qpn, 0xffffff);
	cr_expect_eq(e.parameters.qkey, 0x01234567);
	cr_expect(gid_equal(&e.path.dgid, &group.ip));
	leave = (struct request_cm_leave){ .id = id, .join = made };
	cr_expect_eq(ask(client.fd, COMMAND_CM_LEAVE, &leave.h, sizeof(leave), &r.h, sizeof(r),
			 NULL, NULL),
		     0);
	cr_expect_eq(ask(client.fd, COMMAND_CM_LEAVE, &leave.h, sizeof(leave), &r.h, sizeof(r),
			 NULL, NULL),
		     EADDRNOTAVAIL);
}

#define INIT_MASK (QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS)
#define RTR_MASK                                                                             \
	(QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN | \
	 QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER)
#define RTS_MASK                                                                \
	(QP_ATTR_STATE | QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | \
	 QP_ATTR_RNR_RETRY | QP_ATTR_MAX_RD_ATOMIC)

/* The attributes of the queue pairs at both ends fit together. */
Test(control_cm_connect, attributes_of_queue_pairs)
{
	uint32_t listener = listener_at(&server, TCP, PORT, 5), passive, active;
	struct reply_cm_qp_attr a, p;

	cr_assert_eq(cm_create(&client, TCP, &active), 0);
	cr_assert_eq(cm_attributes_of(&client, active, QP_STATE_INIT, &a), 0, "not connected");
	cr_expect_eq(a.mask, INIT_MASK);
	cr_expect_eq(a.attributes.access_flags, 0);
	cr_expect_eq(cm_attributes_of(&client, active, QP_STATE_RTR, &a), EINVAL);
	connect_both(listener, &passive, &active);
	cr_assert_eq(cm_attributes_of(&client, active, QP_STATE_INIT, &a), 0);
	cr_expect_eq(a.mask, INIT_MASK);
	cr_expect_eq(a.attributes.access_flags,
		     ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC);
	cr_assert_eq(cm_attributes_of(&client, active, QP_STATE_RTR, &a), 0);
	cr_assert_eq(cm_attributes_of(&server, passive, QP_STATE_RTS, &p), 0);
	cr_expect_eq(a.mask, RTR_MASK);
	cr_expect_eq(p.mask, RTS_MASK);
	cr_expect_eq(a.attributes.dest_qpn, 0x456);
	cr_expect_eq(a.attributes.rq_psn, p.attributes.sq_psn);
	cr_expect_eq(a.attributes.max_dest_rd_atomic, p.attributes.max_rd_atomic);
	cr_expect_eq(p.attributes.retry_cnt, 5);
	cr_expect_eq(p.attributes.rnr_retry, 6);
	cr_assert_eq(cm_attributes_of(&server, passive, QP_STATE_RTR, &p), 0);
	cr_assert_eq(cm_attributes_of(&client, active, QP_STATE_RTS, &a), 0);
	cr_expect_eq(p.attributes.dest_qpn, 0x123);
	cr_expect_eq(p.attributes.rq_psn, a.attributes.sq_psn);
	cr_expect_eq(p.attributes.max_dest_rd_atomic, a.attributes.max_rd_atomic);
	cr_expect_eq(a.attributes.retry_cnt, 5);
	cr_expect_eq(cm_attributes_of(&client, active, QP_STATE_ERR, &a), EINVAL);
	cr_expect_eq(cm_attributes_of(&client, active, 99, &a), EINVAL);
}

Test(control_cm_connect, arguments_that_make_no_sense)
{
	static const uint32_t qpn[] = { 0, 1, 0xffffff, 0x1000000, UINT32_MAX };
	struct request_cm_connect q = { .parameters = { .qpn = 0x123, .private_length = 57 } };
	struct request_cm_reject no = { .reason = 28, .private_length = 149 };
	struct request_cm_notify notify = { .event = 5 };
	struct reply_cm_event e;
	struct reply_empty r;
	uint32_t id;

	listener_at(&server, TCP, PORT, 5);
	cr_assert_eq(cm_create(&client, TCP, &id), 0);
	cr_expect_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, id, 0x123, NULL), EINVAL);
	cr_expect_eq(cm_connect_as(&client, COMMAND_CM_ACCEPT, id, 0x123, NULL), EINVAL);
	cr_expect_eq(cm_reject_with(&client, id, ""), EINVAL);
	cr_expect_eq(cm_handle(&client, COMMAND_CM_DISCONNECT, id), EINVAL);
	cr_expect_eq(cm_handle(&client, COMMAND_CM_ESTABLISH, id), EINVAL);
	q.id = id_towards(&client, TCP, PORT);
	for (uint32_t i = 0; i < ARRAY_SIZE(qpn); i++)
		cr_expect_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, q.id, qpn[i], NULL), EINVAL,
			     "QPN 0x%x", qpn[i]);
	cr_expect_eq(
		ask(client.fd, COMMAND_CM_CONNECT, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL),
		EINVAL, "57 octets of private data");
	q.parameters.private_length = 0;
	q.parameters.qp = 99;
	cr_expect_eq(
		ask(client.fd, COMMAND_CM_CONNECT, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL),
		EINVAL, "no such queue pair");
	q.parameters.qp = 0;
	q.parameters.private_length = 56;
	cr_expect_eq(
		ask(client.fd, COMMAND_CM_CONNECT, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL),
		0);
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	no.id = notify.id = e.id;
	cr_expect_eq(
		ask(server.fd, COMMAND_CM_REJECT, &no.h, sizeof(no), &r.h, sizeof(r), NULL, NULL),
		EINVAL, "149 octets of private data");
	no.private_length = UINT32_MAX;
	cr_expect_eq(
		ask(server.fd, COMMAND_CM_REJECT, &no.h, sizeof(no), &r.h, sizeof(r), NULL, NULL),
		EINVAL);
	no.private_length = 0;
	no.reason = 8;
	cr_expect_eq(
		ask(server.fd, COMMAND_CM_REJECT, &no.h, sizeof(no), &r.h, sizeof(r), NULL, NULL),
		EINVAL, "a reason that is the manager's");
	cr_expect_eq(ask(server.fd, COMMAND_CM_NOTIFY, &notify.h, sizeof(notify), &r.h, sizeof(r),
			 NULL, NULL),
		     EINVAL);
	cr_expect_eq(cm_connect_as(&server, COMMAND_CM_ACCEPT, e.id, 0x456, NULL), 0,
		     "after all that");
	notify.event = 4;
	cr_expect_eq(ask(server.fd, COMMAND_CM_NOTIFY, &notify.h, sizeof(notify), &r.h, sizeof(r),
			 NULL, NULL),
		     0);
	expect_event(&server, ESTABLISHED, 0, NULL);
}

/* Many at once, more than any ring or socket holds, and none is forgotten. */
Test(control_cm_connect, many)
{
	enum {
		MANY = 2000
	};
	static uint32_t id[MANY];
	struct reply_cm_event e;

	listener_at(&server, TCP, PORT, 0);
	for (uint32_t i = 0; i < MANY; i++) {
		id[i] = id_towards(&client, TCP, PORT);
		cr_assert_eq(cm_connect_as(&client, COMMAND_CM_CONNECT, id[i], 0x1000 + i, NULL),
			     0);
		if (i % 500 != 499)
			continue;
		for (uint32_t k = 0; k < 500; k++) {
			expect_event(&server, CONNECT_REQUEST, 0, &e);
			cr_assert_eq(cm_connect_as(&server, COMMAND_CM_ACCEPT, e.id,
						   0x10000 + i - k, NULL),
				     0);
		}
		for (uint32_t k = 0; k < 500; k++) {
			expect_event(&client, CONNECT_RESPONSE, 0, &e);
			cr_assert_eq(cm_handle(&client, COMMAND_CM_ESTABLISH, e.id), 0);
			expect_event(&server, ESTABLISHED, 0, NULL);
		}
	}
	party_end(&client);
	for (uint32_t i = 0; i < MANY; i++)
		expect_event(&server, DISCONNECTED, 0, &e);
	party_begin(&client);
}
