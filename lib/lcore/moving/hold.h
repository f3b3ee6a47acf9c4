/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that wait for movers, see hold.c. Between rx.c, moving.c and the control path. */
#ifndef LCORE_HOLD_H
#define LCORE_HOLD_H

#include "lcore/lcore.h"

struct holding *holding_create(void);
void holding_destroy(struct holding *h);

/*
 * A packet that its queue pair cannot take yet. True: the packet and the mbuf are held, behind
 * those held already. False: nothing would release it, or there is no room.
 */
bool hold_packet(struct lcore *l, struct engine_qp *q, const struct packet *p, struct rte_mbuf *m);
/* Passes on the queue pair's held packets that fit now, in order. True: none is left. */
bool hold_release_of(struct lcore *l, struct engine_qp *q, nanotime now);
/* The same for all queue pairs, some packets at a time. True: there may be more to do. */
bool hold_release(struct lcore *l, uint32_t *work, nanotime now);
/* Drops its held packets: the queue pair is reset or destroyed. */
void hold_forget(struct lcore *l, struct engine_qp *q);

/* packet.c: whether the queue pair and its mover can take this packet now; and takes it. */
bool packet_fits(struct lcore *l, struct engine_qp *q, const struct packet *p, nanotime now);
bool packet_take(struct lcore *l, struct engine_qp *q, const struct packet *p, struct rte_mbuf *m,
		 nanotime now);

#endif
