/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>

#include "base/bits.h"
#include "wire/encode.h"
#include "wire/header.h"
#include "wire/opcode.h"

/* Octets: all headers and some of the payload, so that the length is known when it is compiled. */
#define ALIKE_COPY 96u

static_assert(ENVELOPE_MAX + BTH_LENGTH + XRCETH_LENGTH <= ALIKE_COPY,
	      "of the middle of a message");

static inline size_t pad_of(size_t payload_length)
{
	return -payload_length & 3;
}

/* Writes the fields of the envelope that differ between packets; `datagram` is the UDP length. */
static void put_lengths(uint8_t *frame, const struct flow *flow, size_t datagram,
			uint16_t identification)
{
	uint8_t *ip = frame + flow->l3;
	uint32_t total, sum;

	store_be16(frame + flow->length - UDP_LENGTH + UDP_SIZE, (uint16_t)datagram);
	if (flow->ipv6) {
		store_be16(ip + IPV6_PAYLOAD_LENGTH, (uint16_t)datagram);
		return;
	}
	total = IPV4_LENGTH + (uint32_t)datagram;
	store_be16(ip + IPV4_TOTAL_LENGTH, (uint16_t)total);
	store_be16(ip + IPV4_IDENTIFICATION, identification);
	/* In a flow the checksum field holds the sum of all other fields. */
	sum = load_be16(flow->header + flow->l3 + IPV4_CHECKSUM) + total + identification;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	store_be16(ip + IPV4_CHECKSUM, (uint16_t)~sum);
}

static uint32_t extension(const struct packet *p)
{
	return p->selective ? BTH_SELECTIVE | (p->late << BTH_LATE_SHIFT & BTH_LATE_MASK) : 0;
}

static uint8_t *put_bth(uint8_t *b, const struct packet *p, uint32_t pad)
{
	b[BTH_OPCODE] = p->opcode;
	b[BTH_FLAGS] = (uint8_t)(p->solicited * BTH_SOLICITED | p->mig_req * BTH_MIG_REQ |
				 pad << BTH_PAD_SHIFT);
	store_be16(b + BTH_PKEY, p->pkey);
	store_be32(b + BTH_CONGESTION,
		   (p->fecn * (uint32_t)BTH_FECN | p->becn * (uint32_t)BTH_BECN | extension(p))
				   << 24 |
			   (p->dest_qpn & 0xffffff));
	store_be32(b + BTH_ACK, p->ack_req * (uint32_t)BTH_ACK_REQ << 24 | (p->psn & 0xffffff));
	return b + BTH_LENGTH;
}

static uint8_t *put_reth(uint8_t *h, const struct packet *p)
{
	store_be64(h, p->va);
	store_be32(h + 8, p->rkey);
	store_be32(h + 12, p->dma_length);
	return h + RETH_LENGTH;
}

static uint8_t *put_aeth(uint8_t *h, const struct packet *p)
{
	store_be32(h, (uint32_t)p->syndrome << 24 | (p->msn & 0xffffff));
	return h + AETH_LENGTH;
}

static uint8_t *put_atomic_eth(uint8_t *h, const struct packet *p)
{
	store_be64(h, p->va);
	store_be32(h + 8, p->rkey);
	store_be64(h + 12, p->swap_add);
	store_be64(h + 20, p->compare);
	return h + ATOMIC_ETH_LENGTH;
}

static void put_selection(uint8_t *h, const struct packet *p)
{
	assert(p->selection_step <= BTH_STEP_MASK);
	*(h - AETH_LENGTH - BTH_LENGTH + BTH_ACK) |= p->selection_step;
	for (uint32_t i = 0; i < SELECTION_LENGTH; i++)
		h[i] = (uint8_t)(p->selection[i / 8] >> (i % 8 * 8));
}

/* Writes the extended headers in the order in which they follow the BTH. */
static void put_all_extended_headers(uint8_t *h, const struct packet *p, unsigned int flags)
{
	if (flags & OP_XRCETH) {
		store_be32(h, p->srqn & 0xffffff);
		h += XRCETH_LENGTH;
	}
	if (flags & OP_DETH) {
		store_be32(h, p->qkey);
		store_be32(h + 4, p->src_qpn & 0xffffff);
		h += DETH_LENGTH;
	}
	if (flags & OP_FETH) {
		store_be32(h, p->feth);
		h += FETH_LENGTH;
	}
	if (flags & OP_RETH)
		h = put_reth(h, p);
	if (flags & OP_ATOMIC_ETH)
		h = put_atomic_eth(h, p);
	if (flags & OP_AETH)
		h = put_aeth(h, p);
	if (flags & OP_ATOMIC_ACK_ETH) {
		store_be64(h, p->original);
		h += ATOMIC_ACK_ETH_LENGTH;
	}
	if (flags & OP_IMM) {
		memcpy(h, &p->imm, IMM_LENGTH);
		h += IMM_LENGTH;
	}
	if (flags & OP_IETH)
		store_be32(h, p->invalidate_rkey);
	if (flags & OP_SELECTION)
		put_selection(h, p);
}

/* Nearly all packets have at most one extended header, so the usual ones come first. Returns their octets. */
static inline size_t put_extended_headers(uint8_t *h, const struct packet *p)
{
	const struct opcode_info *op = &opcode_table[p->opcode];
	unsigned int flags = op->flags & OP_EXTENDED;

	if (flags == OP_RETH) {
		put_reth(h, p);
		return RETH_LENGTH;
	}
	if (flags == OP_AETH) {
		put_aeth(h, p);
		return AETH_LENGTH;
	}
	if (flags != 0)
		put_all_extended_headers(h, p, flags);
	else if (p->opcode == OPCODE_CNP)
		memset(h, 0, CNP_RESERVED_LENGTH);
	assert(op->header_length != 0 && "only defined opcodes are sent");
	return op->header_length - BTH_LENGTH;
}

size_t packet_encode(uint8_t *frame, const struct flow *flow, const struct packet *p,
		     uint16_t identification)
{
	uint32_t pad = (uint32_t)pad_of(p->payload_length);
	size_t tail = p->payload_length + pad + ICRC_LENGTH, headers;

	memcpy(frame, flow->header, sizeof(flow->header)); /* the buffer has room for all of it */
	headers = BTH_LENGTH + put_extended_headers(put_bth(frame + flow->length, p, pad), p);
	put_lengths(frame, flow, UDP_LENGTH + headers + tail, identification);
	return flow->length + headers;
}

void packet_encode_alike(uint8_t *frame, const uint8_t *before, size_t flow_length, uint32_t psn)
{
	memcpy(frame, before, ALIKE_COPY);
	store_be32(frame + flow_length + BTH_ACK, psn & 0xffffff);
}

size_t packet_seal(uint8_t *frame, const struct flow *flow, size_t header_length,
		   size_t payload_length)
{
	size_t end = header_length + payload_length;
	size_t pad = pad_of(payload_length);

	/*
	 * Clears the pad, and octets that the ICRC overwrites. A constant length needs no call of
	 * memset().
	 */
	memset(frame + end, 0, ICRC_LENGTH);
	end += pad;
	icrc_store(frame + end, icrc_begin(frame + flow->l3, end - flow->l3));
	return end + ICRC_LENGTH;
}

size_t packet_seal_summed(uint8_t *frame, const struct flow *flow, size_t header_length,
			  size_t payload_length, uint32_t sum)
{
	size_t end = header_length + payload_length;
	size_t pad = pad_of(payload_length);

	if (pad != 0) {
		memset(frame + end, 0, pad);
		sum = icrc_add(sum, frame + end, pad);
	}
	icrc_store(frame + end + pad, sum);
	return end + pad + ICRC_LENGTH;
}

size_t packet_seal_unsummed(uint8_t *frame, size_t header_length, size_t payload_length)
{
	size_t end = header_length + payload_length;
	size_t tail = pad_of(payload_length) + ICRC_LENGTH;

	memset(frame + end, 0, tail);
	return end + tail;
}
