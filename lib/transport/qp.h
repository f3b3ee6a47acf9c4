/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One queue pair, read as design: who the peer is, the requester, the responder, the copies under
 * way. Private to lib/transport; the contract is transport.h.
 */
#ifndef TRANSPORT_QP_H
#define TRANSPORT_QP_H

#include <assert.h>

#include "base/bits.h"
#include "transport/psn.h"
#include "transport/rate.h"
#include "transport/receive.h"
#include "transport/ticket.h"
#include "transport/transport.h"
#include "transport/window.h"
#include "wire/opcode.h"

/*
 * The requester: cursors over the private send window. A request stays in its slot until it is
 * retired, so the window is also the retransmission buffer.
 *
 *	retired        una            nxt            begun          tail
 *	   |   done,    |   sent, not   |  sent before, |   posted,   |
 *	   |   to be    |   acknow-     |  to be sent   |   no PSN    |
 *	   |  reported  |   ledged      |    again      |    yet      |
 *
 * and inside the messages, by packet sequence number:
 *
 *	una_psn: the oldest that is not acknowledged, in message una
 *	nxt_psn: the next to be sent, in message nxt; equals the first of message nxt at its start
 *	top_psn: one behind the newest that was ever sent
 *	new_psn: the first of the message that begins next
 *
 * Loss moves nxt back to una and nothing else: the ordinary send path does the rest.
 */
struct message { /* beside each window slot: what follows from the request, and how far it is */
	uint32_t length; /* octets */
	uint32_t first_psn;
	uint32_t packets; /* PSNs it takes; 0: it stays at home */
	uint32_t asked_from; /* READ: the PSNs that the last READ request asked for, */
	uint32_t asked_to; /* counted from first_psn */
	uint32_t ticket; /* READ, atomic: the last landing, low 32 bits */
	uint8_t kind; /* enum packet_kind, enum local_kind */
	uint8_t fault; /* enum reason: it cannot be sent, and fails in its turn */
	uint8_t fault_status; /* enum work_status */
	bool own; /* of the caller, not of the program */
	bool asked_again; /* READ: the last READ request was a repetition */
};

/* Requests that no packet carries: a numbering behind enum packet_kind (operation.c). */
enum local_kind {
	KIND_BIND_MW = 0x40,
	KIND_LOCAL_INV,
};

enum operating {
	OPERATING_NO,
	OPERATING, /* message una is being executed */
	OPERATING_FOR_NOTHING, /* ... and was flushed or forgotten: the report is awaited only */
};

struct requester {
	uint8_t *request; /* slots, a power of two, of `stride` octets */
	struct message *message; /* as many */
	uint32_t slot_mask;
	uint32_t stride;
	uint32_t capacity; /* requests of the program, <= slots less caps.own_wr */

	uint32_t retired, una, nxt, begun, tail; /* free-running */
	uint32_t own_posted, own_retired; /* free-running: how many of those are the caller's own */
	uint32_t una_psn, nxt_psn, top_psn, new_psn;

	uint32_t rd_atomic; /* READs and atomics of [una, begun) */
	uint64_t landing; /* the newest ticket of a landing (fences wait for it) */
	uint32_t unasked; /* packets sent since one with AckReq, at most */
	uint32_t recovery_psn; /* where the last go-back began */
	bool recovering; /* ... and nothing was acknowledged since, nor did the timer fire */
	bool drain_notify; /* SQ_DRAINED is owed to the program */
	bool failed; /* message una completes with what follows */
	uint8_t failed_status; /* enum work_status */
	uint8_t failed_reason; /* enum reason */
	uint8_t flush_reason; /* what the flushed ones name */

	uint8_t retries; /* left, see retry.c */
	uint8_t rnr_retries;
	nanotime timeout; /* 4.096 us * 2^timeout; TIME_NEVER: none */
	nanotime retry_at; /* the retransmission timer */
	uint32_t timeouts; /* how often it fired, since creation */
	uint8_t operating; /* enum operating */
	struct key_operation operation;
	nanotime rnr_until; /* an RNR wait; TIME_NEVER: none */
	nanotime
		paced_until; /* the rate limit holds the next packet back; TIME_NEVER: it does not */
	struct window window;
	struct rate rate;
};

/*
 * A READ, atomic, ATOMIC WRITE or FLUSH that was accepted: owed until its reply was sent, remembered behind that for
 * repetitions, until max_dest_rd_atomic younger ones followed (IBTA 9.4.4, 9.4.5).
 */
struct record {
	uint64_t va; /* READ: the whole range */
	uint64_t original; /* atomic: the value before */
	uint64_t ticket; /* the reply waits until this one is settled */
	uint64_t reply_va; /* READ: what the newest request asked for, */
	uint32_t reply_length; /* octets */
	uint32_t reply_psn; /* from this PSN on */
	uint32_t replied; /* packets of it that were sent */
	uint32_t psn;
	uint32_t packets;
	uint32_t length;
	uint32_t rkey;
	uint32_t pd; /* XRC target: of the SRQ that the request named */
	uint32_t msn;
	uint8_t kind; /* enum packet_kind: READ_REQUEST, CMP_SWAP, FETCH_ADD, ... */
	bool owed;
	bool repeated; /* owed for a repetition: dropped when its room is needed */
};

struct responder {
	uint32_t expected_psn;
	uint32_t msn;
	uint32_t access; /* QP access flags */
	bool reported; /* a sequence or RNR NAK stands until the expected PSN arrives */
	uint32_t ahead_psn; /* ... a sequence NAK: the newest that was dropped */

	/* the message that is open; KIND_UNDEFINED: none */
	uint8_t open; /* enum packet_kind */
	uint32_t offset; /* octets of it placed so far */
	uint32_t length; /* WRITE: of the RETH; SEND: of the receive request */
	uint32_t rkey;
	uint64_t va;
	uint32_t srq; /* the SRQ that it began with; 0: none */
	struct recv_work *held; /* the receive request of an open SEND */
	bool kept; /* UC: `held` is of a SEND that was cut, for the next message that needs one */

	/* what is owed: READ and atomic replies in order, then one ACK or NAK (reply.c) */
	struct record *record; /* ring, a power of two, or NULL: the peer may ask for nothing */
	uint32_t records;
	uint32_t record_mask;
	uint32_t record_head; /* the next to be written, free-running */
	uint32_t record_owed; /* the oldest that may be owed */
	uint32_t ack_due_psn; /* the newest packet that wants to be acknowledged */
	uint32_t acked_psn; /* the newest that was acknowledged */
	bool ack_due;
	uint8_t nak; /* syndrome of a NAK that is owed, 0: none */
	uint32_t nak_psn;
	uint32_t nak_msn;
	uint64_t nak_ticket; /* it waits until this one is settled */
};

struct qp {
	uint8_t state; /* enum qp_state */
	uint8_t type; /* enum qp_type */
	uint8_t service; /* enum service of its packets; RAW_PACKET: without meaning */
	uint8_t min_rnr_timer;
	uint8_t max_dest_rd_atomic;
	bool sig_all;
	bool established; /* COMM_EST was raised */
	bool last_wqe_due; /* LAST_WQE_REACHED follows the last receive completion */
	uint32_t mtu; /* path MTU, octets */
	uint32_t mtu_shift;
	uint32_t qpn;
	uint32_t dest_qpn;
	struct key_user receiver; /* on whose behalf receive requests name memory */
	struct key_user user; /* XRC target: of the SRQ that the packet at hand names */
	uint32_t srq; /* of the packet at hand; 0: none */
	uint32_t events; /* enum qp_event, not taken yet */
	struct gid local;
	struct gid peer;

	struct requester req;
	struct responder resp;

	struct tickets tickets;
	struct receives receives;

	struct qp_attributes attr; /* as the program set them */
	struct qp_caps caps;
};

static inline struct send_work *request_at(const struct qp *qp, uint32_t index)
{
	const struct requester *r = &qp->req;

	return (struct send_work *)(void *)(r->request +
					    (size_t)(index & r->slot_mask) * r->stride);
}

static inline struct message *message_at(const struct qp *qp, uint32_t index)
{
	return &qp->req.message[index & qp->req.slot_mask];
}

static inline uint32_t message_end(const struct message *m)
{
	return psn_add(m->first_psn, m->packets);
}

static inline bool kind_is_atomic(uint8_t kind)
{
	return kind == KIND_CMP_SWAP || kind == KIND_FETCH_ADD;
}

/* Answered by a response of its own; its plain acknowledgement does not complete it. */
static inline bool kind_is_fetching(uint8_t kind)
{
	return kind == KIND_READ_REQUEST || kind_is_atomic(kind) || kind == KIND_ATOMIC_WRITE ||
	       kind == KIND_FLUSH;
}

/* FETH: placement type in bits 3-0, selectivity level in bits 5-4 (IBTA A19). */
#define FETH(type, level) ((uint32_t)(type) | (uint32_t)(level) << 4)
#define FETH_TYPE(feth)	  ((feth)&0xf)
#define FETH_LEVEL(feth)  ((feth) >> 4) /* the reserved bits above belong to it: all are 0 */

/* Executed at home, without a packet. */
static inline bool kind_is_local(uint8_t kind)
{
	return kind >= KIND_BIND_MW;
}

/* Requests of the program before this one, [retired, ...) not counted. */
static inline uint32_t retired_of_program(const struct qp *qp)
{
	return qp->req.retired - qp->req.own_retired;
}

/* Packets of a message, and the PSNs of a READ (IBTA 9.7.2). */
static inline uint32_t packets_of(const struct qp *qp, uint32_t length)
{
	return length == 0 ? 1 : ((length - 1) >> qp->mtu_shift) + 1;
}

/* modify.c */
void qp_reset(struct qp *qp);

/* qp.c: to ERR. The receive request of an open message is flushed; replies owed are still sent. */
void enter_error(struct qp *qp);

/* request.c */
void request_check(struct qp *qp, uint32_t index);
bool request_ready(const struct qp *qp);
enum next_packet request_next(struct qp *qp, const struct key_table *keys, nanotime now,
			      struct packet *p, struct span_list *gather, nanotime *not_before);
void request_fail_in_turn(struct qp *qp);
void request_failed(struct qp *qp, uint32_t index, enum work_status status, enum reason why);
void request_unsent(struct qp *qp, const struct packet *p, nanotime now);
void request_fault(struct qp *qp, uint32_t psn, enum reason why);
/* ... with another status than that of a memory fault. */
void request_refuse(struct qp *qp, uint32_t psn, enum work_status status, enum reason why);
/*
 * Something may hold back the packet that would have asked for an acknowledgement: then the last
 * one that is on its way comes again, and asks.
 */
void request_ask(struct qp *qp);
bool qp_drained(const struct qp *qp); /* nothing that was begun is on its way */
void request_drained(struct qp *qp); /* raises SQ_DRAINED when it is due */

/* operation.c */
bool operation_may_begin(const struct qp *qp);
enum next_packet operation_next(struct qp *qp, const struct key_table *keys);
void operation_abandon(struct qp *qp); /* its report is awaited, and ignored */

/* answer.c */
enum reason answer_received(struct qp *qp, const struct packet *p, const struct key_table *keys,
			    nanotime now, struct outcome *out);

/* retry.c */
void retry_reset(struct qp *qp);
void retry_started(struct qp *qp, nanotime now);
void retry_held_back(struct qp *qp, nanotime now);
void retry_progress(struct qp *qp, nanotime now);
void retry_go_back(struct qp *qp);
void retry_gap(struct qp *qp);
void retry_not_ready(struct qp *qp, uint8_t code, nanotime now);
nanotime rnr_time(uint8_t code);

/* respond.c */
enum reason respond_received(struct qp *qp, const struct packet *p, const struct recv_work *offer,
			     const struct key_table *keys, struct outcome *out);
void respond_failed(struct qp *qp, enum reason why, uint32_t psn, uint32_t msn);

/* unreliable.c */
enum reason unreliable_received(struct qp *qp, const struct packet *p,
				const struct recv_work *offer, const struct key_table *keys,
				struct outcome *out);
bool unreliable_wants_receive(const struct qp *qp, const struct packet *p);
void unreliable_copy_failed(struct qp *qp, const struct ticket *t, enum reason why);
void enter_sq_error(struct qp *qp); /* to SQE: the rest of the window is flushed */

/* duplicate.c */
enum reason duplicate_received(struct qp *qp, const struct packet *p);

/* reply.c */
bool reply_ready(const struct qp *qp);
bool reply_next(struct qp *qp, const struct key_table *keys, struct packet *p,
		struct span_list *gather);
void reply_unsent(struct qp *qp, const struct packet *p);
void reply_fault(struct qp *qp, const struct packet *p);
void reply_forget(struct qp *qp, uint32_t psn); /* what is owed for this PSN and behind */
void reply_abandon(struct qp *qp); /* all of it */
void reply_forget_answered(struct qp *qp); /* record_owed to the oldest that is owed */

/* copied.c */
/* Reports for what is under way are ignored from now on. */
void tickets_abandon(struct qp *qp);

#endif
