/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface gets another MAC address while synchronous ids wait. Runs with the engine of
 * tests/unit/verbs/with_netdev.sh, whose interface is wire0.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define WIRE_ADDRESS "10.77.0.1" /* the engine's */

TestSuite(address_change, .timeout = 60);

/* Returns once an id was told, so that every other one was told, too. */
static void change_mac_address(void)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
	struct sockaddr_in a;

	cr_assert_eq(rdma_bind_addr(id, address(&a, WIRE_ADDRESS, 0)), 0, "%s", strerror(errno));
	cr_assert_eq(system("ip link set wire0 address 02:00:00:00:77:01"), 0);
	pass_event(channel, RDMA_CM_EVENT_ADDR_CHANGE);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

static void *listen_and_accept(void *argument)
{
	struct rdma_cm_id *listener = argument, *id;

	if (rdma_get_request(listener, &id) != 0)
		return (void *)(intptr_t)errno;
	give_qp(id);
	cr_expect_eq(rdma_accept(id, NULL), 0, "%s", strerror(errno));
	cr_expect_eq(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
	rdma_destroy_ep(id);
	return NULL;
}

/* ADDR_CHANGE is a hint (rdma_get_cm_event(3)). It completes no call. */
Test(address_change, completes_no_call)
{
	struct rdma_cm_id *listener = open_id(NULL, RDMA_PS_TCP);
	struct rdma_cm_id *caller = open_id(NULL, RDMA_PS_TCP);
	pthread_t thread;
	void *error;
	struct sockaddr_in a;

	cr_assert_eq(rdma_bind_addr(listener, address(&a, WIRE_ADDRESS, 0)), 0);
	cr_assert_eq(rdma_listen(listener, 1), 0);
	a.sin_port = rdma_get_src_port(listener);
	cr_assert_eq(rdma_resolve_addr(caller, NULL, (struct sockaddr *)&a, 2000), 0);
	change_mac_address();
	cr_expect_eq(rdma_resolve_route(caller, 2000), 0, "%s", strerror(errno));
	cr_expect_eq(caller->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED, "%s",
		     rdma_event_str(caller->event->event));
	give_qp(caller);
	cr_assert_eq(pthread_create(&thread, NULL, listen_and_accept, listener), 0);
	cr_expect_eq(rdma_connect(caller, NULL), 0, "%s", strerror(errno));
	cr_expect_eq(caller->event->event, RDMA_CM_EVENT_ESTABLISHED, "%s",
		     rdma_event_str(caller->event->event));
	cr_assert_eq(pthread_join(thread, &error), 0);
	cr_expect_null(error, "rdma_get_request: %s", strerror((int)(intptr_t)error));
	rdma_destroy_ep(caller);
	rdma_destroy_ep(listener);
}
