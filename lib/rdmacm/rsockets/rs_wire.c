/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdmacm/rsockets/rs_wire.h"

#include <byteswap.h>
#include <netinet/in.h>
#include <string.h>

#include "base/bits.h"

#define FLAG_BIG_ENDIAN 1u
#define FLAG_IOMAP	2u
#define UDP_TAG		0x55555555u

/* ---- greetings ---- */

static void store_sge(uint8_t *to, const struct rs_sge *s)
{
	store_be64(to, s->address);
	store_be32(to + 8, s->key);
	store_be32(to + 12, s->length);
}

static void load_sge(struct rs_sge *s, const uint8_t *from)
{
	s->address = load_be64(from);
	s->key = load_be32(from + 8);
	s->length = load_be32(from + 12);
}

uint8_t rs_entries_to_scale(uint32_t entries)
{
	if (entries <= 128)
		return (uint8_t)entries;
	return entries > 0x7fff ? 0xff : (uint8_t)(0x80 | entries >> 8);
}

uint16_t rs_entries_from_scale(uint8_t scale)
{
	return scale <= 128 ? scale : (uint16_t)((scale & 0x7f) << 8);
}

void rs_greeting_store(uint8_t to[RS_GREETING_SIZE], const struct rs_greeting *g)
{
	memset(to, 0, RS_GREETING_SIZE);
	to[0] = RS_VERSION;
	to[1] = (g->big_endian ? FLAG_BIG_ENDIAN : 0) | (g->has_iomap ? FLAG_IOMAP : 0);
	store_be16(to + 2, g->credits);
	to[7] = rs_entries_to_scale(g->iomap_entries);
	store_sge(to + 8, &g->table);
	store_sge(to + 24, &g->buffer);
}

bool rs_greeting_load(struct rs_greeting *g, const uint8_t *from, size_t length)
{
	if (length < RS_GREETING_SIZE || from[0] != RS_VERSION)
		return false;
	g->big_endian = from[1] & FLAG_BIG_ENDIAN;
	g->has_iomap = from[1] & FLAG_IOMAP;
	g->credits = load_be16(from + 2);
	g->iomap_entries = g->has_iomap ? rs_entries_from_scale(from[7]) : 0;
	load_sge(&g->table, from + 8);
	load_sge(&g->buffer, from + 24);
	return g->table.length > 0;
}

struct rs_sge rs_sge_for(const struct rs_sge *sge, bool swap)
{
	struct rs_sge s = *sge;

	if (swap) {
		s.address = bswap_64(s.address);
		s.key = bswap_32(s.key);
		s.length = bswap_32(s.length);
	}
	return s;
}

struct rs_iomap rs_iomap_for(const struct rs_iomap *map, bool swap)
{
	struct rs_iomap m = { .offset = swap ? bswap_64(map->offset) : map->offset };

	m.sge = rs_sge_for(&map->sge, swap);
	return m;
}

/* ---- datagrams ---- */

size_t rs_datagram_store(uint8_t to[RS_DATAGRAM_HEADER_MAX], const struct sockaddr *source)
{
	const struct sockaddr_in *v4 = (const void *)source;
	const struct sockaddr_in6 *v6 = (const void *)source;

	switch (source->sa_family) {
	case AF_INET:
		to[0] = 4;
		to[1] = 8;
		memcpy(to + 2, &v4->sin_port, 2);
		memcpy(to + 4, &v4->sin_addr, 4);
		return 8;
	case AF_INET6:
		to[0] = 6;
		to[1] = 24;
		memcpy(to + 2, &v6->sin6_port, 2);
		memcpy(to + 4, &v6->sin6_flowinfo, 4);
		memcpy(to + 8, &v6->sin6_addr, 16);
		return 24;
	default:
		return 0;
	}
}

size_t rs_datagram_load(struct sockaddr_storage *source, const uint8_t *from, size_t length,
			uint32_t scope)
{
	struct sockaddr_in *v4 = (void *)source;
	struct sockaddr_in6 *v6 = (void *)source;

	memset(source, 0, sizeof(*source));
	if (length >= 8 && from[0] == 4 && from[1] == 8) {
		v4->sin_family = AF_INET;
		memcpy(&v4->sin_port, from + 2, 2);
		memcpy(&v4->sin_addr, from + 4, 4);
		return 8;
	}
	if (length >= 24 && from[0] == 6 && from[1] == 24) {
		v6->sin6_family = AF_INET6;
		memcpy(&v6->sin6_port, from + 2, 2);
		memcpy(&v6->sin6_flowinfo, from + 4, 4);
		memcpy(&v6->sin6_addr, from + 8, 16);
		if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
			v6->sin6_scope_id = scope;
		return 24;
	}
	return 0;
}

size_t rs_udp_store(uint8_t to[RS_UDP_HEADER_MAX], const struct rs_udp *u,
		    const struct sockaddr *address)
{
	bool v6 = address->sa_family == AF_INET6;
	size_t length = v6 ? 28 : 16;

	if (!v6 && address->sa_family != AF_INET)
		return 0;
	store_be32(to, UDP_TAG);
	to[4] = v6 ? 6 : 4;
	to[5] = (uint8_t)u->operation;
	to[6] = (uint8_t)length;
	to[7] = 0;
	store_be32(to + 8, u->qpn);
	if (v6)
		memcpy(to + 12, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
	else
		memcpy(to + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
	return length;
}

size_t rs_udp_load(struct rs_udp *u, const uint8_t *from, size_t length, int family)
{
	size_t expected = family == AF_INET6 ? 28 : 16;

	if (length < expected || load_be32(from) != UDP_TAG || from[6] != expected ||
	    from[4] != (family == AF_INET6 ? 6 : 4))
		return 0;
	if (from[5] != RS_UDP_DATA && from[5] != RS_UDP_CONTROL)
		return 0;
	u->operation = from[5];
	u->qpn = load_be32(from + 8) & 0xffffff;
	return expected;
}
