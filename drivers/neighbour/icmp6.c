/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMPv6: echo (RFC 4443) and neighbour solicitation and advertisement (RFC 4861), which are
 *
 *	0  type 135 or 136   1  code 0   2  checksum   4  NA: R S O flags   8  target address
 *	24 options: type, length in units of 8 octets, value; 1 source, 2 target link-layer address
 */
#include <rte_ip.h>

#include "base/bits.h"
#include "drivers/neighbour/table.h"

#define IPV6_LENGTH  40u
#define ND_LENGTH    24u
#define OPTION_MAC   8u
#define PROTO_ICMPV6 58u

enum {
	ECHO_REQUEST = 128,
	ECHO_REPLY = 129,
	SOLICITATION = 135,
	ADVERTISEMENT = 136
};
enum {
	OPTION_SOURCE = 1,
	OPTION_TARGET = 2
};
enum {
	FLAG_SOLICITED = 0x40,
	FLAG_OVERRIDE = 0x20
};

struct icmp6 {
	struct gid src, dst;
	uint8_t hop_limit;
	const uint8_t *octets; /* from the type field on */
	uint32_t length;
};

uint16_t icmp6_checksum(const uint8_t *ip, const uint8_t *message, uint32_t length)
{
	uint16_t sum = ones_complement_add(PROTO_ICMPV6, (uint16_t)length);

	sum = ones_complement_add(sum, rte_be_to_cpu_16(rte_raw_cksum(ip + 8, 32)));
	sum = ones_complement_add(sum, rte_be_to_cpu_16(rte_raw_cksum(message, length)));
	return (uint16_t)~sum;
}

static bool icmp6_read(const struct received *r, struct icmp6 *m)
{
	if (r->l3_length < IPV6_LENGTH || r->l3[0] >> 4 != 6 || r->l3[6] != PROTO_ICMPV6)
		return false;
	m->length = load_be16(r->l3 + 4);
	if (m->length < 8 || m->length > r->l3_length - IPV6_LENGTH)
		return false;
	m->hop_limit = r->l3[7];
	memcpy(m->src.octet, r->l3 + 8, 16);
	memcpy(m->dst.octet, r->l3 + 24, 16);
	m->octets = r->l3 + IPV6_LENGTH;
	return icmp6_checksum(r->l3, m->octets, m->length) == 0;
}

/* RFC 4291 2.7.1: ff02::1:ff and the last three octets */
static struct gid solicited_node(const struct gid *g)
{
	struct gid group = { { 0xff, 0x02, [11] = 0x01, [12] = 0xff } };

	memcpy(group.octet + 13, g->octet + 13, 3);
	return group;
}

/*
 * Begins an IPv6 packet with a message of `length` octets. The caller fills in the message and
 * calls icmp6_finish().
 */
static uint8_t *icmp6_begin(const struct neighbour_table *t, struct neighbour_frames *out,
			    const struct mac *to, const struct gid *src, const struct gid *dst,
			    uint32_t length)
{
	uint8_t *ip = frame_begin(t, out, to, ETHERTYPE_IPV6_, IPV6_LENGTH + length);

	if (ip == NULL)
		return NULL;
	ip[0] = 0x60;
	store_be16(ip + 4, (uint16_t)length);
	ip[6] = PROTO_ICMPV6;
	ip[7] = 255;
	memcpy(ip + 8, src->octet, 16);
	memcpy(ip + 24, dst->octet, 16);
	return ip + IPV6_LENGTH;
}

static void icmp6_finish(uint8_t *message, uint32_t length)
{
	store_be16(message + 2, 0);
	store_be16(message + 2, icmp6_checksum(message - IPV6_LENGTH, message, length));
}

static bool nd_send(const struct neighbour_table *t, struct neighbour_frames *out, uint8_t type,
		    uint8_t flags, const struct mac *to, const struct gid *src,
		    const struct gid *dst, const struct gid *target)
{
	uint8_t *nd = icmp6_begin(t, out, to, src, dst, ND_LENGTH + OPTION_MAC);

	if (nd == NULL)
		return false;
	nd[0] = type;
	nd[4] = flags;
	memcpy(nd + 8, target->octet, 16);
	nd[ND_LENGTH] = type == SOLICITATION ? OPTION_SOURCE : OPTION_TARGET;
	nd[ND_LENGTH + 1] = 1;
	memcpy(nd + ND_LENGTH + 2, t->mac.octet, 6);
	icmp6_finish(nd, ND_LENGTH + OPTION_MAC);
	return true;
}

/* False: the options are malformed (RFC 4861 4.6: a length of 0 makes the packet invalid). */
static bool nd_option(const struct icmp6 *m, uint8_t type, struct mac *mac, bool *found)
{
	uint32_t at = ND_LENGTH;

	*found = false;
	while (at < m->length) {
		uint32_t length;

		if (m->length - at < 8)
			return false;
		length = m->octets[at + 1] * 8u;
		if (length == 0 || length > m->length - at)
			return false;
		if (m->octets[at] == type && length == OPTION_MAC) {
			memcpy(mac->octet, m->octets + at + 2, 6);
			*found = true;
		}
		at += length;
	}
	return true;
}

/* RFC 4861 7.1: the conditions for both messages. */
static bool nd_is_valid(const struct icmp6 *m)
{
	return m->hop_limit == 255 && m->octets[1] == 0 && m->length >= ND_LENGTH &&
	       !gid_is_multicast(&m->src);
}

static void solicited(struct neighbour_table *t, const struct received *r, const struct icmp6 *m,
		      struct neighbour_frames *out)
{
	static const struct gid all_nodes = { { 0xff, 0x02, [15] = 1 } };
	struct mac mac = r->src;
	struct gid target, group;
	bool found;

	memcpy(target.octet, m->octets + 8, 16);
	if (gid_is_multicast(&target) || !nd_option(m, OPTION_SOURCE, &mac, &found))
		return;
	group = solicited_node(&target);
	if (gid_is_unspecified(&m->src)) {
		/* duplicate address detection, RFC 4862: the answer goes to all nodes */
		struct mac to = mac_of_multicast(&all_nodes);

		if (!found && gid_equal(&m->dst, &group) && neighbour_is_own(t, &target))
			nd_send(t, out, ADVERTISEMENT, FLAG_OVERRIDE, &to, &target, &all_nodes,
				&target);
		return;
	}
	if (found)
		neighbour_learned(t, &m->src, &mac, true, r->now);
	if (neighbour_is_own(t, &target) && !neighbour_is_own(t, &m->src) &&
	    !mac_is_multicast(&mac))
		nd_send(t, out, ADVERTISEMENT, FLAG_SOLICITED | FLAG_OVERRIDE, &mac, &target,
			&m->src, &target);
}

static void advertised(struct neighbour_table *t, const struct received *r, const struct icmp6 *m)
{
	bool found, override = m->octets[4] & FLAG_OVERRIDE;
	struct gid target;
	struct mac mac;

	memcpy(target.octet, m->octets + 8, 16);
	if (gid_is_multicast(&m->dst) && (m->octets[4] & FLAG_SOLICITED) != 0)
		return;
	if (!nd_option(m, OPTION_TARGET, &mac, &found))
		return;
	/* The answer to a unicast question may lack the option (RFC 4861 4.4). */
	if (!found && !gid_is_multicast(&m->dst))
		mac = r->src;
	else if (!found)
		return;
	neighbour_learned(t, &target, &mac, override, r->now);
}

static bool echoed(struct neighbour_table *t, const struct received *r, const struct icmp6 *m,
		   struct neighbour_frames *out)
{
	uint8_t *reply;

	if (m->octets[1] != 0 || mac_is_multicast(&r->dst) || !neighbour_is_own(t, &m->dst) ||
	    neighbour_is_own(t, &m->src) || gid_is_multicast(&m->src) ||
	    gid_is_unspecified(&m->src))
		return false;
	reply = icmp6_begin(t, out, &r->src, &m->dst, &m->src, m->length);
	if (reply == NULL)
		return true;
	memcpy(reply, m->octets, m->length);
	reply[0] = ECHO_REPLY;
	icmp6_finish(reply, m->length);
	return true;
}

bool icmp6_input(struct neighbour_table *t, const struct received *r, struct neighbour_frames *out)
{
	struct icmp6 m;

	if (!icmp6_read(r, &m))
		return false;
	switch (m.octets[0]) {
	case ECHO_REQUEST:
		return echoed(t, r, &m, out);
	case SOLICITATION:
		if (nd_is_valid(&m))
			solicited(t, r, &m, out);
		return true;
	case ADVERTISEMENT:
		if (nd_is_valid(&m))
			advertised(t, r, &m);
		return true;
	default:
		return false;
	}
}

bool nd_ask(struct neighbour_table *t, const struct entry *e, struct neighbour_frames *out)
{
	const struct gid *source = neighbour_source(t, &e->gid);
	struct gid group = solicited_node(&e->gid);
	struct mac group_mac = mac_of_multicast(&group);
	bool probing = e->state == ENTRY_PROBING;

	return source != NULL && nd_send(t, out, SOLICITATION, 0, probing ? &e->mac : &group_mac,
					 source, probing ? &e->gid : &group, &e->gid);
}

void nd_announce(struct neighbour_table *t, const struct gid *own, struct neighbour_frames *out)
{
	static const struct gid all_nodes = { { 0xff, 0x02, [15] = 1 } };
	struct mac to = mac_of_multicast(&all_nodes);

	nd_send(t, out, ADVERTISEMENT, FLAG_OVERRIDE, &to, own, &all_nodes, own);
}
