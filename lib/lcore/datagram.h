/* SPDX-License-Identifier: BSD-3-Clause */
/* UD on the data path (datagram.c): what rx.c, frame.c and send.c call. */
#ifndef LCORE_DATAGRAM_H
#define LCORE_DATAGRAM_H

#include "lcore/lcore.h"

#define MULTICAST_QPN 0xffffffu /* IBTA 3.5.10 */

/*
 * The envelope of the packet in s->packet, from its address handle. NULL: the queue pair's
 * protection domain has no such handle. Fills in the members of *s that describe the way.
 */
const struct flow *datagram_route(struct lcore *l, const struct engine_qp *q,
				  struct staged_frame *s);
/*
 * datagram_echo makes a copy of a frame for a group that also has members here. When the frame has
 * left through the port, datagram_echoed gives them the copy.
 */
void datagram_echo(struct lcore *l, const struct rte_mbuf *m, struct rte_mbuf **copy);
void datagram_echoed(struct lcore *l, struct rte_mbuf *copy, uint32_t sender, bool sent);

/* A packet for one UD queue pair of this lcore. True if the mbuf was kept. */
bool datagram_input(struct lcore *l, struct engine_qp *q, struct packet *p, struct rte_mbuf *m,
		    nanotime now);
/* The source address is ours, but the packet came through the port: forged, or reflected. */
bool datagram_is_forged(const struct engine *e, const struct packet *p);
/* A packet to the multicast queue pair number. Takes the mbuf. */
void mcast_input(struct lcore *l, struct packet *p, struct rte_mbuf *m, bool for_members,
		 nanotime now);

#endif
