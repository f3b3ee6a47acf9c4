/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MLD, RFC 3810 and RFC 2710: ICMPv6 after a hop-by-hop header with Router Alert, hop limit 1, from
 * a link-local address
 *
 *	query (130)	0 type 1 0 2 checksum 4 max response code 6 0 8 group 24 (v2) S QRV QQIC sources
 *	v2 report (143)	0 type 1 0 2 checksum 4 0 6 records  8 record: type, 0, sources (2), group (16)
 *	v1 report (131), done (132)  as a query of v1
 */
#include "base/bits.h"
#include "drivers/neighbour/table.h"

#define IPV6_LENGTH  40u
#define HOP_BY_HOP   8u
#define PROTO_ICMPV6 58u
#define V1_LENGTH    24u
#define V2_LENGTH    28u

enum {
	QUERY = 130,
	REPORT_V1 = 131,
	DONE_V1 = 132,
	REPORT_V2 = 143
};

enum { /* record types */
	MODE_IS_EXCLUDE = 2,
	CHANGE_TO_INCLUDE = 3,
	CHANGE_TO_EXCLUDE = 4
};

static const struct gid all_routers = { { 0xff, 0x02, [15] = 2 } };
static const struct gid all_v2_routers = { { 0xff, 0x02, [15] = 0x16 } };

static const struct gid *link_local_source(const struct neighbour_table *t)
{
	static const struct gid unspecified;

	for (uint32_t i = 0; i < t->addresses; i++)
		if (gid_is_link_local(&t->address[i].gid))
			return &t->address[i].gid;
	return &unspecified;
}

static uint8_t *begin(const struct neighbour_table *t, struct neighbour_frames *out,
		      const struct gid *dst, uint32_t length)
{
	/* next header, length, Router Alert (RFC 2711): MLD; two octets of padding */
	static const uint8_t alert[HOP_BY_HOP] = { PROTO_ICMPV6, 0, 5, 2, 0, 0, 1, 0 };
	struct mac mac = mac_of_multicast(dst);
	uint8_t *ip = frame_begin(t, out, &mac, ETHERTYPE_IPV6_, IPV6_LENGTH + HOP_BY_HOP + length);

	if (ip == NULL)
		return NULL;
	ip[0] = 0x60;
	store_be16(ip + 4, (uint16_t)(HOP_BY_HOP + length));
	ip[7] = 1;
	memcpy(ip + 8, link_local_source(t), 16);
	memcpy(ip + 24, dst, 16);
	memcpy(ip + IPV6_LENGTH, alert, HOP_BY_HOP);
	return ip + IPV6_LENGTH + HOP_BY_HOP;
}

static void finish(uint8_t *message, uint32_t length)
{
	store_be16(message + 2,
		   icmp6_checksum(message - HOP_BY_HOP - IPV6_LENGTH, message, length));
}

static bool report_v1(const struct neighbour_table *t, const struct gid *group,
		      enum membership_report what, struct neighbour_frames *out)
{
	bool leaves = what == REPORT_LEAVE;
	uint8_t *mld = begin(t, out, leaves ? &all_routers : group, V1_LENGTH);

	if (mld == NULL)
		return false;
	mld[0] = leaves ? DONE_V1 : REPORT_V1;
	memcpy(mld + 8, group, 16);
	finish(mld, V1_LENGTH);
	return true;
}

bool mld_report(const struct neighbour_table *t, const struct gid *group,
		enum membership_report what, bool v1, struct neighbour_frames *out)
{
	static const uint8_t type[] = { [REPORT_JOIN] = CHANGE_TO_EXCLUDE,
					[REPORT_ANSWER] = MODE_IS_EXCLUDE,
					[REPORT_LEAVE] = CHANGE_TO_INCLUDE };
	uint8_t *mld;

	if (v1)
		return report_v1(t, group, what, out);
	mld = begin(t, out, &all_v2_routers, V2_LENGTH);
	if (mld == NULL)
		return false;
	mld[0] = REPORT_V2;
	store_be16(mld + 6, 1);
	mld[8] = type[what];
	memcpy(mld + 12, group, 16);
	finish(mld, V2_LENGTH);
	return true;
}

/* RFC 3810 5.1.3: milliseconds. Codes from 32768 on have a mantissa and an exponent. */
static nanotime patience(uint16_t code)
{
	uint64_t ms = code;

	if (code >= 0x8000)
		ms = (uint64_t)((code & 0xfff) | 0x1000) << (((code >> 12) & 7) + 3);
	return ms * TIME_MS;
}

/* The ICMPv6 message of a valid MLD packet, and its length. NULL: the packet is not one. */
static const uint8_t *message_of(const struct received *r, uint32_t *length)
{
	const uint8_t *ip = r->l3, *hop = ip + IPV6_LENGTH;
	uint32_t payload, options;

	if (r->l3_length < IPV6_LENGTH + HOP_BY_HOP || ip[0] >> 4 != 6 || ip[6] != 0)
		return NULL;
	payload = load_be16(ip + 4);
	options = 8 + 8u * hop[1];
	if (payload > r->l3_length - IPV6_LENGTH || payload < options + V1_LENGTH ||
	    hop[0] != PROTO_ICMPV6)
		return NULL;
	*length = payload - options;
	return icmp6_checksum(ip, hop + options, *length) == 0 ? hop + options : NULL;
}

bool mld_input(struct neighbour_table *t, const struct received *r)
{
	struct query q = { 0 };
	uint32_t length;
	const uint8_t *mld = message_of(r, &length);
	struct gid source;

	if (mld == NULL)
		return false;
	memcpy(source.octet, r->l3 + 8, 16);
	/* RFC 3810 5.1.14: any other query must be ignored. */
	if (mld[0] != QUERY || mld[1] != 0 || r->l3[7] != 1 || !gid_is_link_local(&source) ||
	    (length > V1_LENGTH && length < V2_LENGTH))
		return true;
	q.older = length == V1_LENGTH;
	q.patience = q.older ? load_be16(mld + 4) * TIME_MS : patience(load_be16(mld + 4));
	memcpy(q.group.octet, mld + 8, 16);
	q.general = gid_is_unspecified(&q.group);
	groups_queried(t, &q, r->now);
	return true;
}
