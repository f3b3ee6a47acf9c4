/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens to a queue pair: the events that its caller reports. Any of them may make packets,
 * completions, asynchronous events and another deadline due (outcomes.h).
 */
#ifndef TRANSPORT_EVENTS_H
#define TRANSPORT_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"
#include "base/time.h"
#include "base/work.h"
#include "wire/packet.h"

struct key_table;
struct outcome;
struct qp;
struct span_list;

/*
 * The send window. The caller copies the next request, elements or inline octets included, to the
 * slot (stride octets: send_work_stride(max_send_sge, max_inline)) and says qp_posted. The core
 * checks the copy (opcode, num_sge, inline_length, sum of lengths) and fails a malformed one in
 * its turn; so an attached client can write what it wants. NULL: the window is full.
 */
struct send_work *qp_window_slot(struct qp *qp);
/* ... and returns the slot of the request after it, as qp_window_slot. */
struct send_work *qp_posted(struct qp *qp);
/*
 * Requests of the caller's own, in order among the others. There is always room for caps.own_wr of
 * them. The program sees only their consequences. Their completions, signalled or failed as any,
 * have COMPLETION_OWN in from_srq. NULL: caps.own_wr are posted already.
 */
#define COMPLETION_OWN 2
struct send_work *qp_own_slot(struct qp *qp);
void qp_own_posted(struct qp *qp);

/*
 * Whether the packet comes from this queue pair's peer: REASON_NONE, else why not. A connected
 * queue pair has one peer, at one address, and that peer is connected to it. The wire does not name
 * the sender of these packets; inside the engine p->sender does. Anybody may send datagrams.
 */
enum reason qp_check_origin(const struct qp *qp, const struct packet *p);

/* False while too many copies are unsettled. */
bool qp_can_receive(const struct qp *qp);

/* Whether this packet would take a receive request now: then offer one (the oldest posted). */
bool qp_wants_receive(const struct qp *qp, const struct packet *p);

/*
 * XRC target: called before a packet with an XRCETH is passed in, with the protection domain and
 * the engine-wide number of the SRQ that p->srqn names. 0 means no such SRQ, or one of another XRC
 * domain: the request is refused (NAK invalid request). An accepted request keeps its SRQ, and a
 * message ends in the SRQ in which it began. A receive completion from an SRQ, on any type of queue
 * pair, names the SRQ's number in work_index.
 */
void qp_target(struct qp *qp, uint32_t pd, uint32_t srq);

/*
 * A packet for this queue pair. `offer` is the oldest receive request (private memory of the
 * caller, num_sge <= max_recv_sge checked by the core), NULL if there is none or none is wanted;
 * the core copies what it keeps. The first offer->strip octets of a SEND are checked like the
 * others, but neither stored nor counted in byte_len. A nonzero offer->mark comes back as the
 * completion's work_index.
 * UD: the 40 octets in front of p->payload are what the receiver finds there (packet_make_grh).
 * RAW_PACKET: p->payload is the whole frame; of the other members only the envelope, `checksum`,
 * vlan_tci and flow_tag mean something.
 */
void qp_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
		 const struct key_table *keys, nanotime now, struct outcome *out);

/*
 * The middle of a message, several packets in one step. qp_expects_alike(): how many packets behind *p, the last one
 * that was accepted, may come so, at most `most`. They are those of the next PSNs, in order, and differ from
 * *p in PSN, AckReq and payload alone. Nothing has changed then. Their payloads go to one direct span in *place, one path MTU
 * each. 0: what is next needs qp_received().
 * qp_received_alike(): the first n of them have come, n > 0, and the caller has copied their octets, in order, with no event
 * of this queue pair since qp_expects_alike(). `asked`: the last one with AckReq, counted from 1; 0: none has it.
 */
uint32_t qp_expects_alike(const struct qp *qp, const struct packet *p, const struct key_table *keys,
			  uint32_t most, struct span_list *place);
void qp_received_alike(struct qp *qp, const struct packet *p, uint32_t n, uint32_t asked,
		       nanotime now);

/*
 * The caller keeps a packet with OUTCOME_HOLD, so the peer need not send it again. The packet stays
 * kept until it is passed in once more, or the queue pair is in ERR or RESET.
 */
void qp_held(struct qp *qp, const struct packet *p, nanotime now);
/* Whether a kept packet still waits for others. */
bool qp_waits(const struct qp *qp, const struct packet *p);

/*
 * RC: where the octets of an unacknowledged SEND or WRITE packet are, as qp_next_packet gathered
 * them, if the request may still access them. Else why not: the packet counts as lost then.
 */
enum reason qp_payload_of(const struct qp *qp, const struct packet *p, const struct key_table *keys,
			  struct span_list *gather);

/* The copies of this ticket are made (or could not be). In order of tickets. */
void qp_copied(struct qp *qp, uint64_t ticket, bool ok);
/* The atomic of this ticket was executed; `original` is the value before. */
void qp_atomic_done(struct qp *qp, uint64_t ticket, uint64_t original, bool ok);

/* A deadline was reached; an early call does nothing. */
void qp_expired(struct qp *qp, nanotime now);

/*
 * STATUS_SUCCESS: the operation of a NEXT_OPERATION was executed, and no lcore honours the old
 * meaning of the key any more. Else the request fails with this status (MW_BIND_ERR, LOC_PROT_ERR
 * ...), and the queue pair with it. Each NEXT_OPERATION is reported once, even if the queue pair
 * failed or was reset meanwhile: the report is ignored then. No other operation begins before the
 * report.
 */
void qp_operation_done(struct qp *qp, enum work_status status, enum reason why);

/*
 * This packet has left, so a message that ends with it is complete (UC, UD, RAW_PACKET). Reports
 * come in the packets' order, also for a packet whose address nobody answers for. Each packet of
 * these services is reported once: sent, unsent or gather_failed. Not called for RC and XRC.
 */
void qp_sent(struct qp *qp, const struct packet *p);
/* The payload of this packet could not be gathered; it was not sent. */
void qp_gather_failed(struct qp *qp, const struct packet *p);
/* This packet of an unreliable service may not be sent; its request fails with that status. */
void qp_refused(struct qp *qp, const struct packet *p, enum work_status status, enum reason why);
/*
 * This packet was not sent for want of a buffer or of room in the port. The core rewinds to it, so
 * that it is the next one again; there is no timer to wait for, unlike after a loss.
 */
void qp_unsent(struct qp *qp, const struct packet *p, nanotime now);
/*
 * A packet that qp_next_packet made some time ago leaves now: the time for the peer's answer begins
 * here.
 */
void qp_left(struct qp *qp, const struct packet *p, nanotime now);
/*
 * Packets of this queue pair were made and did not leave for this long: its timers must not count
 * that time.
 */
void qp_delayed(struct qp *qp, nanotime by);

/* The outside found a fault (CQ overrun, client gone): to ERR, with this reason, raising QP_FATAL. */
void qp_fail(struct qp *qp, enum reason why);

#endif
