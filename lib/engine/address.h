/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses that an engine can have, and those that it can use as a next hop. */
#ifndef ENGINE_ADDRESS_H
#define ENGINE_ADDRESS_H

#include <arpa/inet.h>

#include "engine/uroce.h"
#include "wire/packet.h"

static inline struct gid address_gid(const struct uroce_address *a)
{
	struct gid g;

	memcpy(g.octet, a->octet, sizeof(g.octet));
	return g;
}

static inline bool address_is_ipv4(const struct uroce_address *a)
{
	const struct gid g = address_gid(a);

	return gid_is_ipv4(&g);
}

static inline bool address_equal(const struct uroce_address *a, const struct uroce_address *b)
{
	return memcmp(a->octet, b->octet, sizeof(a->octet)) == 0;
}

/* The address as people write it. Returns `text`. */
static inline const char *address_text(const struct uroce_address *a, char *text, size_t size)
{
	bool ipv4 = address_is_ipv4(a);

	if (inet_ntop(ipv4 ? AF_INET : AF_INET6, a->octet + (ipv4 ? 12 : 0), text,
		      (socklen_t)size) == NULL)
		text[0] = '\0';
	return text;
}

/* NULL: a host may have the address. Otherwise what it is instead: "is the address of a group". */
static inline const char *address_wrong(const struct uroce_address *a)
{
	static const struct gid none4 = { { [10] = 0xff, [11] = 0xff } };
	static const struct gid all4 = { { [10] = 0xff, [11] = 0xff, 255, 255, 255, 255 } };
	const struct gid g = address_gid(a);

	if (gid_is_zero(&g) || gid_equal(&g, &none4))
		return "is the address of nobody";
	if (gid_is_multicast(&g))
		return "is the address of a group";
	if (gid_equal(&g, &all4))
		return "is the address of everybody";
	return NULL;
}

#endif
