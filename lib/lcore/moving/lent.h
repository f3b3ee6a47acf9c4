/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets between two queue pairs of one lcore that do not carry their octets. The lcore copies the
 * octets once, when the frame arrives, instead of into the frame and from there to their place:
 *
 *	sent	a frame with a gap in place of the payload, marked FRAME_LENT; it holds no address
 *	arrives	the requester says where the octets of that PSN are. Its key is checked again. A
 *		packet that is not on its way any more has no octets: it is dropped, as a network
 *		might do. So memory is not read after its request has completed or its region is
 *		gone.
 *	kept	the octets go into the frame before the packet is kept beyond this round
 *		(lent_keep)
 *
 * Not used if the ICRC is asked for (uroce_options.sum_loop), during a capture, for peer memory, or
 * for services that complete requests once sent.
 */
#ifndef LCORE_LENT_H
#define LCORE_LENT_H

#include "lcore/lcore.h"

struct staged_frame;

/*
 * Whether the frame may leave without its payload. The frame was built without an ICRC, and its
 * payload is in lcore.gather.
 */
bool lent_may(const struct lcore *l, const struct staged_frame *s);
/* The frame needs its payload after all. False: the octets are gone, and the packet with them. */
bool lent_fill(struct lcore *l, struct staged_frame *s);
/* A capture or trace looks at frames that pass now. */
bool lent_is_watched(const struct lcore *l);

/*
 * A lent frame for q (NULL: no queue pair has its number) has arrived. Sets p->payload to the
 * octets, or copies them into the frame. Returns REASON_NONE, or why the packet is dropped.
 */
enum reason lent_open(struct lcore *l, const struct engine_qp *q, struct packet *p,
		      struct rte_mbuf *m);

/* Returns octets that live as long as the mbuf. Copies them into the mbuf if they are elsewhere. */
const uint8_t *lent_keep(const struct packet *p, struct rte_mbuf *m);

#endif
