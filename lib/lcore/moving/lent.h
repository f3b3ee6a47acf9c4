/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets between two queue pairs of one lcore that do not carry their octets. The lcore copies the
 * octets once, when the frame arrives, instead of into the frame and from there to their place:
 *
 *	sent	a frame with a gap in place of the payload, marked FRAME_LENT; it holds no address
 *	arrives	the requester says where the octets of that PSN are: its key is checked again, and a packet
 *		that is not on its way any more has none. So memory is not read after its completion, nor after
 *		its region has gone; such a packet is dropped, as a network would do.
 *	kept	whatever keeps the packet beyond this round gets the octets in the frame (lent_keep)
 *
 * Not used if the ICRC is asked for (uroce_options.sum_loop), during a capture, for peer memory, or
 * for services that complete requests once sent.
 */
#ifndef LCORE_LENT_H
#define LCORE_LENT_H

#include "lcore/lcore.h"

struct staged_frame;

/* Whether the frame, built without an ICRC and with its payload in lcore.gather, leaves without the
 * payload.
 */
bool lent_may(const struct lcore *l, const struct staged_frame *s);
/* The frame needs its payload after all. False: the octets are gone, and so is the packet. */
bool lent_fill(struct lcore *l, struct staged_frame *s);
/* A capture or trace looks at frames that pass now. */
bool lent_is_watched(const struct lcore *l);

/*
 * A lent frame for q (NULL: there is none) has arrived: sets p->payload to its octets, or copies them into the
 * frame. REASON_NONE, or why the packet is dropped.
 */
enum reason lent_open(struct lcore *l, const struct engine_qp *q, struct packet *p,
		      struct rte_mbuf *m);

/* Where the octets are for the life of the mbuf: copies them into the mbuf if they are elsewhere.
 */
const uint8_t *lent_keep(const struct packet *p, struct rte_mbuf *m);

#endif
