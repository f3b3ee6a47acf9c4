/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of the connection manager that speaks its commands (protocol/command_cm.h). */
#ifndef TESTS_ENGINE_CM_RIG_H
#define TESTS_ENGINE_CM_RIG_H

#include "rig/control_rig.h"

#define TCP 0x0106u
#define UDP 0x0111u
#define IB  0x013fu

/* rdma_cm_event_type */
enum {
	ADDR_RESOLVED = 0,
	ADDR_ERROR = 1,
	ROUTE_RESOLVED = 2,
	ROUTE_ERROR = 3,
	CONNECT_REQUEST = 4,
	CONNECT_RESPONSE = 5,
	CONNECT_ERROR = 6,
	UNREACHABLE = 7,
	REJECTED = 8,
	ESTABLISHED = 9,
	DISCONNECTED = 10,
	MULTICAST_JOIN = 12,
	TIMEWAIT_EXIT = 15,
};

struct party {
	int fd; /* socket */
	uint32_t channel;
	int events; /* the channel's descriptor */
};

/* A new client with a channel. */
void party_begin(struct party *p);
/* Another channel of the same client. */
void party_channel(struct party *p, struct party *other);
void party_end(struct party *p);
/* An engine and two clients of it. */
void parties_begin(struct party *server, struct party *client);
void parties_end(struct party *server, struct party *client);

/* ---- 0 or the reply's errno ---- */

int cm_create(struct party *p, uint32_t space, uint32_t *id);
int cm_handle(struct party *p, enum command what, uint32_t handle);
int cm_destroy(struct party *p, uint32_t id, uint32_t *events);
int cm_bind(struct party *p, uint32_t id, const char *address, uint16_t port);
int cm_listen(struct party *p, uint32_t id, int backlog);
int cm_resolve(struct party *p, uint32_t id, const char *address, uint16_t port, uint32_t timeout);
int cm_route(struct party *p, uint32_t id);
int cm_option(struct party *p, uint32_t id, uint32_t name, const void *value, uint32_t length);
int cm_migrate(struct party *p, uint32_t id, uint32_t channel);
int cm_query(struct party *p, uint32_t id, struct reply_cm_query *q);
int cm_connect_as(struct party *p, enum command what, uint32_t id, uint32_t qpn,
		  const char *private_data);
int cm_reject_with(struct party *p, uint32_t id, const char *private_data);
int cm_attributes_of(struct party *p, uint32_t id, uint32_t state, struct reply_cm_qp_attr *r);
int cm_get(struct party *p, struct reply_cm_event *e);

/* The next event, which must be this one; the test fails if it does not come. */
void expect_event(struct party *p, uint32_t wanted, int status, struct reply_cm_event *e);
/* An id that listens at a port, wherever. */
uint32_t listener_at(struct party *p, uint32_t space, uint16_t port, int backlog);
/* An id with a route to a port of the engine's. */
uint32_t id_towards(struct party *p, uint32_t space, uint16_t port);
/* No event comes: none is there, and none follows from what has been done so far. */
void expect_no_event(struct party *p);

/* "10.1.0.2" or "fe80::1", NULL: none. */
struct cm_address address_of(const char *text, uint16_t port);
/* An address of the engine's, of a family. */
const char *own_address(void);

#endif
