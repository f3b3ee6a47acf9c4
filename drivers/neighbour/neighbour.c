/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/neighbour/neighbour.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "drivers/neighbour/table.h"

struct neighbour_table *neighbour_table_new(const struct mac *mac, uint16_t vlan,
					    uint32_t kernel_ifindex)
{
	struct neighbour_table *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->mac = *mac;
	t->vlan = vlan;
	if (kernel_ifindex == 0)
		return t;
	t->kernel = neighbour_kernel_new(kernel_ifindex);
	if (t->kernel == NULL) {
		int error = errno;

		free(t);
		errno = error;
		return NULL;
	}
	return t;
}

void neighbour_table_free(struct neighbour_table *t)
{
	if (t == NULL)
		return;
	neighbour_kernel_free(t->kernel);
	free(t);
}

void neighbour_set_addresses(struct neighbour_table *t, const struct neighbour_address *address,
			     uint32_t count)
{
	t->addresses = MIN_OF(count, LIMIT_GIDS);
	if (t->addresses > 0)
		memcpy(t->address, address, t->addresses * sizeof(*address));
}

void neighbour_set_gateways(struct neighbour_table *t, const struct gid *gateway, uint32_t count)
{
	t->gateways = MIN_OF(count, LIMIT_NEIGHBOUR_GATEWAYS);
	if (t->gateways > 0)
		memcpy(t->gateway, gateway, t->gateways * sizeof(*gateway));
}

uint32_t neighbour_generation(const struct neighbour_table *t)
{
	return t->generation;
}

bool neighbour_is_own(const struct neighbour_table *t, const struct gid *gid)
{
	for (uint32_t i = 0; i < t->addresses; i++)
		if (gid_equal(&t->address[i].gid, gid))
			return true;
	return false;
}

/* The number of leading bits of a GID to compare; an IPv4 address follows 96 constant bits. */
static uint32_t prefix_bits(const struct neighbour_address *a)
{
	return gid_is_ipv4(&a->gid) ? 96u + MIN_OF(a->prefix, 32u) : MIN_OF(a->prefix, 128u);
}

static bool same_prefix(const struct gid *a, const struct gid *b, uint32_t bits)
{
	if (memcmp(a->octet, b->octet, bits / 8) != 0)
		return false;
	return bits % 8 == 0 || ((a->octet[bits / 8] ^ b->octet[bits / 8]) >> (8 - bits % 8)) == 0;
}

static bool on_link(const struct neighbour_address *a, const struct gid *gid)
{
	return gid_is_ipv4(&a->gid) == gid_is_ipv4(gid) &&
	       same_prefix(&a->gid, gid, prefix_bits(a));
}

static bool is_on_link(const struct neighbour_table *t, const struct gid *gid)
{
	if (gid_is_link_local(gid))
		return true;
	for (uint32_t i = 0; i < t->addresses; i++)
		if (on_link(&t->address[i], gid))
			return true;
	return false;
}

const struct gid *neighbour_source(const struct neighbour_table *t, const struct gid *target)
{
	const struct gid *first = NULL;

	for (uint32_t i = 0; i < t->addresses; i++) {
		const struct neighbour_address *a = &t->address[i];

		if (on_link(a, target))
			return &a->gid;
		if (first == NULL && gid_is_ipv4(&a->gid) == gid_is_ipv4(target))
			first = &a->gid;
	}
	return first;
}

/*
 * Whether it is 255.255.255.255, or one of our prefixes (with room for a broadcast address) with
 * all host bits set.
 */
static bool is_broadcast(const struct neighbour_table *t, const struct gid *gid)
{
	uint32_t ip = load_be32(gid->octet + 12);

	if (!gid_is_ipv4(gid))
		return false;
	if (ip == UINT32_MAX)
		return true;
	for (uint32_t i = 0; i < t->addresses; i++) {
		const struct neighbour_address *a = &t->address[i];
		uint32_t host;

		/* our addresses that are IPv6 or have no room for a broadcast address */
		if (!gid_is_ipv4(&a->gid) || a->prefix >= 31)
			continue;
		host = UINT32_MAX >> a->prefix;
		if (on_link(a, gid) && (ip & host) == host)
			return true;
	}
	return false;
}

static bool next_hop(const struct neighbour_table *t, const struct gid *gid, struct gid *hop)
{
	*hop = *gid;
	if (gid_is_unspecified(gid) || is_broadcast(t, gid))
		return false;
	if (is_on_link(t, gid))
		return true;
	for (uint32_t i = 0; i < t->gateways; i++) {
		*hop = t->gateway[i];
		if (gid_is_ipv4(hop) == gid_is_ipv4(gid) && is_on_link(t, hop))
			return true;
	}
	return false;
}

static struct entry *entry_find(struct neighbour_table *t, const struct gid *gid)
{
	for (uint32_t i = 0; i < t->reached; i++)
		if (t->entry[i].state != ENTRY_FREE && gid_equal(&t->entry[i].gid, gid))
			return &t->entry[i];
	return NULL;
}

static bool is_known(const struct entry *e)
{
	return e->state == ENTRY_REACHABLE || e->state == ENTRY_PROBING;
}

/* Known neighbours leave few places for those that are being asked for. */
static bool is_crowded(const struct neighbour_table *t)
{
	uint32_t known = 0;

	for (uint32_t i = 0; i < t->reached; i++)
		known += is_known(&t->entry[i]);
	return known > LIMIT_NEIGHBOUR_ENTRIES - LIMIT_NEIGHBOUR_PLACES;
}

/*
 * Flows ask for their neighbours only at news, so how long nobody has asked says nothing. After an
 * offer it does.
 */
static void offer_all(struct neighbour_table *t, nanotime now)
{
	if (t->offered_at != 0 && now - t->offered_at < LIMIT_NEIGHBOUR_REACHABLE)
		return;
	t->offered_at = t->offer_seen_at = now;
	t->offer_age = 0;
	t->generation++;
}

/* While the process is stopped, or gets no processor, flows cannot ask: such a time does not count. */
static void offer_ages(struct neighbour_table *t, nanotime now)
{
	if (t->offered_at == 0 || now <= t->offer_seen_at)
		return;
	t->offer_age += MIN_OF(now - t->offer_seen_at, LIMIT_NEIGHBOUR_OFFER_STEP);
	t->offer_seen_at = now;
}

static bool is_unused(const struct neighbour_table *t, const struct entry *e)
{
	return is_known(e) && t->offered_at != 0 && e->used_at < t->offered_at &&
	       t->offer_age >= LIMIT_NEIGHBOUR_OFFER;
}

/*
 * Known neighbours are given up last. Flows ask for theirs only at news, so those of busy
 * connections are among the longest unused, and a scan of silent addresses would push them out.
 */
static bool goes_before(const struct entry *a, const struct entry *b)
{
	return is_known(a) != is_known(b) ? is_known(b) : a->used_at < b->used_at;
}

/* Without a place each for a while, those that are being asked for would push out each other. */
static struct entry *find_unused(struct neighbour_table *t, nanotime now)
{
	if (!is_crowded(t))
		return NULL;
	offer_all(t, now);
	for (uint32_t i = 0; i < t->reached; i++)
		if (is_unused(t, &t->entry[i]))
			return &t->entry[i];
	return NULL;
}

/* Flows may still use the answer that this entry once had. */
static void entry_give_up(struct neighbour_table *t, const struct entry *e)
{
	if (is_known(e) || e->confirmed_at != 0)
		t->generation++;
}

/*
 * A free entry. If there is none, a known one without flows if those are many, or the one that has
 * not been used for the longest time.
 */
static struct entry *entry_take(struct neighbour_table *t, nanotime now)
{
	struct entry *first = &t->entry[0], *unused;

	for (uint32_t i = 0; i < t->reached; i++) {
		if (t->entry[i].state == ENTRY_FREE)
			return &t->entry[i];
		if (goes_before(&t->entry[i], first))
			first = &t->entry[i];
	}
	if (t->reached < LIMIT_NEIGHBOUR_ENTRIES)
		return &t->entry[t->reached++];
	unused = find_unused(t, now);
	if (unused != NULL)
		first = unused;
	entry_give_up(t, first);
	return first;
}

static void entry_start(struct entry *e, struct gid gid, nanotime now)
{
	memset(e, 0, sizeof(*e));
	e->gid = gid;
	e->state = ENTRY_INCOMPLETE;
	e->due_at = now;
	e->used_at = now;
}

static int entry_answer(struct entry *e, nanotime now, struct mac *mac)
{
	e->used_at = now;
	e->is_offered = false;
	switch ((enum entry_state)e->state) {
	case ENTRY_REACHABLE:
	case ENTRY_PROBING:
		*mac = e->mac;
		return 0;
	case ENTRY_FAILED:
		if (now < e->due_at)
			return EHOSTUNREACH;
		entry_start(e, e->gid, now);
		return EINPROGRESS;
	case ENTRY_FREE:
	case ENTRY_INCOMPLETE:
		break;
	}
	return EINPROGRESS;
}

int neighbour_source_towards(struct neighbour_table *t, const struct gid *gid, struct gid *source)
{
	if (t->kernel == NULL || gid_is_multicast(gid)) {
		memset(source, 0, sizeof(*source));
		return 0;
	}
	return neighbour_kernel_source(t->kernel, gid, source);
}

int neighbour_resolve(struct neighbour_table *t, const struct gid *gid, nanotime now,
		      struct mac *mac)
{
	return neighbour_resolve_from(t, NULL, gid, now, mac);
}

int neighbour_resolve_from(struct neighbour_table *t, const struct gid *from, const struct gid *gid,
			   nanotime now, struct mac *mac)
{
	struct entry *e;
	struct gid hop;

	if (gid_is_multicast(gid)) {
		*mac = mac_of_multicast(gid);
		return 0;
	}
	if (neighbour_is_own(t, gid)) {
		*mac = t->mac;
		return 0;
	}
	if (t->kernel != NULL)
		return neighbour_kernel_resolve(t->kernel, from, gid, now, mac);
	if (!next_hop(t, gid, &hop) || neighbour_source(t, &hop) == NULL)
		return EHOSTUNREACH;
	e = entry_find(t, &hop);
	if (e == NULL) {
		e = entry_take(t, now);
		entry_start(e, hop, now);
	}
	return entry_answer(e, now, mac);
}

/*
 * Any host on the link can claim ten thousand times a second that a neighbour has another MAC
 * address, and each change costs time for every queue pair that talks to the neighbour. The first
 * claim is believed at once, because the neighbour may have moved. The next one is believed only
 * after a while. Of the claims in between, the last one is remembered.
 */
static bool comes_too_soon(struct entry *e, const struct mac *mac, nanotime now)
{
	if (e->changed_at == 0 || now - e->changed_at >= LIMIT_NEIGHBOUR_CHANGE)
		return false;
	e->next_mac = *mac;
	e->has_next = true;
	e->due_at = time_earlier(e->due_at, e->changed_at + LIMIT_NEIGHBOUR_CHANGE);
	return true;
}

static void entry_change(struct neighbour_table *t, struct entry *e, const struct mac *mac,
			 nanotime now)
{
	if (mac_equal(&e->mac, mac))
		return;
	e->mac = *mac;
	e->changed_at = now;
	t->generation++;
}

static void entry_confirmed(struct entry *e, nanotime now)
{
	e->has_next = false;
	e->state = ENTRY_REACHABLE;
	e->tries = 0;
	e->confirmed_at = now;
	e->due_at = now + LIMIT_NEIGHBOUR_REACHABLE;
}

void neighbour_learned(struct neighbour_table *t, const struct gid *gid, const struct mac *mac,
		       bool override, nanotime now)
{
	struct entry *e;

	if (mac_is_multicast(mac) || mac_is_zero(mac) || mac_equal(mac, &t->mac) ||
	    gid_is_unspecified(gid) || gid_is_multicast(gid) || neighbour_is_own(t, gid))
		return;
	e = entry_find(t, gid);
	if (e == NULL)
		return;
	if (is_known(e)) {
		if (!mac_equal(&e->mac, mac) && (!override || comes_too_soon(e, mac, now)))
			return;
		entry_change(t, e, mac, now);
	} else {
		t->generation++;
	}
	e->mac = *mac;
	entry_confirmed(e, now);
}

static void entry_ask(struct neighbour_table *t, struct entry *e, nanotime now,
		      struct neighbour_frames *out)
{
	bool sent = gid_is_ipv4(&e->gid) ? arp_ask(t, e, out) : nd_ask(t, e, out);

	if (!sent && neighbour_source(t, &e->gid) != NULL)
		return; /* the list has no room: the next tick tries again */
	/*
	 * A try counts even if we have no address on the subnet, because one may come back before
	 * the last try.
	 */
	e->tries++;
	e->due_at = now + LIMIT_NEIGHBOUR_INTERVAL;
}

/*
 * An entry has aged. It is asked for again if it is still in use. Flows resolve their addresses only
 * at news, so one that nobody resolved for long is offered to them first.
 */
static void entry_aged(struct neighbour_table *t, struct entry *e, nanotime now)
{
	if (now - e->used_at >= LIMIT_NEIGHBOUR_UNUSED && e->is_offered) {
		e->state = ENTRY_FREE;
	} else if (now - e->used_at >= LIMIT_NEIGHBOUR_UNUSED) {
		e->is_offered = true;
		e->due_at = now + LIMIT_NEIGHBOUR_REACHABLE;
		t->generation++;
	} else if (e->used_at > e->confirmed_at) {
		e->state = ENTRY_PROBING;
		e->tries = 0;
	} else {
		e->due_at = now + LIMIT_NEIGHBOUR_REACHABLE;
	}
}

static void entry_due(struct neighbour_table *t, struct entry *e, nanotime now,
		      struct neighbour_frames *out)
{
	if (e->has_next && now - e->changed_at >= LIMIT_NEIGHBOUR_CHANGE) {
		entry_change(t, e, &e->next_mac, now);
		entry_confirmed(e, now);
		return;
	}
	if (e->state == ENTRY_REACHABLE)
		entry_aged(t, e, now);
	if (e->state == ENTRY_PROBING && e->tries == LIMIT_NEIGHBOUR_TRIES) {
		e->state = ENTRY_INCOMPLETE;
		e->tries = 0;
	}
	if (e->state == ENTRY_INCOMPLETE && e->tries == LIMIT_NEIGHBOUR_TRIES) {
		e->state = ENTRY_FAILED;
		e->due_at = now + LIMIT_NEIGHBOUR_FAILED_HOLD;
		t->generation++;
	} else if (e->state == ENTRY_FAILED) {
		e->state = ENTRY_FREE;
	} else if (e->state == ENTRY_INCOMPLETE || e->state == ENTRY_PROBING) {
		entry_ask(t, e, now, out);
	}
	if (e->has_next)
		e->due_at = time_earlier(e->due_at, e->changed_at + LIMIT_NEIGHBOUR_CHANGE);
}

nanotime neighbour_tick(struct neighbour_table *t, nanotime now, struct neighbour_frames *out)
{
	nanotime next = groups_tick(t, now, out);

	offer_ages(t, now);
	if (t->kernel != NULL && neighbour_kernel_changed(t->kernel, now))
		t->generation++;
	for (uint32_t i = 0; i < t->reached; i++) {
		struct entry *e = &t->entry[i];

		if (e->state != ENTRY_FREE && e->due_at <= now)
			entry_due(t, e, now, out);
		if (e->state != ENTRY_FREE)
			next = time_earlier(next, e->due_at);
	}
	return next;
}

void neighbour_announce(struct neighbour_table *t, struct neighbour_frames *out)
{
	if (t->kernel != NULL)
		return;
	for (uint32_t i = 0; i < t->addresses; i++) {
		const struct gid *own = &t->address[i].gid;

		if (gid_is_ipv4(own))
			arp_announce(t, own, out);
		else
			nd_announce(t, own, out);
	}
}

/* Reads the Ethernet header. If the port has a VLAN, the frame must have exactly its tag. */
static bool read_envelope(const struct neighbour_table *t, const uint8_t *frame, uint32_t length,
			  struct received *r, uint16_t *ethertype)
{
	uint32_t l3 = 14;
	uint16_t vlan = 0;

	if (length < 14)
		return false;
	*ethertype = load_be16(frame + 12);
	if (*ethertype == ETHERTYPE_VLAN_) {
		if (length < 18)
			return false;
		vlan = load_be16(frame + 14) & 0xfff;
		*ethertype = load_be16(frame + 16);
		l3 = 18;
	}
	memcpy(r->dst.octet, frame, 6);
	memcpy(r->src.octet, frame + 6, 6);
	r->l3 = frame + l3;
	r->l3_length = length - l3;
	return vlan == t->vlan;
}

bool neighbour_input(struct neighbour_table *t, const uint8_t *frame, uint32_t length, nanotime now,
		     struct neighbour_frames *out)
{
	struct received r = { .now = now };
	uint16_t ethertype;

	if (t->kernel != NULL || !read_envelope(t, frame, length, &r, &ethertype))
		return false;
	if (mac_is_multicast(&r.src) || mac_equal(&r.src, &t->mac) ||
	    (!mac_is_multicast(&r.dst) && !mac_equal(&r.dst, &t->mac)))
		return false;
	switch (ethertype) {
	case ETHERTYPE_ARP_:
		arp_input(t, &r, out);
		return true;
	case ETHERTYPE_IPV4_:
		return icmp_input(t, &r, out) || igmp_input(t, &r);
	case ETHERTYPE_IPV6_:
		return icmp6_input(t, &r, out) || mld_input(t, &r);
	default:
		return false;
	}
}
