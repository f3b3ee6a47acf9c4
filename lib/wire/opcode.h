/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The opcode table holds all that is known about a BTH opcode (IBTA 9.2.1). All code looks there:
 * no other place lists opcodes.
 */
#ifndef WIRE_OPCODE_H
#define WIRE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

enum service { /* the opcode's top three bits */
	SERVICE_RC = 0,
	SERVICE_UC = 1,
	SERVICE_RD = 2, /* not supported */
	SERVICE_UD = 3,
	SERVICE_CNP = 4,
	SERVICE_XRC = 5,
	SERVICE_OWN = 6, /* for use by the manufacturer: docs/wire-extensions.md */
};

/* The kind of a packet, whatever its position in the message. */
enum packet_kind {
	KIND_UNDEFINED = 0,
	KIND_SEND,
	KIND_WRITE,
	KIND_READ_REQUEST,
	KIND_READ_RESPONSE,
	KIND_ACK,
	KIND_ATOMIC_ACK,
	KIND_CMP_SWAP,
	KIND_FETCH_ADD,
	KIND_FLUSH,
	KIND_ATOMIC_WRITE,
	KIND_CNP,
	KIND_SELECTIVE_ACK,
	PACKET_KINDS,
};

enum opcode_flag {
	OP_FIRST = 1 << 0, /* begins a message (FIRST or ONLY) */
	OP_LAST = 1 << 1, /* ends a message (LAST or ONLY) */
	OP_PAYLOAD = 1 << 2, /* may carry payload */
	/* takes a receive request: SEND FIRST or ONLY, WRITE LAST or ONLY with immediate data */
	OP_CONSUMES = 1 << 3,
	OP_RESPONSE = 1 << 4, /* travels from responder to requester */
	OP_DETH = 1 << 5,
	OP_RETH = 1 << 6,
	OP_ATOMIC_ETH = 1 << 7,
	OP_AETH = 1 << 8,
	OP_ATOMIC_ACK_ETH = 1 << 9,
	OP_IMM = 1 << 10,
	OP_IETH = 1 << 11,
	OP_XRCETH = 1 << 12,
	OP_FETH = 1 << 13,
	OP_SELECTION = 1 << 14,
	/* any extended header */
	OP_EXTENDED = OP_DETH | OP_RETH | OP_ATOMIC_ETH | OP_AETH | OP_ATOMIC_ACK_ETH | OP_IMM |
		      OP_IETH | OP_XRCETH | OP_FETH | OP_SELECTION,
};

/* The low five bits of an opcode. The upper three are the service. */
enum opcode_base {
	OPB_SEND_FIRST = 0x00,
	OPB_SEND_MIDDLE = 0x01,
	OPB_SEND_LAST = 0x02,
	OPB_SEND_LAST_IMM = 0x03,
	OPB_SEND_ONLY = 0x04,
	OPB_SEND_ONLY_IMM = 0x05,
	OPB_WRITE_FIRST = 0x06,
	OPB_WRITE_MIDDLE = 0x07,
	OPB_WRITE_LAST = 0x08,
	OPB_WRITE_LAST_IMM = 0x09,
	OPB_WRITE_ONLY = 0x0a,
	OPB_WRITE_ONLY_IMM = 0x0b,
	OPB_READ_REQUEST = 0x0c,
	OPB_READ_RESPONSE_FIRST = 0x0d,
	OPB_READ_RESPONSE_MIDDLE = 0x0e,
	OPB_READ_RESPONSE_LAST = 0x0f,
	OPB_READ_RESPONSE_ONLY = 0x10,
	OPB_ACK = 0x11,
	OPB_ATOMIC_ACK = 0x12,
	OPB_CMP_SWAP = 0x13,
	OPB_FETCH_ADD = 0x14,
	OPB_SEND_LAST_INV = 0x16,
	OPB_SEND_ONLY_INV = 0x17,
	OPB_FLUSH = 0x1c,
	OPB_ATOMIC_WRITE = 0x1d,
	OPCODE_CNP = 0x81,
	OPCODE_SELECTIVE_ACK = 0xd1, /* only between two uroce */
};

#define OPCODE(service, base) ((uint8_t)((service) << 5 | (base)))

struct opcode_info {
	const char *name; /* "RC SEND ONLY"; NULL: undefined */
	uint16_t flags; /* enum opcode_flag */
	uint8_t kind; /* enum packet_kind */
	uint8_t service; /* enum service */
	uint8_t header_length; /* BTH and extended headers, octets; 0: undefined */
};

extern const struct opcode_info opcode_table[256];

static inline bool opcode_defined(uint8_t opcode)
{
	return opcode_table[opcode].header_length != 0;
}

static inline bool opcode_is(uint8_t opcode, unsigned int flags)
{
	return (opcode_table[opcode].flags & flags) == flags;
}

/* Neither the first packet of its message nor the last one. */
static inline bool opcode_is_middle(uint8_t opcode)
{
	return (opcode_table[opcode].flags & (OP_FIRST | OP_LAST | OP_PAYLOAD)) == OP_PAYLOAD;
}

#endif
