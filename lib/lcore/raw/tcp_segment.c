/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/bits.h"
#include "lcore/raw/raw_frame.h"
#include "lcore/raw/tcp_segment.h"

#define IPV4_LENGTH  20u
#define IPV6_LENGTH  40u
#define TCP_SEQUENCE 4u
#define TCP_OFFSET   12u
#define TCP_FLAGS    13u
#define TCP_FIN	     0x01u
#define TCP_PUSH     0x08u
#define TCP_CWR	     0x80u

/* Lengths are set before the packet is parsed, because they bound the headers behind them. */
static bool set_lengths(uint8_t *ip, size_t length)
{
	if (length < IPV4_LENGTH)
		return false;
	if (ip[0] >> 4 == 4)
		store_be16(ip + 2, (uint16_t)length);
	else if (ip[0] >> 4 == 6 && length >= IPV6_LENGTH)
		store_be16(ip + 4, (uint16_t)(length - IPV6_LENGTH));
	else
		return false;
	return true;
}

/* FIN and PSH belong to the last segment; CWR to the first (RFC 3168 6.1.2). */
static void set_flags(uint8_t *tcp, const struct tcp_segment *s)
{
	if (!s->last)
		tcp[TCP_FLAGS] &= (uint8_t) ~(TCP_FIN | TCP_PUSH);
	if (s->number > 0)
		tcp[TCP_FLAGS] &= (uint8_t)~TCP_CWR;
}

bool tcp_segment_finish(uint8_t *octets, size_t length, size_t l3, size_t header,
			const struct tcp_segment *s)
{
	uint8_t *ip = octets + l3, *tcp;
	struct raw_frame f;

	if (length > UINT16_MAX || l3 > header || header > length || !set_lengths(ip, length - l3))
		return false;
	raw_frame_parse_ip(&f, octets, l3, length);
	tcp = octets + f.l4;
	if ((f.layers & FLOW_LAYER_TCP) == 0 || f.fragment ||
	    f.l4 + (tcp[TCP_OFFSET] >> 4) * 4u != header)
		return false;
	if (f.layers & FLOW_LAYER_IPV4)
		store_be16(ip + 4, (uint16_t)(load_be16(ip + 4) + s->number));
	store_be32(tcp + TCP_SEQUENCE, load_be32(tcp + TCP_SEQUENCE) + s->offset);
	set_flags(tcp, s);
	raw_frame_fill_checksums(&f, octets);
	return true;
}
