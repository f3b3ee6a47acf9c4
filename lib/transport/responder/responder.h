/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder: where the peer's requests are (the expected PSN, the open message) and what is
 * owed to the peer. respond.c takes requests and notes debts, reply.c pays them.
 */
#ifndef TRANSPORT_RESPONDER_H
#define TRANSPORT_RESPONDER_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"
#include "transport/psn_set.h"

struct recv_work;

/*
 * An accepted READ, atomic, ATOMIC WRITE or FLUSH. It is owed until its reply is sent, then
 * remembered for repetitions until max_dest_rd_atomic younger ones followed (IBTA 9.4.4, 9.4.5).
 */
#define RECORD_PARTS 3u

struct record_part { /* of a repeated READ, while another part is being sent */
	uint32_t psn;
	uint32_t octets;
};

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
	uint8_t parts; /* READ: more parts that are owed, in this order */
	struct record_part part[RECORD_PARTS];
};

struct responder {
	uint32_t expected_psn;
	uint32_t msn;
	uint32_t access; /* QP access flags */
	uint32_t ahead_psn; /* the newest that came before the expected PSN */
	nanotime cnp_at; /* the next notification not before */
	nanotime nak_at; /* a gap still open then is reported; TIME_NEVER: none */
	union { /* bits of packets behind the gap, kept by the caller (behind.h) */
		uint64_t behind[PSN_SET_WORDS];
		uint64_t *behind_more; /* the caller gave more */
	};
	uint32_t behind_words;
	uint32_t holding; /* ... how many are */
	bool cnp_due; /* the network marked an arrival: its sender is to slow down (mark.h) */
	bool selection_due; /* ... and the peer, which understands it, is to be told */
	uint32_t news_first, news_last; /* the range that the peer was not told yet */
	bool goes_back; /* a NAK has left, and the peer sends again from there, also what is kept */
	bool reported; /* a sequence or RNR NAK stands until the expected PSN arrives */

	/* the message that is open; KIND_UNDEFINED: none */
	bool kept; /* UC: `held` is of a SEND that was cut, for the next message that needs one */
	uint8_t open; /* enum packet_kind */
	uint32_t offset; /* octets of it placed so far */
	uint32_t length; /* WRITE: of the RETH; SEND: of the receive request */
	uint32_t rkey;
	uint32_t srq; /* the SRQ that it began with; 0: none */
	uint64_t va;
	struct recv_work *held; /* the receive request of an open SEND */

	/* what is owed: READ and atomic replies in order, then one ACK or NAK (reply.c) */
	struct record *record; /* ring, a power of two, or NULL: the peer may ask for nothing */
	uint32_t records; /* that there is room for */
	uint32_t record_mask;
	uint32_t remembered; /* max_dest_rd_atomic, <= records: the newest so many are */
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

static inline struct record *record_at(const struct responder *r, uint32_t index)
{
	return &r->record[index & r->record_mask];
}

/* The record that a new one replaces. */
static inline struct record *record_oldest(const struct responder *r)
{
	return record_at(r, r->record_head - r->remembered);
}

/*
 * A record must be answered before it makes room. A peer that keeps to max_dest_rd_atomic has seen
 * the answer; only a packet that was delayed on the way asks for it again.
 */
static inline bool record_free(const struct responder *r)
{
	const struct record *oldest;

	assert(r->remembered <= r->records);
	if (r->remembered == 0)
		return false;
	oldest = record_oldest(r);
	return !oldest->owed || oldest->repeated;
}

#endif
