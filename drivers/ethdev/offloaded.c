/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bursts of a port with offloads. Until they leave, the engine's frames are complete, with tag and
 * checksum, for everything that reads them: captures, copies for this host, a second try. The parts
 * that the device makes are removed here, just before the driver gets the frames. Frames that the
 * driver refuses get these parts back. A tag that the device took out of a received frame is put
 * back before the engine sees the frame.
 */
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "drivers/ethdev/private.h"
#include "drivers/offload.h"

#define MACS (2 * RTE_ETHER_ADDR_LEN)

static rte_be16_t type_at(struct rte_mbuf *m, uint16_t offset)
{
	return *rte_pktmbuf_mtod_offset(m, const rte_be16_t *, offset);
}

/* ---- sending ---- */

static void take_tag_out(struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	if (m->data_len < MACS + RTE_VLAN_HLEN + sizeof(rte_be16_t) ||
	    type_at(m, MACS) != rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN))
		return;
	m->vlan_tci = rte_be_to_cpu_16(type_at(m, MACS + sizeof(rte_be16_t)));
	m->ol_flags |= RTE_MBUF_F_TX_VLAN;
	memmove(frame + RTE_VLAN_HLEN, frame, MACS);
	rte_pktmbuf_adj(m, RTE_VLAN_HLEN);
}

/*
 * The offset of the IPv4 header of a RoCE packet; 0: the frame is not one. Other frames keep their
 * checksum: the kernel's interface and raw queue pairs may send a wrong one on purpose.
 */
static uint16_t roce_ipv4_at(struct rte_mbuf *m)
{
	uint16_t l2 = RTE_ETHER_HDR_LEN;
	const struct rte_ipv4_hdr *ip;
	const struct rte_udp_hdr *udp;

	if (m->data_len < l2 + RTE_VLAN_HLEN + sizeof(*ip) + sizeof(*udp))
		return 0;
	if (type_at(m, MACS) == rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN))
		l2 += RTE_VLAN_HLEN;
	ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, l2);
	udp = (const void *)(ip + 1);
	if (type_at(m, l2 - (uint16_t)sizeof(rte_be16_t)) !=
		    rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) ||
	    ip->version_ihl != RTE_IPV4_VHL_DEF || ip->next_proto_id != IPPROTO_UDP ||
	    (ip->fragment_offset & rte_cpu_to_be_16((uint16_t)~RTE_IPV4_HDR_DF_FLAG)) != 0 ||
	    udp->dst_port != rte_cpu_to_be_16(ROCE_UDP_PORT))
		return 0;
	return l2;
}

static void take_sum_out(struct rte_mbuf *m)
{
	uint16_t l2 = roce_ipv4_at(m);

	if (l2 == 0)
		return;
	m->tx_offload = 0;
	m->l2_len = l2;
	m->l3_len = sizeof(struct rte_ipv4_hdr);
	m->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
	rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, l2)->hdr_checksum = 0;
}

static void take_out(uint32_t offloads, struct rte_mbuf *m)
{
	if ((offloads & OFFLOAD_VLAN_TX) != 0)
		take_tag_out(m);
	if ((offloads & OFFLOAD_IPV4_CKSUM_TX) != 0)
		take_sum_out(m);
}

/* Makes the frame as the engine made it. Other changes by the driver (tx_prepare) stay. */
static void put_back(struct rte_mbuf *m)
{
	if ((m->ol_flags & RTE_MBUF_F_TX_IP_CKSUM) != 0) {
		struct rte_ipv4_hdr *ip =
			rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, m->l2_len);

		ip->hdr_checksum = 0;
		ip->hdr_checksum = rte_ipv4_cksum(ip);
	}
	if ((m->ol_flags & RTE_MBUF_F_TX_VLAN) != 0)
		rte_vlan_insert(&m); /* the tag was there before, so there is room */
	m->ol_flags &= ~(RTE_MBUF_F_TX_VLAN | RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM);
	m->tx_offload = 0;
}

/*
 * Lets the driver prepare the frames. A frame that it refuses with offloads is sent without them.
 */
static void prepare(uint16_t id, uint16_t queue, struct rte_mbuf **frames, uint16_t n)
{
	for (uint16_t done = 0; done < n;) {
		done += rte_eth_tx_prepare(id, queue, frames + done, (uint16_t)(n - done));
		if (done < n)
			put_back(frames[done++]);
	}
}

uint16_t offloaded_tx_burst(const struct ethdev *d, uint16_t queue, struct rte_mbuf **frames,
			    uint16_t n)
{
	uint16_t sent;

	for (uint16_t i = 0; i < n; i++)
		take_out(d->port.offloads, frames[i]);
	prepare(d->id, queue, frames, n);
	sent = rte_eth_tx_burst(d->id, queue, frames, n);
	for (uint16_t i = sent; i < n; i++)
		put_back(frames[i]);
	return sent;
}

/* ---- receiving ---- */

uint16_t offloaded_received(struct rte_mbuf **frames, uint16_t n)
{
	uint16_t kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = frames[i];

		if ((m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) == 0 || rte_vlan_insert(&m) == 0)
			frames[kept++] = m;
		else
			rte_pktmbuf_free(m);
	}
	return kept;
}
