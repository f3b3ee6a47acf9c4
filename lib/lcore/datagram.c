/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UD on the data path. Each request names an address handle, which says where its packet goes. A
 * packet for a group goes to every member. The receiver finds the GRH in front of the payload, so
 * the GRH is written over headers that are not needed any more. If others need the frame, they get
 * a copy before that.
 */
#include <rte_mbuf.h>

#include "base/bits.h"
#include "lcore/datagram.h"
#include "lcore/inside.h"
#include "lcore/raw/inner_ip.h"
#include "wire/decode.h"
#include "wire/opcode.h"

/* ---- sending ---- */

const struct flow *datagram_route(struct lcore *l, const struct engine_qp *q,
				  struct staged_frame *s)
{
	const struct engine_ah *ah = ah_find(q->client, s->packet.ah);

	/* The client chose the handle; the engine checks that it owns it. */
	if (ah == NULL || ah->pd != qp_capabilities(q->core)->pd)
		return NULL;
	s->flow_state = ah->flow_state;
	s->port_by_qpns = ah->port_by_qpns;
	s->echo = ah->is_multicast && ah->flow_state == FLOW_PORT &&
		  mcast_find(l->engine, &ah->path.dgid) != NULL;
	return &ah->flow;
}

void datagram_echo(struct lcore *l, const struct rte_mbuf *m, struct rte_mbuf **copy)
{
	*copy = rte_pktmbuf_copy(m, l->engine->pool, 0, UINT32_MAX);
	if (*copy == NULL)
		count_reason(l, REASON_NO_BUFFER);
}

void datagram_echoed(struct lcore *l, struct rte_mbuf *copy, uint32_t sender, bool sent)
{
	/* A copy that finds no buffer is lost, as on a wire. */
	if (!sent || !loop_output(l, copy, sender, MULTICAST_QPN,
				  l->engine->sum_loop ? FRAME_RECEIVED : FRAME_TRUSTED))
		rte_pktmbuf_free(copy);
}

/* ---- receiving ---- */

/* An entry may change while it is read. At worst one datagram is lost. */
static bool is_own(const struct engine *e, const struct gid *gid)
{
	for (uint32_t i = 0; i < LIMIT_GIDS; i++)
		if (gid_equal(&e->gid[i].gid, gid))
			return true;
	return false;
}

bool datagram_is_forged(const struct engine *e, const struct packet *p)
{
	return p->sender == 0 && is_own(e, &p->src_gid);
}

bool datagram_input(struct lcore *l, struct engine_qp *q, struct packet *p, struct rte_mbuf *m,
		    nanotime now)
{
	/* To a group, but with one queue pair's number: that queue pair must be a member. */
	if (p->multicast ? !mcast_is_member(l->engine, &p->dst_gid, q)
			 : !is_own(l->engine, &p->dst_gid)) {
		count_reason(l, REASON_ADDRESS_FOREIGN);
		return false;
	}
	p->checksum = inner_ip_checksums_right(p->payload, p->payload_length);
	packet_make_grh(rte_pktmbuf_mtod(m, uint8_t *), p);
	return packet_input(l, q, p, m, now);
}

/* Copies for the other lcores that have members. */
static void hand_copies_over(struct lcore *l, const struct mcast_group *g, const struct packet *p,
			     const struct rte_mbuf *m)
{
	uint32_t lcores = 0;

	for (uint32_t i = 0; i < LIMIT_MCAST_QPS; i++) {
		const struct engine_qp *q = mcast_member(g, i);

		if (q != NULL && q->lcore != l)
			lcores |= 1u << q->lcore->index;
	}
	for (uint32_t i = 0; i < l->engine->lcores; i++) {
		struct rte_mbuf *copy;

		if ((lcores >> i & 1) == 0)
			continue;
		copy = rte_pktmbuf_copy(m, l->engine->pool, 0, UINT32_MAX);
		if (copy != NULL)
			hand_over(l, &l->engine->lcore[i], copy,
				  frame_mark(FRAME_FOR_MEMBERS, p->sender));
		else
			count_reason(l, REASON_NO_BUFFER);
	}
}

/* Every member here reads the same buffer; a queue pair that keeps it takes a reference. */
static void deliver(struct lcore *l, const struct mcast_group *g, const struct packet *p,
		    struct rte_mbuf *m, nanotime now)
{
	bool has_grh = false;

	for (uint32_t i = 0; i < LIMIT_MCAST_QPS; i++) {
		struct engine_qp *q = mcast_member(g, i);

		if (q == NULL || q->lcore != l || q->detached)
			continue;
		if (!has_grh)
			packet_make_grh(rte_pktmbuf_mtod(m, uint8_t *), p);
		has_grh = true;
		rte_mbuf_refcnt_update(m, 1);
		q->received++;
		if (!packet_input(l, q, p, m, now))
			rte_pktmbuf_free(m);
	}
}

void mcast_input(struct lcore *l, struct packet *p, struct rte_mbuf *m, bool for_members,
		 nanotime now)
{
	const struct mcast_group *g = NULL;

	if (p->multicast && opcode_table[p->opcode].service == SERVICE_UD)
		g = mcast_find(l->engine, &p->dst_gid);
	if (g != NULL && datagram_is_forged(l->engine, p)) {
		count_reason(l, REASON_SOURCE_OWN);
	} else if (g == NULL) {
		count_reason(l, p->multicast ? REASON_ADDRESS_FOREIGN : REASON_QPN_UNKNOWN);
	} else {
		if (!for_members)
			hand_copies_over(l, g, p, m);
		p->checksum = inner_ip_checksums_right(p->payload, p->payload_length);
		deliver(l, g, p, m, now);
	}
	rte_pktmbuf_free(m);
}
