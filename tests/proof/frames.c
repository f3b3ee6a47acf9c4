/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any octets at lib/wire/decode.c, in the steps in which it reads them. What a step reads ends where its
 * buffer ends, so that one octet too many is seen; each length is a case of its own.
 */
#include "wire/decode.c"

#include "proof.h"

#define FRAME	100u /* octets */
#define PAYLOAD 7u /* octets behind the headers: no header is looked for there */

static uint8_t buffer[FRAME];

/* The octets between the Ethernet header and the BTH. */
static void frame_of(bool tagged, uint16_t type)
{
	size_t length = any_of(0, FRAME);
	enum header_sum said = (enum header_sum)any_of(HEADER_SUM_UNKNOWN, HEADER_SUM_WRONG);
	struct layout at, usual;
	struct packet p;
	uint8_t *frame;

	any_octets(buffer, sizeof(buffer));
	//@ split length;
	frame = buffer + (FRAME - length);
	at = (struct layout){ .frame = frame, .end = length };
	if (length >= ETHER_LENGTH + VLAN_TAG_LENGTH) {
		store_be16(frame + ETHER_TYPE, tagged ? ETHERTYPE_VLAN : type);
		if (tagged)
			store_be16(frame + ETHER_LENGTH + 2, type);
	}
	usual = at;
	if (is_usual(&usual, 0, said)) {
		//@ assert usual_end: usual.end <= length;
		addresses(&p, &usual);
	}
	if (envelope(&at, 0, said) == REASON_NONE) {
		//@ assert end: at.end <= length;
		/*
		 * udp() compares the remaining length with a BTH and an ICRC: any_headers begins
		 * there
		 */
		addresses(&p, &at);
	}
	//@ merge length;
}

/* Every IP frame of 0 .. FRAME octets: what the rest of decode.c reads is inside. */
void any_frame(void)
{
	frame_of(false, ETHERTYPE_IPV4);
	frame_of(false, ETHERTYPE_IPV6);
	frame_of(true, ETHERTYPE_IPV4);
	frame_of(true, ETHERTYPE_IPV6);
	PROVED;
}

static void headers_of(uint8_t opcode)
{
	const size_t least = opcode_table[opcode].header_length + ICRC_LENGTH;
	size_t length = least + any_of(0, PAYLOAD);
	struct packet p;
	uint8_t *b;

	/* for shorter ones no octet after the BTH and the ICRC may be read */
	b = buffer + FRAME - BTH_LENGTH - ICRC_LENGTH;
	b[BTH_OPCODE] = opcode;
	if (least > BTH_LENGTH + ICRC_LENGTH) {
		enum reason r = bth(&p, b, any_of(BTH_LENGTH + ICRC_LENGTH, least - 1));

		//@ assert refused: r != REASON_NONE;
	}
	any_octets(buffer, sizeof(buffer));
	//@ split length;
	b = buffer + (FRAME - length);
	b[BTH_OPCODE] = opcode;
	if (bth(&p, b, length) == REASON_NONE) {
		//@ assert begins: p.payload >= b + BTH_LENGTH;
		//@ assert ends: p.payload <= b + length - ICRC_LENGTH;
		//@ assert short: p.payload_length <= PAYLOAD;
		extended_headers(&p, b + BTH_LENGTH);
	}
	//@ merge length;
}

/* Every opcode, with 0 .. PAYLOAD octets and pad behind its headers, or cut anywhere. */
void any_headers(void)
{
	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		any_octets(buffer, sizeof(buffer));
		if (opcode_defined((uint8_t)opcode))
			headers_of((uint8_t)opcode);
	}
	PROVED;
}

/* Every length behind either IP header: the ICRC is made of octets of the frame. */
void any_icrc(void)
{
	size_t length =
		any_of(ETHER_LENGTH + IPV4_LENGTH + UDP_LENGTH + BTH_LENGTH + ICRC_LENGTH, FRAME);
	struct layout at;

	any_octets(buffer, sizeof(buffer));
	//@ split length;
	at = (struct layout){ .frame = buffer + (FRAME - length), .end = length };
	at.l3 = ETHER_LENGTH;
	buffer[FRAME - length + at.l3] = 0x45;
	icrc_right(&at);
	if (length >= ETHER_LENGTH + IPV6_LENGTH + UDP_LENGTH + BTH_LENGTH + ICRC_LENGTH) {
		buffer[FRAME - length + at.l3] = 0x60;
		icrc_right(&at);
	}
	PROVED;
}
