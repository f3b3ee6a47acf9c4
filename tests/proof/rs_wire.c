/* SPDX-License-Identifier: BSD-3-Clause */
/* What a peer sends to rsockets: any octets, each length a case of its own. */
#include "rdmacm/rsockets/rs_wire.c"

#include "proof.h"

#define MOST 48u

static uint8_t buffer[MOST];

void any_greeting(void)
{
	size_t length = any_of(0, MOST);
	struct rs_greeting g;

	any_octets(buffer, sizeof(buffer));
	//@ split length;
	if (rs_greeting_load(&g, buffer + (MOST - length), length)) {
		//@ assert entries: g.iomap_entries <= 0x7f00;
		rs_greeting_store(buffer, &g);
	}
	PROVED;
}

void any_datagram(void)
{
	size_t length = any_of(0, MOST), used;
	union {
		struct sockaddr_storage storage; /* Frama-C's has the family alone */
		uint8_t octets[128];
	} source;
	struct rs_udp u;

	any_octets(buffer, sizeof(buffer));
	//@ split length;
	used = rs_datagram_load(&source.storage, buffer + (MOST - length), length, 1);
	//@ assert used: used <= length;
	used = rs_udp_load(&u, buffer + (MOST - length), length, AF_INET);
	//@ assert used_4: used <= length;
	used = rs_udp_load(&u, buffer + (MOST - length), length, AF_INET6);
	//@ assert used_6: used <= length;
	PROVED;
}
