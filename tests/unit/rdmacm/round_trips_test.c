/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many commands a connection costs its programs, for how many of them they wait, and how often a
 * program looks for events. This program's functions are called instead of libc's.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "protocol/command.h"
#include "verbs/private_node.h"
#include "../verbs/rig/asked.h"
#include "rig.h"

TestSuite(round_trips, .timeout = 60);

static uint32_t looks; /* at messages that stay */

__attribute__((visibility("default"))) ssize_t recv(int fd, void *octets, size_t n, int flags)
{
	if ((flags & MSG_PEEK) != 0)
		looks++;
	return syscall(SYS_recvfrom, fd, octets, n, flags, NULL, NULL);
}

/* What recv is in a library that was built with _FORTIFY_SOURCE. */
__attribute__((visibility("default"))) ssize_t __recv_chk(int fd, void *octets, size_t n,
							  size_t room, int flags);

ssize_t __recv_chk(int fd, void *octets, size_t n, size_t room, int flags)
{
	cr_assert_leq(n, room);
	return recv(fd, octets, n, flags);
}

static uint32_t posted; /* commands for which nobody waits */

/* librdmacm calls this function instead of that of libibverbs. */
__attribute__((visibility("default"))) int uroce_context_post(struct ibv_context *context,
							      enum command what,
							      struct command_request *request,
							      size_t octets)
{
	int (*post)(struct ibv_context *, enum command, struct command_request *, size_t);
	void *symbol = dlsym(RTLD_NEXT, "uroce_context_post");

	cr_assert_not_null(symbol);
	memcpy(&post, &symbol, sizeof(symbol));
	posted++;
	return post(context, what, request, octets);
}

/* The waits for the engine since the last call. */
static uint32_t count(void)
{
	uint32_t n = asked - posted;

	asked = posted = 0;
	return n;
}

static void expect_posted(uint32_t wanted)
{
	cr_expect_eq(posted, wanted, "%u commands were posted, not %u", posted, wanted);
}

struct ends {
	struct rdma_event_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

static void make_qp(struct ends *e, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.qp_type = id->qp_type,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (e->pd == NULL) {
		e->pd = ibv_alloc_pd(id->verbs);
		e->cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
		count();
	}
	init.send_cq = init.recv_cq = e->cq;
	cr_assert_eq(rdma_create_qp(id, e->pd, &init), 0, "%s", strerror(errno));
	cr_expect_eq(id->qp->state, id->qp_type == IBV_QPT_UD ? IBV_QPS_RTS : IBV_QPS_INIT);
}

static void finish(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	cr_assert_eq(rdma_destroy_id(id), 0);
}

Test(round_trips, of_a_connection)
{
	struct ends e = { .channel = open_channel() };
	struct rdma_cm_id *listener, *caller, *called;
	struct rdma_cm_event *event;
	uint16_t port;

	listener = open_listener(e.channel, RDMA_PS_TCP, &port);
	caller = open_caller(e.channel, RDMA_PS_TCP, port);
	make_qp(&e, caller); /* makes what all connections share */
	finish(caller);
	count();

	caller = open_caller(e.channel, RDMA_PS_TCP, port);
	expect_posted(1);
	cr_expect_leq(count(), 2, "create_id, resolve_addr");
	make_qp(&e, caller);
	cr_expect_leq(count(), 1, "create_qp");
	cr_assert_eq(rdma_connect(caller, NULL), 0, "%s", strerror(errno));
	cr_expect_leq(count(), 1, "connect");
	event = expect_event(e.channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	called = event->id;
	cr_expect_eq(count(), 0, "the request says all that there is to know");
	make_qp(&e, called);
	cr_assert_eq(rdma_accept(called, NULL), 0, "%s", strerror(errno));
	rdma_ack_cm_event(event);
	pass_event(e.channel, RDMA_CM_EVENT_ESTABLISHED);
	pass_event(e.channel, RDMA_CM_EVENT_ESTABLISHED);
	cr_expect_leq(count(), 2, "create_qp, accept");
	cr_assert_eq(rdma_disconnect(caller), 0);
	pass_event(e.channel, RDMA_CM_EVENT_DISCONNECTED);
	cr_assert_eq(rdma_disconnect(called), 0);
	pass_end(e.channel, 0);
	expect_posted(2);
	cr_expect_eq(count(), 0, "disconnect, twice");
	looks = 0;
	finish(caller);
	finish(called);
	cr_expect_leq(count(), 4, "destroy_qp and destroy_id, twice");
	cr_expect_eq(looks, 0, "the engine sent no asynchronous event");

	rdma_destroy_id(listener);
	rdma_destroy_event_channel(e.channel);
}

Test(round_trips, of_a_datagram_queue_pair)
{
	struct ends e = { .channel = open_channel() };
	struct rdma_cm_id *id;
	uint16_t port;

	id = open_listener(e.channel, RDMA_PS_UDP, &port);
	make_qp(&e, id);
	finish(id);
	id = open_listener(e.channel, RDMA_PS_UDP, &port);
	count();
	make_qp(&e, id);
	cr_expect_eq(count(), 1);
	finish(id);
	rdma_destroy_event_channel(e.channel);
}

/* The engine sends an asynchronous event, which the program does not take. */
Test(round_trips, a_look_at_an_event_that_waits_is_counted)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
	struct ibv_qp_attr ends = { .qp_state = IBV_QPS_ERR };
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 1, .max_send_sge = 1 } };
	struct pollfd p = { .events = POLLIN };
	struct sockaddr_in a;
	struct ibv_pd *pd;

	cr_assert_eq(rdma_resolve_addr(id, NULL, address(&a, OWN_ADDRESS, 7), 2000), 0);
	pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	pd = ibv_alloc_pd(id->verbs);
	init.send_cq = init.recv_cq = ibv_create_cq(id->verbs, 1, NULL, NULL, 0);
	init.srq = ibv_create_srq(pd, &shared);
	cr_assert_eq(rdma_create_qp(id, pd, &init), 0, "%s", strerror(errno));
	p.fd = id->verbs->async_fd;
	cr_assert_eq(ibv_modify_qp(id->qp, &ends, IBV_QP_STATE), 0);
	cr_assert_eq(poll(&p, 1, WAIT_SECONDS * 1000), 1, "no LAST_WQE_REACHED");
	looks = 0;
	rdma_destroy_qp(id);
	cr_expect_gt(looks, 0);
	ibv_destroy_srq(init.srq);
	ibv_destroy_cq(init.recv_cq);
	ibv_dealloc_pd(pd);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

/* More events at once than are shown without a command. */
Test(round_trips, of_events_that_pile_up)
{
	enum {
		MANY = 4 * LIMIT_CM_SHOWN
	};
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id[MANY];
	struct sockaddr_in a;

	for (uint32_t i = 0; i < MANY; i++) {
		id[i] = open_id(channel, RDMA_PS_TCP);
		cr_assert_eq(rdma_resolve_addr(id[i], NULL, address(&a, OWN_ADDRESS, 7), 2000), 0);
	}
	count();
	for (uint32_t i = 0; i < MANY; i++) {
		struct rdma_cm_event *e = expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);

		cr_expect_eq(e->id, id[i], "in order");
		rdma_ack_cm_event(e);
	}
	cr_expect_leq(count(), MANY / LIMIT_CM_SHOWN);
	cr_expect_not(event_waits(channel));
	for (uint32_t i = 0; i < MANY; i++)
		cr_assert_eq(rdma_destroy_id(id[i]), 0);
	rdma_destroy_event_channel(channel);
}
