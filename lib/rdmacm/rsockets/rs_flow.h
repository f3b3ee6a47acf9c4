/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow control of a stream: how much each end may send, and where it goes. Pure: no clock, no lock
 * (that of the socket protects it), no memory of its own.
 *
 * The receive buffer has two halves. A half is published to the peer as one buffer, and the peer
 * fills it from start to end before it goes on to the next one. A half is published again when as
 * many octets as it holds were taken out. Octets arrive in order, so they were the octets of this
 * half.
 *
 *	receive buffer  |......taken|waiting......|landing here->      |
 *	                ^ 0          ^ offset      ^ landed             ^ 2 * half
 *
 * Every message also needs a credit. Messages are numbered from 0, and the numbers wrap at 2^16.
 * "granted" is the total number of messages that may have been sent.
 */
#ifndef RDMACM_RS_FLOW_H
#define RDMACM_RS_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "config/limits.h"

/* A contiguous piece of a buffer, in octets. */
struct rs_piece {
	uint32_t offset, length;
};

/* ---- receiving ---- */

struct rs_inflow {
	uint32_t half;
	uint32_t offset; /* of the first octet not taken yet, [0, 2 * half) */
	uint32_t open; /* octets published and not announced yet, [0, 2 * half] */
	uint32_t taken; /* octets taken and not republished yet */
	uint32_t free_offset; /* of the half to publish next */
	uint16_t seen; /* messages handled, modulo 2^16 */
	uint16_t renew_at; /* the number of messages at which new credits are due */
	uint16_t credits; /* how many the peer may have at once */
	uint32_t head, tail; /* of the ring of lengths; equal: the ring is empty */
	uint32_t head_taken; /* octets of the first message already taken */
	uint32_t *length; /* credits + 1 entries */
};

/* The greeting publishes the first half. `length` has credits + 1 entries. */
void rs_inflow_init(struct rs_inflow *f, uint32_t half, uint16_t credits, uint32_t *length);
/* Octets have landed. False: they are more than the peer had room or credits for. */
bool rs_inflow_announce(struct rs_inflow *f, uint32_t octets);
/* A message without data has arrived. */
void rs_inflow_pass(struct rs_inflow *f);

static inline bool rs_inflow_waits(const struct rs_inflow *f)
{
	return f->head != f->tail;
}

/*
 * The next piece that can be read, of up to `wanted` octets. Length 0: there is nothing. To look
 * ahead, call this and rs_inflow_take on a copy of the struct.
 */
struct rs_piece rs_inflow_next(const struct rs_inflow *f, uint32_t wanted);
void rs_inflow_take(struct rs_inflow *f, uint32_t octets);

/* Whether credits or a buffer should be announced to the peer. */
bool rs_inflow_owes(const struct rs_inflow *f);
/*
 * Announces them. Returns how many messages the peer may have sent in total, and the half to
 * publish (length 0: none).
 */
uint16_t rs_inflow_grant(struct rs_inflow *f, struct rs_piece *half);

/* ---- sending ---- */

struct rs_outflow {
	uint32_t size; /* of the buffer */
	uint32_t offset; /* where the next octets go */
	uint32_t available; /* octets not used by messages under way */
	uint16_t sent, granted; /* messages, modulo 2^16 */
	uint16_t places; /* free places of the send queue, for data */
	uint16_t control_places; /* ... for control messages */
};

void rs_outflow_init(struct rs_outflow *f, uint32_t size, uint16_t places, uint16_t control_places);

static inline bool rs_outflow_ready(const struct rs_outflow *f)
{
	return f->places > 0 && f->available >= LIMIT_RS_LOW_WATER;
}

/* Whether a data message can be sent. `target`: free octets of the peer's buffer. */
static inline bool rs_outflow_may_send(const struct rs_outflow *f, uint32_t target)
{
	return rs_outflow_ready(f) && f->sent != f->granted && target > 0;
}

/* The next octets of the buffer, as two pieces if they wrap. Returns the number of pieces. */
int rs_outflow_pieces(const struct rs_outflow *f, uint32_t octets, struct rs_piece pieces[2]);
/* A message that uses this many octets of the buffer (inline: 0) is under way. */
void rs_outflow_sent(struct rs_outflow *f, uint32_t octets);
void rs_outflow_done(struct rs_outflow *f, uint32_t octets);

#endif
