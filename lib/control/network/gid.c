/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Own addresses. Entry 0 is the link-local address of the MAC address, entry 1 the first IPv4
 * address, as in Linux's rxe; the others follow. An address keeps its index while it exists.
 *
 * Only the control path writes entries. Lcores read them without a lock or an atomic, whole entries
 * at a time, while they may change (datagram.c): then, at worst, a datagram is lost. A queue pair
 * has a copy of its own entry.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include "control/control.h"
#include "lcore/exception/exception.h"

struct gid_list {
	uint32_t count;
	struct gid gid[LIMIT_ADDRESSES];
};

const char *gid_text(const struct gid *g, char *text, size_t size)
{
	const char *t = gid_is_ipv4(g) ? inet_ntop(AF_INET, g->octet + 12, text, (socklen_t)size)
				       : inet_ntop(AF_INET6, g->octet, text, (socklen_t)size);

	return t != NULL ? t : "?";
}

static bool list_has(const struct gid_list *l, const struct gid *g)
{
	for (uint32_t i = 0; i < l->count; i++)
		if (gid_equal(&l->gid[i], g))
			return true;
	return false;
}

static void list_add(struct gid_list *l, const struct gid *g)
{
	if (l->count < LIMIT_ADDRESSES && !gid_is_zero(g) && !list_has(l, g))
		l->gid[l->count++] = *g;
}

/* fe80:: and the EUI-64 of the MAC address (RFC 4291, appendix A). */
static struct gid link_local(const struct mac *m)
{
	struct gid g = { { 0xfe, 0x80 } };

	g.octet[8] = m->octet[0] ^ 2u;
	g.octet[9] = m->octet[1];
	g.octet[10] = m->octet[2];
	g.octet[11] = 0xff;
	g.octet[12] = 0xfe;
	memcpy(&g.octet[13], &m->octet[3], 3);
	return g;
}

static bool gid_of_sockaddr(const struct sockaddr *a, struct gid *g)
{
	memset(g, 0, sizeof(*g));
	if (a->sa_family == AF_INET) {
		g->octet[10] = g->octet[11] = 0xff;
		memcpy(&g->octet[12], &((const struct sockaddr_in *)(const void *)a)->sin_addr, 4);
		return true;
	}
	if (a->sa_family != AF_INET6)
		return false;
	memcpy(g->octet, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, 16);
	/* Link-local addresses of other interfaces do not belong to this device. */
	return !gid_is_link_local(g);
}

/*
 * A device without a port takes the host's addresses of interfaces that are up, without loopback,
 * or 127.0.0.1.
 */
static bool list_of_host(struct gid_list *l)
{
	struct gid loopback = { { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } };
	struct ifaddrs *all = NULL;
	struct gid g;

	if (getifaddrs(&all) != 0)
		return false;
	for (struct ifaddrs *a = all; a != NULL; a = a->ifa_next)
		if (a->ifa_addr != NULL && (a->ifa_flags & IFF_UP) &&
		    !(a->ifa_flags & IFF_LOOPBACK) && gid_of_sockaddr(a->ifa_addr, &g))
			list_add(l, &g);
	freeifaddrs(all);
	if (l->count == 0)
		list_add(l, &loopback);
	return true;
}

/*
 * All of the port's, or only link-local ones: the kernel answers for these, and not for entry 0 if it
 * has others.
 */
static void list_of_port(struct gid_list *l, const struct port *p, bool all)
{
	for (uint32_t i = 0; i < p->addresses; i++)
		if (all || gid_is_link_local(&p->address[i].gid))
			list_add(l, &p->address[i].gid);
}

/* False: the host could not be asked. */
static bool list_wanted(const struct engine *e, struct gid_list *l)
{
	const struct uroce_options *o = &e->control->options;
	struct gid g;

	l->count = 0;
	for (uint32_t i = 0; i < o->addresses; i++) {
		memcpy(g.octet, o->address[i].octet, 16);
		list_add(l, &g);
	}
	if (o->addresses == 0 && e->port == NULL)
		return list_of_host(l);
	if (e->port != NULL)
		list_of_port(l, e->port, o->addresses == 0);
	return true;
}

/* Into the first free entry. False: there is none. */
static bool place(struct engine *e, const struct gid *g)
{
	for (uint32_t i = 1; i < LIMIT_GIDS; i++)
		if (gid_is_zero(&e->gid[i].gid)) {
			e->gid[i].gid = *g;
			return true;
		}
	return false;
}

uint32_t gid_table_update(struct engine *e)
{
	struct gid own = link_local(&e->mac);
	struct gid_list wanted;
	uint32_t changed = 0;

	e->control->addresses_late = !list_wanted(e, &wanted);
	if (e->control->addresses_late)
		return 0; /* the entries stay as they are until the next try */
	if (!gid_equal(&e->gid[0].gid, &own)) {
		e->gid[0].gid = own;
		changed++;
	}
	for (uint32_t i = 1; i < LIMIT_GIDS; i++)
		if (!gid_is_zero(&e->gid[i].gid) && !list_has(&wanted, &e->gid[i].gid)) {
			memset(&e->gid[i], 0, sizeof(e->gid[i]));
			changed++;
		}
	/* IPv4 first: programs expect it at index 1. */
	for (int ipv4 = 1; ipv4 >= 0; ipv4--)
		for (uint32_t i = 0; i < wanted.count; i++)
			if (gid_is_ipv4(&wanted.gid[i]) == (ipv4 == 1) &&
			    !gid_is_own(e, &wanted.gid[i]) && place(e, &wanted.gid[i]))
				changed++;
	if (e->exception != NULL)
		exception_addresses_set(&e->exception->own, e->gid);
	return changed;
}

bool gid_is_own(const struct engine *e, const struct gid *g)
{
	for (uint32_t i = 0; i < LIMIT_GIDS; i++)
		if (gid_equal(&e->gid[i].gid, g))
			return true;
	return false;
}
