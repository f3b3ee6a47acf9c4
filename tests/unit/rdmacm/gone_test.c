/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine dies under a program that uses rdma_cm. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <string.h>
#include <time.h>

#include "../verbs/mortal_engine.h"
#include "rig.h"

TestSuite(gone, .init = mortal_engine_begin, .fini = mortal_engine_end, .timeout = 120);

Test(gone, every_id_is_told_once)
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

Test(gone, who_waits_is_woken)
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

/* 0 or the error of the socket, as soon as there is one. */
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

/* Nobody takes its connections: it hears of it all the same, and once. */
Test(gone, a_full_listener_hears_of_it)
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

/* Nothing can be sent any more, and nobody waits for that. */
Test(gone, datagrams_are_refused)
{
	int s = rsocket(AF_INET, SOCK_DGRAM, 0), peer = rsocket(AF_INET, SOCK_DGRAM, 0);
	socklen_t length = sizeof(struct sockaddr_in);
	struct pollfd p = { .fd = peer, .events = POLLIN };
	struct timespec before, after;
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
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	cr_expect_eq(rpoll(&p, 1, 300), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	cr_expect_lt((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec,
		     150000000, "who waits sleeps");
	cr_expect_eq(rclose(s), 0);
	cr_expect_eq(rclose(peer), 0);
}
