/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/peek.h"

#include "base/bits.h"
#include "wire/header.h"

static uint16_t l3_of(const uint8_t *frame, size_t length, size_t *l3)
{
	uint16_t type = load_be16(frame + ETHER_TYPE);

	*l3 = ETHER_LENGTH;
	if (type != ETHERTYPE_VLAN || length < ETHER_LENGTH + VLAN_TAG_LENGTH)
		return type;
	*l3 += VLAN_TAG_LENGTH;
	return load_be16(frame + *l3 - 2);
}

/* The length of the IP header in octets. 0: it is incomplete, or UDP does not follow directly. */
static size_t ip_length(uint16_t type, const uint8_t *ip, size_t room)
{
	if (type == ETHERTYPE_IPV4 && room >= IPV4_LENGTH)
		return ip[IPV4_VERSION_IHL] == 0x45 && ip[IPV4_PROTOCOL] == PROTOCOL_UDP &&
				       (load_be16(ip + IPV4_FRAGMENT) & IPV4_IS_FRAGMENT) == 0
			       ? IPV4_LENGTH
			       : 0;
	if (type == ETHERTYPE_IPV6 && room >= IPV6_LENGTH)
		return ip[IPV6_NEXT_HEADER] == PROTOCOL_UDP ? IPV6_LENGTH : 0;
	return 0;
}

uint32_t packet_peek(const uint8_t *frame, size_t length)
{
	size_t at, header;
	uint16_t type;

	if (length < ETHER_LENGTH)
		return 0;
	type = l3_of(frame, length, &at);
	header = ip_length(type, frame + at, length - at);
	at += header;
	if (header == 0 || length - at < UDP_LENGTH + BTH_LENGTH ||
	    load_be16(frame + at + UDP_DST_PORT) != ROCE_UDP_PORT)
		return 0;
	return load_be24(frame + at + UDP_LENGTH + BTH_DEST_QPN);
}
