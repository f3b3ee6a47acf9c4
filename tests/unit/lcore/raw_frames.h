/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames for the tests of raw queue pairs: built member by member, right in every length. */
#ifndef TESTS_UNIT_ENGINE_RAW_FRAMES_H
#define TESTS_UNIT_ENGINE_RAW_FRAMES_H

#include <arpa/inet.h>

#include "base/bits.h"
#include "lcore/raw/raw_frame.h"

struct frame_recipe {
	const char *dst_mac; /* six octets in hex without colons; NULL: 010203040506 */
	const char *src_mac;
	uint32_t tags; /* how many VLAN tags, ids 100, 101 ... */
	uint16_t tag_type; /* of each; 0: 0x8100 */
	uint16_t type; /* 0: from `src` */
	const char *src, *dst; /* addresses; NULL: no IP */
	uint8_t protocol; /* 6, 17 or anything */
	uint32_t options; /* IPv4: words of options; IPv6: hop-by-hop headers of 8 octets */
	bool fragment_header; /* IPv6 */
	uint16_t fragment; /* IPv4: octets 6, 7; IPv6: octets 2, 3 of the fragment header */
	uint16_t src_port, dst_port;
	uint32_t payload; /* octets behind all that */
};

struct built_frame {
	uint8_t octet[2048];
	size_t length;
};

static inline void put_mac(struct built_frame *b, const char *hex)
{
	for (int i = 0; i < 6; i++) {
		unsigned int v = 0;

		for (int k = 0; k < 2; k++) {
			char c = hex[2 * i + k];

			v = v * 16 + (unsigned int)(c <= '9' ? c - '0' : c - 'a' + 10);
		}
		b->octet[b->length++] = (uint8_t)v;
	}
}

static inline void put16(struct built_frame *b, uint32_t v)
{
	store_be16(b->octet + b->length, (uint16_t)v);
	b->length += 2;
}

static inline void put_l4(struct built_frame *b, const struct frame_recipe *r)
{
	size_t at = b->length;

	put16(b, r->src_port);
	put16(b, r->dst_port);
	if (r->protocol == 17)
		store_be16(b->octet + at + 4, (uint16_t)(8 + r->payload));
	if (r->protocol == 6)
		b->octet[at + 12] = 5 << 4;
	b->length = at + (r->protocol == 6 ? 20 : r->protocol == 17 ? 8 : 4);
	for (uint32_t i = 0; i < r->payload; i++)
		b->octet[b->length++] = (uint8_t)(i * 7 + 1);
}

static inline void put_ipv4(struct built_frame *b, const struct frame_recipe *r)
{
	uint8_t *ip = b->octet + b->length;

	ip[0] = (uint8_t)(4 << 4 | (5 + r->options));
	store_be16(ip + 6, r->fragment);
	ip[8] = 64;
	ip[9] = r->protocol;
	inet_pton(AF_INET, r->src, ip + 12);
	inet_pton(AF_INET, r->dst, ip + 16);
	memset(ip + 20, 1, (size_t)r->options * 4);
	b->length += 20 + (size_t)r->options * 4;
	put_l4(b, r);
	store_be16(ip + 2, (uint16_t)(b->octet + b->length - ip));
}

static inline void put_ipv6(struct built_frame *b, const struct frame_recipe *r)
{
	uint8_t *ip = b->octet + b->length, *next = ip + 6;

	ip[0] = 6 << 4;
	ip[7] = 64;
	inet_pton(AF_INET6, r->src, ip + 8);
	inet_pton(AF_INET6, r->dst, ip + 24);
	b->length += 40;
	for (uint32_t i = 0; i < r->options; i++) {
		*next = i % 2 == 0 ? 0 : 60;
		next = b->octet + b->length;
		b->length += 8;
	}
	if (r->fragment_header) {
		*next = 44;
		next = b->octet + b->length;
		store_be16(next + 2, r->fragment);
		b->length += 8;
	}
	*next = r->protocol;
	put_l4(b, r);
	store_be16(ip + 4, (uint16_t)(b->octet + b->length - ip - 40));
}

static inline void build_frame(struct built_frame *b, const struct frame_recipe *r)
{
	bool v6 = r->src != NULL && strchr(r->src, ':') != NULL;

	memset(b, 0, sizeof(*b));
	put_mac(b, r->dst_mac != NULL ? r->dst_mac : "020304050607");
	put_mac(b, r->src_mac != NULL ? r->src_mac : "0a0b0c0d0e0f");
	for (uint32_t i = 0; i < r->tags; i++) {
		put16(b, r->tag_type != 0 ? r->tag_type : 0x8100);
		put16(b, 0xa000 | (100 + i));
	}
	put16(b, r->type != 0 ? r->type : v6 ? 0x86dd : r->src != NULL ? 0x0800 : 0x88b5);
	if (r->src == NULL)
		b->length += r->payload;
	else if (v6)
		put_ipv6(b, r);
	else
		put_ipv4(b, r);
}

#endif
