/* SPDX-License-Identifier: BSD-3-Clause */
/* Common to tests of librdmacm.so.1 with an engine: channels, addresses, bounded waits. */
#ifndef TESTS_RDMACM_RIG_H
#define TESTS_RDMACM_RIG_H

#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define OWN_ADDRESS  "127.0.0.1" /* the engine's: with_engine.sh */
#define WAIT_SECONDS 20 /* for an event that must come */

/*
 * A loop that waits for what must come ends by the clock: on a busy machine a nap can take much longer than it
 * should.
 */
uint64_t wait_end(void);
/* Naps for 1 ms. False: the end is over. */
bool nap_before(uint64_t end);

/* The call returns -1 with this errno. */
#define FAILS(call, error)                                                                    \
	do {                                                                                  \
		errno = 0;                                                                    \
		cr_expect_eq((long)(call), -1, "%s", #call);                                  \
		cr_expect_eq(errno, error, "%s: %s, not %s", #call, strerror(errno), #error); \
	} while (0)

/* `text` is an IPv4 address such as 127.0.0.1, the port is in host order. */
struct sockaddr *address(struct sockaddr_in *a, const char *text, uint16_t port);

struct rdma_event_channel *open_channel(void);
struct rdma_cm_id *open_id(struct rdma_event_channel *channel, enum rdma_port_space ps);

/* Whether an event is waiting. */
bool event_waits(struct rdma_event_channel *channel);
/*
 * The next event, which must come in time. The caller acknowledges it. `what` names it if it does
 * not come.
 */
struct rdma_cm_event *next_event(struct rdma_event_channel *channel, const char *what);
/* The next event, which must be of this type and come in time. The caller acknowledges it. */
struct rdma_cm_event *expect_event(struct rdma_event_channel *channel,
				   enum rdma_cm_event_type type);
/* The same, and acknowledges it. */
void pass_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
/*
 * Takes DISCONNECTED of the side that disconnects first, and TIMEWAIT_EXIT of `rests` ids. The side
 * that answers enters TIMEWAIT first, so on a busy machine its TIMEWAIT_EXIT may come before the
 * other side's DISCONNECTED.
 */
void pass_end(struct rdma_event_channel *channel, uint32_t rests);

/* A listening id at OWN_ADDRESS, and its port in host order. */
struct rdma_cm_id *open_listener(struct rdma_event_channel *channel, enum rdma_port_space ps,
				 uint16_t *port);
/* An id with a resolved route to that port of OWN_ADDRESS. */
struct rdma_cm_id *open_caller(struct rdma_event_channel *channel, enum rdma_port_space ps,
			       uint16_t port);
void give_qp(struct rdma_cm_id *id);

/* Two connected ids on one channel: RC, queue pairs in RTS. */
struct connection {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *caller, *called;
};

void connection_open(struct connection *c);
/* Disconnects and destroys both. */
void connection_close(struct connection *c);

/* How many descriptors this process has, and a few more. */
unsigned int descriptors(void);

#endif
