/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager in the control path (command_cm.h has the commands). Everything here
 * happens under engine.control_lock.
 *
 *	cm_ids.c	ids of programs: what they are bound to, their end
 *	cm_address.c	which own address is meant, and the path to others
 *	cm_ports.c	port spaces, as bind(2)
 *	cm_resolve.c	ids that wait for a next hop
 *	cm_event.c	events, a queue for each channel
 *	cm_ring.c	... and its beginning, in memory that the program sees
 *	cm_rx.c		lcores: datagrams for queue pair 1
 *	cm_mad.c	messages in and out
 *	cm_request.c	messages that request a connection or belong to one
 *	cm_tables.c	finds the connection that a message names
 *	cm_timer.c	deadlines of connections
 *	cm_link.c	connections: effects of each step, and their end
 *	cm_report.c	events of connections for programs
 *	cm_attributes.c	attributes of a connection's queue pair
 *	cmd_cm_*.c	the commands
 */
#ifndef CONTROL_CM_MANAGER_H
#define CONTROL_CM_MANAGER_H

#include "base/heap.h"
#include "cm/cm.h"
#include "protocol/command_cm.h"
#include "control/cm/cm_control.h"
#include "control/control.h"
#include "queue/event_ring.h"

#define CM_BUCKETS     4096u
#define CM_UDP_QKEY    0x01234567u /* rdma_cma.h: RDMA_UDP_QKEY, protocol-map 196 */
#define CM_HOP_LIMIT   64u
#define CM_PKEY	       0xffffu
#define CM_ACK_TIMEOUT 17u /* default: 537 ms, as Linux since 5.18 */

#define CM_SOURCE_MAX (LIMIT_CM_LINKS / 2) /* connections that one host may request */
#define CM_EVERY      TIME_MS /* between ticks while messages wait */

/* rdma_cm_event_type */
enum cm_event_type {
	CM_TYPE_ADDR_RESOLVED = 0,
	CM_TYPE_ADDR_ERROR = 1,
	CM_TYPE_ROUTE_RESOLVED = 2,
	CM_TYPE_ROUTE_ERROR = 3,
	CM_TYPE_CONNECT_REQUEST = 4,
	CM_TYPE_CONNECT_RESPONSE = 5,
	CM_TYPE_CONNECT_ERROR = 6,
	CM_TYPE_UNREACHABLE = 7,
	CM_TYPE_REJECTED = 8,
	CM_TYPE_ESTABLISHED = 9,
	CM_TYPE_DISCONNECTED = 10,
	CM_TYPE_MULTICAST_JOIN = 12,
	CM_TYPE_ADDR_CHANGE = 14,
	CM_TYPE_TIMEWAIT_EXIT = 15,
};

/* An event that waits in a channel. */
struct cm_report {
	TAILQ_ENTRY(cm_report) link;
	TAILQ_ENTRY(cm_report) of_link;
	struct cm_id *of; /* counts the event and owns it */
	struct cm_id *made; /* CONNECT_REQUEST: the new id, which its program does not know yet */
	bool is_shown; /* in the record of this number */
	uint32_t record;
	struct reply_cm_event what; /* without its header and `events` */
};

TAILQ_HEAD(cm_report_list, cm_report);

struct cm_channel {
	struct client *client;
	uint32_t handle;
	uint32_t ids; /* that use it */
	int fd; /* the engine's end, non-blocking */
	uint32_t owed; /* octets that found no room; each is sent later */
	uint32_t stale; /* octets in the socket whose events are gone: the next reply says so */
	struct cm_report_list reports;
	uint64_t ring_offset;
	struct event_page *ring;
	uint32_t posted, taken; /* records, modulo 2^32 */
	struct cm_report *shown[LIMIT_CM_SHOWN]; /* by record; NULL: withdrawn */
	struct cm_report *unshown; /* the first that is in no record; NULL: all are */
};

enum cm_id_state {
	CM_ID_FRESH,
	CM_ID_BOUND,
	CM_ID_RESOLVING, /* in cm_manager.resolving */
	CM_ID_RESOLVED,
	CM_ID_ROUTED,
	CM_ID_LISTENING,
	CM_ID_CONNECTED, /* has, or had, a connection; final */
};

/* The engine's side of a program's struct rdma_cm_id. */
struct cm_id {
	struct client *client;
	struct cm_channel *channel;
	uint32_t handle;
	uint16_t space; /* enum cm_port_space */
	uint8_t qp_type; /* enum qp_type */
	uint8_t state; /* enum cm_id_state */
	bool has_port; /* in cm_manager.ports */
	bool is_bound; /* gid_index is known */
	bool local_only; /* bound to a loopback address */
	bool reuse_address; /* RDMA_OPTION_ID_REUSEADDR */
	bool family_only; /* RDMA_OPTION_ID_AFONLY */
	uint8_t tos;
	uint8_t ack_timeout; /* RDMA_OPTION_ID_ACK_TIMEOUT; 0: not set */
	uint8_t gid_index;
	uint8_t path_mtu; /* 0: no route yet */
	struct cm_address source; /* family 0: not bound */
	struct cm_address destination;
	nanotime deadline; /* RESOLVING */
	uint32_t backlog; /* LISTENING: how many more requests may wait in the channel */
	struct cm_report_list reports; /* its events that wait in its channel */
	uint32_t waiting; /* length of reports */
	uint32_t handed; /* events that its program has taken */
	uint32_t joins;
	struct cm_link *connection; /* NULL: none */
	struct cm_report *request; /* CONNECT_REQUEST that announces it, until taken */
	LIST_HEAD(, cm_join) groups;
	LIST_ENTRY(cm_id) port_link;
	TAILQ_ENTRY(cm_id) resolving_link;
};

/*
 * Membership of an id in a group. ATTACH_MCAST decides what queue pairs receive. A join reports the
 * group on the link while it lasts, and tells the program where to send and with which Q_Key.
 */
struct cm_join {
	uint32_t handle;
	bool reported; /* by neighbour_agent_join: full members only */
	struct gid group;
	struct cm_id *id;
	LIST_ENTRY(cm_join) link;
};

/* A connection, or a SIDR exchange. It may outlive its id. */
struct cm_link {
	struct cm_connection core;
	struct cm_id *id; /* NULL: its id is gone */
	struct user *user; /* to whom it is charged */
	bool datagram;
	bool passive;
	bool from_afar; /* a host behind the port requested it: in cm_manager.by_source */
	bool has_mac;
	bool stands; /* it is in the tables */
	bool by_local; /* ... of own ids */
	bool by_peer; /* ... of peers' ids */
	bool by_peer_qpn; /* ... of peers' queue pair numbers */
	bool by_qpn; /* ... of own queue pair numbers */
	struct mac mac; /* the last next hop, or the sender of its first message */
	struct qp_path path; /* to the peer */
	uint32_t own_psn; /* of the peer's first packet: rq_psn */
	uint8_t retry_count; /* of the active side, as the next three */
	uint32_t steps; /* enum cm_qp_steps, taken when the peer accepts; 0: the program does it */
	uint32_t qp; /* by this queue pair (its handle) */
	int start_error; /* 0, or the errno with which it failed */
	uint32_t sent, received, timeouts; /* messages; waits for the peer's that were in vain */
	struct heap_node timer; /* in cm_manager.timers */
	LIST_ENTRY(cm_link) all_link;
	LIST_ENTRY(cm_link) local_link;
	LIST_ENTRY(cm_link) remote_link;
	LIST_ENTRY(cm_link) remote_qpn_link;
	LIST_ENTRY(cm_link) local_qpn_link;
};

LIST_HEAD(cm_id_list, cm_id);
LIST_HEAD(cm_link_list, cm_link);

/* A message that came in. */
struct cm_input {
	struct gid source, destination;
	struct mac mac; /* of the sender */
	bool has_mac; /* false: from this engine */
	uint8_t traffic_class;
	struct cm_message message;
};

/* A message to this engine. */
struct cm_queued {
	STAILQ_ENTRY(cm_queued) link;
	struct cm_input input;
};

struct cm_manager {
	struct cm_id_list ports[CM_BUCKETS]; /* by space and port */
	TAILQ_HEAD(cm_resolving, cm_id)
	resolving; /* the longest unexamined first */
	nanotime resolve_at; /* when the next ones are examined ... */
	uint32_t resolve_news; /* ... unless neighbour_agent_news() changes before */

	struct cm_link_list links;
	uint32_t link_count;
	uint64_t secret; /* key of the tables' hash */
	uint32_t by_source[CM_BUCKETS]; /* requested from afar: by a hash of the peer's address */
	struct cm_link_list local[CM_BUCKETS]; /* by local id */
	struct cm_link_list remote[CM_BUCKETS]; /* by the peer's id */
	struct cm_link_list remote_qpn[CM_BUCKETS];
	struct cm_link_list local_qpn[CM_BUCKETS];
	struct heap timers; /* of connections */

	STAILQ_HEAD(, cm_queued) queue; /* messages to this engine */
	uint32_t queued;
	struct rte_mbuf *out[LIMIT_CM_AT_ONCE]; /* frames of one burst */
	uint32_t outs;
	uint32_t psn; /* of queue pair 1 */
	uint16_t identification;
	uint32_t strays; /* answers to strays that are left this second */
	nanotime strays_at;
};

/* ---- cm_ids.c ---- */

/* NULL with errno ENOMEM: no memory, or the client is ending; EDQUOT: the client has reached its limit. */
struct cm_id *cm_id_new(struct client *c, struct cm_channel *ch, uint16_t space, uint8_t qp_type);
void cm_id_set_channel(struct cm_id *id, struct cm_channel *ch);
void cm_join_free(struct cm_join *j);

/* The id of a command. NULL: the reply says why. */
struct cm_id *cm_id_of_call(struct call *call, uint32_t handle);

static inline uint8_t cm_ack_timeout(const struct cm_id *id)
{
	return id->ack_timeout != 0 ? id->ack_timeout : CM_ACK_TIMEOUT;
}

/* cmd_cm_id.c. FRESH -> BOUND. 0 or an errno. */
int cm_id_bind(struct call *call, struct cm_id *id, const struct cm_address *address);
void cm_id_describe(const struct engine *e, const struct cm_id *id, struct cm_route *route);

/* ---- cm_address.c ---- */

bool cm_address_is_any(const struct cm_address *a);
/* Checks that an address from a program matches its family. 0 or an errno. */
int cm_address_check(struct call *call, const struct cm_address *a);
/*
 * Finds the own address that is meant. Replaces *a by it and sets *index to its GID's. A loopback
 * address stands for the first own one of its family, and sets *loopback. False: there is none.
 */
bool cm_address_own(const struct engine *e, struct cm_address *a, uint8_t *index, bool *loopback);
/*
 * Whether the address of a bound id is not an own one any more. Its GID entry may hold another one.
 */
bool cm_address_is_lost(const struct engine *e, const struct cm_id *id);
/*
 * Whether a frame can come from this address: not an own one, a group's, or one that no host has
 * (RFC 1122, 3.2.1.3).
 */
bool cm_address_is_peer(const struct engine *e, const struct gid *g);
/* The own GID for a destination, by the longest common prefix. False: none of its family. */
bool cm_address_towards(const struct engine *e, const struct gid *destination, uint8_t *index);
/* The path from a bound id to a GID. */
struct qp_path cm_path_make(const struct engine *e, const struct cm_id *id, const struct gid *to);

/* ---- cm_ports.c ---- */

/*
 * Gives the id its port: id->source.port, or a free one if that is 0. Returns 0, EADDRINUSE,
 * EADDRNOTAVAIL (no port is free) or EACCES. Addresses and flags conflict as in bind(2), but
 * without SO_REUSEADDR's exception for connections in TIMEWAIT.
 */
int cm_port_take(struct engine *e, struct cm_id *id);
void cm_port_release(struct cm_id *id);
/* Only one of the ids that share a port (REUSEADDR) may listen. 0 or EADDRINUSE. */
int cm_port_check_listen(const struct engine *e, const struct cm_id *id);
/* The listener for a request to this address, or NULL. */
struct cm_id *cm_port_listener(const struct engine *e, uint16_t space, uint16_t port,
			       const struct gid *to, uint8_t qp_type);

/* ---- cm_resolve.c ---- */

/* The id is RESOLVING until the next hop of id->destination is known, or until the deadline. */
void cm_resolve_begin(struct engine *e, struct cm_id *id, nanotime deadline);
void cm_resolve_end(struct cm_id *id);
/* TIME_NEVER: no id is resolving. */
nanotime cm_resolve_tick(struct engine *e, nanotime now);

/* ---- cm_mad.c ---- */

int cm_mads_open(struct engine *e);
void cm_mads_close(struct engine *e);
/* Sends to the peer of a connection. While the next hop is being resolved, uses the last one. */
void cm_send(struct engine *e, struct cm_link *l, const struct cm_message *m);
/* Sends to the sender of a message. */
void cm_answer(struct engine *e, const struct cm_input *in, const struct cm_message *m);
/*
 * Called after a command, which another thread than the control thread runs in an embedding
 * program.
 */
void cm_done(struct engine *e);
/* Handles some of the waiting messages. Returns when to call again. */
nanotime cm_mads_tick(struct engine *e, nanotime now);

/* ---- cm_request.c ---- */

void cm_input(struct engine *e, const struct cm_input *in, nanotime now);
/* The class version differs: only the beginning of the message is valid. */
void cm_input_wrong_version(struct engine *e, const struct cm_input *in, nanotime now);

/* ---- cm_tables.c ---- */

void cm_tables_add(struct engine *e, struct cm_link *l);
/* Adds what has become known of the connection. */
void cm_tables_update(struct engine *e, struct cm_link *l);
void cm_tables_remove(struct cm_link *l);
/* Only if the peer has this address. NULL: none. */
struct cm_link *cm_find_local(struct engine *e, uint32_t id, bool datagram, const struct gid *peer);
struct cm_link *cm_find_remote(struct engine *e, uint32_t id, uint64_t guid,
			       const struct gid *peer);
/* The exchange that this SIDR_REQ repeats. */
struct cm_link *cm_find_responder(struct engine *e, const struct cm_input *in);
/* The connection that waits for an RTU with this own queue pair. */
struct cm_link *cm_find_qpn(struct engine *e, uint32_t qpn);
/*
 * Compares a REQ or REP with the connections to its sender, except `except`. *found is the one that
 * it repeats or, if there is none, one that it makes stale.
 */
enum cm_relation cm_find_relation(struct engine *e, const struct cm_input *in,
				  const struct cm_link *except, struct cm_link **found);
/* How many connections this host has requested (and the few that share its hash value). */
uint32_t *cm_source_count(struct engine *e, const struct gid *source);
/* A number that no connection has. */
uint32_t cm_new_local_id(struct engine *e);

/* ---- cm_timer.c ---- */

/* Makes room for the deadlines of that many connections. 0 or ENOMEM. */
int cm_timer_reserve(struct engine *e, uint32_t links);
/* TIME_NEVER: removes the deadline. */
void cm_timer_set(struct engine *e, struct cm_link *l, nanotime at);
nanotime cm_timers_tick(struct engine *e, nanotime now);

/* ---- cm_link.c ---- */

/* NULL with errno: ENOMEM, or EDQUOT if the user or the engine has too many connections. */
struct cm_link *cm_link_new(struct engine *e, struct cm_id *id, const struct qp_path *path);
/*
 * After each step of the state machine: sends messages, reports events, sets the deadline. May free
 * the link.
 */
void cm_link_settle(struct engine *e, struct cm_link *l, nanotime now);
/* The link's id is being destroyed. */
void cm_link_abandon(struct engine *e, struct cm_link *l, nanotime now);
void cm_link_free(struct engine *e, struct cm_link *l);

/* ---- cm_report.c ---- */

/* Reports events to the link's id: enum cm_event bits. */
void cm_report_events(struct engine *e, struct cm_link *l, uint32_t events);
/* ... and a new connection to the listener; *r is a report of the listener. */
void cm_report_request(struct cm_link *l, struct cm_id *listener, struct cm_report *r);

/* ---- cm_attributes.c ---- */

/* 0 or EINVAL. */
int cm_attributes(const struct engine *e, struct cm_id *id, uint32_t state, struct qp_attributes *a,
		  uint32_t *mask);

/* ---- cm_event.c ---- */

/* A report to be completed and posted. NULL: no memory. */
struct cm_report *cm_report_new(struct cm_id *of, uint32_t event, int32_t status);
void cm_report_post(struct cm_report *r);
/* Creates a report and posts it. */
void cm_tell(struct cm_id *of, uint32_t event, int32_t status);
/* Discards the id's waiting reports, and the ids that only they announce. */
void cm_reports_drop(struct cm_id *of);
/* ... of one join. */
void cm_reports_drop_join(struct cm_id *of, uint32_t join);
/* Moves them to another channel, which does not show them yet. */
void cm_reports_move(struct cm_id *of, struct cm_channel *to);
/* Whether the id or its program has reached the limit of waiting events. */
bool cm_reports_full(const struct cm_id *id);
/* The program has taken it. */
void cm_report_taken(struct cm_report *r);
/* Sends the octets that the channel owes, as far as there is room. */
void cm_channel_pay(struct cm_channel *ch);
/* How many octets the program must discard because their events are gone. Resets the number. */
uint32_t cm_channel_stale(struct cm_channel *ch);

/* ---- cm_ring.c ---- */

/* 0, or ENOMEM with a sentence in the reply. */
int cm_ring_open(struct call *call, struct cm_channel *ch);
void cm_ring_close(struct cm_channel *ch);
/* Puts a report at the end of the channel's, or takes one out. */
void cm_ring_add(struct cm_channel *ch, struct cm_report *r);
void cm_ring_remove(struct cm_channel *ch, struct cm_report *r);
/* Shows as many reports as there is room for. */
void cm_ring_show(struct cm_channel *ch);
/*
 * Ends the reports that the program has taken, and shows others. To be called before anything
 * depends on what the program knows.
 */
void cm_ring_collect(struct cm_channel *ch);

/* ---- cmd_cm_qp.c ---- */

/*
 * Moves the queue pair of this handle by the steps (enum cm_qp_steps) and sets *state to its state
 * then. `chosen` (may be NULL) has resources that the program chose. 0 or an errno.
 */
int cm_move_qp(struct call *call, struct cm_id *id, uint32_t handle, uint32_t steps,
	       const struct cm_connect_parameters *chosen, uint32_t *state);

/* ---- cmd_cm_connect.c ---- */

int cm_id_disconnect(struct call *call, struct cm_id *id);

#endif
