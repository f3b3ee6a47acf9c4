/* SPDX-License-Identifier: BSD-3-Clause */
#include "inner_packet.h"

#include <string.h>

void packet_put(struct octets *o, const void *from, size_t n)
{
	memcpy(o->at + o->n, from, n);
	o->n += n;
}

static void put16(struct octets *o, size_t at, uint32_t v)
{
	o->at[at] = (uint8_t)(v >> 8);
	o->at[at + 1] = (uint8_t)v;
}

static void put32(struct octets *o, size_t at, uint32_t v)
{
	put16(o, at, v >> 16);
	put16(o, at + 2, v & 0xffff);
}

static uint32_t sum(const uint8_t *p, size_t n)
{
	uint32_t s = 0;

	for (size_t i = 0; i < n; i++)
		s += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	return s;
}

static uint32_t folded(uint32_t s)
{
	while (s > 0xffff)
		s = (s & 0xffff) + (s >> 16);
	return ~s & 0xffff;
}

static size_t ip_at(struct kind k)
{
	return k.ipoib ? 4 : 0;
}

static size_t l4_at(struct kind k)
{
	return ip_at(k) + (k.v6 ? 40 : 20);
}

void packet_begin(struct octets *o, struct kind k)
{
	static const uint8_t ip4[20] = { 0x45, 0, 0,  0, 0, 77, 0x40, 0, 64, 0,
					 0,    0, 10, 0, 0, 1,	10,   0, 0,  2 };
	static const uint8_t tcp[32] = { 1, 187,  0xc3, 0x50, 0, 0, 0, 0, 1, 2, 3,
					 4, 0x80, 0x99, 9,    9, 0, 0, 0, 0, 1, 1,
					 8, 10,	  1,	2,    3, 4, 5, 6, 7, 8 };
	static const uint8_t udp[8] = { 0, 53, 0x12, 0xb7 };
	uint8_t ip6[40] = { 0x60, 1, 2, 3, 0, 0, 0, 64, 0xfd, [23] = 1, [24] = 0xfd, [39] = 2 };

	o->n = 0;
	if (k.ipoib)
		packet_put(o, k.v6 ? "\x86\xdd\0" : "\x08\0\0", 4);
	packet_put(o, k.v6 ? ip6 : ip4, k.v6 ? sizeof(ip6) : sizeof(ip4));
	o->at[ip_at(k) + (k.v6 ? 6 : 9)] = k.protocol;
	packet_put(o, k.protocol == 6 ? tcp : udp, k.protocol == 6 ? sizeof(tcp) : sizeof(udp));
}

void packet_finish(struct octets *o, struct kind k, bool sums)
{
	size_t ip = ip_at(k), l4 = l4_at(k), field = l4 + (k.protocol == 6 ? 16 : 6);
	uint32_t length = (uint32_t)(o->n - l4), pseudo = k.protocol + length;

	if (k.protocol == 17)
		put16(o, l4 + 4, length);
	put16(o, ip + (k.v6 ? 4 : 2), k.v6 ? length : length + 20);
	if (!sums)
		return;
	put16(o, field, 0);
	pseudo += k.v6 ? sum(o->at + ip + 8, 32) : sum(o->at + ip + 12, 8);
	put16(o, field, folded(pseudo + sum(o->at + l4, length)));
	if (k.v6)
		return;
	put16(o, ip + 10, 0);
	put16(o, ip + 10, folded(sum(o->at + ip, 20)));
}

void stream_header(struct octets *o, struct kind k)
{
	packet_begin(o, k);
	put32(o, l4_at(k) + 4, 0xfffffff0u); /* the sequence number wraps */
	/* The values of lengths and checksums do not matter. */
	put16(o, ip_at(k) + (k.v6 ? 4 : 2), k.v6 ? 1 : 21);
}

void stream_segment(struct octets *o, struct kind k, const uint8_t *data, uint32_t i)
{
	uint32_t n = i + 1 < SEGMENTS ? MSS : STREAM - i * MSS;
	size_t tcp = l4_at(k);

	stream_header(o, k);
	put32(o, tcp + 4, 0xfffffff0u + i * MSS);
	o->at[tcp + 13] = i + 1 == SEGMENTS ? 0x19 : i == 0 ? 0x90 : 0x10; /* of CWR ACK PSH FIN */
	if (!k.v6)
		put16(o, ip_at(k) + 4, 77 + i);
	packet_put(o, data + i * MSS, n);
	packet_finish(o, k, true);
}
