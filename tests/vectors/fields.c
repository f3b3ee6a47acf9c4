/* SPDX-License-Identifier: BSD-3-Clause */
#include "fields.h"

#include "base/bits.h"
#include "wire/opcode.h"

#define FIELD_VALUE(member)                                    \
	static uint64_t member##_value(const struct packet *p) \
	{                                                      \
		return p->member;                              \
	}

FIELD_VALUE(opcode)
FIELD_VALUE(solicited)
FIELD_VALUE(mig_req)
FIELD_VALUE(pad)
FIELD_VALUE(pkey)
FIELD_VALUE(dest_qpn)
FIELD_VALUE(ack_req)
FIELD_VALUE(psn)
FIELD_VALUE(qkey)
FIELD_VALUE(src_qpn)
FIELD_VALUE(va)
FIELD_VALUE(rkey)
FIELD_VALUE(dma_length)
FIELD_VALUE(swap_add)
FIELD_VALUE(compare)
FIELD_VALUE(syndrome)
FIELD_VALUE(msn)
FIELD_VALUE(original)
FIELD_VALUE(invalidate_rkey)
FIELD_VALUE(src_port)

/* tshark prints the immediate data as octets, that is in network order. */
static uint64_t imm_value(const struct packet *p)
{
	return load_be32(&p->imm);
}

const struct field fields[] = {
	{ "udp.srcport", 0, src_port_value },
	{ "infiniband.bth.opcode", 0, opcode_value },
	{ "infiniband.bth.se", 0, solicited_value },
	{ "infiniband.bth.m", 0, mig_req_value },
	{ "infiniband.bth.padcnt", 0, pad_value },
	{ "infiniband.bth.p_key", 0, pkey_value },
	{ "infiniband.bth.destqp", 0, dest_qpn_value },
	{ "infiniband.bth.a", 0, ack_req_value },
	{ "infiniband.bth.psn", 0, psn_value },
	{ "infiniband.deth.q_key", OP_DETH, qkey_value },
	{ "infiniband.deth.srcqp", OP_DETH, src_qpn_value },
	{ "infiniband.reth.va", OP_RETH | OP_ATOMIC_ETH, va_value },
	{ "infiniband.reth.r_key", OP_RETH | OP_ATOMIC_ETH, rkey_value },
	{ "infiniband.reth.dmalen", OP_RETH, dma_length_value },
	{ "infiniband.atomiceth.swapdt", OP_ATOMIC_ETH, swap_add_value },
	{ "infiniband.atomiceth.cmpdt", OP_ATOMIC_ETH, compare_value },
	{ "infiniband.aeth.syndrome", OP_AETH, syndrome_value },
	{ "infiniband.aeth.msn", OP_AETH, msn_value },
	{ "infiniband.atomicacketh.origremdt", OP_ATOMIC_ACK_ETH, original_value },
	{ "infiniband.immdt", OP_IMM, imm_value },
	{ "infiniband.ieth", OP_IETH, invalidate_rkey_value },
};
const unsigned int field_count = ARRAY_SIZE(fields);

FILE *pcap_open(const char *path)
{
	static const uint8_t magic[4] = { 0xd4, 0xc3, 0xb2, 0xa1 };
	uint8_t header[24];
	FILE *f = fopen(path, "rb");

	if (f == NULL)
		return NULL;
	if (fread(header, sizeof(header), 1, f) == 1 && memcmp(header, magic, 4) == 0 &&
	    header[20] == 1)
		return f;
	fclose(f);
	return NULL;
}

size_t pcap_next(FILE *f, uint8_t *frame, size_t room)
{
	uint32_t record[4]; /* seconds, microseconds, octets here, octets on the wire */

	if (fread(record, sizeof(record), 1, f) != 1 || record[2] > room ||
	    fread(frame, 1, record[2], f) != record[2])
		return 0;
	return record[2];
}
