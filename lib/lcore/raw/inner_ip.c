/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/bits.h"
#include "lcore/raw/inner_ip.h"
#include "lcore/raw/raw_frame.h"

#define IPOIB_LENGTH   4u
#define IPV4_LENGTH    20u
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd

/*
 * The offset of the IP header, or `length` if there is none. The first half octet tells which it
 * is: 4 or 6 in an IP header, 0 or 8 in the two Ethernet types.
 */
static size_t find_ip(const uint8_t *payload, size_t length)
{
	size_t at = 0;
	uint8_t version;

	if (length < IPOIB_LENGTH + IPV4_LENGTH)
		return length < IPV4_LENGTH || payload[0] >> 4 != 4 ? length : 0;
	version = payload[0] >> 4;
	if (version != 4 && version != 6) {
		uint16_t type = load_be16(payload);

		if (type != ETHERTYPE_IPV4 && type != ETHERTYPE_IPV6)
			return length;
		version = type == ETHERTYPE_IPV4 ? 4 : 6;
		at = IPOIB_LENGTH;
	}
	return payload[at] >> 4 == version ? at : length;
}

static bool find(struct raw_frame *f, const uint8_t *payload, size_t length)
{
	size_t at = find_ip(payload, length);

	if (at == length)
		return false;
	raw_frame_parse_ip(f, payload, at, length);
	return !f->cut;
}

void inner_ip_fill_checksums(uint8_t *payload, size_t length)
{
	struct raw_frame f;

	if (find(&f, payload, length))
		raw_frame_fill_checksums(&f, payload);
}

bool inner_ip_checksums_right(const uint8_t *payload, size_t length)
{
	struct raw_frame f;

	if (!find(&f, payload, length) || (f.layers & FLOW_LAYER_IPV4) == 0)
		return false;
	/* A fragment's checksum says nothing about the whole packet. */
	return load_be16(payload + f.l3 + 2) == f.end - f.l3 &&
	       raw_frame_checksums_right(&f, payload);
}

bool inner_ip_segment(uint8_t *payload, size_t length, size_t header, const struct tcp_segment *s)
{
	size_t at = find_ip(payload, header);

	return at != header && tcp_segment_finish(payload, length, at, header, s);
}
