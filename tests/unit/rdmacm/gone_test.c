/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine dies under a program that uses rdma_cm. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <string.h>
#include <time.h>

#include "../verbs/rig/mortal_engine.h"
#include "../verbs/rig/waiting.h"
#include "rig.h"

TestSuite(gone, .init = mortal_engine_begin, .fini = mortal_engine_end, .timeout = 120);

Test(gone, every_id_gets_one_event)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id[3], *told[3];
	struct rdma_cm_event *event;
	uint16_t port;

	for (int i = 0; i < 3; i++)
		id[i] = open_listener(channel, RDMA_PS_TCP, &port);
	mortal_engine_kill();
	for (int i = 0; i < 3; i++) {
		event = expect_event(channel, RDMA_CM_EVENT_DEVICE_REMOVAL);
		told[i] = event->id;
		rdma_ack_cm_event(event);
	}
	cr_expect(told[0] != told[1] && told[0] != told[2] && told[1] != told[2]);
	cr_assert_eq(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	cr_expect_eq(rdma_get_cm_event(channel, &event), -1);
	cr_expect_eq(errno, EAGAIN);
	cr_expect(!event_waits(channel), "a loop over the descriptor would spin");
	errno = 0;
	cr_expect_eq(rdma_resolve_route(id[0], 2000), -1);
	cr_expect_eq(errno, ENODEV);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(rdma_destroy_id(id[i]), 0);
	rdma_destroy_event_channel(channel);
}

static void *wait_for_request(void *listener)
{
	struct rdma_cm_id *id;

	return rdma_get_request(listener, &id) == 0 ? (void *)id : (void *)(intptr_t)errno;
}

Test(gone, a_waiting_thread_is_woken)
{
	struct rdma_cm_id *listener = open_id(NULL, RDMA_PS_TCP), *id;
	struct sockaddr_in a;
	pthread_t thread;
	void *error;

	cr_assert_eq(rdma_bind_addr(listener, address(&a, OWN_ADDRESS, 0)), 0);
	cr_assert_eq(rdma_listen(listener, 1), 0);
	cr_assert_eq(pthread_create(&thread, NULL, wait_for_request, listener), 0);
	mortal_engine_kill();
	pthread_join(thread, &error);
	cr_expect_eq((intptr_t)error, ENODEV);
	cr_expect_eq(rdma_get_request(listener, &id), -1);
	cr_expect_eq(errno, ENODEV);
	cr_expect_eq(rdma_destroy_id(listener), 0);
}

Test(gone, a_new_engine_is_found)
{
	struct rdma_event_channel *old = open_channel(), *channel;
	struct rdma_cm_id *id = open_id(old, RDMA_PS_TCP), *next;
	struct ibv_context **devices;
	struct sockaddr_in a;
	int n;

	cr_assert_eq(rdma_bind_addr(id, address(&a, OWN_ADDRESS, 0)), 0);
	mortal_engine_kill();
	mortal_engine_start();
	channel = open_channel();
	next = open_id(channel, RDMA_PS_TCP);
	cr_expect_eq(rdma_bind_addr(next, address(&a, OWN_ADDRESS, 0)), 0, "%s", strerror(errno));
	devices = rdma_get_devices(&n);
	cr_assert_eq(n, 1);
	cr_expect_eq(devices[0], next->verbs);
	cr_expect_neq(devices[0], id->verbs);
	rdma_free_devices(devices);
	rdma_destroy_id(id);
	rdma_destroy_id(next);
	rdma_destroy_event_channel(old);
	rdma_destroy_event_channel(channel);
}

/* 0, or the socket's error once there is one. */
static int error_of(int socket)
{
	const struct timespec nap = { .tv_nsec = 10000000 };
	socklen_t length = sizeof(int);
	int error = 0;

	for (int tries = 0; error == 0 && tries < 100 * WAIT_SECONDS; tries++) {
		cr_assert_eq(rgetsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length), 0);
		if (error == 0)
			nanosleep(&nap, NULL);
	}
	return error;
}

/* No thread takes its connections, but it gets the error, once. */
Test(gone, a_full_listener_gets_the_error)
{
	int listener = rsocket(AF_INET, SOCK_STREAM, 0), caller = rsocket(AF_INET, SOCK_STREAM, 0);
	socklen_t length = sizeof(struct sockaddr_in);
	struct pollfd p = { .fd = listener, .events = POLLIN };
	struct sockaddr_in a;

	cr_assert_eq(rbind(listener, address(&a, OWN_ADDRESS, 0), length), 0);
	cr_assert_eq(rlisten(listener, 1), 0);
	cr_assert_eq(rgetsockname(listener, (struct sockaddr *)&a, &length), 0);
	cr_assert_eq(rconnect(caller, (struct sockaddr *)&a, length), 0, "%s", strerror(errno));
	cr_assert_eq(rpoll(&p, 1, WAIT_SECONDS * 1000), 1);
	mortal_engine_kill();
	cr_expect_eq(error_of(caller), ENODEV);
	cr_expect_eq(error_of(listener), ENODEV);
	cr_expect_eq(rclose(caller), 0);
	cr_expect_eq(rclose(listener), 0);
}

/* Sends fail at once instead of blocking. */
Test(gone, sending_datagrams_fails)
{
	int s = rsocket(AF_INET, SOCK_DGRAM, 0), peer = rsocket(AF_INET, SOCK_DGRAM, 0);
	socklen_t length = sizeof(struct sockaddr_in);
	struct pollfd p = { .fd = peer, .events = POLLIN };
	struct sockaddr_in a;
	ssize_t sent = 1;
	char octet = 0;

	cr_assert_eq(rbind(peer, address(&a, OWN_ADDRESS, 0), length), 0);
	cr_assert_eq(rgetsockname(peer, (struct sockaddr *)&a, &length), 0);
	cr_assert_eq(rconnect(s, (struct sockaddr *)&a, length), 0);
	for (int i = 0; i < 100; i++) {
		cr_assert_eq(rsend(s, &octet, 1, 0), 1);
		cr_assert_eq(rrecv(peer, &octet, 1, 0), 1);
	}
	mortal_engine_kill();
	for (int i = 0; i < 10000 && sent == 1; i++)
		sent = rsend(s, &octet, 1, 0);
	cr_expect_eq(sent, -1);
	cr_expect_eq(errno, ENODEV, "%s", strerror(errno));
	cr_expect_eq(rpoll(&p, 1, WAIT_SECONDS * 1000), 1);
	cr_expect_eq(p.revents, POLLIN | POLLERR);
	for (int i = 0; i < 3; i++) {
		errno = 0;
		cr_expect_eq(rrecv(peer, &octet, 1, 0), -1);
		cr_expect_eq(errno, ENODEV, "%s", strerror(errno));
	}
	cr_expect_eq(rclose(s), 0);
	cr_expect_eq(rclose(peer), 0);
}

/* ---- calls that block when the engine dies ---- */

static void expect_gone(struct waiting *w)
{
	waiting_end(w);
	cr_expect_eq(w->result, -1, "%s succeeded: %d", w->what, w->result);
	cr_expect_eq(w->error, ENODEV, "%s: %s", w->what, strerror(w->error));
}

static int get_event(void *channel)
{
	struct rdma_cm_event *event;
	int type;

	if (rdma_get_cm_event(channel, &event) != 0)
		return -1;
	type = event->event;
	rdma_ack_cm_event(event);
	return type;
}

Test(gone, threads_blocked_for_events_return)
{
	struct rdma_event_channel *empty = open_channel(), *channel = open_channel();
	struct waiting alone, w[3];
	struct rdma_cm_id *id;
	uint16_t port;
	int told = 0;

	id = open_listener(channel, RDMA_PS_TCP, &port);
	waiting_begin(&alone, "rdma_get_cm_event without an id", get_event, empty);
	for (int i = 0; i < 3; i++)
		waiting_begin(&w[i], "rdma_get_cm_event", get_event, channel);
	mortal_engine_kill();
	expect_gone(&alone);
	for (int i = 0; i < 3; i++) {
		waiting_end(&w[i]);
		told += w[i].result == RDMA_CM_EVENT_DEVICE_REMOVAL;
		cr_expect(w[i].result == RDMA_CM_EVENT_DEVICE_REMOVAL || w[i].error == ENODEV,
			  "%d, %s", w[i].result, strerror(w[i].error));
	}
	cr_expect_eq(told, 1, "one id got %d events", told);
	waiting_start(&alone, "another rdma_get_cm_event", get_event, channel);
	expect_gone(&alone);
	cr_expect(!event_waits(channel), "a loop over the descriptor would spin");
	cr_expect_eq(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(empty);
	rdma_destroy_event_channel(channel);
}

static int get_recv_comp(void *id)
{
	struct ibv_wc wc;
	int n = rdma_get_recv_comp(id, &wc);

	return n == 1 ? (int)wc.status : n;
}

static int get_send_comp(void *id)
{
	struct ibv_wc wc;
	int n = rdma_get_send_comp(id, &wc);

	return n == 1 ? (int)wc.status : n;
}

/* rdma_verbs.h polls, arms, polls again and waits on the channel, until there is a completion. */
Test(gone, threads_blocked_for_completions_return)
{
	static uint8_t buffer[64];
	struct waiting sends, receives;
	struct connection c;
	struct ibv_mr *mr;

	connection_open(&c);
	mr = rdma_reg_msgs(c.called, buffer, sizeof(buffer));
	cr_assert_not_null(mr);
	cr_assert_eq(rdma_post_recv(c.called, NULL, buffer, sizeof(buffer), mr), 0);
	waiting_begin(&receives, "rdma_get_recv_comp", get_recv_comp, c.called);
	waiting_begin(&sends, "rdma_get_send_comp", get_send_comp, c.called);
	mortal_engine_kill();
	waiting_end(&receives);
	cr_expect_eq(receives.result, IBV_WC_WR_FLUSH_ERR, "%d", receives.result);
	expect_gone(&sends);
	waiting_start(&receives, "another rdma_get_recv_comp", get_recv_comp, c.called);
	expect_gone(&receives);
}

static int accept_one(void *socket)
{
	return raccept(*(int *)socket, NULL, NULL);
}

static int receive_octet(void *socket)
{
	char octet;

	return (int)rrecv(*(int *)socket, &octet, 1, 0);
}

/* Sends until there is no room, and then blocks. */
static int send_octets(void *socket)
{
	static const char octets[2000];
	ssize_t n;

	do
		n = rsend(*(int *)socket, octets, sizeof(octets), 0);
	while (n > 0);
	return (int)n;
}

static int shut_down(void *socket)
{
	return rshutdown(*(int *)socket, SHUT_RDWR);
}

static int poll_in(void *socket)
{
	struct pollfd p = { .fd = *(int *)socket, .events = POLLIN };
	int n = rpoll(&p, 1, -1);

	return n == 1 ? p.revents : n;
}

static int select_in(void *socket)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(*(int *)socket, &set);
	return rselect(*(int *)socket + 1, &set, NULL, NULL, NULL);
}

static int new_listener(struct sockaddr_in *a)
{
	int listener = rsocket(AF_INET, SOCK_STREAM, 0);
	socklen_t length = sizeof(*a);

	cr_assert_eq(rbind(listener, address(a, OWN_ADDRESS, 0), length), 0);
	cr_assert_eq(rlisten(listener, 4), 0);
	cr_assert_eq(rgetsockname(listener, (struct sockaddr *)a, &length), 0);
	return listener;
}

#define CALLERS 4 /* what each of them connects to has two descriptors */

Test(gone, connections_that_nobody_accepted_are_closed)
{
	const struct timespec nap = { .tv_nsec = 10000000 };
	struct sockaddr_in a;
	int listener = new_listener(&a), caller[CALLERS];
	unsigned int limit = descriptors() + CALLERS; /* the library may keep some of its own */

	for (int i = 0; i < CALLERS; i++) {
		caller[i] = rsocket(AF_INET, SOCK_STREAM, 0);
		cr_assert_eq(rconnect(caller[i], (struct sockaddr *)&a, sizeof(a)), 0, "%s",
			     strerror(errno));
	}
	mortal_engine_kill();
	cr_expect_eq(error_of(listener), ENODEV);
	for (int i = 0; i < CALLERS; i++)
		cr_expect_eq(rclose(caller[i]), 0);
	cr_expect_eq(rclose(listener), 0);
	/* the last one may not have been established when the engine ended */
	for (int tries = 0; descriptors() >= limit && tries < 100 * WAIT_SECONDS; tries++)
		nanosleep(&nap, NULL);
	cr_expect_lt(descriptors(), limit);
}

/* What the peer's engine has acknowledged can be read, even if no call has looked at it by then. */
Test(gone, received_data_can_be_read)
{
	int listener, caller = rsocket(AF_INET, SOCK_STREAM, 0), called;
	char octets[100] = { 0 };
	struct sockaddr_in a;

	listener = new_listener(&a);
	cr_assert_eq(rconnect(caller, (struct sockaddr *)&a, sizeof(a)), 0, "%s", strerror(errno));
	called = raccept(listener, NULL, NULL);
	cr_assert_geq(called, 0, "%s", strerror(errno));
	cr_assert_eq(rsend(caller, octets, sizeof(octets), 0), sizeof(octets));
	cr_assert_eq(rshutdown(caller, SHUT_WR), 0, "%s", strerror(errno));
	mortal_engine_kill();
	cr_expect_eq(error_of(called), ENODEV);
	cr_expect_eq(rrecv(called, octets, sizeof(octets), 0), sizeof(octets));
	cr_expect_eq(rclose(called), 0);
	cr_expect_eq(rclose(caller), 0);
	cr_expect_eq(rclose(listener), 0);
}

Test(gone, blocked_stream_calls_return)
{
	int listener, caller = rsocket(AF_INET, SOCK_STREAM, 0), called;
	struct waiting accepts, receives, sends, polls, selects, listens;
	struct sockaddr_in a;

	listener = new_listener(&a);
	cr_assert_eq(rconnect(caller, (struct sockaddr *)&a, sizeof(a)), 0, "%s", strerror(errno));
	called = raccept(listener, NULL, NULL);
	cr_assert_geq(called, 0, "%s", strerror(errno));
	waiting_begin(&accepts, "raccept", accept_one, &listener);
	waiting_begin(&listens, "rpoll of a listener", poll_in, &listener);
	waiting_begin(&receives, "rrecv", receive_octet, &caller);
	waiting_begin(&polls, "rpoll", poll_in, &caller);
	waiting_begin(&selects, "rselect", select_in, &caller);
	waiting_begin(&sends, "rsend", send_octets, &caller);
	mortal_engine_kill();
	expect_gone(&accepts);
	waiting_end(&listens);
	cr_expect(listens.result & (POLLIN | POLLERR), "%x", listens.result);
	waiting_end(&polls);
	cr_expect(polls.result & POLLERR, "%x", polls.result);
	waiting_end(&selects);
	cr_expect_eq(selects.result, 1);
	/* one of the two gets the error, the other sees the end of the stream */
	waiting_end(&receives);
	waiting_end(&sends);
	cr_expect(receives.result <= 0 && sends.result == -1);
	cr_expect(receives.result == 0 || receives.error == ENODEV, "%s", strerror(receives.error));
	cr_expect(sends.error == ENODEV || sends.error == ECONNRESET, "%s", strerror(sends.error));
	cr_expect_eq(rclose(called), 0);
	cr_expect_eq(rclose(caller), 0);
	cr_expect_eq(rclose(listener), 0);
}

static struct sockaddr_in nobody_answers;

static int connect_there(void *socket)
{
	return rconnect(*(int *)socket, (struct sockaddr *)&nobody_answers, sizeof(nobody_answers));
}

/* The listener's program never accepts. */
Test(gone, a_blocked_connect_returns)
{
	struct rdma_event_channel *channel = open_channel();
	int caller = rsocket(AF_INET, SOCK_STREAM, 0);
	struct rdma_cm_id *listener;
	struct waiting connects;
	uint16_t port;

	listener = open_listener(channel, RDMA_PS_TCP, &port);
	address(&nobody_answers, OWN_ADDRESS, port);
	waiting_begin(&connects, "rconnect", connect_there, &caller);
	mortal_engine_kill();
	expect_gone(&connects);
	cr_expect_eq(rclose(caller), 0);
	cr_expect_eq(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(channel);
}

/* The peer does not read, so the end of the stream waits for a credit. */
Test(gone, a_blocked_close_of_a_stream_returns)
{
	int listener, caller = rsocket(AF_INET, SOCK_STREAM, 0);
	struct waiting end;
	struct sockaddr_in a;

	listener = new_listener(&a);
	cr_assert_eq(rconnect(caller, (struct sockaddr *)&a, sizeof(a)), 0, "%s", strerror(errno));
	mortal_engine_kill();
	waiting_start(&end, "rshutdown", shut_down, &caller);
	waiting_end(&end);
	cr_expect_eq(rclose(caller), 0);
	cr_expect_eq(rclose(listener), 0);
}

Test(gone, blocked_datagram_calls_return)
{
	int s = rsocket(AF_INET, SOCK_DGRAM, 0), peer = rsocket(AF_INET, SOCK_DGRAM, 0);
	socklen_t length = sizeof(struct sockaddr_in);
	struct waiting receives, polls, sends;
	struct sockaddr_in a;
	char octet = 0;

	cr_assert_eq(rbind(peer, address(&a, OWN_ADDRESS, 0), length), 0);
	cr_assert_eq(rgetsockname(peer, (struct sockaddr *)&a, &length), 0);
	cr_assert_eq(rconnect(s, (struct sockaddr *)&a, length), 0);
	for (int i = 0; i < 100; i++) {
		cr_assert_eq(rsend(s, &octet, 1, 0), 1);
		cr_assert_eq(rrecv(peer, &octet, 1, 0), 1);
	}
	waiting_begin(&receives, "rrecv of datagrams", receive_octet, &peer);
	waiting_begin(&polls, "rpoll for datagrams", poll_in, &s);
	mortal_engine_kill();
	expect_gone(&receives);
	waiting_end(&polls);
	cr_expect(polls.result & POLLERR, "%x", polls.result);
	waiting_start(&sends, "rsend of datagrams", send_octets, &s);
	expect_gone(&sends);
	cr_expect_eq(rclose(s), 0);
	cr_expect_eq(rclose(peer), 0);
}
