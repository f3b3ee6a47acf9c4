/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control commands of the connection manager, which librdmacm.so.1 sends to the engine. The
 * rules of protocol/command.h apply, which includes this file.
 *
 * Ids and event channels are objects of a client (a process), not of a context, because an
 * rdma_cm_id exists before it has a device. Numbers are those of <rdma/rdma_cma.h>.
 *
 * Events wait in the engine in the order in which they happened. For each event the channel's
 * descriptor carries one octet without meaning, so that it is readable while an event waits. A
 * program reads an octet, and then takes the oldest event from the channel's records in the arena
 * (event_ring.h). If there is no record, it sends CM_GET_EVENT, which also shows it the next
 * events. EAGAIN means that the event moved to another channel with its id, or was discarded with
 * its id. A command that takes events out of a channel reports how many of their octets remain
 * there. The program reads those as well before it takes another event. EOF on the descriptor means
 * that the engine is gone.
 */
#ifndef PROTOCOL_COMMAND_CM_H
#define PROTOCOL_COMMAND_CM_H

#include "protocol/command.h"

#define CM_PRIVATE_MAX 256u

/* An IP address and port. Family 0: none. */
struct cm_address {
	struct gid ip; /* an IPv4 address as ::ffff:a.b.c.d; all zero or ::ffff:0.0.0.0: any */
	uint16_t port; /* host order */
	uint8_t family; /* 4, 6, or 0 */
	uint8_t reserved;
	uint32_t scope; /* of a link-local address */
};

/* Comes with one descriptor: the program's end of the channel. */
struct reply_cm_channel {
	struct command_reply h;
	uint32_t handle;
	uint32_t reserved;
	/* of a struct event_page; its records are struct reply_cm_event without `h` and `events` */
	uint64_t ring_offset;
};

#define CM_EVENT_WITHDRAWN UINT32_MAX /* in a record: its event was withdrawn */

struct request_cm_create_id {
	struct command_request h;
	uint32_t channel;
	uint32_t port_space; /* rdma_port_space */
	uint32_t qp_type; /* enum qp_type */
	uint32_t reserved;
};

/*
 * Port 0: the engine chooses one. EADDRINUSE, EADDRNOTAVAIL, ENODEV (no device has the address),
 * EACCES.
 */
struct request_cm_bind {
	struct command_request h;
	uint32_t id;
	uint32_t reserved;
	struct cm_address address;
};

/* Binds the id if it is not bound, and answers at once. An RDMA_CM_EVENT_ADDR_* event follows. */
struct request_cm_resolve {
	struct command_request h;
	uint32_t id;
	uint32_t timeout; /* ms */
	struct cm_address source; /* family 0: the engine chooses */
	struct cm_address destination;
};

/*
 * CM_RESOLVE_ROUTE. EINVAL: the destination is not resolved. Otherwise ROUTE_RESOLVED follows, or
 * ROUTE_ERROR, so that a program that knows the id's state need not wait for the answer.
 */
struct request_cm_timeout {
	struct command_request h;
	uint32_t id;
	uint32_t timeout; /* ms */
};

struct request_cm_listen {
	struct command_request h;
	uint32_t id;
	int32_t backlog;
};

/* rdma_conn_param, and what the library knows about the queue pair. */
struct cm_connect_parameters {
	uint32_t qp; /* handle of the id's queue pair; 0: the program moves it itself */
	uint32_t qpn;
	uint32_t qkey; /* UD, accepting; 0: the default */
	uint32_t ece_vendor; /* 24 bits; 0: no enhanced connection establishment */
	uint32_t ece_options;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint8_t private_length;
	uint8_t reserved;
	uint8_t private_data[CM_PRIVATE_MAX];
};

/* State changes of a queue pair. The selected ones are made in this order. */
enum cm_qp_steps {
	CM_QP_INIT = 1,
	CM_QP_RTR = 2,
	CM_QP_RTS = 4,
	CM_QP_ERR = 8,
	CM_QP_TO_RTS = CM_QP_INIT | CM_QP_RTR | CM_QP_RTS,
};

/*
 * CM_ACCEPT first moves the queue pair (parameters.qp) by these steps, with the responder resources
 * and initiator depth of the parameters (UINT8_MAX: as negotiated). If the steps succeed and the
 * rest fails, the queue pair goes to ERR.
 *
 * For CM_CONNECT the engine takes the steps when the peer accepts, and completes the connection. The
 * event is then ESTABLISHED with the peer's parameters. If the queue pair cannot take the steps, it
 * goes to ERR, the peer's answer is rejected, and the event is CONNECT_ERROR. Without steps the event
 * is CONNECT_RESPONSE, and the program does the same itself.
 */
struct request_cm_connect {
	struct command_request h;
	uint32_t id;
	uint32_t steps; /* enum cm_qp_steps */
	struct cm_connect_parameters parameters;
};

struct request_cm_reject {
	struct command_request h;
	uint32_t id;
	uint32_t reason; /* enum cm_reject_reason: CONSUMER, unless ECE was refused */
	uint32_t private_length;
	uint8_t private_data[CM_PRIVATE_MAX];
};

struct request_cm_notify {
	struct command_request h;
	uint32_t id;
	uint32_t event; /* ibv_event_type: COMM_EST only */
};

struct request_cm_join {
	struct command_request h;
	uint32_t id;
	uint32_t join_flags; /* rdma_cm_join_mc_attr_flags; 1: full member, 2: send only */
	struct cm_address group;
	uint64_t cookie; /* returned in the event */
};

struct request_cm_leave {
	struct command_request h;
	uint32_t id;
	uint32_t join; /* handle of CM_JOIN */
};

/* The id's waiting events move with it. */
struct request_cm_migrate {
	struct command_request h;
	uint32_t id;
	uint32_t channel;
};

/* The reply to CM_DESTROY_ID, CM_MIGRATE (for the old channel) and CM_LEAVE. */
struct reply_cm_gone {
	struct command_reply h;
	uint32_t events; /* events of the id that its program has taken */
	uint32_t octets; /* octets in the id's channel whose events no longer exist */
};

struct request_cm_option {
	struct command_request h;
	uint32_t id;
	uint32_t level; /* RDMA_OPTION_ID, RDMA_OPTION_IB */
	uint32_t name;
	uint32_t length; /* octets of value */
	uint8_t value[64];
};

/* What the engine knows about an id's ends. */
struct cm_route {
	struct cm_address source;
	struct cm_address destination;
	uint32_t bound; /* whether the device and port are known */
	uint32_t gid_index;
	uint32_t pkey;
	uint32_t path_mtu; /* ibv_mtu; 0: no route yet */
	uint8_t traffic_class, hop_limit, sl, ack_timeout;
	uint32_t flow_label;
	struct gid sgid, dgid; /* of the route */
};

struct reply_cm_query {
	struct command_reply h;
	struct cm_route route;
};

struct request_cm_init_qp_attr {
	struct command_request h;
	uint32_t id;
	uint32_t state; /* enum qp_state */
};

struct reply_cm_qp_attr {
	struct command_reply h;
	uint32_t mask; /* enum qp_attribute */
	uint32_t reserved;
	struct qp_attributes attributes;
};

enum cm_then {
	CM_THEN_NOTHING,
	CM_THEN_DISCONNECT, /* then as CM_DISCONNECT, in any case */
};

/* CM_MODIFY_QP does MODIFY_QP with the attributes of CM_INIT_QP_ATTR for each state. */
struct request_cm_modify_qp {
	struct command_request h;
	uint32_t id;
	uint32_t qp; /* handle */
	uint32_t steps; /* enum cm_qp_steps */
	uint32_t then; /* enum cm_then */
};

/* CM_GET_EVENT: the handle is the channel's. EAGAIN: no event is waiting. */
struct reply_cm_event {
	struct command_reply h;
	uint32_t event; /* rdma_cm_event_type */
	int32_t status; /* as rdma_cm_event.status */
	uint32_t id; /* CONNECT_REQUEST: a new one, on the listener's channel */
	uint32_t listen_id; /* CONNECT_REQUEST */
	uint32_t join; /* MULTICAST_JOIN, MULTICAST_ERROR: handle of CM_JOIN */
	uint32_t events; /* events of `id` taken so far (CONNECT_REQUEST: of listen_id) */
	uint64_t cookie; /* of CM_JOIN */
	struct cm_connect_parameters parameters; /* of the peer; UD: its qpn and qkey */
	struct qp_path path; /* UD: of the peer or of the group */
	struct cm_route route; /* ROUTE_RESOLVED; CONNECT_REQUEST: of the new id */
};

/*
 * CM_LIST lists the ids of all programs, as many as fit into one message. Everybody who may connect
 * may ask. `from` is 0 at first and then the last reply's `next`, until that is 0. An id that is
 * created or destroyed meanwhile may or may not be listed. No id is listed twice.
 */
struct request_cm_list {
	struct command_request h;
	uint64_t from;
};

struct cm_listed {
	struct cm_address source; /* family 0: not bound */
	struct cm_address destination; /* family 0: none */
	uint32_t qpn; /* 0: unknown, or hidden from this user */
	uint32_t pid; /* of its program, as the engine sees it; 0: unknown */
	uint16_t port_space; /* rdma_port_space */
	uint8_t qp_type; /* enum qp_type */
	uint8_t reserved;
	char state[20]; /* "LISTEN" */
	char program[32];
	uint32_t sent,
		received; /* messages of the connection manager, for the connection of this id */
	uint32_t timeouts; /* how often such a message did not come in time */
};

#define CM_LISTED_MAX 30u

struct reply_cm_list {
	struct command_reply h;
	uint64_t next; /* 0: the list is complete */
	uint32_t count;
	uint32_t reserved;
	struct cm_listed id[CM_LISTED_MAX];
};

static_assert(sizeof(struct reply_cm_list) <= LIMIT_COMMAND_BYTES, "a part fits one message");

#endif
