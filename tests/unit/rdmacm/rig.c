/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "rig.h"

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

uint64_t wait_end(void)
{
	return now_ms() + WAIT_SECONDS * 1000;
}

bool nap_before(uint64_t end)
{
	const struct timespec nap = { .tv_nsec = 1000000 };

	nanosleep(&nap, NULL);
	return now_ms() < end;
}

struct sockaddr *address(struct sockaddr_in *a, const char *text, uint16_t port)
{
	memset(a, 0, sizeof(*a));
	a->sin_family = AF_INET;
	a->sin_port = htons(port);
	cr_assert_eq(inet_pton(AF_INET, text, &a->sin_addr), 1);
	return (struct sockaddr *)a;
}

struct rdma_event_channel *open_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	cr_assert_not_null(channel, "no event channel: %s", strerror(errno));
	return channel;
}

struct rdma_cm_id *open_id(struct rdma_event_channel *channel, enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	cr_assert_eq(rdma_create_id(channel, &id, NULL, ps), 0, "no id: %s", strerror(errno));
	return id;
}

static bool readable(struct rdma_event_channel *channel, int milliseconds)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };

	return poll(&p, 1, milliseconds) == 1;
}

bool event_waits(struct rdma_event_channel *channel)
{
	return readable(channel, 0);
}

struct rdma_cm_event *next_event(struct rdma_event_channel *channel, const char *what)
{
	struct rdma_cm_event *event;

	cr_assert(readable(channel, WAIT_SECONDS * 1000), "%s did not come", what);
	cr_assert_eq(rdma_get_cm_event(channel, &event), 0, "%s", strerror(errno));
	return event;
}

struct rdma_cm_event *expect_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next_event(channel, rdma_event_str(type));

	cr_assert_eq(event->event, type, "%s (status %d) came instead of %s",
		     rdma_event_str(event->event), event->status, rdma_event_str(type));
	return event;
}

void pass_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	cr_assert_eq(rdma_ack_cm_event(expect_event(channel, type)), 0);
}

struct rdma_cm_id *open_listener(struct rdma_event_channel *channel, enum rdma_port_space ps,
				 uint16_t *port)
{
	struct rdma_cm_id *id = open_id(channel, ps);
	struct sockaddr_in a;

	cr_assert_eq(rdma_bind_addr(id, address(&a, OWN_ADDRESS, 0)), 0, "%s", strerror(errno));
	cr_assert_eq(rdma_listen(id, 8), 0, "%s", strerror(errno));
	*port = ntohs(rdma_get_src_port(id));
	cr_assert_neq(*port, 0);
	return id;
}

struct rdma_cm_id *open_caller(struct rdma_event_channel *channel, enum rdma_port_space ps,
			       uint16_t port)
{
	struct rdma_cm_id *id = open_id(channel, ps);
	struct sockaddr_in a;

	cr_assert_eq(rdma_resolve_addr(id, NULL, address(&a, OWN_ADDRESS, port), 2000), 0, "%s",
		     strerror(errno));
	pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_resolve_route(id, 2000), 0, "%s", strerror(errno));
	pass_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

void give_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = id->qp_type,
		.sq_sig_all = 1,
	};

	cr_assert_eq(rdma_create_qp(id, NULL, &init), 0, "%s", strerror(errno));
}

void connection_open(struct connection *c)
{
	struct rdma_cm_event *event;
	uint16_t port;

	c->channel = open_channel();
	c->listener = open_listener(c->channel, RDMA_PS_TCP, &port);
	c->caller = open_caller(c->channel, RDMA_PS_TCP, port);
	give_qp(c->caller);
	cr_assert_eq(rdma_connect(c->caller, NULL), 0, "%s", strerror(errno));
	event = expect_event(c->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	c->called = event->id;
	give_qp(c->called);
	cr_assert_eq(rdma_accept(c->called, NULL), 0, "%s", strerror(errno));
	rdma_ack_cm_event(event);
	/* each end gets its event when it is ready, in either order */
	pass_event(c->channel, RDMA_CM_EVENT_ESTABLISHED);
	pass_event(c->channel, RDMA_CM_EVENT_ESTABLISHED);
}

void pass_end(struct rdma_event_channel *channel, uint32_t rests)
{
	uint32_t ends = 0, seen = 0;

	while (ends == 0 || seen < rests) {
		struct rdma_cm_event *event = next_event(channel, "the end of a connection");

		cr_assert(event->event == RDMA_CM_EVENT_DISCONNECTED ||
				  event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT,
			  "%s (status %d) at the end of a connection", rdma_event_str(event->event),
			  event->status);
		if (event->event == RDMA_CM_EVENT_DISCONNECTED)
			ends++;
		else
			seen++;
		cr_assert_eq(rdma_ack_cm_event(event), 0);
	}
	cr_assert_eq(ends, 1);
}

void connection_close(struct connection *c)
{
	cr_assert_eq(rdma_disconnect(c->caller), 0, "%s", strerror(errno));
	pass_event(c->channel, RDMA_CM_EVENT_DISCONNECTED);
	cr_assert_eq(rdma_disconnect(c->called), 0, "%s", strerror(errno));
	pass_end(c->channel, 0);
	rdma_destroy_ep(c->called);
	rdma_destroy_ep(c->caller);
	rdma_destroy_ep(c->listener);
	rdma_destroy_event_channel(c->channel);
}

unsigned int descriptors(void)
{
	DIR *list = opendir("/proc/self/fd");
	unsigned int n = 0;

	cr_assert_not_null(list);
	while (readdir(list) != NULL)
		n++;
	closedir(list);
	return n;
}
