/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transport: one queue pair as a pure state machine. Events go in, with `now` where the time
 * matters; packets, copies, completions and the next deadline come out. It is called and never
 * calls back; it has no clock, no I/O, no threads, no allocation. One thread at a time (the queue
 * pair's lcore) calls everything about one queue pair.
 *
 *	posted (window slot filled) ---+                +--> qp_next_packet: what to send now
 *	received (decoded packet) -----+                +--> outcome: what to copy, with a ticket
 *	copied / atomic_done (ticket) -+-->  struct qp -+--> qp_take_completion: both queues, in order
 *	gather_failed -----------------+                +--> qp_take_events: asynchronous events
 *	expired (deadline reached) ----+                +--> qp_deadline: when to call qp_expired
 *	sent (unreliable services) ----+
 *	operation_done (windows) ------+
 *	modify, fail ------------------+
 *
 * The caller's loop, after any event: take completions until there are none, take events, ask for
 * the deadline, and let the queue pair stand in the ready list while qp_has_packet() says so.
 *
 * Tickets. An outcome that places octets (or asks for an atomic) carries a ticket, counted from 1
 * without gaps. The caller makes the copies and reports qp_copied / qp_atomic_done for each ticket
 * once, in order. Until a ticket is settled the queue pair withholds the acknowledgements, replies
 * and completions at or behind it. A ticket that fails makes the queue pair fail there, as the
 * specification says for a memory fault, and forget what it accepted behind it. At most
 * qp_tickets() may be unsettled: qp_can_receive() is false while a packet could need more than are
 * left, and the caller keeps the packet (it is dropped with REASON_BUSY if it is passed in all the
 * same).
 */
#ifndef TRANSPORT_TRANSPORT_H
#define TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reason.h"
#include "base/time.h"
#include "base/work.h"
#include "config/limits.h"
#include "memory/key.h"
#include "memory/span.h"
#include "wire/packet.h"

/* ibv_qp_type */
enum qp_type {
	QP_TYPE_RC = 2,
	QP_TYPE_UC = 3,
	QP_TYPE_UD = 4,
	QP_TYPE_RAW_PACKET = 8,
	QP_TYPE_XRC_SEND = 9,
	QP_TYPE_XRC_RECV = 10,
};

/* ibv_qp_state */
enum qp_state {
	QP_STATE_RESET = 0,
	QP_STATE_INIT = 1,
	QP_STATE_RTR = 2,
	QP_STATE_RTS = 3,
	QP_STATE_SQD = 4,
	QP_STATE_SQE = 5,
	QP_STATE_ERR = 6,
};

/* ibv_qp_attr_mask */
enum qp_attribute {
	QP_ATTR_STATE = 1 << 0,
	QP_ATTR_CUR_STATE = 1 << 1,
	QP_ATTR_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	QP_ATTR_ACCESS_FLAGS = 1 << 3,
	QP_ATTR_PKEY_INDEX = 1 << 4,
	QP_ATTR_PORT = 1 << 5,
	QP_ATTR_QKEY = 1 << 6,
	QP_ATTR_AV = 1 << 7,
	QP_ATTR_PATH_MTU = 1 << 8,
	QP_ATTR_TIMEOUT = 1 << 9,
	QP_ATTR_RETRY_CNT = 1 << 10,
	QP_ATTR_RNR_RETRY = 1 << 11,
	QP_ATTR_RQ_PSN = 1 << 12,
	QP_ATTR_MAX_RD_ATOMIC = 1 << 13,
	QP_ATTR_ALT_PATH = 1 << 14,
	QP_ATTR_MIN_RNR_TIMER = 1 << 15,
	QP_ATTR_SQ_PSN = 1 << 16,
	QP_ATTR_MAX_DEST_RD_ATOMIC = 1 << 17,
	QP_ATTR_PATH_MIG_STATE = 1 << 18,
	QP_ATTR_CAP = 1 << 19,
	QP_ATTR_DEST_QPN = 1 << 20,
	QP_ATTR_RATE_LIMIT = 1 << 25,
};

/* An address vector as modify_qp names it, resolved as far as the core needs it. */
struct qp_path {
	struct gid dgid; /* in network order */
	struct gid sgid; /* the port's GID at sgid_index: filled in by the control path */
	uint32_t flow_label;
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint8_t sl;
	uint8_t port_num;
	uint8_t is_global; /* always 1 on RoCE */
	uint16_t dlid; /* kept for query_qp only */
	uint8_t src_path_bits;
	uint8_t static_rate;
	uint8_t reserved[2];
};

/* ibv_qp_attr, as plain values that cross the control socket. */
struct qp_attributes {
	uint32_t state; /* enum qp_state */
	uint32_t cur_state;
	uint32_t path_mtu; /* ibv_mtu: 1 = 256 .. 5 = 4096 octets */
	uint32_t path_mig_state; /* ibv_mig_state: 0 = MIGRATED, ... */
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qpn;
	uint32_t access_flags; /* enum access_flag */
	uint32_t rate_limit; /* kbit/s; 0: none */
	uint16_t pkey_index;
	uint8_t en_sqd_async_notify;
	uint8_t sq_draining;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t port_num;
	uint8_t timeout; /* 4.096 us * 2^timeout; 0: none */
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t reserved;
	struct qp_path path;
};

/* Fixed at creation. */
struct qp_caps {
	uint32_t type; /* enum qp_type */
	uint32_t qpn; /* 24 bits */
	uint32_t pd; /* handle */
	uint32_t handle; /* of the queue pair, for completions */
	uint32_t max_send_wr; /* window slots, >= 1 where there is a send queue */
	uint32_t max_send_sge;
	uint32_t max_recv_sge; /* of its receive queue, or of its SRQ; XRC target: of any SRQ */
	uint32_t max_inline; /* octets; ATOMIC WRITE may bring eight all the same */
	uint32_t own_wr; /* requests that the caller may have there beside: qp_own_slot() */
	uint32_t max_rd_atomic; /* device limit of both directions, <= LIMIT_RD_ATOMIC */
	uint32_t port_mtu; /* ibv_mtu that the port can carry */
	uint32_t max_frame; /* RAW_PACKET: octets of a frame (the port's Ethernet MTU + 18) */
	uint32_t srq_pd; /* of its SRQ, whose elements are checked against it; 0: `pd` */
	uint32_t srq; /* engine-wide number of its SRQ: goes into receive completions; 0: none */
	uint32_t tickets; /* unsettled copies there is room for, a power of two; 0: LIMIT_TICKETS */
	bool records_later; /* no room for a peer's READs and atomics in qp_init's memory */
	bool sq_sig_all;
	bool has_srq; /* receive requests come from an SRQ; XRC targets always */
};

struct qp;

/* Octets that qp_init needs, aligned to a cache line. */
size_t qp_memory_size(const struct qp_caps *caps);
/* A queue pair in RESET. The memory is the caller's and stays where it is. */
struct qp *qp_init(void *memory, const struct qp_caps *caps);

/*
 * With caps.records_later, what a peer's READs and atomics are remembered in comes before the
 * qp_modify that sets max_dest_rd_atomic: how many there is room for, octets for that many
 * (aligned to a cache line), and giving the memory, for more than before. Returns the memory that
 * was used so far, the caller's again; NULL: none.
 */
uint32_t qp_records(const struct qp *qp);
size_t qp_records_size(uint32_t max_dest_rd_atomic);
void *qp_give_records(struct qp *qp, void *memory, uint32_t max_dest_rd_atomic);

/*
 * How many copies may be unsettled; octets for as many as there may ever be, LIMIT_TICKETS (aligned
 * to a cache line), and giving this memory, once. What was used before is not used any more.
 */
uint32_t qp_tickets(const struct qp *qp);
size_t qp_tickets_size(void);
void qp_give_tickets(struct qp *qp, void *memory);

/*
 * ibv_modify_qp(3). Returns 0, or EINVAL and nothing changed: an illegal transition, a missing
 * required attribute, one that does not belong to the transition, or a value out of range. *why
 * (may be NULL) gets a constant sentence then. Going to ERR or RESET with tickets unsettled is
 * allowed: reports for tickets from before are ignored.
 */
int qp_modify(struct qp *qp, const struct qp_attributes *attributes, uint32_t mask,
	      const char **why);
void qp_query(const struct qp *qp, struct qp_attributes *attributes);
enum qp_state qp_state(const struct qp *qp);
const struct qp_caps *qp_capabilities(const struct qp *qp);

/* The outside found a fault (CQ overrun, client gone): to ERR, with this reason, raising QP_FATAL. */
void qp_fail(struct qp *qp, enum reason why);

/*
 * The send window. The caller copies the next request, elements or inline octets included, to the
 * slot (stride octets: send_work_stride(max_send_sge, max_inline)) and says qp_posted. The core
 * checks the copy (opcode, num_sge, inline_length, sum of lengths) and fails it in its turn if it
 * is malformed; so an attached client can write what it wants. NULL: the window is full.
 */
struct send_work *qp_window_slot(struct qp *qp);
void qp_posted(struct qp *qp);
/*
 * Requests of the caller's own, in their order among the others: caps.own_wr of them have room in
 * any case, and the program sees nothing of them but their consequences. Their completions (as
 * signalled or failed as any) have COMPLETION_OWN in from_srq. NULL: there are so many already.
 */
#define COMPLETION_OWN 2
struct send_work *qp_own_slot(struct qp *qp);
void qp_own_posted(struct qp *qp);

/* The program's requests that left the window since creation, modulo 2^32 (the client may post that many more). */
uint32_t qp_retired(const struct qp *qp);
/* ... and those that came into it: what qp_retired will say when all of them have left. */
uint32_t qp_taken(const struct qp *qp);

/* Asynchronous events, a set. */
enum qp_event {
	QP_EVENT_FATAL = 1 << 0,
	QP_EVENT_REQ_ERR = 1 << 1,
	QP_EVENT_ACCESS_ERR = 1 << 2,
	QP_EVENT_COMM_EST = 1 << 3,
	QP_EVENT_SQ_DRAINED = 1 << 4,
	QP_EVENT_LAST_WQE_REACHED = 1 << 5,
	QP_EVENT_SQ_ERROR = 1 << 17, /* not for programs: the send queue alone failed, to SQE */
	QP_EVENT_ENTERED_ERR =
		1 << 16, /* not for programs: the receive queue is to be flushed now */
};
uint32_t qp_take_events(struct qp *qp);

/* An atomic that the caller is to execute on eight octets of memory, in host order. */
struct atomic_request {
	bool compare_swap; /* else fetch-and-add */
	uint64_t swap_add;
	uint64_t compare;
	struct span target; /* length 8 */
};

enum outcome_flag {
	OUTCOME_RECEIVE_USED =
		1 << 0, /* the offered receive request was taken: remove it from its queue */
	/*
	 * Copy `source` to `place`, then report the ticket. ATOMIC WRITE: one span of eight octets
	 * that begins at a multiple of eight, which nobody may see half written: the caller copies
	 * eight such octets by one store.
	 */
	OUTCOME_PLACE = 1 << 1,
	OUTCOME_ATOMIC = 1 << 2, /* execute `atomic`, then report the ticket */
	/*
	 * SEND with invalidate: after the copies of `ticket` (if any), make `invalidate` unusable,
	 * then report invalidate_ticket by qp_copied, once no lcore can use the key any more. The
	 * core has checked that this queue pair may (key_check_invalidate).
	 */
	OUTCOME_INVALIDATE = 1 << 3,
};

/* What a received packet asks for. Scratch memory of the caller; valid until the next call. */
struct outcome {
	enum reason reason; /* REASON_NONE: accepted. Else why it was dropped or refused */
	uint32_t flags; /* enum outcome_flag */
	uint64_t ticket; /* with PLACE or ATOMIC */
	const uint8_t *source; /* place.length octets: in the packet, or in `value` */
	uint64_t value;
	uint32_t invalidate; /* key */
	uint64_t invalidate_ticket;
	struct atomic_request atomic;
	struct span_list place;
};

/*
 * Whether the packet comes from where this queue pair's packets come from: REASON_NONE, else why
 * not. A connected queue pair has one peer, at one address, which means it as well. The wire names
 * no sender of these packets; inside the engine p->sender does. Datagrams come from everybody.
 */
enum reason qp_check_origin(const struct qp *qp, const struct packet *p);

/* False while too many copies are unsettled. */
bool qp_can_receive(const struct qp *qp);

/* Whether this packet would take a receive request now: then offer one (the oldest posted). */
bool qp_wants_receive(const struct qp *qp, const struct packet *p);

/*
 * XRC target: before a packet with an XRCETH is passed in, the SRQ that p->srqn names: its
 * protection domain and its engine-wide number. 0: there is none, or it is of another XRC domain;
 * the request is refused then (NAK invalid request). Requests that were accepted keep what was
 * said when they were, and a message ends in the SRQ in which it began. A receive completion that
 * comes of an SRQ, of this or of any other type of queue pair, names its number in work_index.
 */
void qp_target(struct qp *qp, uint32_t pd, uint32_t srq);

/*
 * A packet for this queue pair. `offer` is the oldest receive request (private memory of the
 * caller, num_sge <= max_recv_sge checked by the core), NULL if there is none or none is wanted;
 * the core copies what it keeps. The first offer->strip octets of a SEND are checked as the others
 * but not stored, nor counted in byte_len. offer->mark, if it is not 0, comes back as the
 * completion's work_index.
 * UD: the 40 octets in front of p->payload are what the receiver finds there (packet_make_grh).
 * RAW_PACKET: p->payload is the whole frame; of the other members only the envelope, `checksum`,
 * vlan_tci and flow_tag mean something.
 */
void qp_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
		 const struct key_table *keys, nanotime now, struct outcome *out);

/* The copies of this ticket are made (or could not be). In order of tickets. */
void qp_copied(struct qp *qp, uint64_t ticket, bool ok);
/* The atomic of this ticket was executed; `original` is the value before. */
void qp_atomic_done(struct qp *qp, uint64_t ticket, uint64_t original, bool ok);

/* When qp_expired is to be called: TIME_NEVER or an instant. May move later without notice. */
nanotime qp_deadline(const struct qp *qp);
/* A deadline was reached; does nothing when it is early. */
void qp_expired(struct qp *qp, nanotime now);

/* How often the retransmission timer fired, for statistics. */
uint32_t qp_timeouts(const struct qp *qp);

/* Cheap: whether qp_next_packet is worth a call. */
bool qp_has_packet(const struct qp *qp);

enum next_packet {
	NEXT_NOTHING, /* nothing to send until another event */
	NEXT_PACKET, /* *p (and *gather) */
	NEXT_NOT_BEFORE, /* something to send, but not before *not_before: a deadline like any other */
	NEXT_OPERATION, /* nothing to send: qp_operation() is to be executed, see there */
};

/* A request that stays at home: bind a memory window, or invalidate a key. */
struct key_operation {
	bool bind; /* else invalidate */
	uint32_t key; /* the window's, or the one to invalidate */
	uint32_t new_key; /* bind: the window's from now on (same index) */
	uint32_t region_key; /* bind: lkey of the region */
	uint32_t access; /* bind: enum access_flag */
	uint64_t address; /* bind: of the first octet, as the region calls it */
	uint64_t length; /* bind: octets */
	struct key_user user; /* on whose behalf */
};

/*
 * After NEXT_OPERATION, until qp_operation_done: what to execute; NULL otherwise. Every earlier
 * request is complete by then, and no later one is sent meanwhile; replies to the peer are.
 */
const struct key_operation *qp_operation(const struct qp *qp);
/*
 * It was executed, and no lcore honours the old meaning of the key any more: STATUS_SUCCESS. Else
 * the request fails with this status (MW_BIND_ERR, LOC_PROT_ERR ...), and the queue pair with it.
 * Each NEXT_OPERATION is reported once, also when the queue pair failed or was reset meanwhile: the
 * report is ignored then, and until it comes no other operation begins.
 */
void qp_operation_done(struct qp *qp, enum work_status status, enum reason why);

/*
 * The next packet to send: owed replies first (in the requests' order), then requests. The core
 * has then counted it as sent. A request whose memory is not registered may fail here: NEXT_NOTHING
 * is an event like the others, completions and events may be due. p->payload points to inline octets in the window, or is NULL and
 * the payload is to be gathered from *gather (gather->length == p->payload_length). The memory is
 * read before the next event of this queue pair is passed in.
 */
enum next_packet qp_next_packet(struct qp *qp, const struct key_table *keys, nanotime now,
				struct packet *p, struct span_list *gather, nanotime *not_before);
/*
 * This packet has left (UC, UD, RAW_PACKET; in the packets' order, also when it was lost on the way out because
 * nobody answers for its address): a message that ends with it is complete. Each packet of these
 * services is reported once: sent, unsent or gather_failed. Not called for RC and XRC.
 */
void qp_sent(struct qp *qp, const struct packet *p);
static inline bool qp_type_unreliable(uint32_t type)
{
	return type == QP_TYPE_UC || type == QP_TYPE_UD || type == QP_TYPE_RAW_PACKET;
}
/* The payload of this packet could not be gathered; it was not sent. */
void qp_gather_failed(struct qp *qp, const struct packet *p);
/* This packet of an unreliable service may not be sent; its request fails with that status. */
void qp_refused(struct qp *qp, const struct packet *p, enum work_status status, enum reason why);
/*
 * This packet was not sent for want of a buffer or of room in the port: the core rewinds to it, so
 * that it is the next one again (unlike a loss, nobody waits for a timer).
 */
void qp_unsent(struct qp *qp, const struct packet *p, nanotime now);

/*
 * A packet that qp_next_packet made some time ago leaves now: if it is the one that an answer is
 * awaited for, the peer's time begins here.
 */
void qp_left(struct qp *qp, const struct packet *p, nanotime now);

/*
 * The next completion of either queue, if one is due: send completions in post order, receive
 * completions in arrival order, nothing before its ticket is settled. In ERR the rest of the send
 * window comes as flushed. *from_receive says which CQ it is for.
 */
bool qp_take_completion(struct qp *qp, struct completion *c, bool *from_receive);

/* The completion of a receive request that the caller took from the queue of a queue pair in ERR. */
void qp_flush_receive(const struct qp *qp, const struct recv_work *work, struct completion *c);

#endif
