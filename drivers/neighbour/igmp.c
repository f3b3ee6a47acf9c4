/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IGMP, RFC 3376 and RFC 2236: after an IPv4 header with TTL 1 and the Router Alert option
 *
 *	query (0x11)	0 type  1 max resp code  2 checksum  4 group  8 (v3) S QRV  9 QQIC  10 sources
 *	v3 report (0x22) 0 type 1 0  2 checksum  4 0  6 records  8 record: type, 0, sources (2), group
 *	v2 report (0x16), leave (0x17)  0 type  1 0  2 checksum  4 group
 */
#include "base/bits.h"
#include "drivers/neighbour/table.h"

#define IPV4_HEADER 24u /* with Router Alert */
#define PROTO_IGMP  2u
#define RECORD_AT   8u

enum {
	QUERY = 0x11,
	REPORT_V2 = 0x16,
	LEAVE_V2 = 0x17,
	REPORT_V3 = 0x22
};

enum { /* record types */
	MODE_IS_EXCLUDE = 2,
	CHANGE_TO_INCLUDE = 3,
	CHANGE_TO_EXCLUDE = 4
};

static const uint8_t all_routers[4] = { 224, 0, 0, 2 };
static const uint8_t all_v3_routers[4] = { 224, 0, 0, 22 };

/*
 * Begins an IPv4 packet with a message of `length` octets. The caller fills in the message and its
 * checksum.
 */
static uint8_t *begin(const struct neighbour_table *t, struct neighbour_frames *out,
		      const uint8_t dst[4], uint32_t length)
{
	struct gid to = gid_of_ipv4(dst);
	struct mac mac = mac_of_multicast(&to);
	const struct gid *source = neighbour_source(t, &to);
	uint8_t *ip = frame_begin(t, out, &mac, ETHERTYPE_IPV4_, IPV4_HEADER + length);

	if (ip == NULL)
		return NULL;
	ip[0] = 0x46;
	ip[1] = 0xc0; /* internetwork control */
	store_be16(ip + 2, (uint16_t)(IPV4_HEADER + length));
	store_be16(ip + 6, 0x4000);
	ip[8] = 1;
	ip[9] = PROTO_IGMP;
	if (source != NULL) /* a host without an address sends from 0.0.0.0 */
		memcpy(ip + 12, source->octet + 12, 4);
	memcpy(ip + 16, dst, 4);
	store_be32(ip + 20, 0x94040000); /* Router Alert, RFC 2113 */
	store_be16(ip + 10, checksum_of(ip, IPV4_HEADER));
	return ip + IPV4_HEADER;
}

static bool report_v2(const struct neighbour_table *t, const uint8_t group[4],
		      enum membership_report what, struct neighbour_frames *out)
{
	bool leaves = what == REPORT_LEAVE;
	uint8_t *igmp = begin(t, out, leaves ? all_routers : group, 8);

	if (igmp == NULL)
		return false;
	igmp[0] = leaves ? LEAVE_V2 : REPORT_V2;
	memcpy(igmp + 4, group, 4);
	store_be16(igmp + 2, checksum_of(igmp, 8));
	return true;
}

bool igmp_report(const struct neighbour_table *t, const struct gid *group,
		 enum membership_report what, bool v2, struct neighbour_frames *out)
{
	static const uint8_t type[] = { [REPORT_JOIN] = CHANGE_TO_EXCLUDE,
					[REPORT_ANSWER] = MODE_IS_EXCLUDE,
					[REPORT_LEAVE] = CHANGE_TO_INCLUDE };
	uint8_t *igmp;

	if (v2)
		return report_v2(t, group->octet + 12, what, out);
	igmp = begin(t, out, all_v3_routers, RECORD_AT + 8);
	if (igmp == NULL)
		return false;
	igmp[0] = REPORT_V3;
	store_be16(igmp + 6, 1);
	igmp[RECORD_AT] = type[what];
	memcpy(igmp + RECORD_AT + 4, group->octet + 12, 4);
	store_be16(igmp + 2, checksum_of(igmp, RECORD_AT + 8));
	return true;
}

/* RFC 3376 4.1.1: tenths of a second. Codes from 128 on have a mantissa and an exponent. */
static nanotime patience(uint8_t code)
{
	uint64_t tenths = code;

	if (code >= 128)
		tenths = (uint64_t)((code & 15) | 16) << (((code >> 4) & 7) + 3);
	return tenths * (TIME_S / 10);
}

bool igmp_input(struct neighbour_table *t, const struct received *r)
{
	uint32_t header, total;
	const uint8_t *igmp;
	struct query q = { .ipv4 = true };

	if (r->l3_length < 20 || r->l3[0] >> 4 != 4 || r->l3[9] != PROTO_IGMP)
		return false;
	header = (r->l3[0] & 15u) * 4;
	total = load_be16(r->l3 + 2);
	if (header < 20 || total > r->l3_length || total < header + 8 ||
	    (load_be16(r->l3 + 6) & 0x3fff) != 0 || checksum_of(r->l3, header) != 0)
		return false;
	igmp = r->l3 + header;
	if (checksum_of(igmp, total - header) != 0 || igmp[0] != QUERY)
		return true;
	q.older = total - header < 12;
	/* An IGMPv1 query carries no time, which means ten seconds. */
	q.patience = igmp[1] == 0 && q.older ? 10 * TIME_S : patience(igmp[1]);
	q.group = gid_of_ipv4(igmp + 4);
	q.general = load_be32(igmp + 4) == 0;
	groups_queried(t, &q, r->now);
	return true;
}
