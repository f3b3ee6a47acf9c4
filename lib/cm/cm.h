/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager's state machine (IBTA volume 1, 12.9), pure: no clock, no I/O, no memory
 * of its own. Time is an argument, `now`; messages go in and are taken out; what the owner of a
 * connection should hear of is a set of events; the next instant at which something happens by
 * itself is cm_deadline().
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
 *	- After every call that takes `now`: cm_take_message() until it is false, each message sent
 *	  to the peer's address; cm_take_events(); a timer for cm_deadline().
 *	- To find the connection that a message belongs to, see "Which connection". Only messages
 *	  from the connection's peer address are for it: that check is the owner's, too.
 *	- To keep the connection, with its local id and queue pair number, until it is CM_IDLE and
 *	  its last message is taken, also when the program has forgotten it (cm_abandon).
 *
 * Repetitions: REQ, REP, DREQ and SIDR_REQ are sent again each time that their answer is late, up
 * to a number of retries; what answers them is sent again each time that they come again. Nothing
 * that comes twice happens twice.
 *
 * What is done with a MAD:
 *	1. cm_message_decode(); CM_WRONG_VERSION: cm_wrong_version().
 *	2. cm_key(), the connection that it means, and cm_belongs(): is it that connection's, and
 *	   from its address? Then cm_received().
 *	3. A REQ that makes an older connection stale, by its id or its queue pair: cm_refuse() with
 *	   CM_REJECT_STALE, and cm_disconnect() of the older one. A REP that does so to another
 *	   connection than its own, likewise, after it was received: cm_reject().
 *	4. A REQ or SIDR_REQ with a listener: cm_check_request(), cm_check_ip_header(), and
 *	   cm_refuse() or cm_requested(), cm_sidr_requested().
 *	5. Anything else: cm_stray().
 *
 * What is kept only to be told again (CM_REJECTED, CM_SIDR_REPLIED once abandoned) may be forgotten
 * earlier if there is no room for more; a new REQ with the id of what was rejected takes its place.
 *
 * Bounds: exponents of times are the peer's and 5 bits wide, up to 2.4 hours; those over
 * LIMIT_CM_EXPONENT count as that. A connection holds no memory but its struct.
 *
 * Calls of a program in a state that does not have them: EINVAL, and nothing happens. They return
 * 0 or a positive errno.
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
	CM_REQ_SENT, /* a REP or REJ is awaited */
	CM_REQ_RECEIVED, /* the program is to accept or reject */
	CM_REP_SENT, /* an RTU, or data, is awaited */
	CM_REP_RECEIVED, /* the program is to say that it is ready, or to reject */
	CM_ESTABLISHED,
	CM_DREQ_SENT, /* a DREP is awaited */
	CM_DREQ_RECEIVED, /* the program is to answer: cm_disconnect */
	CM_TIMEWAIT, /* ids and queue pair number rest until old packets are gone */
	CM_REJECTED, /* we rejected: the REJ is repeated to a peer that did not get it */
	CM_SIDR_REQ_SENT, /* a SIDR_REP is awaited */
	CM_SIDR_REQ_RECEIVED, /* the program is to answer: cm_sidr_reply */
	CM_SIDR_REPLIED, /* the SIDR_REP is repeated to a requester that did not get it */
	CM_STATES,
};

enum cm_event {
	CM_EVENT_REQUEST = 1 << 0, /* REQ or SIDR_REQ: cm_peer_message() */
	CM_EVENT_REPLY = 1 << 1, /* REP: cm_peer_message() */
	CM_EVENT_ESTABLISHED = 1 << 2, /* passive side: RTU, or cm_establish() */
	CM_EVENT_REJECTED = 1 << 3, /* REJ, before the connection was established */
	CM_EVENT_UNREACHABLE = 1 << 4, /* REQ, REP or SIDR_REQ was never answered */
	CM_EVENT_DISCONNECTED = 1 << 5, /* DREQ or DREP (or REJ of what was established) */
	CM_EVENT_DISCONNECT_TIMEOUT = 1 << 6, /* DREQ was never answered: disconnected, too */
	CM_EVENT_TIMEWAIT_EXIT = 1 << 7, /* ids and queue pair number may be used again */
	CM_EVENT_SIDR_REPLY = 1 << 8, /* SIDR_REP, of any status: cm_peer_message() */
};

/* What became of a message; for counting. */
enum cm_verdict {
	CM_ACCEPTED, /* the state, or what is awaited, changed */
	CM_REPEATED, /* nothing changes; answered, or answered again, if that helps */
	CM_IGNORED, /* not of this connection, or not in this state */
};

/* Debts, paid by cm_take_message() in this order. */
enum cm_debt {
	CM_OWES_APR = 1 << 0,
	CM_OWES_MRA = 1 << 1,
	CM_OWES_DREP = 1 << 2, /* to a DREQ that crossed ours, or came again in TIMEWAIT */
	CM_OWES_STALE = 1 << 3, /* to a REQ that comes again in TIMEWAIT */
	CM_OWES_MESSAGE = 1 << 4, /* `sent`, for the first time or again */
};

/* One connection, or one SIDR exchange: of the owner's memory; all zero is CM_IDLE. */
struct cm_connection {
	uint8_t state; /* enum cm_state */
	bool active; /* we sent the REQ */
	bool abandoned; /* nobody wants events */
	bool extended; /* an MRA came since the last repetition */
	uint8_t retries; /* left of what is awaited */
	uint8_t max_retries;
	uint8_t mra_timeout; /* exponent that our MRA asks for */
	uint16_t owed; /* enum cm_debt */
	uint16_t events; /* enum cm_event, not yet taken */

	/* Both ends. Until a REP or REQ came, remote_* are 0. */
	uint32_t local_id, remote_id;
	uint32_t local_qpn, remote_qpn;
	uint64_t local_guid, remote_guid;
	uint32_t remote_psn; /* passive: with the rest of this line, what tells a new REQ from */
	uint64_t service_id; /* ... the same one again */

	/* READs and atomics under way: ours, and the peer's; both sides agree to the lesser offer. */
	uint8_t initiator_depth, responder_resources;

	nanotime deadline; /* of what is awaited; 0: none */
	nanotime interval; /* between our repetitions */
	nanotime peer_interval; /* ... and the peer's */
	nanotime
		flight; /* there and back, and the time of acknowledging: 4.096 us * 2^ack_timeout */
	nanotime timewait; /* how long ids rest */

	uint64_t transaction; /* of the REQ, echoed by what belongs to it */
	uint64_t asked; /* transaction of the message that a debt answers */
	struct cm_message sent; /* the newest of our own that may have to be repeated */
	struct cm_message peer; /* cm_peer_message() */
};

/* ---- opening ---- */

/*
 * IDLE -> REQ_SENT. *req has attribute, local_id, service_id, ca_guid (ours), qpn, path and all
 * else; its remote_response_timeout and max_cm_retries are obeyed here as well. transaction: 0 is
 * replaced by one that belongs to local_id.
 */
int cm_connect(struct cm_connection *c, const struct cm_message *req, nanotime now);

/*
 * A listener's new connection: IDLE -> REQ_RECEIVED, EVENT_REQUEST. *req was decoded, is of nobody
 * else (cm_compare) and passed cm_check_request().
 */
void cm_requested(struct cm_connection *c, const struct cm_message *req, uint32_t local_id);

/*
 * REQ_RECEIVED -> REP_SENT. Of *rep count qkey, qpn, starting_psn, responder_resources,
 * initiator_depth, target_ack_delay, flow_control, rnr_retry_count, srq, ca_guid (ours), ECE and
 * private_data; the rest is filled in (an alternate path is never accepted), and no more READs
 * are agreed to than the REQ offers. 0 is a legal depth.
 */
int cm_accept(struct cm_connection *c, const struct cm_message *rep, nanotime now);

/* REP_RECEIVED -> ESTABLISHED by an RTU. The program hears no event of it. */
int cm_ready(struct cm_connection *c, const void *private_data, size_t length, nanotime now);

/*
 * Data arrived (IBV_EVENT_COMM_EST), or the program says so: REP_SENT -> ESTABLISHED without an
 * RTU, EVENT_ESTABLISHED. EISCONN if it is established already.
 */
int cm_establish(struct cm_connection *c, nanotime now);

/*
 * A REJ: REQ_RECEIVED, REP_RECEIVED -> REJECTED; REQ_SENT -> IDLE; REP_SENT -> TIMEWAIT. EINVAL
 * also for private data or additional information that do not fit.
 */
struct cm_rejection {
	uint16_t reason; /* enum cm_reject_reason */
	const void *private_data;
	size_t private_length;
	const void *information; /* as the reason defines it */
	size_t information_length;
};
int cm_reject(struct cm_connection *c, const struct cm_rejection *rejection, nanotime now);

/*
 * REQ_RECEIVED, REP_RECEIVED: an MRA at once; the program needs so much longer, 4.096 us * 2^n.
 * Without this call a peer that repeats its REQ or REP meanwhile gets one of LIMIT_CM_MRA_TIMEOUT.
 */
int cm_delay(struct cm_connection *c, uint8_t service_timeout, nanotime now);

/* ---- closing ---- */

/*
 * ESTABLISHED -> DREQ_SENT by a DREQ; DREQ_RECEIVED -> TIMEWAIT by a DREP. The queue pair is to be
 * in ERR before. Also what is done to a connection that cm_compare() finds stale. The owner may
 * call it as soon as it takes EVENT_DISCONNECTED: the peer waits for the DREP.
 */
int cm_disconnect(struct cm_connection *c, const void *private_data, size_t length, nanotime now);

/*
 * The program destroyed its id: no event is reported any more, what must be said to the peer is
 * (REJ, DREQ, DREP, SIDR_REP), and the connection ends up in CM_IDLE by itself, at once or when
 * its deadlines have passed.
 */
void cm_abandon(struct cm_connection *c, nanotime now);

/*
 * REJECTED -> IDLE, before its time: another REQ comes with the id that it knows the peer by, and
 * there is to be one connection of it. In other states nothing happens.
 */
void cm_forget(struct cm_connection *c);

/* ---- datagram services (SIDR) ---- */

/* IDLE -> SIDR_REQ_SENT, answered by EVENT_SIDR_REPLY or EVENT_UNREACHABLE. */
int cm_sidr_connect(struct cm_connection *c, const struct cm_message *sidr_req,
		    uint8_t response_timeout, uint8_t retries, nanotime now);
/* A listener's: IDLE -> SIDR_REQ_RECEIVED, EVENT_REQUEST. */
void cm_sidr_requested(struct cm_connection *c, const struct cm_message *sidr_req);
/*
 * SIDR_REQ_RECEIVED -> SIDR_REPLIED. Of *rep count status (0: valid; enum cm_sidr_status), qpn,
 * qkey, information and private_data. SIDR_REPLIED lasts until LIMIT_CM_SIDR_LINGER after the reply
 * and cm_abandon(), whichever is later.
 */
int cm_sidr_reply(struct cm_connection *c, const struct cm_message *rep, nanotime now);

/* Of an APR: alternate paths are not supported, and a LAP is answered with that (protocol-map 195). */
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

/* A message of this connection. Any message in any state is legal input. */
enum cm_verdict cm_received(struct cm_connection *c, const struct cm_message *m, nanotime now);

/* Time passed; before cm_deadline() nothing happens. */
void cm_expired(struct cm_connection *c, nanotime now);

/* TIME_NEVER: none. */
nanotime cm_deadline(const struct cm_connection *c);

/* The next message to send now; false: none. */
bool cm_take_message(struct cm_connection *c, struct cm_message *out);

/* enum cm_event bits since the last call. */
uint32_t cm_take_events(struct cm_connection *c);

enum cm_state cm_state(const struct cm_connection *c);
const char *cm_state_name(enum cm_state state); /* "REQ_SENT" */

/*
 * The newest REQ, REP, REJ, SIDR_REQ or SIDR_REP that was accepted, with its private data
 * (cm_private_size() octets). All zero before there is one.
 */
const struct cm_message *cm_peer_message(const struct cm_connection *c);

/* ---- Which connection ----
 *
 * How the connection of a message is found: by the receiver's id in it, by the sender's id and its
 * CA GUID, or, SIDR, by the request id and the requester's address.
 */
enum cm_key {
	CM_KEY_NONE, /* no connection is meant: cm_stray() */
	CM_KEY_LOCAL_ID, /* key->id is the connection's local_id */
	CM_KEY_REMOTE_ID, /* key->id and key->guid are its remote_id and remote_guid */
	CM_KEY_SIDR_REQUESTER, /* key->id is the local_id of an exchange that we began */
	CM_KEY_SIDR_RESPONDER, /* key->id is the requester's; it and its address name the exchange */
};

struct cm_key_of {
	enum cm_key by;
	uint32_t id;
	uint64_t guid;
};

struct cm_key_of cm_key(const struct cm_message *m);

/*
 * The message names both ends of this connection, or is a REQ or SIDR_REQ that comes again. If not
 * (an id that was used again, or made up), it is treated as if no connection had been found.
 */
bool cm_belongs(const struct cm_connection *c, const struct cm_message *m);

/*
 * What a REQ (or REP) says about a connection that exists: a repetition is for cm_received(). A
 * stale connection (IBTA 12.9.8.3.1): the peer has begun anew with a queue pair or an id that this
 * connection knows it by; the REQ is refused with CM_REJECT_STALE (a REP: cm_reject) and the
 * connection disconnected. To be asked of connections with the same (remote id, GUID) or the same
 * (remote QPN, GUID), TIMEWAIT included, others than the REP's own.
 */
enum cm_relation {
	CM_UNRELATED,
	CM_REPETITION,
	CM_STALE,
};
enum cm_relation cm_compare(const struct cm_connection *c, const struct cm_message *m);
/* The same of a SIDR_REQ, from the address of this exchange. Never CM_STALE. */
enum cm_relation cm_sidr_compare(const struct cm_connection *c, const struct cm_message *m);

/* ---- what needs no connection ---- */

/*
 * The answer to a message that finds no connection, nor (REQ, SIDR_REQ) a listener. False: none is
 * due; answers are never answered.
 */
bool cm_stray(const struct cm_message *m, struct cm_message *answer);

/* The answer to what decodes to CM_WRONG_VERSION; false: none is due. */
bool cm_wrong_version(const struct cm_message *m, struct cm_message *answer);

/* The answer to a REQ, REP or SIDR_REQ that gets no connection: REJ, or SIDR_REP with the status
 * that comes nearest. */
void cm_refuse(const struct cm_message *m, uint16_t reason, struct cm_message *answer);

/* What of a REQ or SIDR_REQ only the owner of the port can say. */
struct cm_port_view {
	bool own_gid; /* REQ: primary.remote_gid is of the port that it came to */
	bool own_pkey; /* its P_Key is in the port's table */
	bool xrc; /* XRC connections can be made */
	uint8_t mtu; /* ibv_mtu of the port */
};

/* 0, or the reason to refuse it with (IBTA 12.6.7.2). Nothing of it was looked at before. */
uint16_t cm_check_request(const struct cm_message *req, const struct cm_port_view *port);
/* Of a REP; cm_received() asks this itself, refuses, and reports CM_EVENT_UNREACHABLE. */
uint16_t cm_check_reply(const struct cm_message *rep);
/*
 * The RDMA CM's header of a REQ or SIDR_REQ whose service id is of one of its port spaces: 0, or
 * CM_REJECT_CONSUMER if it is not one, or has addresses that nobody can connect from or to.
 */
uint16_t cm_check_ip_header(const struct cm_message *m, struct cm_ip_header *h);

/* 4.096 us * 2^exponent, the exponent kept in LIMIT_CM_EXPONENT_MIN .. LIMIT_CM_EXPONENT. */
nanotime cm_time(uint8_t exponent);

#endif
