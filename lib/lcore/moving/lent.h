/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets between two queue pairs of one lcore that do not carry their octets. Instead of copying them into
 * the frame and from there to their place, the lcore copies them once, when the frame arrives:
 *
 *	sent	a frame with a gap in place of the payload, marked FRAME_LENT; it holds no address
 *	arrives	the requester says where the octets of that PSN are: its key is checked again, and a packet
 *		that is not on its way any more has none. So memory is not read after its completion, nor after
 *		its region has gone; such a packet is dropped, as a network would do.
 *	kept	whatever keeps the packet beyond this round gets the octets in the frame (lent_keep)
 *
 * Not where the ICRC is asked for (uroce_options.sum_loop), where somebody captures frames, for peer memory, or
 * for services that complete what they have sent.
 */
#ifndef LCORE_LENT_H
#define LCORE_LENT_H

#include "lcore/lcore.h"

struct staged_frame;

/* Whether the frame that is built, without an ICRC and with its payload in lcore.gather, goes without it. */
bool lent_may(const struct lcore *l, const struct staged_frame *s);
/* The frame is to have its payload after all. False: its octets are gone, and so is the packet. */
bool lent_fill(struct lcore *l, struct staged_frame *s);
/* A capture or trace looks at frames that pass now. */
bool lent_is_watched(const struct lcore *l);

/*
 * A lent frame for q (NULL: there is none) has arrived: sets p->payload to its octets, or copies them into the
 * frame. REASON_NONE, or why the packet is dropped.
 */
enum reason lent_open(struct lcore *l, const struct engine_qp *q, struct packet *p,
		      struct rte_mbuf *m);

/* Where the octets are from now on, for as long as the mbuf: copies them into it if they are not there. */
const uint8_t *lent_keep(const struct packet *p, struct rte_mbuf *m);

#endif
