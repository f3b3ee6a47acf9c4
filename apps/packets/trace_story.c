/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace_story.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "wire/decode.h"
#include "wire/opcode.h"

/* The lengths in the headers are of the whole frame. The tag, if there is one, is accepted. */
bool story_decode(uint8_t *octets, uint32_t length, uint32_t whole, struct packet *p)
{
	struct decode_options options = { .check_icrc = false };

	memset(octets + length, 0, whole - length);
	if (whole > 16 && octets[12] == 0x81 && octets[13] == 0)
		options.vlan = (uint16_t)((octets[14] & 0x0f) << 8 | octets[15]);
	return packet_decode(p, octets, whole, &options) == REASON_NONE;
}

char story_way(const struct story_of *s, const struct packet *p)
{
	if (p->dest_qpn == s->qpn)
		return '<';
	if (s->peer_qpn != 0 && p->dest_qpn == s->peer_qpn && gid_equal(&p->dst_gid, &s->peer))
		return '>';
	return opcode_is(p->opcode, OP_DETH) && p->src_qpn == s->qpn ? '>' : 0;
}

static void print_syndrome(const struct packet *p)
{
	static const char *const naks[] = { "sequence", "invalid request", "remote access",
					    "remote operation" };
	uint32_t value = p->syndrome & 0x1f;

	if ((p->syndrome & SYNDROME_CLASS) == SYNDROME_RNR)
		printf(" RNR NAK, timer %" PRIu32, value);
	else if (p->syndrome >= SYNDROME_NAK_SEQUENCE && value < 4)
		printf(" NAK: %s", naks[value]);
	else if ((p->syndrome & SYNDROME_CLASS) != SYNDROME_ACK)
		printf(" syndrome 0x%02x", p->syndrome);
	printf(" msn %" PRIu32, p->msn);
}

void story_print(const struct packet *p, char way, double seconds)
{
	printf("%12.6f %c %-26s psn %8" PRIu32, seconds, way, opcode_table[p->opcode].name, p->psn);
	if (opcode_is(p->opcode, OP_RETH))
		printf(" key 0x%08" PRIx32 " at 0x%" PRIx64 ", %" PRIu32 " octets", p->rkey, p->va,
		       p->dma_length);
	if (opcode_is(p->opcode, OP_ATOMIC_ETH))
		printf(" key 0x%08" PRIx32 " at 0x%" PRIx64, p->rkey, p->va);
	if (opcode_is(p->opcode, OP_DETH))
		printf(" from 0x%06" PRIx32, p->src_qpn);
	if (opcode_is(p->opcode, OP_AETH))
		print_syndrome(p);
	if (p->payload_length > 0)
		printf(" payload %" PRIu32, p->payload_length);
	printf("%s%s%s\n", p->ack_req ? " ack?" : "", p->solicited ? " solicited" : "",
	       p->ecn == 3 ? " ce" : "");
}
