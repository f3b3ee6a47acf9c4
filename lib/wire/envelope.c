/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/bits.h"
#include "wire/header.h"

/*
 * Sum of 16-bit words, not yet folded (RFC 1071). rte_raw_cksum is not an option: this folder is
 * built without DPDK.
 */
static uint32_t words_sum(const uint8_t *at, size_t length)
{
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < length; i += 2)
		sum += load_be16(at + i);
	return sum;
}

static uint8_t *put_ethernet(uint8_t *at, const struct address_vector *av, uint16_t type)
{
	memcpy(at + ETHER_DST, av->dst_mac.octet, 6);
	memcpy(at + ETHER_SRC, av->src_mac.octet, 6);
	at += ETHER_TYPE;
	if (av->vlan != 0) {
		store_be16(at, ETHERTYPE_VLAN);
		store_be16(at + 2, (uint16_t)((av->priority & 7) << 13 | (av->vlan & 0xfff)));
		at += VLAN_TAG_LENGTH;
	}
	store_be16(at, type);
	return at + 2;
}

/*
 * The checksum field of a flow holds the folded sum of the constant fields. Length and
 * identification are 0 here; encode.c adds them.
 */
static uint8_t *put_ipv4(uint8_t *at, const struct address_vector *av)
{
	uint32_t sum;

	at[IPV4_VERSION_IHL] = 0x45;
	at[IPV4_TOS] = av->traffic_class;
	store_be16(at + IPV4_FRAGMENT, IPV4_DONT_FRAGMENT);
	at[IPV4_TTL] = av->hop_limit;
	at[IPV4_PROTOCOL] = PROTOCOL_UDP;
	memcpy(at + IPV4_SRC, av->src_gid.octet + 12, 4);
	memcpy(at + IPV4_DST, av->dst_gid.octet + 12, 4);
	sum = words_sum(at, IPV4_LENGTH);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	store_be16(at + IPV4_CHECKSUM, (uint16_t)sum);
	return at + IPV4_LENGTH;
}

static uint8_t *put_ipv6(uint8_t *at, const struct address_vector *av)
{
	store_be32(at, UINT32_C(6) << 28 | (uint32_t)av->traffic_class << 20 |
			       (av->flow_label & 0xfffff));
	at[IPV6_NEXT_HEADER] = PROTOCOL_UDP;
	at[IPV6_HOP_LIMIT] = av->hop_limit;
	memcpy(at + IPV6_SRC, av->src_gid.octet, 16);
	memcpy(at + IPV6_DST, av->dst_gid.octet, 16);
	return at + IPV6_LENGTH;
}

void flow_init(struct flow *f, const struct address_vector *av)
{
	uint8_t *at;

	memset(f, 0, sizeof(*f));
	f->ipv6 = !gid_is_ipv4(&av->dst_gid);
	at = put_ethernet(f->header, av, f->ipv6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4);
	f->l3 = (uint8_t)(at - f->header);
	at = f->ipv6 ? put_ipv6(at, av) : put_ipv4(at, av);
	store_be16(at + UDP_SRC_PORT, av->src_port);
	store_be16(at + UDP_DST_PORT, ROCE_UDP_PORT);
	f->length = (uint8_t)(at + UDP_LENGTH - f->header);
}

/* Linux' rdma_calc_flow_label(): both ends compute the same value. */
static uint32_t flow_label_of(uint32_t local_qpn, uint32_t remote_qpn)
{
	uint64_t v = (uint64_t)local_qpn * remote_qpn;

	v ^= v >> 20;
	v ^= v >> 40;
	return (uint32_t)(v & 0xfffff);
}

uint16_t flow_source_port(uint32_t flow_label, uint32_t local_qpn, uint32_t remote_qpn)
{
	uint32_t label = flow_label & 0xfffff;

	if (label == 0)
		label = flow_label_of(local_qpn, remote_qpn);
	return (uint16_t)(((label & 0x3fff) ^ (label & 0xfc000) >> 14) | 0xc000);
}

void envelope_set_source_port(uint8_t *frame, const struct flow *f, uint16_t port)
{
	store_be16(frame + f->length - UDP_LENGTH + UDP_SRC_PORT, port);
}

struct mac mac_of_multicast(const struct gid *group)
{
	const uint8_t *g = group->octet;

	if (gid_is_ipv4(group)) /* RFC 1112: the low 23 bits */
		return (struct mac){ { 0x01, 0x00, 0x5e, g[13] & 0x7f, g[14], g[15] } };
	return (struct mac){ { 0x33, 0x33, g[12], g[13], g[14], g[15] } }; /* RFC 2464 */
}
