/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which packets were overtaken by others. A packet that was sent once was sent when its PSN was new, so the order
 * of the PSNs is that of sending; repetitions are kept in two sets with a mark each (board.h). What arrives says of all that
 * was sent before it that it is late: lost, or it changed its place.
 *
 * Nothing here decides how late is too late: that is recovery.c's.
 */
#ifndef TRANSPORT_OVERTAKEN_H
#define TRANSPORT_OVERTAKEN_H

#include "transport/qp.h"

/* How far a PSN is ahead of the oldest on its way; what is outside the window is behind it. */
static inline uint32_t ahead(const struct requester *r, uint32_t psn)
{
	uint32_t n = (psn - r->una_psn) & PSN_MASK;

	return n <= board_window(&r->board) ? n : 0;
}

static inline uint32_t on_its_way(const struct requester *r)
{
	return ahead(r, r->top_psn);
}

/* So many before a PSN, from the oldest on. */
static inline uint32_t less(const struct requester *r, uint32_t psn, uint32_t by)
{
	uint32_t n = ahead(r, psn);

	return psn_add(r->una_psn, n > by ? n - by : 0);
}

/* The later one of two. */
static inline uint32_t further(const struct requester *r, uint32_t x, uint32_t y)
{
	return ahead(r, x) > ahead(r, y) ? x : y;
}

/* How many PSNs of message i lie before `until`, from the oldest that is on its way on: *from. */
uint32_t overtaken_part(const struct requester *r, uint32_t i, uint32_t until, uint32_t *from);

/*
 * What was sent before the packet with PSN `all` was moves to BOARD_LOST; of SENDs and WRITEs, what was sent before
 * `data` was. True: there was some. `asked`: that is all that is wanted, and nothing moves.
 */
bool overtaken(struct requester *r, uint32_t all, uint32_t data, bool asked);
/* ... and of [from, from + count) what was sent again. */
bool overtaken_again(struct requester *r, uint32_t from, uint32_t count);

/* Whether a packet is as it was sent first: neither sent again nor lost. */
bool overtaken_sent_once(const struct board *b, uint32_t psn);
/* A packet has arrived: if one that was sent later came before it, they changed their places (path_reordered). */
void overtaken_arrived(struct qp *qp, uint32_t psn, nanotime now);

#endif
