/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ARP over Ethernet, RFC 826:
 *
 *	0  hardware type 1      2  protocol type 0x0800   4  lengths 6, 4   6  1 request, 2 reply
 *	8  sender MAC          14  sender IP             18  target MAC    24  target IP
 */
#include "base/bits.h"
#include "drivers/neighbour/table.h"

#define ARP_LENGTH 28u

enum {
	ARP_REQUEST = 1,
	ARP_REPLY = 2
};

static bool arp_send(const struct neighbour_table *t, struct neighbour_frames *out, uint16_t op,
		     const struct mac *to, const uint8_t *sender_ip, const struct mac *target,
		     const uint8_t *target_ip)
{
	uint8_t *arp = frame_begin(t, out, to, ETHERTYPE_ARP_, ARP_LENGTH);

	if (arp == NULL)
		return false;
	store_be16(arp, 1);
	store_be16(arp + 2, ETHERTYPE_IPV4_);
	arp[4] = 6;
	arp[5] = 4;
	store_be16(arp + 6, op);
	memcpy(arp + 8, t->mac.octet, 6);
	memcpy(arp + 14, sender_ip, 4);
	memcpy(arp + 18, target->octet, 6);
	memcpy(arp + 24, target_ip, 4);
	return true;
}

static bool arp_is_valid(const struct received *r)
{
	return r->l3_length >= ARP_LENGTH && load_be16(r->l3) == 1 &&
	       load_be16(r->l3 + 2) == ETHERTYPE_IPV4_ && r->l3[4] == 6 && r->l3[5] == 4;
}

void arp_input(struct neighbour_table *t, const struct received *r, struct neighbour_frames *out)
{
	struct gid sender, target;
	struct mac mac;
	uint16_t op;

	if (!arp_is_valid(r))
		return;
	op = load_be16(r->l3 + 6);
	memcpy(mac.octet, r->l3 + 8, 6);
	sender = gid_of_ipv4(r->l3 + 14);
	target = gid_of_ipv4(r->l3 + 24);
	/* including gratuitous ones (sender = target) */
	if (op == ARP_REQUEST || op == ARP_REPLY)
		neighbour_learned(t, &sender, &mac, true, r->now);
	if (op == ARP_REQUEST && neighbour_is_own(t, &target) && !mac_is_multicast(&mac) &&
	    !neighbour_is_own(t, &sender))
		arp_send(t, out, ARP_REPLY, &mac, target.octet + 12, &mac, sender.octet + 12);
}

bool arp_ask(struct neighbour_table *t, const struct entry *e, struct neighbour_frames *out)
{
	const struct gid *source = neighbour_source(t, &e->gid);
	const struct mac *to = e->state == ENTRY_PROBING ? &e->mac : &mac_broadcast;

	return source != NULL && arp_send(t, out, ARP_REQUEST, to, source->octet + 12,
					  &(struct mac){ { 0 } }, e->gid.octet + 12);
}

void arp_announce(struct neighbour_table *t, const struct gid *own, struct neighbour_frames *out)
{
	arp_send(t, out, ARP_REQUEST, &mac_broadcast, own->octet + 12, &(struct mac){ { 0 } },
		 own->octet + 12);
}
