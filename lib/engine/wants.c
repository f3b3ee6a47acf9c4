/* SPDX-License-Identifier: BSD-3-Clause */
/* Which received frames are the engine's, for a program that keeps its port. */
#include <string.h>

#include <rte_mbuf.h>

#include "engine/inside.h"

#define TYPE_IPV4 0x0800u
#define TYPE_ARP  0x0806u
#define TYPE_IPV6 0x86ddu
#define TYPE_VLAN 0x8100u
#define IGMP	  2u
#define UDP	  17u
#define ICMPV6	  58u

/* The rest of a frame. */
struct rest {
	const uint8_t *octet;
	size_t length;
};

static uint32_t pair_at(const struct rest *r, size_t offset)
{
	return (uint32_t)r->octet[offset] << 8 | r->octet[offset + 1];
}

/* In the same way as lcores: gid.c. */
static bool is_own(const struct engine *e, const struct gid *g)
{
	if (gid_is_zero(g)) /* as free entries are */
		return false;
	for (uint32_t i = 0; i < LIMIT_GIDS; i++)
		if (gid_equal(&e->gid[i].gid, g))
			return true;
	return false;
}

static bool is_own_ipv4(const struct engine *e, const uint8_t *address)
{
	struct gid g = { { [10] = 0xff, [11] = 0xff } };

	memcpy(&g.octet[12], address, 4);
	return is_own(e, &g);
}

/* RFC 4291, 2.7.1: the solicited-node group has the last 24 bits of an address. */
static bool is_solicited(const struct engine *e, const uint8_t *group)
{
	static const uint8_t prefix[13] = { 0xff, 2, [11] = 1, [12] = 0xff };

	if (memcmp(group, prefix, sizeof(prefix)) != 0)
		return false;
	for (uint32_t i = 0; i < LIMIT_GIDS; i++) {
		const struct gid *g = &e->gid[i].gid;

		if (!gid_is_zero(g) && !gid_is_ipv4(g) && memcmp(&g->octet[13], &group[13], 3) == 0)
			return true;
	}
	return false;
}

static bool is_roce(const struct rest *r, uint32_t protocol, size_t header)
{
	return protocol == UDP && r->length >= header + 4 &&
	       pair_at(r, header + 2) == ROCE_UDP_PORT;
}

static bool wants_ipv4(const struct engine *e, const struct rest *r)
{
	const uint8_t *to = r->octet + 16;
	uint32_t protocol;

	if (r->length < 20)
		return false;
	if (is_own_ipv4(e, to))
		return true;
	protocol = r->octet[9];
	return (to[0] & 0xf0) == 0xe0 &&
	       (protocol == IGMP || is_roce(r, protocol, (size_t)(r->octet[0] & 15) * 4));
}

static bool wants_ipv6(const struct engine *e, const struct rest *r)
{
	static const uint8_t all_nodes[16] = { 0xff, 2, [15] = 1 };
	struct gid to;

	if (r->length < 40)
		return false;
	memcpy(to.octet, r->octet + 24, sizeof(to.octet));
	if (to.octet[0] != 0xff)
		return is_own(e, &to);
	if (memcmp(to.octet, all_nodes, sizeof(all_nodes)) == 0)
		return r->octet[6] == ICMPV6 || r->octet[6] == 0; /* MLD has hop-by-hop options */
	return is_solicited(e, to.octet) || is_roce(r, r->octet[6], 40);
}

static bool wants_arp(const struct engine *e, const struct rest *r)
{
	/* the target is ours, or the sender announces itself */
	return r->length >= 28 &&
	       (is_own_ipv4(e, r->octet + 24) || memcmp(r->octet + 14, r->octet + 24, 4) == 0);
}

static bool wants(const struct engine *e, struct rest r)
{
	uint32_t type, vlan = 0;

	if (r.length < 18)
		return false;
	type = pair_at(&r, 12);
	if (type == TYPE_VLAN) {
		vlan = pair_at(&r, 14) & 0xfffu;
		type = pair_at(&r, 16);
		r = (struct rest){ r.octet + 4, r.length - 4 };
	}
	r = (struct rest){ r.octet + 14, r.length - 14 };
	if (vlan != e->vlan)
		return false;
	switch (type) {
	case TYPE_IPV4:
		return wants_ipv4(e, &r);
	case TYPE_IPV6:
		return wants_ipv6(e, &r);
	case TYPE_ARP:
		return wants_arp(e, &r);
	default:
		return false;
	}
}

bool uroce_wants(const struct uroce_engine *u, const struct rte_mbuf *m)
{
	struct visit v = m == NULL ? (struct visit){ NULL, NULL } : live_visit(u);
	bool wanted;

	if (v.engine == NULL)
		return false;
	wanted =
		wants(v.engine, (struct rest){ rte_pktmbuf_mtod(m, const uint8_t *), m->data_len });
	live_part(v);
	return wanted;
}
