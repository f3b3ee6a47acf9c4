/* SPDX-License-Identifier: BSD-3-Clause */
/* Echo over IPv4, RFC 792: sends the request's octets back from our address. */
#include "base/bits.h"
#include "drivers/neighbour/table.h"

#define IPV4_LENGTH 20u
#define ICMP_HEADER 8u
#define PROTO_ICMP  1u

enum {
	ECHO_REPLY = 0,
	ECHO_REQUEST = 8
};

/*
 * The total length of an IPv4 packet. 0: the packet is incomplete, has options, is a fragment, or
 * has a wrong checksum.
 */
static uint32_t ipv4_total(const struct received *r)
{
	uint32_t total;

	if (r->l3_length < IPV4_LENGTH || r->l3[0] != 0x45)
		return 0;
	total = load_be16(r->l3 + 2);
	if (total < IPV4_LENGTH || total > r->l3_length)
		return 0;
	if ((load_be16(r->l3 + 6) & 0x3fff) != 0)
		return 0;
	return checksum_of(r->l3, IPV4_LENGTH) == 0 ? total : 0;
}

static void echo_reply(struct neighbour_table *t, const struct received *r, uint32_t total,
		       struct neighbour_frames *out)
{
	uint8_t *ip = frame_begin(t, out, &r->src, ETHERTYPE_IPV4_, total);
	uint8_t *icmp;

	if (ip == NULL)
		return;
	memcpy(ip, r->l3, total);
	store_be16(ip + 4, 0);
	store_be16(ip + 6, 0x4000); /* DF */
	ip[8] = 64;
	memcpy(ip + 12, r->l3 + 16, 4);
	memcpy(ip + 16, r->l3 + 12, 4);
	store_be16(ip + 10, 0);
	store_be16(ip + 10, checksum_of(ip, IPV4_LENGTH));
	icmp = ip + IPV4_LENGTH;
	icmp[0] = ECHO_REPLY;
	store_be16(icmp + 2, 0);
	store_be16(icmp + 2, checksum_of(icmp, total - IPV4_LENGTH));
}

bool icmp_input(struct neighbour_table *t, const struct received *r, struct neighbour_frames *out)
{
	uint32_t total = ipv4_total(r);
	const uint8_t *icmp = r->l3 + IPV4_LENGTH;
	struct gid src, dst;

	if (total < IPV4_LENGTH + ICMP_HEADER || r->l3[9] != PROTO_ICMP)
		return false;
	src = gid_of_ipv4(r->l3 + 12);
	dst = gid_of_ipv4(r->l3 + 16);
	if (icmp[0] != ECHO_REQUEST || icmp[1] != 0 || mac_is_multicast(&r->dst))
		return false;
	/* Multicast, broadcast and unspecified addresses get no answer. */
	if (!neighbour_is_own(t, &dst) || neighbour_is_own(t, &src) || gid_is_multicast(&src) ||
	    gid_is_unspecified(&src) || load_be32(r->l3 + 12) == UINT32_MAX)
		return false;
	if (checksum_of(icmp, total - IPV4_LENGTH) == 0)
		echo_reply(t, r, total, out);
	return true;
}
