/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager's state machine (IBTA volume 1, 12.9). It is pure: no clock, no I/O, no
 * memory of its own. Time is an argument, `now`. Messages go in and are taken out. Events tell the
 * owner of a connection what happened. cm_deadline() is the next time at which the connection acts
 * on its own.
 *
 *	active                                  passive
 *	IDLE       cm_connect                   IDLE          a REQ: cm_requested
 *	REQ_SENT   REQ ------------------->     REQ_RECEIVED  cm_accept
 *	REP_RECEIVED  <------------------ REP   REP_SENT
 *	ESTABLISHED  cm_ready, RTU ------->     ESTABLISHED   (data that arrives: cm_establish)
 *	DREQ_SENT  cm_disconnect, DREQ --->     DREQ_RECEIVED cm_disconnect
 *	TIMEWAIT     <------------------ DREP   TIMEWAIT
 *	IDLE                                    IDLE
 *
 * The owner's duties:
 *	- After every call that takes `now`: call cm_take_message() until it returns false and send
 *	  each message to the peer's address; call cm_take_events(); set a timer for cm_deadline().
 *	- Find the connection that a message belongs to, see "Which connection". The owner also
 *	  checks that the message came from the connection's peer address.
 *	- Keep the connection, with its local id and queue pair number, until it is CM_IDLE and its
 *	  last message is taken, even if the program has let go of it (cm_abandon).
 *
 * Repetitions: a REQ, REP, DREQ or SIDR_REQ whose answer is late is sent again, up to a number of
 * retries. The answer is sent again each time the message arrives again. A message that arrives
 * twice takes effect once.
 *
 * How to handle a MAD:
 *	1. cm_message_decode(). If it returns CM_WRONG_VERSION: cm_wrong_version().
 *	2. cm_key() finds the connection, and cm_belongs() checks that the message is for it and
 *	   comes from its peer. If so: cm_received().
 *	3. A REQ may show by its id or its queue pair that an older connection is stale. If so:
 *	   cm_refuse() with CM_REJECT_STALE, and cm_disconnect() of the older one. If a REP shows
 *	   that a connection other than its own is stale: the same after cm_received(), but with
 *	   cm_reject().
 *	4. A REQ or SIDR_REQ with a listener: cm_check_request(), cm_check_ip_header(), and
 *	   cm_refuse() or cm_requested(), cm_sidr_requested().
 *	5. Anything else: cm_stray().
 *
 * A connection that only exists to repeat an answer (CM_REJECTED, or CM_SIDR_REPLIED once
 * abandoned) may be dropped early to make room. A new REQ with the id of a rejected one takes its
 * place.
 *
 * Bounds: the peer chooses exponents of times. They have 5 bits, up to 2.4 hours; values above
 * LIMIT_CM_EXPONENT count as LIMIT_CM_EXPONENT. A connection uses no memory but its struct.
 *
 * Functions that return int return 0 or a positive errno. A call that the state does not allow
 * returns EINVAL and has no effect.
 */
#ifndef CM_CM_H
#define CM_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"
#include "cm/mad.h"
#include "config/limits.h"

enum cm_state {
	CM_IDLE,
	CM_REQ_SENT, /* waits for a REP or REJ */
	CM_REQ_RECEIVED, /* waits for the program to accept or reject */
	CM_REP_SENT, /* waits for an RTU or for data */
	CM_REP_RECEIVED, /* waits for the program to be ready or to reject */
	CM_ESTABLISHED,
	CM_DREQ_SENT, /* waits for a DREP */
	CM_DREQ_RECEIVED, /* waits for the program to answer: cm_disconnect */
	CM_TIMEWAIT, /* ids and queue pair number are not reused until old packets are gone */
	CM_REJECTED, /* the REJ is repeated if the peer repeats its message */
	CM_SIDR_REQ_SENT, /* waits for a SIDR_REP */
	CM_SIDR_REQ_RECEIVED, /* waits for the program to answer: cm_sidr_reply */
	CM_SIDR_REPLIED, /* the SIDR_REP is repeated if the request is repeated */
	CM_STATES,
};

enum cm_event {
	CM_EVENT_REQUEST = 1 << 0, /* REQ or SIDR_REQ: cm_peer_message() */
	CM_EVENT_REPLY = 1 << 1, /* REP: cm_peer_message() */
	CM_EVENT_ESTABLISHED = 1 << 2, /* passive side: RTU, or cm_establish() */
	CM_EVENT_REJECTED = 1 << 3, /* REJ before the connection was established */
	CM_EVENT_UNREACHABLE = 1 << 4, /* REQ, REP or SIDR_REQ was never answered */
	CM_EVENT_DISCONNECTED = 1 << 5, /* DREQ or DREP (or REJ of an established connection) */
	CM_EVENT_DISCONNECT_TIMEOUT = 1 << 6, /* DREQ was never answered: disconnected, too */
	CM_EVENT_TIMEWAIT_EXIT = 1 << 7, /* ids and queue pair number may be used again */
	CM_EVENT_SIDR_REPLY = 1 << 8, /* SIDR_REP, of any status: cm_peer_message() */
};

/* The effect of a message; for counters. */
enum cm_verdict {
	CM_ACCEPTED, /* it changed the state, or what the state waits for */
	CM_REPEATED, /* no change; repeats the answer if that helps */
	CM_IGNORED, /* not for this connection, or not valid in its state */
};

/* Messages owed to the peer. cm_take_message() returns them in this order. */
enum cm_debt {
	CM_OWES_APR = 1 << 0,
	CM_OWES_MRA = 1 << 1,
	CM_OWES_DREP = 1 << 2, /* for a DREQ that crossed ours, or was repeated in TIMEWAIT */
	CM_OWES_STALE = 1 << 3, /* for a REQ that was repeated in TIMEWAIT */
	CM_OWES_MESSAGE = 1 << 4, /* `sent`, for the first time or as a repetition */
};

/* One connection, or one SIDR exchange, in the owner's memory. All zero is CM_IDLE. */
struct cm_connection {
	uint8_t state; /* enum cm_state */
	bool active; /* we sent the REQ */
	bool abandoned; /* the program wants no events any more */
	bool extended; /* an MRA arrived since the last repetition */
	uint8_t retries; /* retries left for the awaited answer */
	uint8_t max_retries;
	uint8_t mra_timeout; /* exponent that our MRA carries */
	uint16_t owed; /* enum cm_debt */
	uint16_t events; /* enum cm_event, not yet taken */

	/* Both ends. remote_* are 0 until a REP or REQ has arrived. */
	uint32_t local_id, remote_id;
	uint32_t local_qpn, remote_qpn;
	uint64_t local_guid, remote_guid;
	uint32_t remote_psn; /* passive: this and service_id distinguish a new REQ ... */
	uint64_t service_id; /* ... from a repetition */

	/* READs and atomics outstanding in each direction; both sides use the lesser offer. */
	uint8_t initiator_depth, responder_resources;

	nanotime deadline; /* for the awaited message; 0: none */
	nanotime interval; /* between our repetitions */
	nanotime peer_interval; /* ... and between the peer's */
	nanotime flight; /* round trip and time to acknowledge: 4.096 us * 2^ack_timeout */
	nanotime timewait; /* how long ids are not reused */

	uint64_t transaction; /* of the REQ; messages that belong to it repeat it */
	uint64_t asked; /* transaction of the message that the owed message answers */
	struct cm_message sent; /* our latest message that may have to be repeated */
	struct cm_message peer; /* cm_peer_message() */
};

/* ---- opening ---- */

/*
 * IDLE -> REQ_SENT. *req is complete, with attribute, local_id, service_id, ca_guid (ours), qpn and
 * path. Its remote_response_timeout and max_cm_retries also apply to this side. Transaction 0 is
 * replaced by one derived from local_id.
 */
int cm_connect(struct cm_connection *c, const struct cm_message *req, nanotime now);

/*
 * A listener's new connection: IDLE -> REQ_RECEIVED, EVENT_REQUEST. *req was decoded, belongs to no
 * other connection (cm_compare) and passed cm_check_request().
 */
void cm_requested(struct cm_connection *c, const struct cm_message *req, uint32_t local_id);

/*
 * REQ_RECEIVED -> REP_SENT. *rep provides qkey, qpn, starting_psn, responder_resources,
 * initiator_depth, target_ack_delay, flow_control, rnr_retry_count, srq, ca_guid (ours), ECE and
 * private_data; this function fills in the rest (it never accepts an alternate path). The depths
 * are limited to what the REQ offers; 0 is legal.
 */
int cm_accept(struct cm_connection *c, const struct cm_message *rep, nanotime now);

/* REP_RECEIVED -> ESTABLISHED by an RTU. Causes no event. */
int cm_ready(struct cm_connection *c, const void *private_data, size_t length, nanotime now);

/*
 * Data arrived (IBV_EVENT_COMM_EST), or the program calls rdma_establish: REP_SENT -> ESTABLISHED
 * without an RTU, EVENT_ESTABLISHED. EISCONN if it is established already.
 */
int cm_establish(struct cm_connection *c, nanotime now);

/*
 * Sends a REJ: REQ_RECEIVED, REP_RECEIVED -> REJECTED; REQ_SENT -> IDLE; REP_SENT -> TIMEWAIT.
 * EINVAL also if private data or additional information are too long.
 */
struct cm_rejection {
	uint16_t reason; /* enum cm_reject_reason */
	const void *private_data;
	size_t private_length;
	const void *information; /* its meaning depends on the reason */
	size_t information_length;
};
int cm_reject(struct cm_connection *c, const struct cm_rejection *rejection, nanotime now);

/*
 * REQ_RECEIVED, REP_RECEIVED: sends an MRA at once, because the program needs 4.096 us * 2^n more.
 * Without this call a peer that repeats its REQ or REP gets an MRA of LIMIT_CM_MRA_TIMEOUT.
 */
int cm_delay(struct cm_connection *c, uint8_t service_timeout, nanotime now);

/* ---- closing ---- */

/*
 * ESTABLISHED -> DREQ_SENT by a DREQ; DREQ_RECEIVED -> TIMEWAIT by a DREP. The owner moves the
 * queue pair to ERR first. Also used on connections that cm_compare() finds stale. The owner may
 * call it as soon as it takes EVENT_DISCONNECTED: the peer waits for the DREP.
 */
int cm_disconnect(struct cm_connection *c, const void *private_data, size_t length, nanotime now);

/*
 * The program destroyed its id. No more events are reported. Messages that the peer must get (REJ,
 * DREQ, DREP, SIDR_REP) are still sent, and the connection reaches CM_IDLE by itself, at once or
 * when its deadlines have passed.
 */
void cm_abandon(struct cm_connection *c, nanotime now);

/*
 * REJECTED -> IDLE, early: another REQ with the same remote id arrived, and only one connection may
 * have that id. No effect in other states.
 */
void cm_forget(struct cm_connection *c);

/* ---- datagram services (SIDR) ---- */

/* IDLE -> SIDR_REQ_SENT, answered by EVENT_SIDR_REPLY or EVENT_UNREACHABLE. */
int cm_sidr_connect(struct cm_connection *c, const struct cm_message *sidr_req,
		    uint8_t response_timeout, uint8_t retries, nanotime now);
/* A listener's SIDR exchange: IDLE -> SIDR_REQ_RECEIVED, EVENT_REQUEST. */
void cm_sidr_requested(struct cm_connection *c, const struct cm_message *sidr_req);
/*
 * SIDR_REQ_RECEIVED -> SIDR_REPLIED. *rep provides status (0: valid; enum cm_sidr_status), qpn,
 * qkey, information and private_data. SIDR_REPLIED lasts until LIMIT_CM_SIDR_LINGER after the reply
 * or until cm_abandon(), whichever is later.
 */
int cm_sidr_reply(struct cm_connection *c, const struct cm_message *rep, nanotime now);

/*
 * Status of an APR. Alternate paths are not supported; the answer to a LAP says so (protocol-map
 * 195).
 */
enum cm_apr_status {
	CM_APR_INVALID_COMM_ID = 1,
	CM_APR_UNSUPPORTED = 2,
};

enum cm_sidr_status {
	CM_SIDR_VALID = 0,
	CM_SIDR_UNSUPPORTED_SERVICE = 1,
	CM_SIDR_REJECTED = 2,
	CM_SIDR_NO_QP = 3,
	CM_SIDR_REDIRECT = 4,
	CM_SIDR_UNSUPPORTED_VERSION = 5,
};

/* ---- in, out, time ---- */

/* Handles a message of this connection. Any message is legal input in any state. */
enum cm_verdict cm_received(struct cm_connection *c, const struct cm_message *m, nanotime now);

/* Handles the passing of time; no effect before cm_deadline(). */
void cm_expired(struct cm_connection *c, nanotime now);

/* Whether the deadline is that of a message of the peer, and not the end of a rest. */
bool cm_awaits(const struct cm_connection *c);

/* TIME_NEVER: there is none. */
nanotime cm_deadline(const struct cm_connection *c);

/* Takes the next message to send; false: there is none. */
bool cm_take_message(struct cm_connection *c, struct cm_message *out);

/* Returns the enum cm_event bits since the last call. */
uint32_t cm_take_events(struct cm_connection *c);

enum cm_state cm_state(const struct cm_connection *c);
const char *cm_state_name(enum cm_state state); /* "REQ_SENT" */

/*
 * The latest REQ, REP, REJ, SIDR_REQ or SIDR_REP that was accepted, with its private data
 * (cm_private_size() octets). All zero before the first.
 */
const struct cm_message *cm_peer_message(const struct cm_connection *c);

/*
 * ---- Which connection ----
 *
 * A message's connection is found by the receiver's id, or by the sender's id and CA GUID, or
 * (SIDR) by the request id and the requester's address.
 */
enum cm_key {
	CM_KEY_NONE, /* the message names no connection: cm_stray() */
	CM_KEY_LOCAL_ID, /* key->id is the connection's local_id */
	CM_KEY_REMOTE_ID, /* key->id and key->guid are its remote_id and remote_guid */
	CM_KEY_SIDR_REQUESTER, /* key->id is the local_id of an exchange that this side began */
	CM_KEY_SIDR_RESPONDER, /* key->id is the requester's; it is unique with its address */
};

struct cm_key_of {
	enum cm_key by;
	uint32_t id;
	uint64_t guid;
};

struct cm_key_of cm_key(const struct cm_message *m);

/*
 * Whether the message names both ends of this connection, or repeats its REQ or SIDR_REQ. If not,
 * its id is reused or invented: treat it as if no connection had been found.
 */
bool cm_belongs(const struct cm_connection *c, const struct cm_message *m);

/*
 * How a REQ (or REP) relates to an existing connection. A repetition goes to cm_received(). A
 * connection is stale (IBTA 12.9.8.3.1) if the peer has begun anew with a queue pair or an id by
 * which this connection knows the peer. Then refuse the REQ with CM_REJECT_STALE (a REP: cm_reject)
 * and disconnect the connection. Call it for all connections with the same (remote id, GUID) or
 * (remote QPN, GUID), including those in TIMEWAIT, except the REP's own.
 */
enum cm_relation {
	CM_UNRELATED,
	CM_REPETITION,
	CM_STALE,
};
enum cm_relation cm_compare(const struct cm_connection *c, const struct cm_message *m);
/* The same for a SIDR_REQ from the address of this exchange. Never CM_STALE. */
enum cm_relation cm_sidr_compare(const struct cm_connection *c, const struct cm_message *m);

/* ---- what needs no connection ---- */

/*
 * Composes the answer to a message without a connection or (REQ, SIDR_REQ) a listener. False: send
 * no answer, because the message is itself one.
 */
bool cm_stray(const struct cm_message *m, struct cm_message *answer);

/* Composes the answer to a CM_WRONG_VERSION message; false: send none. */
bool cm_wrong_version(const struct cm_message *m, struct cm_message *answer);

/*
 * Composes the answer to a REQ, REP or SIDR_REQ that gets no connection: a REJ, or a SIDR_REP with
 * the nearest status.
 */
void cm_refuse(const struct cm_message *m, uint16_t reason, struct cm_message *answer);

/* Facts about a REQ or SIDR_REQ that only the owner of the port knows. */
struct cm_port_view {
	bool own_gid; /* REQ: primary.remote_gid belongs to the port that it came to */
	bool own_pkey; /* its P_Key is in the port's table */
	bool xrc; /* XRC connections are supported */
	uint8_t mtu; /* ibv_mtu of the port */
};

/*
 * 0, or the reason for which to refuse the request (IBTA 12.6.7.2). Call it first: it trusts
 * nothing.
 */
uint16_t cm_check_request(const struct cm_message *req, const struct cm_port_view *port);
/* The same for a REP. cm_received() calls it, refuses the REP and reports CM_EVENT_UNREACHABLE. */
uint16_t cm_check_reply(const struct cm_message *rep);
/*
 * Checks the RDMA CM's header of a REQ or SIDR_REQ whose service id is in one of its port spaces.
 * Returns 0, or CM_REJECT_CONSUMER if it is malformed or its addresses are impossible for a
 * connection.
 */
uint16_t cm_check_ip_header(const struct cm_message *m, struct cm_ip_header *h);

/*
 * 4.096 us * 2^exponent, with the exponent clamped to LIMIT_CM_EXPONENT_MIN .. LIMIT_CM_EXPONENT.
 */
nanotime cm_time(uint8_t exponent);

#endif
