/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of the connection manager: which own address is meant, and the path to another one. */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "control/cm/cm_manager.h"

static const struct gid any_ipv4 = { { [10] = 0xff, [11] = 0xff } };

static bool is_loopback(const struct gid *g)
{
	static const struct gid ipv6 = { { [15] = 1 } };

	return gid_is_ipv4(g) ? g->octet[12] == 127 : gid_equal(g, &ipv6);
}

bool cm_address_is_any(const struct cm_address *a)
{
	return gid_is_zero(&a->ip) || gid_equal(&a->ip, &any_ipv4);
}

int cm_address_check(struct call *call, const struct cm_address *a)
{
	if (a->family != 4 && a->family != 6)
		return call_fail(call, EAFNOSUPPORT, "address family %u is not IPv4 or IPv6",
				 a->family);
	if (!cm_address_is_any(a) && gid_is_ipv4(&a->ip) != (a->family == 4))
		return call_fail(call, EINVAL, "the address does not match its family");
	return 0;
}

static bool of_family(const struct gid *g, uint8_t family)
{
	return !gid_is_zero(g) && gid_is_ipv4(g) == (family == 4);
}

/* The first own address of a family, other than the link-local address (entry 0). */
static bool first_of_family(const struct engine *e, uint8_t family, uint8_t *index)
{
	for (uint8_t i = 1; i <= LIMIT_GIDS; i++) {
		if (!of_family(&e->gid[i % LIMIT_GIDS].gid, family))
			continue;
		*index = i % LIMIT_GIDS;
		return true;
	}
	return false;
}

static bool index_of(const struct engine *e, const struct gid *g, uint8_t *index)
{
	for (uint8_t i = 0; i < LIMIT_GIDS; i++)
		if (gid_equal(&e->gid[i].gid, g)) {
			*index = i;
			return true;
		}
	return false;
}

bool cm_address_own(const struct engine *e, struct cm_address *a, uint8_t *index, bool *loopback)
{
	*loopback = false;
	if (cm_address_is_any(a))
		return false;
	if (index_of(e, &a->ip, index))
		return true;
	if (!is_loopback(&a->ip) || !first_of_family(e, a->family, index))
		return false;
	*loopback = true;
	a->ip = e->gid[*index].gid;
	return true;
}

bool cm_address_is_lost(const struct engine *e, const struct cm_id *id)
{
	return id->is_bound && !gid_equal(&e->gid[id->gid_index].gid, &id->source.ip);
}

/* "This network", loopback, and class E with the limited broadcast address. */
static bool is_martian(const struct gid *g)
{
	if (!gid_is_ipv4(g))
		return gid_is_zero(g) || is_loopback(g);
	return g->octet[12] == 0 || is_loopback(g) || g->octet[12] >= 240;
}

bool cm_address_is_peer(const struct engine *e, const struct gid *g)
{
	return !gid_is_own(e, g) && !gid_is_multicast(g) && !is_martian(g);
}

static uint32_t common_prefix(const struct gid *a, const struct gid *b)
{
	for (uint32_t i = 0; i < 16; i++)
		if (a->octet[i] != b->octet[i])
			return 8 * i +
			       (uint32_t)__builtin_clz((uint32_t)(a->octet[i] ^ b->octet[i]) << 24);
	return 128;
}

bool cm_address_towards(const struct engine *e, const struct gid *destination, uint8_t *index)
{
	uint8_t family = gid_is_ipv4(destination) ? 4 : 6;
	uint32_t best;

	if (!first_of_family(e, family, index))
		return false;
	if (gid_is_multicast(destination))
		return true;
	best = common_prefix(destination, &e->gid[*index].gid);
	for (uint8_t i = 0; i < LIMIT_GIDS; i++) {
		uint32_t bits = common_prefix(destination, &e->gid[i].gid);

		if (!of_family(&e->gid[i].gid, family) || bits <= best)
			continue;
		best = bits;
		*index = i;
	}
	return true;
}

struct qp_path cm_path_make(const struct engine *e, const struct cm_id *id, const struct gid *to)
{
	return (struct qp_path){
		.dgid = *to,
		.sgid = e->gid[id->gid_index].gid,
		.sgid_index = id->gid_index,
		.hop_limit = CM_HOP_LIMIT,
		.traffic_class = id->tos,
		.sl = id->tos >> 5, /* as Linux: the priority of a type of service */
		.port_num = 1,
		.is_global = 1,
	};
}
