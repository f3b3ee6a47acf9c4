/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that wait for movers (hold.c). Used by rx.c, moving.c and the control path. */
#ifndef LCORE_HOLD_H
#define LCORE_HOLD_H

#include "lcore/lcore.h"

/* At most `packets` wait. NULL: no memory. */
struct holding *holding_create(uint32_t packets);
void holding_destroy(struct holding *h);

/*
 * Holds a packet that its queue pair cannot take yet, and the mbuf with it, behind those already
 * held. False: there is no room, or no job is under way whose return would release the packet.
 */
bool hold_packet(struct lcore *l, struct engine_qp *q, const struct packet *p, struct rte_mbuf *m);
/* Passes on the queue pair's held packets that fit now, in order. True: no packet is left. */
bool hold_release_of(struct lcore *l, struct engine_qp *q, nanotime now);
/* The same for all queue pairs, some packets at a time. True: there may be more to do. */
bool hold_release(struct lcore *l, uint32_t *work, nanotime now);
/* Drops the held packets of a queue pair that is reset or destroyed. */
void hold_forget(struct lcore *l, struct engine_qp *q);

/*
 * packet.c: packet_fits says whether the queue pair and its mover can take this packet now;
 * packet_take takes it.
 */
bool packet_fits(struct lcore *l, struct engine_qp *q, const struct packet *p, nanotime now);
bool packet_take(struct lcore *l, struct engine_qp *q, const struct packet *p, struct rte_mbuf *m,
		 nanotime now);

#endif
