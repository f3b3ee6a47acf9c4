/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much each end of a stream may send, and where it lies. Pure: no clock, no memory but what is
 * given, no locks (the socket's).
 *
 * The receiver's buffer has two halves; a half is published to the peer as one buffer, which the
 * peer fills from its start to its end before it goes on to the next one. A half is published again
 * when as many octets as it has were taken out: they came in order, so they were its own.
 *
 *	receive buffer  |......taken|waiting......|landing here->      |
 *	                ^ 0          ^ offset      ^ landed             ^ 2 * half
 *
 * Besides, every message needs a credit: numbers count from 0 and wrap at 2^16, "granted" is how
 * many may have been sent in all.
 */
#ifndef RDMACM_RS_FLOW_H
#define RDMACM_RS_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "config/limits.h"

/* Octets of a buffer in one piece. */
struct rs_piece {
	uint32_t offset, length;
};

/* ---- receiving ---- */

struct rs_inflow {
	uint32_t half;
	uint32_t offset; /* of the first octet not taken yet, [0, 2 * half) */
	uint32_t open; /* octets published and not announced yet, [0, 2 * half] */
	uint32_t taken; /* octets taken, and not published again yet */
	uint32_t free_offset; /* of the half to publish next */
	uint16_t seen; /* messages done with, modulo 2^16 */
	uint16_t renew_at; /* the number of messages at which new credits are due */
	uint16_t credits; /* that the peer may have at once */
	uint32_t head, tail; /* of the ring of lengths; equal: it is empty */
	uint32_t head_taken; /* octets of the first message that were taken */
	uint32_t *length; /* credits + 1 */
};

/* The first half is published (in the greeting). `length`: credits + 1 places. */
void rs_inflow_init(struct rs_inflow *f, uint32_t half, uint16_t credits, uint32_t *length);
/* The peer says that octets have landed. false: more than it was given room or credits for. */
bool rs_inflow_announce(struct rs_inflow *f, uint32_t octets);
/* A message came that leaves nothing to be read. */
void rs_inflow_pass(struct rs_inflow *f);

static inline bool rs_inflow_waits(const struct rs_inflow *f)
{
	return f->head != f->tail;
}

/*
 * What can be read next in one piece of up to `wanted` octets; length 0: nothing. To look ahead,
 * one takes from a copy of the struct.
 */
struct rs_piece rs_inflow_next(const struct rs_inflow *f, uint32_t wanted);
void rs_inflow_take(struct rs_inflow *f, uint32_t octets);

/* Whether the peer should be told of credits or of a buffer. */
bool rs_inflow_owes(const struct rs_inflow *f);
/* It is told now: how many messages it may have sent, and the half to publish (length 0: none). */
uint16_t rs_inflow_grant(struct rs_inflow *f, struct rs_piece *half);

/* ---- sending ---- */

struct rs_outflow {
	uint32_t size; /* of the buffer */
	uint32_t offset; /* where the next octets go */
	uint32_t available; /* octets without a message under way */
	uint16_t sent, granted; /* messages, modulo 2^16 */
	uint16_t places; /* of the send queue, for data */
	uint16_t control_places; /* ... for control messages */
};

void rs_outflow_init(struct rs_outflow *f, uint32_t size, uint16_t places, uint16_t control_places);

static inline bool rs_outflow_ready(const struct rs_outflow *f)
{
	return f->places > 0 && f->available >= LIMIT_RS_LOW_WATER;
}

/* Whether a message with data can go: `target`: octets that the peer's buffer has left. */
static inline bool rs_outflow_may_send(const struct rs_outflow *f, uint32_t target)
{
	return rs_outflow_ready(f) && f->sent != f->granted && target > 0;
}

/* The next octets of the buffer, two pieces where it ends in between; returns how many. */
int rs_outflow_pieces(const struct rs_outflow *f, uint32_t octets, struct rs_piece pieces[2]);
/* A message is under way that uses so many octets of the buffer (inline: none). */
void rs_outflow_sent(struct rs_outflow *f, uint32_t octets);
void rs_outflow_done(struct rs_outflow *f, uint32_t octets);

#endif
