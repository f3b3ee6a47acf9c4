/* SPDX-License-Identifier: BSD-3-Clause */
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
 * A loss is noted on the board (board.h) and moves nxt back to the first lost packet. The ordinary
 * send path does the rest: nxt goes from one lost packet to the next, up to top.
 *
 * Five files move the cursors: request.c sends, answer.c acknowledges, recovery.c finds losses,
 * retry.c goes back and complete.c retires.
 */
#ifndef TRANSPORT_REQUESTER_H
#define TRANSPORT_REQUESTER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/time.h"
#include "base/work.h"
#include "transport/outcomes.h"
#include "transport/psn.h"
#include "transport/requester/board.h"
#include "transport/requester/rate.h"

struct message { /* beside each window slot: derived properties and progress of the request */
	uint32_t length; /* octets */
	uint32_t first_psn;
	uint32_t packets; /* PSNs it takes; 0: it stays at home */
	uint32_t asked_to; /* READ: packets that were asked for, in parts (parts.h), */
	uint32_t base; /* ... and the first one of a part of the present size */
	uint32_t ticket; /* READ, atomic: the last landing, low 32 bits */
	uint8_t kind; /* enum packet_kind, enum local_kind */
	uint8_t fault; /* enum reason: it cannot be sent, and fails in its turn */
	uint8_t fault_status; /* enum work_status */
	uint8_t part,
		part_before; /* READ: log2 of packets of the parts from `base` on, and before */
	bool own : 1; /* of the caller, not of the program */
	bool plain : 1; /* a SEND, WRITE or READ of a reliable service, without a fence or fault */
	bool asked_again : 1; /* READ: some packets were asked for again */
};

enum operating {
	OPERATING_NO,
	OPERATING, /* message una is being executed */
	OPERATING_FOR_NOTHING, /* ... and was flushed or forgotten: only the report is awaited */
};

struct sample {
	nanotime at; /* it left */
	uint32_t psn;
	bool doubted; /* something was sent again since then */
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

	uint64_t landing; /* the newest ticket of a landing (fences wait for it) */
	uint32_t rd_atomic; /* READs and atomics of [una, begun) */
	uint32_t unasked; /* packets sent since one with AckReq, at most */
	struct sample
		*sample; /* sample.h: the packets whose round trips are measured, oldest first; */
	struct sample own_sample; /* ... most queue pairs measure one at a time */
	uint8_t samples, sampling; /* that there is room for, and that there are */
	uint8_t operating; /* enum operating */
	bool held; /* by its path (flight.h) */
	uint8_t resumed; /* packets it may send before others that its path holds back */
	bool alone; /* it is not answered (flight.h) */
	int16_t more_parts; /* requests of parts that the peer owes answers to, beyond one for each of rd_atomic */
	uint32_t wanted; /* octets that it is held back for */
	uint32_t flying_psns; /* in flight, as its path counts, */
	uint64_t flying; /* ... in so many octets */
	uint64_t
		unasked_octets; /* of the `unasked` packets, and of the next one while it is made */
	uint32_t recovery_psn; /* where the last go-back began */
	bool recovering; /* ... and nothing was acknowledged since, nor did the timer fire */
	bool drain_notify; /* SQ_DRAINED is owed to the program */
	bool failed; /* message una completes with what follows */
	uint8_t failed_status; /* enum work_status */
	uint8_t failed_reason; /* enum reason */
	uint8_t flush_reason; /* what the flushed ones name */

	uint8_t retries; /* left, see retry.c */
	uint8_t rnr_retries;
	uint32_t given_up; /* the path's count when `alone` was last looked at */
	nanotime timeout; /* 4.096 us * 2^timeout; TIME_NEVER: none */
	nanotime retry_at; /* the retransmission timer, */
	nanotime unheard_at; /* ... while it is held with nothing in flight; or TIME_NEVER */
	uint32_t heard; /* what the path had heard when either was set */
	uint32_t timeouts; /* how often it fired, since creation */
	struct key_operation operation;
	nanotime rnr_until; /* an RNR wait; TIME_NEVER: none */
	nanotime
		paced_until; /* the rate limit holds the next packet back; TIME_NEVER: it does not */
	struct rate rate;
	struct board board;
};

static inline struct send_work *request_at(const struct requester *r, uint32_t index)
{
	return (struct send_work *)(void *)(r->request +
					    (size_t)(index & r->slot_mask) * r->stride);
}

static inline struct message *message_at(const struct requester *r, uint32_t index)
{
	return &r->message[index & r->slot_mask];
}

static inline uint32_t message_end(const struct message *m)
{
	return psn_add(m->first_psn, m->packets);
}

/*
 * The number of the message with this PSN, which is on its way or was the oldest message's. Each message has a PSN at
 * least, so none further behind una than the PSN is behind una_psn can have it.
 */
static inline uint32_t message_of(const struct requester *r, uint32_t psn)
{
	uint32_t most = (psn - r->una_psn) & PSN_MASK, i;

	assert(r->una != r->begun);
	i = r->una + MIN_OF(most, r->begun - r->una - 1);
	while (i != r->una && psn_after(message_at(r, i)->first_psn, psn))
		i--;
	assert(psn_within(psn, message_at(r, i)->first_psn, message_at(r, i)->packets));
	return i;
}

static inline uint32_t in_flight(const struct requester *r)
{
	return (r->nxt_psn - r->una_psn) & PSN_MASK;
}

/* How many requests of the program were retired. */
static inline uint32_t retired_of_program(const struct requester *r)
{
	return r->retired - r->own_retired;
}

#endif
