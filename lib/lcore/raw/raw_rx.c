/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames to raw queue pairs. Every receiver gets a buffer of its own: a tag may be cut out of it,
 * and it may wait for a copy into a program's memory. The last receiver gets the original if
 * nothing else needs it.
 */
#include <rte_mbuf.h>

#include "base/bits.h"
#include "lcore/moving/moving.h"
#include "lcore/inside.h"
#include "lcore/raw/raw.h"
#include "protocol/command.h"

#define ETHERTYPE_ARP  0x0806
#define ETHERTYPE_VLAN 0x8100
#define PROTOCOL_ICMP  1
#define PROTOCOL_IGMP  2
#define PROTOCOL_ICMP6 58
#define MAC_OCTETS     12u
#define TAG_OCTETS     4u
#define NOBODY	       0u /* no queue pair has this number */

/* Stores in a buffer what the receiving lcore must know. */
static void put_mark(struct rte_mbuf *m, uint32_t qpn, uint32_t tag, bool checksums_right)
{
	m->tx_offload = (uint64_t)tag << 32 | qpn;
	m->packet_type = checksums_right;
}

/* Cuts the VLAN tag out of the frame and returns it; 0: there is none. */
static uint16_t strip_vlan(struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint16_t tci;

	if (m->data_len < MAC_OCTETS + TAG_OCTETS + 2 ||
	    load_be16(frame + MAC_OCTETS) != ETHERTYPE_VLAN)
		return 0;
	tci = load_be16(frame + MAC_OCTETS + 2);
	memmove(frame + TAG_OCTETS, frame, MAC_OCTETS);
	rte_pktmbuf_adj(m, TAG_OCTETS);
	return tci;
}

static void take(struct lcore *l, struct engine_qp *q, struct rte_mbuf *m, nanotime now)
{
	struct packet p = { .checksum = m->packet_type != 0,
			    .flow_tag = (uint32_t)(m->tx_offload >> 32) };

	q->received++;
	if (q->raw_flags & RAW_STRIP_VLAN)
		p.vlan_tci = strip_vlan(m);
	p.payload = rte_pktmbuf_mtod(m, const uint8_t *);
	p.payload_length = m->data_len;
	if (!packet_input(l, q, &p, m, now))
		rte_pktmbuf_free(m);
}

static void deliver(struct lcore *l, struct rte_mbuf *m, nanotime now)
{
	struct engine_qp *q = directory_find(l->engine, (uint32_t)m->tx_offload);

	if (q == NULL || !q->raw)
		rte_pktmbuf_free(m);
	else if (q->lcore != l)
		hand_over(l, q->lcore, m, FRAME_RAW_DELIVERED);
	else
		take(l, q, m, now);
}

void raw_arrived(struct lcore *l, struct rte_mbuf *m, nanotime now)
{
	deliver(l, m, now);
}

static uint32_t target_of(const struct flow_rule *r, const struct raw_frame *f)
{
	const struct rss *s = r->target.rss;

	return s == NULL ? r->target.qpn : s->qpn[raw_hash(f, s->fields, s->key) & s->mask];
}

static void count(struct lcore *l, const struct flow_rule *r, const struct rte_mbuf *m)
{
	if (r->counters == NULL)
		return;
	/* Only this lcore writes the counters; a reader sees each counter whole. */
	__atomic_store_n(&r->counters->lcore[l->index].packets,
			 r->counters->lcore[l->index].packets + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&r->counters->lcore[l->index].octets,
			 r->counters->lcore[l->index].octets + m->data_len, __ATOMIC_RELAXED);
}

static bool blocked(struct lcore *l, uint32_t qpn, uint32_t sender)
{
	const struct engine_qp *q;

	if (qpn != sender || sender == NOBODY)
		return false;
	q = directory_find(l->engine, qpn);
	return q != NULL && (q->raw_flags & RAW_BLOCK_LOOPBACK);
}

/* Gives a copy to each rule's queue pair. `whole`: the frame itself is consumed, too. */
static void spread(struct lcore *l, struct rte_mbuf *m, const struct raw_frame *f,
		   const struct flow_match *match, uint32_t sender, bool whole, nanotime now)
{
	bool right = raw_frame_checksums_right(f, rte_pktmbuf_mtod(m, const uint8_t *));

	for (uint32_t i = 0; i < match->count; i++) {
		const struct flow_rule *r = match->rule[i];
		uint32_t qpn = target_of(r, f), tag = r->actions & FLOW_TAG ? r->tag : 0;
		struct rte_mbuf *own;

		count(l, r, m);
		if ((r->actions & FLOW_DROP) || blocked(l, qpn, sender))
			continue;
		if (whole && i + 1 == match->count) {
			put_mark(m, qpn, tag, right);
			deliver(l, m, now);
			return;
		}
		own = rte_pktmbuf_copy(m, l->engine->pool, 0, UINT32_MAX);
		if (own == NULL) {
			count_reason(l, REASON_NO_BUFFER);
			continue;
		}
		put_mark(own, qpn, tag, right);
		deliver(l, own, now);
	}
	if (whole)
		rte_pktmbuf_free(m);
}

/*
 * ARP, neighbour discovery, echo and group membership: the control thread also needs these frames.
 */
static bool for_control(const struct raw_frame *f)
{
	if (load_be16(f->key.ether_type) == ETHERTYPE_ARP)
		return true;
	if (f->layers & FLOW_LAYER_IPV4)
		return f->key.protocol == PROTOCOL_ICMP || f->key.protocol == PROTOCOL_IGMP;
	return (f->layers & FLOW_LAYER_IPV6) && f->key.protocol == PROTOCOL_ICMP6;
}

bool raw_input(struct lcore *l, struct rte_mbuf *m, bool roce, nanotime now)
{
	/*
	 * Acquire: sees the rules of the table. The table is not freed before this burst is over.
	 */
	const struct flow_table *t = __atomic_load_n(&l->engine->flows, __ATOMIC_ACQUIRE);
	struct flow_match match;
	struct raw_frame f;
	bool whole;

	if (t == NULL || (roce && t->sniffers == 0))
		return false;
	raw_frame_parse(&f, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);
	flow_table_match(t, &f, roce, &match);
	if (match.count == 0)
		return false;
	whole = match.taken && !for_control(&f);
	spread(l, m, &f, &match, NOBODY, whole, now);
	return whole;
}

void raw_looped(struct lcore *l, struct rte_mbuf *m, nanotime now)
{
	const struct flow_table *t = __atomic_load_n(&l->engine->flows, __ATOMIC_ACQUIRE);
	struct flow_match match;
	struct raw_frame f;

	if (t == NULL) {
		rte_pktmbuf_free(m);
		return;
	}
	raw_frame_parse(&f, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);
	flow_table_match(t, &f, false, &match);
	spread(l, m, &f, &match, (uint32_t)m->tx_offload, true, now);
}
