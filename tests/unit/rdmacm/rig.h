/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests of librdmacm.so.1 with an engine begin with: channels, addresses, bounded waits. */
#ifndef TESTS_RDMACM_RIG_H
#define TESTS_RDMACM_RIG_H

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define OWN_ADDRESS  "127.0.0.1" /* of the engine: with_engine.sh */
#define WAIT_SECONDS 20 /* for what must come */

/* 127.0.0.1 or what else `text` says, IPv4, and a port in host order. */
struct sockaddr *address(struct sockaddr_in *a, const char *text, uint16_t port);

struct rdma_event_channel *open_channel(void);
struct rdma_cm_id *open_id(struct rdma_event_channel *channel, enum rdma_port_space ps);

/* Whether an event waits now. */
bool event_waits(struct rdma_event_channel *channel);
/* The next event, which must come in time; to be acknowledged. `what`: in case it does not. */
struct rdma_cm_event *next_event(struct rdma_event_channel *channel, const char *what);
/* The next event, which must be this one and come in time; to be acknowledged. */
struct rdma_cm_event *expect_event(struct rdma_event_channel *channel,
				   enum rdma_cm_event_type type);
/* ... acknowledged. */
void pass_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
/*
 * DISCONNECTED of who began to disconnect, and TIMEWAIT_EXIT of `rests` ids: who answered rests from then
 * on, and on a busy machine his rest may be over before the other one hears of the answer.
 */
void pass_end(struct rdma_event_channel *channel, uint32_t rests);

/* An id that listens at the own address, and its port in host order. */
struct rdma_cm_id *open_listener(struct rdma_event_channel *channel, enum rdma_port_space ps,
				 uint16_t *port);
/* An id with a resolved route to that port of the own address. */
struct rdma_cm_id *open_caller(struct rdma_event_channel *channel, enum rdma_port_space ps,
			       uint16_t port);
void give_qp(struct rdma_cm_id *id);

/* Two ids of one channel, connected: RC, queue pairs in RTS. */
struct connection {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *caller, *called;
};

void connection_open(struct connection *c);
/* Disconnects and destroys all of it. */
void connection_close(struct connection *c);

#endif
