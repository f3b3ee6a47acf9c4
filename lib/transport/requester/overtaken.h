/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which packets were overtaken by others. A packet that was sent once was sent when its PSN was
 * new, so the order of the PSNs is that of sending; repetitions are kept in two sets with a mark
 * each (board.h). An arrival shows that all sent before it is late: lost, or out of order.
 *
 * recovery.c decides how late is too late.
 */
#ifndef TRANSPORT_OVERTAKEN_H
#define TRANSPORT_OVERTAKEN_H

#include "transport/qp.h"

/* How far a PSN is ahead of the oldest in flight; PSNs outside the window are behind it. */
static inline uint32_t ahead(const struct requester *r, uint32_t psn)
{
	uint32_t n = (psn - r->una_psn) & PSN_MASK;

	return n <= board_window(&r->board) ? n : 0;
}

static inline uint32_t on_its_way(const struct requester *r)
{
	return ahead(r, r->top_psn);
}

/* The PSN so many places before this one, but not before the oldest. */
static inline uint32_t less(const struct requester *r, uint32_t psn, uint32_t by)
{
	uint32_t n = ahead(r, psn);

	return psn_add(r->una_psn, n > by ? n - by : 0);
}

/* The later of two. */
static inline uint32_t further(const struct requester *r, uint32_t x, uint32_t y)
{
	return ahead(r, x) > ahead(r, y) ? x : y;
}

/* How many PSNs of message i lie before `until`, from the oldest in flight on: *from. */
uint32_t overtaken_part(const struct requester *r, uint32_t i, uint32_t until, uint32_t *from);

/*
 * Moves to BOARD_LOST what was sent before the packet with PSN `all`; of SENDs and WRITEs, what was
 * sent before `data`. True: there was some. `asked`: only answers, and moves nothing.
 */
bool overtaken(struct requester *r, uint32_t all, uint32_t data, bool asked);
/* Moves the repetitions among [from, from + count). */
bool overtaken_again(struct requester *r, uint32_t from, uint32_t count);

/* Whether a packet was sent once and is not lost. */
bool overtaken_sent_once(const struct board *b, uint32_t psn);
/* How many of these packets, from the first one on, were sent once each, and nothing is known of them. */
uint32_t overtaken_all_sent_once(const struct requester *r, uint32_t psn, uint32_t psns);
/* The response with this PSN came behind a gap, and nothing that was sent later came before it. */
bool overtaken_by_none(const struct qp *qp, uint32_t psn);
/* A packet has arrived: if a later one came before it, the network changed their order
 * (path_reordered).
 */
void overtaken_arrived(struct qp *qp, uint32_t psn, nanotime now);
/*
 * A READ response arrived that is not the last one of what it answers. If the last repetition asked for this PSN
 * alone, this is the first response to it: it was not lost, but changed its place.
 */
void overtaken_first_response(struct qp *qp, uint32_t psn, nanotime now);

#endif
