/* SPDX-License-Identifier: BSD-3-Clause */
/* UD on the data path, see datagram.c. Between rx.c, frame.c and send.c. */
#ifndef LCORE_DATAGRAM_H
#define LCORE_DATAGRAM_H

#include "lcore/lcore.h"

#define MULTICAST_QPN 0xffffffu /* IBTA 3.5.10 */

/*
 * The envelope of the packet in s->packet, by its address handle; NULL: there is none of that
 * number in the queue pair's protection domain. Fills what s says of the way.
 */
const struct flow *datagram_route(struct lcore *l, const struct engine_qp *q,
				  struct staged_frame *s);
/* A frame to a group with members here leaves through the port; then the members get a copy. */
void datagram_echo(struct lcore *l, const struct rte_mbuf *m, struct rte_mbuf **copy);
void datagram_echoed(struct lcore *l, struct rte_mbuf *copy, uint32_t sender, bool sent);

/* A packet for one UD queue pair of this lcore. True if the mbuf was kept. */
bool datagram_input(struct lcore *l, struct engine_qp *q, struct packet *p, struct rte_mbuf *m,
		    nanotime now);
/* The source address is ours, but the packet came through the port: forged, or reflected. */
bool datagram_is_forged(const struct engine *e, const struct packet *p);
/* A packet to the multicast queue pair number; the mbuf is gone. */
void mcast_input(struct lcore *l, struct packet *p, struct rte_mbuf *m, bool for_members,
		 nanotime now);

#endif
