/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_ip.h>

#include "base/bits.h"
#include "config/limits.h"
#include "lcore/raw/raw_frame.h"
#include "wire/envelope.h"

#define ETHER_LENGTH	   14u
#define TAG_LENGTH	   4u
#define IPV4_LENGTH	   20u
#define IPV6_LENGTH	   40u
#define UDP_LENGTH	   8u
#define TCP_LENGTH	   20u
#define ETHERTYPE_IPV4	   0x0800
#define ETHERTYPE_IPV6	   0x86dd
#define PROTOCOL_HOP	   0
#define PROTOCOL_TCP	   6
#define PROTOCOL_UDP	   17
#define PROTOCOL_ROUTING   43
#define PROTOCOL_FRAGMENT  44
#define PROTOCOL_AH	   51
#define PROTOCOL_OPTIONS   60
#define PROTOCOL_MOBILITY  135
#define IPV4_MORE	   0x2000
#define IPV4_DONT	   0x4000
#define IPV4_OFFSET	   0x1fff
#define FLAG_DONT_FRAGMENT 2u /* enum ib_ipv4_flags of the kernel */
#define FLAG_MORE	   4u

static bool is_tag(uint16_t type)
{
	return type == 0x8100 || type == 0x88a8 || type == 0x9100 || type == 0x9200 ||
	       type == 0x9300;
}

/* The offset of layer 3; 0: the frame ends before it. */
static size_t parse_ethernet(struct raw_frame *f, const uint8_t *frame, size_t length)
{
	size_t at = ETHER_LENGTH;

	if (length < ETHER_LENGTH)
		return 0;
	f->layers = FLOW_LAYER_ETH;
	memcpy(f->key.dst_mac, frame, 6);
	memcpy(f->key.src_mac, frame + 6, 6);
	while (is_tag(load_be16(frame + at - 2))) {
		if (length - at < TAG_LENGTH)
			return 0;
		if (f->vlan_tags++ == 0)
			memcpy(f->key.vlan_tag, frame + at, 2);
		f->layers |= FLOW_LAYER_VLAN;
		at += TAG_LENGTH;
	}
	memcpy(f->key.ether_type, frame + at - 2, 2);
	return at;
}

static void parse_l4(struct raw_frame *f, const uint8_t *frame, size_t at)
{
	size_t room = f->end - at;

	f->l4 = (uint16_t)at;
	if (f->later_fragment)
		return;
	if (f->key.protocol == PROTOCOL_UDP) {
		if (room < UDP_LENGTH) {
			f->cut = true;
			return;
		}
		f->layers |= FLOW_LAYER_UDP;
	} else if (f->key.protocol == PROTOCOL_TCP && room >= TCP_LENGTH) {
		f->layers |= FLOW_LAYER_TCP;
	} else {
		return;
	}
	memcpy(f->key.src_port, frame + at, 2);
	memcpy(f->key.dst_port, frame + at + 2, 2);
}

static void parse_ipv4(struct raw_frame *f, const uint8_t *frame, size_t length)
{
	const uint8_t *ip = frame + f->l3;
	size_t room = length - f->l3, header, total;
	uint16_t fragment;

	f->cut = true;
	if (room < IPV4_LENGTH)
		return;
	header = (ip[0] & 15u) * 4;
	total = load_be16(ip + 2);
	/* The sender may leave the lengths unset (TSO), so the frame's length decides. */
	if (ip[0] >> 4 != 4 || header < IPV4_LENGTH || header > room)
		return;
	f->cut = false;
	f->layers |= FLOW_LAYER_IPV4;
	f->end = (uint16_t)(f->l3 + (total >= header && total <= room ? total : room));
	fragment = load_be16(ip + 6);
	f->fragment = (fragment & (IPV4_MORE | IPV4_OFFSET)) != 0;
	f->later_fragment = (fragment & IPV4_OFFSET) != 0;
	memcpy(f->key.src_ip, ip + 12, 4);
	memcpy(f->key.dst_ip, ip + 16, 4);
	f->key.tos = ip[1];
	f->key.ttl = ip[8];
	f->key.protocol = ip[9];
	f->key.ip_flags = (uint8_t)((fragment & IPV4_DONT ? FLAG_DONT_FRAGMENT : 0) |
				    (fragment & IPV4_MORE ? FLAG_MORE : 0));
	parse_l4(f, frame, f->l3 + header);
}

static bool is_extension(uint8_t next)
{
	return next == PROTOCOL_HOP || next == PROTOCOL_ROUTING || next == PROTOCOL_FRAGMENT ||
	       next == PROTOCOL_AH || next == PROTOCOL_OPTIONS || next == PROTOCOL_MOBILITY;
}

/* Walks the extension headers from `next` on. False: they do not end inside the packet. */
static bool walk_extensions(struct raw_frame *f, const uint8_t *frame, uint8_t *next, size_t *at)
{
	for (uint32_t i = 0; is_extension(*next) && !f->later_fragment; i++) {
		const uint8_t *header = frame + *at;

		if (i == LIMIT_RAW_EXTENSIONS || f->end - *at < 8)
			return false;
		if (*next == PROTOCOL_FRAGMENT) {
			f->fragment = true;
			f->later_fragment = (load_be16(header + 2) & 0xfff8) != 0;
			*at += 8;
		} else if (*next == PROTOCOL_AH) {
			*at += (header[1] + 2u) * 4;
		} else {
			*at += (header[1] + 1u) * 8;
		}
		*next = header[0];
		if (*at > f->end)
			return false;
	}
	return true;
}

static void parse_ipv6(struct raw_frame *f, const uint8_t *frame, size_t length)
{
	const uint8_t *ip = frame + f->l3;
	size_t room = length - f->l3, at = f->l3 + IPV6_LENGTH, payload;
	uint32_t label;
	uint8_t next;

	f->cut = true;
	if (room < IPV6_LENGTH || ip[0] >> 4 != 6)
		return;
	payload = load_be16(ip + 4);
	f->layers |= FLOW_LAYER_IPV6;
	f->end = (uint16_t)(payload > 0 && payload <= room - IPV6_LENGTH ? at + payload : length);
	label = load_be32(ip);
	f->key.tos = (uint8_t)(label >> 20);
	store_be32(f->key.flow_label, label & 0xfffff);
	f->key.ttl = ip[7];
	memcpy(f->key.src_ip, ip + 8, 16);
	memcpy(f->key.dst_ip, ip + 24, 16);
	next = ip[6];
	if (!walk_extensions(f, frame, &next, &at))
		return;
	f->cut = false;
	f->key.protocol = next;
	parse_l4(f, frame, at);
}

void raw_frame_parse(struct raw_frame *f, const uint8_t *frame, size_t length)
{
	uint16_t type;
	size_t at;

	memset(f, 0, sizeof(*f));
	length = MIN_OF(length, UINT16_MAX);
	f->end = (uint16_t)length;
	at = parse_ethernet(f, frame, length);
	if (at == 0)
		return;
	f->l3 = (uint16_t)at;
	type = load_be16(f->key.ether_type);
	if (type == ETHERTYPE_IPV4)
		parse_ipv4(f, frame, length);
	else if (type == ETHERTYPE_IPV6)
		parse_ipv6(f, frame, length);
}

void raw_frame_parse_ip(struct raw_frame *f, const uint8_t *octets, size_t l3, size_t length)
{
	memset(f, 0, sizeof(*f));
	length = MIN_OF(length, UINT16_MAX);
	f->end = (uint16_t)length;
	f->l3 = (uint16_t)l3;
	if (l3 < length && octets[l3] >> 4 == 6)
		parse_ipv6(f, octets, length);
	else
		parse_ipv4(f, octets, length);
}

/*
 * The receiver may compute other lengths than this engine does: either may ignore the IPv4 total
 * length. So the port is read if the frame is long enough, even if the packet is not.
 */
bool raw_frame_is_roce(const struct raw_frame *f, const uint8_t *frame, size_t length)
{
	if (f->cut)
		return true;
	if ((f->layers & (FLOW_LAYER_IPV4 | FLOW_LAYER_IPV6)) == 0 || f->later_fragment ||
	    f->key.protocol != PROTOCOL_UDP)
		return false;
	return length < f->l4 + 4u || load_be16(frame + f->l4 + 2) == ROCE_UDP_PORT;
}

/* ---- checksums ---- */

/* The ones' complement sum, not inverted. */
static uint16_t sum_of(const uint8_t *octets, size_t length)
{
	return rte_be_to_cpu_16(rte_raw_cksum(octets, length));
}

/* The sum over the pseudo header and layer 4, including the checksum field as it stands. */
static uint16_t sum_l4(const struct raw_frame *f, const uint8_t *frame)
{
	uint16_t length = (uint16_t)(f->end - f->l4);
	size_t address = f->layers & FLOW_LAYER_IPV6 ? 16 : 4;
	uint16_t sum = ones_complement_add(f->key.protocol, length);

	sum = ones_complement_add(sum, sum_of(f->key.src_ip, address));
	sum = ones_complement_add(sum, sum_of(f->key.dst_ip, address));
	return ones_complement_add(sum, sum_of(frame + f->l4, length));
}

static size_t ipv4_header(const struct raw_frame *f, const uint8_t *frame)
{
	return (frame[f->l3] & 15u) * 4;
}

static size_t l4_checksum_at(const struct raw_frame *f)
{
	return f->l4 + (f->layers & FLOW_LAYER_TCP ? 16u : 6u);
}

void raw_frame_fill_checksums(const struct raw_frame *f, uint8_t *frame)
{
	uint16_t sum;

	if (f->layers & FLOW_LAYER_IPV4) {
		uint8_t *ip = frame + f->l3;

		store_be16(ip + 10, 0);
		store_be16(ip + 10, (uint16_t)~sum_of(ip, ipv4_header(f, frame)));
	}
	/* The checksum of a fragmented datagram covers octets outside this frame. */
	if ((f->layers & (FLOW_LAYER_TCP | FLOW_LAYER_UDP)) == 0 || f->fragment)
		return;
	store_be16(frame + l4_checksum_at(f), 0);
	sum = (uint16_t)~sum_l4(f, frame);
	/* RFC 768: a UDP checksum that comes out as zero is sent as all ones. */
	if (sum == 0 && (f->layers & FLOW_LAYER_UDP))
		sum = 0xffff;
	store_be16(frame + l4_checksum_at(f), sum);
}

bool raw_frame_checksums_right(const struct raw_frame *f, const uint8_t *frame)
{
	if ((f->layers & FLOW_LAYER_IPV4) == 0 || f->fragment ||
	    (f->layers & (FLOW_LAYER_TCP | FLOW_LAYER_UDP)) == 0)
		return false;
	if (sum_of(frame + f->l3, ipv4_header(f, frame)) != 0xffff)
		return false;
	if ((f->layers & FLOW_LAYER_UDP) && load_be16(frame + l4_checksum_at(f)) == 0)
		return true; /* the sender made no checksum */
	return sum_l4(f, frame) == 0xffff;
}
