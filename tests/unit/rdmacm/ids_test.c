/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids, their channels and events. Runs with an engine at $UROCE_SOCKET. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../verbs/rig/waiting.h"
#include "rig.h"

TestSuite(ids, .timeout = 60);

/* The first calls open the devices, and malloc() keeps some of what they free. */
Test(ids, lists_of_devices_leave_nothing_behind)
{
	size_t used = 0;

	for (int i = 0; i < 64; i++) {
		rdma_free_devices(rdma_get_devices(NULL));
		if (i == 32)
			used = mallinfo2().uordblks;
	}
	cr_expect_eq(mallinfo2().uordblks, used);
}

Test(ids, are_on_the_devices_that_rdma_get_devices_returns)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *a = open_id(channel, RDMA_PS_TCP), *b = open_id(NULL, RDMA_PS_UDP);
	struct ibv_context **devices;
	struct sockaddr_in s;
	int n = -1;

	devices = rdma_get_devices(&n);
	cr_assert_not_null(devices);
	cr_assert_eq(n, 1);
	cr_assert_null(devices[1]);
	cr_assert_null(a->verbs);
	cr_assert_eq(rdma_bind_addr(a, address(&s, OWN_ADDRESS, 0)), 0);
	cr_assert_eq(rdma_bind_addr(b, address(&s, OWN_ADDRESS, 0)), 0);
	cr_expect_eq(a->verbs, devices[0]);
	cr_expect_eq(b->verbs, devices[0]);
	cr_expect_eq(a->port_num, 1);
	cr_expect_eq(a->qp_type, IBV_QPT_RC);
	cr_expect_eq(b->qp_type, IBV_QPT_UD);
	rdma_free_devices(devices);
	rdma_destroy_id(a);
	rdma_destroy_id(b);
	rdma_destroy_event_channel(channel);
}

Test(ids, a_foreign_address_binds_to_no_device)
{
	struct rdma_cm_id *id = open_id(NULL, RDMA_PS_TCP);
	struct sockaddr_in a;

	errno = 0;
	cr_expect_eq(rdma_bind_addr(id, address(&a, "192.0.2.77", 0)), -1);
	cr_expect_eq(errno, ENODEV);
	cr_expect_null(id->verbs);
	rdma_destroy_id(id);
}

Test(ids, a_port_is_chosen_and_exclusive)
{
	struct rdma_cm_id *a = open_id(NULL, RDMA_PS_TCP), *b = open_id(NULL, RDMA_PS_TCP);
	struct sockaddr_in s;
	uint16_t port;

	cr_assert_eq(rdma_bind_addr(a, address(&s, OWN_ADDRESS, 0)), 0);
	port = ntohs(rdma_get_src_port(a));
	cr_expect_neq(port, 0);
	cr_expect_eq(rdma_get_dst_port(a), 0);
	cr_expect_eq(((struct sockaddr_in *)rdma_get_local_addr(a))->sin_port, htons(port));
	errno = 0;
	cr_expect_eq(rdma_bind_addr(b, address(&s, OWN_ADDRESS, port)), -1);
	cr_expect_eq(errno, EADDRINUSE);
	rdma_destroy_id(a);
	cr_expect_eq(rdma_bind_addr(b, address(&s, OWN_ADDRESS, port)), 0, "%s", strerror(errno));
	rdma_destroy_id(b);
}

Test(ids, the_channel_is_readable_while_an_event_waits)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
	struct rdma_cm_event *event;
	struct sockaddr_in a;

	cr_assert_eq(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	cr_expect(!event_waits(channel));
	errno = 0;
	cr_expect_eq(rdma_get_cm_event(channel, &event), -1);
	cr_expect_eq(errno, EAGAIN);
	cr_assert_eq(rdma_resolve_addr(id, NULL, address(&a, OWN_ADDRESS, 7), 2000), 0);
	event = expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_expect_eq(event->id, id);
	cr_expect_eq(event->status, 0);
	cr_expect(!event_waits(channel));
	rdma_ack_cm_event(event);
	cr_expect_not_null(id->verbs);
	cr_expect_eq(rdma_get_dst_port(id), htons(7));
	cr_assert_eq(rdma_resolve_route(id, 2000), 0);
	pass_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cr_assert_eq(id->route.num_paths, 1);
	cr_expect_geq(id->route.path_rec->mtu, IBV_MTU_256);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

/* The program takes the event of the address after it has asked for the route. */
Test(ids, a_route_is_resolved_once)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct sockaddr_in a;

	cr_assert_eq(rdma_resolve_addr(id, NULL, address(&a, OWN_ADDRESS, 7), 2000), 0);
	cr_assert_eq(poll(&p, 1, WAIT_SECONDS * 1000), 1, "no ADDR_RESOLVED");
	cr_assert_eq(rdma_resolve_route(id, 2000), 0, "%s", strerror(errno));
	pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	pass_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	errno = 0;
	cr_expect_eq(rdma_resolve_route(id, 2000), -1);
	cr_expect_eq(errno, EINVAL);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

Test(ids, calls_of_an_id_without_a_channel_wait)
{
	struct rdma_cm_id *id = open_id(NULL, RDMA_PS_TCP);
	struct sockaddr_in a;

	cr_assert_eq(rdma_resolve_addr(id, NULL, address(&a, OWN_ADDRESS, 7), 2000), 0, "%s",
		     strerror(errno));
	cr_assert_not_null(id->event);
	cr_expect_eq(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_resolve_route(id, 2000), 0, "%s", strerror(errno));
	cr_expect_eq(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cr_expect_eq(rdma_destroy_id(id), 0);
}

Test(ids, pending_events_move_with_their_id)
{
	struct rdma_event_channel *from = open_channel(), *to = open_channel();
	struct rdma_cm_id *id = open_id(from, RDMA_PS_TCP), *other = open_id(from, RDMA_PS_TCP);
	struct rdma_cm_event *event;
	struct sockaddr_in a;

	cr_assert_eq(rdma_resolve_addr(id, NULL, address(&a, OWN_ADDRESS, 7), 2000), 0);
	cr_assert_eq(rdma_migrate_id(id, to), 0, "%s", strerror(errno));
	cr_expect_eq(id->channel, to);
	cr_expect(!event_waits(from));
	pass_event(to, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_resolve_addr(other, NULL, address(&a, OWN_ADDRESS, 7), 2000), 0);
	event = expect_event(from, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_expect_eq(event->id, other);
	rdma_ack_cm_event(event);
	/* afterwards it is synchronous */
	cr_assert_eq(rdma_migrate_id(id, NULL), 0);
	cr_assert_eq(rdma_resolve_route(id, 2000), 0, "%s", strerror(errno));
	cr_expect_eq(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	rdma_destroy_id(id);
	rdma_destroy_id(other);
	rdma_destroy_event_channel(from);
	rdma_destroy_event_channel(to);
}

/*
 * Programs poll the channel and then take an event without further checks: they would block if the
 * event had been dropped with its id.
 */
Test(ids, pending_events_are_dropped_with_their_id)
{
	enum {
		MANY = 700 /* more than the socket can hold */
	};
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id[MANY], *stays = open_id(channel, RDMA_PS_TCP);
	struct sockaddr_in a;

	for (int i = 0; i < MANY; i++) {
		id[i] = open_id(channel, RDMA_PS_TCP);
		cr_assert_eq(rdma_resolve_addr(id[i], NULL, address(&a, OWN_ADDRESS, 7), 2000), 0);
	}
	cr_expect(event_waits(channel));
	for (int i = 1; i < MANY; i++)
		cr_assert_eq(rdma_destroy_id(id[i]), 0);
	pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_expect(!event_waits(channel));
	cr_assert_eq(rdma_resolve_addr(stays, NULL, address(&a, OWN_ADDRESS, 7), 2000), 0);
	pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_expect(!event_waits(channel));
	rdma_destroy_id(id[0]);
	rdma_destroy_id(stays);
	rdma_destroy_event_channel(channel);
}

/* Requests go to the channel of the listener. */
Test(ids, pending_requests_move_with_their_listener)
{
	struct rdma_event_channel *from = open_channel(), *to = open_channel(),
				  *own = open_channel();
	struct rdma_cm_id *listener, *caller, *called;
	struct rdma_conn_param p = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_cm_event *event;
	uint16_t port;

	listener = open_listener(from, RDMA_PS_TCP, &port);
	caller = open_caller(own, RDMA_PS_TCP, port);
	give_qp(caller);
	cr_assert_eq(rdma_connect(caller, &p), 0, "%s", strerror(errno));
	cr_assert_eq(
		poll(&(struct pollfd){ .fd = from->fd, .events = POLLIN }, 1, WAIT_SECONDS * 1000),
		1, "the request does not come");
	cr_assert_eq(rdma_migrate_id(listener, to), 0, "%s", strerror(errno));
	event = expect_event(to, RDMA_CM_EVENT_CONNECT_REQUEST);
	called = event->id;
	cr_expect_eq(called->channel, to);
	give_qp(called);
	cr_assert_eq(rdma_accept(called, &p), 0, "%s", strerror(errno));
	rdma_ack_cm_event(event);
	pass_event(own, RDMA_CM_EVENT_ESTABLISHED);
	event = expect_event(to, RDMA_CM_EVENT_ESTABLISHED);
	cr_expect_eq(event->id, called);
	rdma_ack_cm_event(event);
	rdma_destroy_qp(caller);
	rdma_destroy_qp(called);
	rdma_destroy_id(caller);
	rdma_destroy_id(called);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(from);
	rdma_destroy_event_channel(to);
	rdma_destroy_event_channel(own);
}

static int destroy(void *id)
{
	return rdma_destroy_id(id);
}

Test(ids, destroying_waits_for_unacknowledged_events)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
	struct rdma_cm_event *event;
	struct sockaddr_in s;
	struct waiting w;

	cr_assert_eq(rdma_resolve_addr(id, NULL, address(&s, OWN_ADDRESS, 7), 2000), 0);
	event = expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	waiting_begin(&w, "rdma_destroy_id", destroy, id);
	rdma_ack_cm_event(event);
	waiting_end(&w);
	cr_expect_eq(w.result, 0);
	rdma_destroy_event_channel(channel);
}

struct migration {
	struct rdma_cm_id *id;
	struct rdma_event_channel *to;
};

static int migrate(void *argument)
{
	const struct migration *m = argument;

	return rdma_migrate_id(m->id, m->to);
}

Test(ids, moving_waits_for_unacknowledged_events)
{
	struct rdma_event_channel *from = open_channel(), *to = open_channel();
	struct rdma_cm_id *id = open_id(from, RDMA_PS_TCP);
	struct migration m = { id, to };
	struct rdma_cm_event *event;
	struct sockaddr_in s;
	struct waiting w;

	cr_assert_eq(rdma_resolve_addr(id, NULL, address(&s, OWN_ADDRESS, 7), 2000), 0);
	event = expect_event(from, RDMA_CM_EVENT_ADDR_RESOLVED);
	waiting_begin(&w, "rdma_migrate_id", migrate, &m);
	rdma_ack_cm_event(event);
	waiting_end(&w);
	cr_expect_eq(w.result, 0);
	rdma_destroy_event_channel(from);
	cr_assert_eq(rdma_resolve_route(id, 2000), 0);
	pass_event(to, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(to);
}

Test(ids, a_child_process_has_its_own_devices)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
	struct sockaddr_in a;
	pid_t child;
	int status;

	cr_assert_eq(rdma_resolve_addr(id, NULL, address(&a, OWN_ADDRESS, 7), 2000), 0);
	child = fork();
	if (child == 0) {
		struct rdma_event_channel *own = rdma_create_event_channel();
		struct rdma_cm_event *event;
		struct rdma_cm_id *mine;

		if (own == NULL || rdma_create_id(own, &mine, NULL, RDMA_PS_TCP) != 0)
			_exit(1);
		if (rdma_resolve_addr(mine, NULL, (struct sockaddr *)&a, 2000) != 0)
			_exit(2);
		if (rdma_get_cm_event(own, &event) != 0 || event->id != mine)
			_exit(3);
		rdma_ack_cm_event(event);
		/* the child can only destroy the parent's id */
		if (rdma_resolve_route(id, 2000) != -1 || errno != ENODEV)
			_exit(4);
		if (rdma_get_cm_event(channel, &event) != -1 || errno != ENODEV)
			_exit(5);
		_exit(rdma_destroy_id(id) == 0 && rdma_destroy_id(mine) == 0 ? 0 : 6);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "step %d", WEXITSTATUS(status));
	pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_expect_eq(rdma_resolve_route(id, 2000), 0, "%s", strerror(errno));
	pass_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

/* The program has closed all descriptors that it does not know, and then opened a file. */
Test(ids, a_child_process_keeps_a_file_with_the_number_of_a_channel)
{
	struct rdma_event_channel *channel = open_channel();
	int fd = channel->fd, saved = dup(fd), file = open("/dev/null", O_RDONLY), status;
	pid_t child;

	cr_assert_geq(saved, 0);
	cr_assert_eq(dup2(file, fd), fd);
	child = fork();
	if (child == 0)
		_exit(fcntl(fd, F_GETFD) >= 0 ? 0 : 1);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "the child has lost the file: %#x", (unsigned int)status);
	cr_assert_eq(dup2(saved, fd), fd);
	close(saved);
	close(file);
	rdma_destroy_event_channel(channel);
}

/* An id whose event is not acknowledged, so that a thread waits in rdma_destroy_id. */
static struct rdma_cm_event *begin_to_destroy(struct waiting *w, struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
	struct rdma_cm_event *event;
	struct sockaddr_in a;

	cr_assert_eq(rdma_resolve_addr(id, NULL, address(&a, OWN_ADDRESS, 7), 2000), 0);
	event = expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	waiting_begin(w, "rdma_destroy_id", destroy, id);
	return event;
}

static void destroy_one(struct rdma_event_channel *channel)
{
	struct waiting w;

	rdma_ack_cm_event(begin_to_destroy(&w, channel));
	waiting_end(&w);
	cr_assert_eq(w.result, 0);
}

/* The child has none of its parent's threads, also not the one that waits. */
Test(ids, a_child_of_a_process_that_destroys_an_id_destroys_its_own)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_event *event;
	struct waiting w;
	pid_t child;
	int status;

	event = begin_to_destroy(&w, channel);
	child = fork();
	if (child == 0) {
		alarm(WAIT_SECONDS);
		channel = open_channel();
		for (int i = 0; i < 3; i++)
			destroy_one(channel);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "it waits for ever");
	rdma_ack_cm_event(event);
	waiting_end(&w);
	rdma_destroy_event_channel(channel);
}

Test(ids, each_of_many_ids_gets_its_event)
{
	enum {
		MANY = 300
	};
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id[MANY];
	bool came[MANY] = { false };
	struct rdma_cm_event *event;
	struct sockaddr_in a;

	for (intptr_t i = 0; i < MANY; i++) {
		cr_assert_eq(rdma_create_id(channel, &id[i], (void *)i, RDMA_PS_TCP), 0);
		cr_assert_eq(rdma_resolve_addr(id[i], NULL, address(&a, OWN_ADDRESS, 7), 2000), 0);
	}
	for (int i = 0; i < MANY; i++) {
		event = expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
		cr_assert(!came[(intptr_t)event->id->context]);
		came[(intptr_t)event->id->context] = true;
		rdma_ack_cm_event(event);
	}
	cr_expect(!event_waits(channel));
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(rdma_destroy_id(id[i]), 0);
	rdma_destroy_event_channel(channel);
}

/* A thread that waits on a channel while the program destroys it. */
static void *take_event(void *channel)
{
	struct rdma_cm_event *event;

	rdma_get_cm_event(channel, &event);
	return NULL; /* it returned with an error */
}

/*
 * rping destroys a channel that another of its threads waits on, or is about to wait on. With the
 * kernel's rdma_cm that thread never returns.
 */
Test(ids, a_thread_on_a_destroyed_channel_never_returns)
{
	for (int i = 0; i < 200; i++) {
		struct rdma_event_channel *channel = open_channel();
		pthread_t waiter;
		void *result;

		if (i % 2 == 0)
			cr_assert_eq(pthread_create(&waiter, NULL, take_event, channel), 0);
		rdma_destroy_event_channel(channel);
		if (i % 2 == 1)
			cr_assert_eq(pthread_create(&waiter, NULL, take_event, channel), 0);
		rdma_destroy_event_channel(open_channel()); /* other channels are not affected */
		cr_assert_eq(pthread_cancel(waiter), 0);
		cr_assert_eq(pthread_join(waiter, &result), 0);
		cr_assert_eq(result, PTHREAD_CANCELED);
	}
}

/* An event thread as many programs have it. */
static void *take_events(void *channel)
{
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(channel, &event) == 0)
		rdma_ack_cm_event(event);
	return strerror(errno);
}

/* ... also while it takes an event that is dropped with its id. */
Test(ids, a_thread_taking_an_event_of_a_destroyed_channel_never_returns)
{
	enum {
		TAKERS = 8
	};
	struct sockaddr_in a;

	for (int i = 0; i < 100; i++) {
		struct rdma_event_channel *channel = open_channel();
		struct rdma_cm_id *id[TAKERS];
		pthread_t taker[TAKERS];
		void *result;

		for (int t = 0; t < TAKERS; t++) {
			id[t] = open_id(channel, RDMA_PS_TCP);
			cr_assert_eq(pthread_create(&taker[t], NULL, take_events, channel), 0);
		}
		for (int t = 0; t < TAKERS; t++)
			cr_assert_eq(
				rdma_resolve_addr(id[t], NULL, address(&a, OWN_ADDRESS, 7), 2000),
				0);
		for (int t = 0; t < TAKERS; t++)
			cr_assert_eq(rdma_destroy_id(id[t]), 0);
		rdma_destroy_event_channel(channel);
		for (int t = 0; t < TAKERS; t++) {
			cr_assert_eq(pthread_cancel(taker[t]), 0);
			cr_assert_eq(pthread_join(taker[t], &result), 0);
			cr_assert_eq(result, PTHREAD_CANCELED, "%d: %s", i, (const char *)result);
		}
	}
}

/* ::ffff:a.b.c.d is an IPv4 address. A program that uses this form gets it back in this form. */
Test(ids, ipv4_addresses_may_be_written_as_ipv6)
{
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6 }, any = { .sin6_family = AF_INET6 };
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *listener = open_id(channel, RDMA_PS_TCP), *caller;
	struct rdma_conn_param param = { .qp_num = 0x1234 };
	const struct sockaddr_in6 *shown;
	struct rdma_cm_event *event;
	struct sockaddr_in v4;

	cr_assert_eq(inet_pton(AF_INET6, "::ffff:" OWN_ADDRESS, &mapped.sin6_addr), 1);
	cr_assert_eq(rdma_bind_addr(listener, (struct sockaddr *)&mapped), 0, "%s",
		     strerror(errno));
	shown = (const void *)rdma_get_local_addr(listener);
	cr_expect_eq(shown->sin6_family, AF_INET6);
	cr_expect(IN6_IS_ADDR_V4MAPPED(&shown->sin6_addr));
	cr_assert_eq(rdma_listen(listener, 1), 0);
	mapped.sin6_port = rdma_get_src_port(listener);
	cr_assert_neq(mapped.sin6_port, 0);
	caller = open_id(channel, RDMA_PS_TCP);
	errno = 0;
	cr_expect_eq(rdma_bind_addr(caller, address(&v4, OWN_ADDRESS, ntohs(mapped.sin6_port))),
		     -1);
	cr_expect_eq(errno, EADDRINUSE, "it is the same port");
	cr_assert_eq(rdma_resolve_addr(caller, (struct sockaddr *)&any, (struct sockaddr *)&mapped,
				       1000),
		     0, "%s", strerror(errno));
	pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	shown = (const void *)rdma_get_peer_addr(caller);
	cr_expect_eq(shown->sin6_family, AF_INET6);
	cr_expect(IN6_IS_ADDR_V4MAPPED(&shown->sin6_addr));
	cr_expect_eq(shown->sin6_port, mapped.sin6_port);
	cr_assert_eq(rdma_resolve_route(caller, 1000), 0);
	pass_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cr_assert_eq(rdma_connect(caller, &param), 0, "%s", strerror(errno));
	event = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	shown = (const void *)rdma_get_peer_addr(event->id);
	cr_expect_eq(shown->sin6_family, AF_INET6);
	cr_expect(IN6_IS_ADDR_V4MAPPED(&shown->sin6_addr));
	rdma_destroy_id(caller);
	caller = event->id;
	rdma_ack_cm_event(event);
	rdma_destroy_id(caller);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(channel);
}
