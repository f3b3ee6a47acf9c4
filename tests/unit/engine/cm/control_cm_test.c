/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager by its raw commands: ids, ports, addresses, events. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/bits.h"
#include "cm_rig.h"
#include "control/cm/cm_manager.h"

TestSuite(control_cm, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

Test(control_cm, an_id_begins_and_ends)
{
	struct reply_cm_query q;
	struct party p;
	uint32_t id, events;

	party_begin(&p);
	cr_assert_eq(cm_create(&p, TCP, &id), 0);
	cr_assert_eq(cm_handle(&p, COMMAND_CM_DESTROY_CHANNEL, p.channel), EBUSY, "an id is on it");
	cr_assert_eq(cm_query(&p, id, &q), 0);
	cr_expect_eq(q.route.bound, 0);
	cr_expect_eq(q.route.source.family, 0);
	cr_assert_eq(cm_destroy(&p, id, &events), 0);
	cr_expect_eq(events, 0);
	cr_assert_eq(cm_destroy(&p, id, &events), EINVAL, "it is gone");
	cr_assert_eq(cm_handle(&p, COMMAND_CM_DESTROY_CHANNEL, p.channel), 0);
	cr_assert_eq(cm_create(&p, TCP, &id), EINVAL, "no channel");
	party_end(&p);
}

Test(control_cm, port_spaces_and_types)
{
	struct party p;
	uint32_t id;

	party_begin(&p);
	cr_expect_eq(cm_create(&p, UDP, &id), 0);
	cr_expect_eq(cm_create(&p, IB, &id), 0);
	cr_expect_eq(cm_create(&p, 0x0002, &id), 0, "IPoIB");
	cr_expect_eq(cm_create(&p, 0, &id), EINVAL);
	cr_expect_eq(cm_create(&p, 0x0107, &id), EINVAL);
	cr_expect_eq(cm_create(&p, 0x10106, &id), EINVAL, "32 bits are looked at");
	party_end(&p);
}

/* bind(2): who may share a port, and who may not. */
Test(control_cm, ports_as_sockets_have_them)
{
	static const struct {
		const char *first, *second;
		bool reuse, family_only;
		int error;
	} row[] = {
		{ "0.0.0.0", "0.0.0.0", false, false, EADDRINUSE },
		{ "0.0.0.0", "own", false, false, EADDRINUSE },
		{ "own", "0.0.0.0", false, false, EADDRINUSE },
		{ "own", "own", false, false, EADDRINUSE },
		{ "own", "127.0.0.1", false, false, EADDRINUSE },
		{ "0.0.0.0", "::", false, false, EADDRINUSE },
		{ "::", "own", false, false, EADDRINUSE },
		{ "0.0.0.0", "::", false, true, 0 },
		{ "own", "::", false, true, 0 },
		{ "0.0.0.0", "0.0.0.0", true, false, 0 },
		{ "own", "own", true, false, 0 },
	};
	const char *own = own_address();
	int32_t on = 1;
	struct party p;

	party_begin(&p);
	for (uint32_t i = 0; i < ARRAY_SIZE(row); i++) {
		const char *name[2] = { row[i].first, row[i].second };
		uint32_t id[2];

		for (uint32_t k = 0; k < 2; k++) {
			cr_assert_eq(cm_create(&p, TCP, &id[k]), 0);
			if (row[i].reuse)
				cr_assert_eq(cm_option(&p, id[k], 1, &on, 4), 0);
			if (row[i].family_only)
				cr_assert_eq(cm_option(&p, id[k], 2, &on, 4), 0);
		}
		for (uint32_t k = 0; k < 2; k++)
			if (name[k][0] == 'o')
				name[k] = own;
		cr_assert_eq(cm_bind(&p, id[0], name[0], 7471), 0, "row %u", i);
		cr_expect_eq(cm_bind(&p, id[1], name[1], 7471), row[i].error, "row %u", i);
		cr_assert_eq(cm_destroy(&p, id[0], NULL), 0);
		if (row[i].error != 0)
			cr_expect_eq(cm_bind(&p, id[1], name[1], 7471), 0, "row %u: free again", i);
		cr_assert_eq(cm_destroy(&p, id[1], NULL), 0);
	}
	party_end(&p);
}

Test(control_cm, port_spaces_are_apart_and_ephemeral_ports_differ)
{
	struct reply_cm_query a, b;
	uint32_t id[3];
	struct party p;

	party_begin(&p);
	cr_assert_eq(cm_create(&p, TCP, &id[0]), 0);
	cr_assert_eq(cm_create(&p, UDP, &id[1]), 0);
	cr_assert_eq(cm_create(&p, TCP, &id[2]), 0);
	cr_assert_eq(cm_bind(&p, id[0], "0.0.0.0", 7471), 0);
	cr_expect_eq(cm_bind(&p, id[1], "0.0.0.0", 7471), 0, "another space");
	cr_expect_eq(cm_bind(&p, id[0], "0.0.0.0", 7472), EINVAL, "bound once");
	cr_assert_eq(cm_bind(&p, id[2], "0.0.0.0", 0), 0);
	cr_assert_eq(cm_query(&p, id[2], &a), 0);
	cr_expect_geq(a.route.source.port, 32768);
	cr_assert_eq(cm_create(&p, TCP, &id[1]), 0);
	cr_assert_eq(cm_bind(&p, id[1], "0.0.0.0", 0), 0);
	cr_assert_eq(cm_query(&p, id[1], &b), 0);
	cr_expect_neq(a.route.source.port, b.route.source.port);
	party_end(&p);
}

Test(control_cm, addresses_that_are_not_ours)
{
	struct request_cm_bind q = { 0 };
	struct reply_cm_query r;
	struct party p;
	uint32_t id;

	party_begin(&p);
	cr_assert_eq(cm_create(&p, TCP, &id), 0);
	cr_expect_eq(cm_bind(&p, id, "192.0.2.77", 7471), ENODEV);
	cr_expect_eq(cm_bind(&p, id, "2001:db8::77", 7471), ENODEV);
	q.id = id;
	q.address = address_of("192.0.2.77", 1);
	q.address.family = 6;
	cr_expect_eq(ask(p.fd, COMMAND_CM_BIND, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL),
		     EINVAL, "an IPv4 address that claims to be IPv6");
	q.address.family = 27;
	cr_expect_eq(ask(p.fd, COMMAND_CM_BIND, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL),
		     EAFNOSUPPORT);
	cr_assert_eq(cm_bind(&p, id, "127.0.0.1", 7471), 0, "after all that it is not bound");
	cr_assert_eq(cm_query(&p, id, &r), 0);
	cr_expect_eq(r.route.bound, 1);
	cr_expect(gid_equal(&r.route.source.ip, &r.route.sgid),
		  "loopback stands for the engine's address");
	party_end(&p);
}

Test(control_cm, only_one_listens)
{
	int32_t on = 1;
	uint32_t id[2];
	struct party p;

	party_begin(&p);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(cm_create(&p, TCP, &id[i]), 0);
		cr_assert_eq(cm_option(&p, id[i], 1, &on, 4), 0);
		cr_assert_eq(cm_bind(&p, id[i], "0.0.0.0", 7471), 0);
	}
	cr_expect_eq(cm_listen(&p, id[0], 5), 0);
	cr_expect_eq(cm_listen(&p, id[0], 5), EINVAL, "it listens already");
	cr_expect_eq(cm_listen(&p, id[1], 5), EADDRINUSE);
	cr_assert_eq(cm_destroy(&p, id[0], NULL), 0);
	cr_expect_eq(cm_listen(&p, id[1], 5), 0);
	cr_assert_eq(cm_create(&p, TCP, &id[0]), 0);
	cr_expect_eq(cm_listen(&p, id[0], 0), 0, "without a name it listens somewhere");
	party_end(&p);
}

Test(control_cm, an_own_address_is_resolved)
{
	struct reply_cm_query q;
	struct reply_cm_event e;
	uint32_t id, events;
	struct party p;

	party_begin(&p);
	cr_assert_eq(cm_create(&p, TCP, &id), 0);
	cr_expect_eq(cm_route(&p, id), EINVAL, "no destination yet");
	cr_assert_eq(cm_resolve(&p, id, "127.0.0.1", 7471, 100), 0);
	expect_event(&p, ADDR_RESOLVED, 0, &e);
	cr_expect_eq(e.id, id);
	cr_expect_eq(e.events, 1);
	cr_expect_eq(cm_resolve(&p, id, "127.0.0.1", 7471, 100), EINVAL, "once");
	cr_assert_eq(cm_route(&p, id), 0);
	expect_event(&p, ROUTE_RESOLVED, 0, &e);
	cr_expect_eq(e.events, 2);
	cr_assert_eq(cm_query(&p, id, &q), 0);
	cr_expect_eq(q.route.bound, 1);
	cr_expect_eq(q.route.destination.port, 7471);
	cr_expect_geq(q.route.source.port, 32768);
	cr_expect(gid_equal(&q.route.sgid, &q.route.dgid));
	cr_expect_neq(q.route.path_mtu, 0);
	cr_assert_eq(cm_destroy(&p, id, &events), 0);
	cr_expect_eq(events, 2);
	party_end(&p);
}

/* rdma_resolve_addr(3) does not wait, and the program may read the id's addresses behind it. */
Test(control_cm, the_reply_to_a_resolution_has_the_addresses)
{
	struct request_cm_resolve q = { .timeout = 100,
					.destination = address_of("127.0.0.1", 7471) };
	struct reply_cm_query r;
	struct party p;

	party_begin(&p);
	cr_assert_eq(cm_create(&p, TCP, &q.id), 0);
	cr_assert_eq(
		ask(p.fd, COMMAND_CM_RESOLVE_ADDR, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL),
		0);
	cr_expect_eq(r.route.bound, 1);
	cr_expect_eq(r.route.destination.port, 7471);
	cr_expect_geq(r.route.source.port, 32768);
	expect_event(&p, ADDR_RESOLVED, 0, NULL);
	party_end(&p);
}

Test(control_cm, an_address_without_a_host_is_reported)
{
	struct party p;
	uint32_t id;

	party_begin(&p);
	cr_assert_eq(cm_create(&p, TCP, &id), 0);
	cr_assert_eq(cm_resolve(&p, id, "192.0.2.77", 7471, 100), 0);
	expect_event(&p, ADDR_ERROR, -EHOSTUNREACH, NULL);
	cr_assert_eq(cm_resolve(&p, id, "127.0.0.1", 7471, 100), 0, "and again, elsewhere");
	expect_event(&p, ADDR_RESOLVED, 0, NULL);
	party_end(&p);
}

Test(control_cm, options)
{
	uint8_t octet = 17, over = 32;
	int32_t on = 1, off = 0;
	struct reply_cm_query q;
	struct party p;
	uint32_t id, ud;

	party_begin(&p);
	cr_assert_eq(cm_create(&p, TCP, &id), 0);
	cr_assert_eq(cm_create(&p, UDP, &ud), 0);
	cr_expect_eq(cm_option(&p, id, 0, &octet, 1), 0);
	cr_expect_eq(cm_option(&p, id, 0, &on, 4), EINVAL);
	cr_expect_eq(cm_option(&p, id, 1, &octet, 1), EINVAL);
	cr_expect_eq(cm_option(&p, id, 3, &octet, 1), 0);
	cr_expect_eq(cm_option(&p, id, 3, &over, 1), EINVAL);
	cr_expect_eq(cm_option(&p, ud, 3, &octet, 1), EINVAL);
	cr_expect_eq(cm_option(&p, id, 99, &octet, 1), ENOSYS);
	cr_assert_eq(cm_bind(&p, id, "0.0.0.0", 0), 0);
	cr_expect_eq(cm_option(&p, id, 2, &on, 4), 0);
	cr_expect_eq(cm_option(&p, id, 1, &on, 4), 0);
	cr_expect_eq(cm_option(&p, id, 1, &off, 4), EINVAL, "a port may have been shared by it");
	cr_assert_eq(cm_listen(&p, id, 1), 0);
	cr_expect_eq(cm_option(&p, id, 2, &on, 4), EINVAL);
	cr_assert_eq(cm_query(&p, id, &q), 0);
	cr_expect_eq(q.route.traffic_class, 17);
	cr_expect_eq(q.route.ack_timeout, 17);
	party_end(&p);
}

Test(control_cm, events_move_with_their_id)
{
	struct party p, other;
	struct reply_cm_event e;
	uint32_t id, stays;

	party_begin(&p);
	party_channel(&p, &other);
	cr_assert_eq(cm_create(&p, TCP, &id), 0);
	cr_assert_eq(cm_create(&p, TCP, &stays), 0);
	cr_assert_eq(cm_resolve(&p, id, "127.0.0.1", 7471, 100), 0);
	cr_assert_eq(cm_resolve(&p, stays, "127.0.0.1", 7471, 100), 0);
	cr_assert_eq(cm_migrate(&p, id, other.channel), 0);
	expect_event(&other, ADDR_RESOLVED, 0, &e);
	cr_expect_eq(e.id, id);
	expect_event(&p, ADDR_RESOLVED, 0, &e);
	cr_expect_eq(e.id, stays);
	expect_no_event(&p);
	cr_expect_eq(cm_migrate(&p, id, 12345), EINVAL);
	close(other.events);
	party_end(&p);
}

/* Octets for which the socket has no room come later, one for each event. */
Test(control_cm, many_events_wait)
{
	enum {
		MANY = 2000
	};
	static uint32_t id[MANY];
	struct party p;

	party_begin(&p);
	for (int i = 0; i < MANY; i++) {
		cr_assert_eq(cm_create(&p, TCP, &id[i]), 0);
		cr_assert_eq(cm_resolve(&p, id[i], "127.0.0.1", 7471, 100), 0);
	}
	for (int i = 0; i < MANY; i++) {
		struct reply_cm_event e;

		expect_event(&p, ADDR_RESOLVED, 0, &e);
		cr_assert_eq(e.id, id[i], "in order");
	}
	expect_no_event(&p);
	party_end(&p);
}

/* Events of an id that ends are not looked for among those of all others. */
Test(control_cm, many_ids_with_many_events_end)
{
	enum {
#ifdef UROCE_SANITIZED
		MANY = 256, /* the time is that of the build as it is shipped */
#else
		MANY = 2048,
#endif
		EACH = 32
	};
	static uint32_t id[MANY];
	double began, making, ending;
	struct party p;

	party_begin(&p);
	began = seconds_of_control();
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(cm_create(&p, TCP, &id[i]), 0);
	making = seconds_of_control() - began;
	for (int n = 0; n < EACH; n++)
		for (int i = 0; i < MANY; i++)
			cr_assert_eq(cm_resolve(&p, id[i], "192.0.2.1", 7471, 100), 0);
	began = seconds_of_control();
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(cm_destroy(&p, id[i], NULL), 0);
	ending = seconds_of_control() - began;
	cr_expect_lt(ending, 20 * making, "%f s, and %f s to make them", ending, making);
	party_end(&p);
}

/* Of the program with the most events so many more wait, or less. */
static void more_events_wait(int32_t more)
{
	struct engine *e = (struct engine *)engine;
	struct client_objects *most = NULL;

	pthread_mutex_lock(&e->control_lock);
	for (uint32_t i = 0; i < LIMIT_CLIENTS; i++)
		if (e->client[i] != NULL &&
		    (most == NULL || e->client[i]->objects->cm_events > most->cm_events))
			most = e->client[i]->objects;
	if (most != NULL)
		most->cm_events += (uint32_t)more;
	pthread_mutex_unlock(&e->control_lock);
	cr_assert_not_null(most, "there is no program");
}

/* The number of events that one program may let wait, so that others find room. Before the test all but the last waited. */
Test(control_cm, all_events_of_a_program_are_bounded)
{
	enum {
		LAST = 1000,
		BEFORE = LIMIT_CLIENT_CM_EVENTS - LAST
	};
	struct party p, other;
	uint32_t id, n;
	int error = 0;

	party_begin(&p);
	party_begin(&other);
	cr_assert_eq(cm_create(&p, TCP, &id), 0);
	cr_assert_eq(cm_resolve(&p, id, "192.0.2.1", 7471, 100), 0);
	more_events_wait(BEFORE);
	for (n = 1; n < 2 * LAST && error == 0; n++) {
		if (n % (LIMIT_CM_REPORTS / 2) == 0)
			cr_assert_eq(cm_create(&p, TCP, &id), 0);
		error = cm_resolve(&p, id, "192.0.2.1", 7471, 100);
	}
	cr_expect_eq(error, ENOMEM);
	cr_expect_eq(n, LAST + 1);
	cr_assert_eq(cm_create(&other, TCP, &id), 0);
	cr_expect_eq(cm_resolve(&other, id, "192.0.2.1", 7471, 100), 0);
	expect_event(&p, ADDR_ERROR, -EHOSTUNREACH, NULL);
	cr_assert_eq(cm_create(&p, TCP, &id), 0);
	cr_expect_eq(cm_resolve(&p, id, "192.0.2.1", 7471, 100), 0);
	more_events_wait(-BEFORE);
	party_end(&p);
	party_end(&other);
	expect_counts(0, 0, 0, 0);
}

Test(control_cm, an_id_takes_its_events_along)
{
	struct party p;
	uint32_t id;

	party_begin(&p);
	cr_assert_eq(cm_create(&p, TCP, &id), 0);
	cr_assert_eq(cm_resolve(&p, id, "127.0.0.1", 7471, 100), 0);
	cr_assert_eq(cm_destroy(&p, id, NULL), 0);
	expect_no_event(&p);
	cr_assert_eq(cm_handle(&p, COMMAND_CM_DESTROY_CHANNEL, p.channel), 0);
	party_end(&p);
	expect_counts(0, 0, 0, 0);
}

Test(control_cm, handles_of_others_are_nobody)
{
	struct reply_cm_query q;
	struct reply_cm_event e;
	struct party p, stranger;
	uint32_t id;

	party_begin(&p);
	party_begin(&stranger);
	cr_assert_eq(cm_create(&p, TCP, &id), 0);
	cr_expect_eq(cm_query(&stranger, id, &q), EINVAL);
	cr_expect_eq(cm_bind(&stranger, id, "0.0.0.0", 1), EINVAL);
	cr_expect_eq(cm_listen(&stranger, id, 1), EINVAL);
	cr_expect_eq(cm_resolve(&stranger, id, "127.0.0.1", 1, 1), EINVAL);
	cr_expect_eq(cm_route(&stranger, id), EINVAL);
	cr_expect_eq(cm_migrate(&stranger, id, stranger.channel), EINVAL);
	cr_expect_eq(cm_destroy(&stranger, id, NULL), EINVAL);
	stranger.channel = UINT32_MAX;
	cr_expect_eq(cm_get(&stranger, &e), EINVAL);
	cr_expect_eq(cm_query(&p, id, &q), 0);
	party_end(&stranger);
	party_end(&p);
}

/* A client that dies leaves nothing: its ports are free. */
Test(control_cm, the_end_of_a_client)
{
	int before = count_descriptors();
	struct party p;
	uint32_t id;

	party_begin(&p);
	cr_assert_eq(cm_create(&p, TCP, &id), 0);
	cr_assert_eq(cm_bind(&p, id, "0.0.0.0", 7471), 0);
	cr_assert_eq(cm_listen(&p, id, 1), 0);
	cr_assert_eq(cm_create(&p, TCP, &id), 0);
	cr_assert_eq(cm_resolve(&p, id, "127.0.0.1", 7471, 100), 0);
	party_end(&p);
	expect_counts(0, 0, 0, 0);
	expect_descriptors(before);
	party_begin(&p);
	cr_assert_eq(cm_create(&p, TCP, &id), 0);
	cr_expect_eq(cm_bind(&p, id, "0.0.0.0", 7471), 0);
	party_end(&p);
}

/* ---- what everybody may see ---- */

/* All ids of the engine, part by part; the number of those at a port, and the last of them. */
static uint32_t list_at(int fd, uint16_t port, struct cm_listed *found, uint32_t *total)
{
	struct request_cm_list q = { .from = 0 };
	struct reply_cm_list r;
	uint32_t n = 0;

	*total = 0;
	do {
		cr_assert_eq(ask(fd, COMMAND_CM_LIST, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL),
			     0);
		for (uint32_t i = 0; i < r.count; i++) {
			if (r.id[i].source.port != port)
				continue;
			*found = r.id[i];
			n++;
		}
		*total += r.count;
		cr_assert(r.next == 0 || r.next > q.from, "the list has an end");
		q.from = r.next;
	} while (q.from != 0);
	return n;
}

Test(control_cm, everybody_sees_the_listeners)
{
	struct cm_listed found;
	struct party a, b;
	uint32_t id, total;

	party_begin(&a);
	party_begin(&b);
	cr_assert_eq(cm_create(&a, TCP, &id), 0);
	cr_assert_eq(cm_bind(&a, id, "0.0.0.0", 7777), 0);
	cr_assert_eq(list_at(b.fd, 7777, &found, &total), 1);
	cr_expect_str_eq(found.state, "ADDR_BOUND");
	cr_assert_eq(cm_listen(&a, id, 0), 0);
	cr_assert_eq(list_at(b.fd, 7777, &found, &total), 1);
	cr_expect_eq(total, 1);
	cr_expect_str_eq(found.state, "LISTEN");
	cr_expect_eq(found.port_space, TCP);
	cr_expect_eq(found.source.family, 4);
	cr_expect_eq(found.destination.family, 0);
	cr_expect_eq(found.pid, (uint32_t)getpid());
	cr_assert_eq(cm_destroy(&a, id, NULL), 0);
	cr_expect_eq(list_at(b.fd, 7777, &found, &total), 0);
	party_end(&a);
	party_end(&b);
}

/* More than a message holds, of two programs; with ids that went in between. */
Test(control_cm, a_long_list_comes_in_parts)
{
	struct cm_listed found;
	uint32_t id, total;
	struct party p[2];

	for (uint32_t i = 0; i < 2; i++) {
		party_begin(&p[i]);
		for (uint32_t n = 0; n < 100; n++) {
			cr_assert_eq(cm_create(&p[i], UDP, &id), 0);
			if (n % 3 == 1)
				cr_assert_eq(cm_destroy(&p[i], id, NULL), 0);
		}
	}
	cr_expect_eq(list_at(p[0].fd, 0, &found, &total), 2 * 67);
	cr_expect_eq(total, 2 * 67);
	party_end(&p[0]);
	party_end(&p[1]);
}

Test(control_cm, a_place_behind_the_list_is_its_end)
{
	static const uint64_t place[] = { UINT64_MAX, 1024ull << 32, 0xffffffff, 5 };
	struct reply_cm_list r;
	struct party p;

	party_begin(&p);
	for (uint32_t i = 0; i < ARRAY_SIZE(place); i++) {
		struct request_cm_list q = { .from = place[i] };

		cr_assert_eq(
			ask(p.fd, COMMAND_CM_LIST, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL),
			0);
		cr_expect_eq(r.count, 0);
		cr_expect_eq(r.next, 0);
	}
	party_end(&p);
}
