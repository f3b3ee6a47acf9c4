/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A decoded RoCEv2 packet: numbers in host order, the payload by reference. wire/decode makes
 * packets from frames and wire/encode frames from packets; lib/transport consumes and produces
 * packets. Only the fields that the opcode's flags name are valid.
 */
#ifndef WIRE_PACKET_H
#define WIRE_PACKET_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A GID: an IPv6 address, or an IPv4 address as ::ffff:a.b.c.d. Octets in network order. */
struct gid {
	uint8_t octet[16];
};

static inline bool gid_equal(const struct gid *a, const struct gid *b)
{
	uint64_t x[2], y[2];

	memcpy(x, a, 16);
	memcpy(y, b, 16);
	return x[0] == y[0] && x[1] == y[1];
}

static inline bool gid_is_zero(const struct gid *g)
{
	static const struct gid zero;

	return gid_equal(g, &zero);
}

/* ::ffff:a.b.c.d */
static inline bool gid_is_ipv4(const struct gid *g)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(g->octet, prefix, 12) == 0;
}

/* fe80::/10 (RFC 4291 2.4). */
static inline bool gid_is_link_local(const struct gid *g)
{
	return g->octet[0] == 0xfe && (g->octet[1] & 0xc0) == 0x80;
}

/* ff00::/8, or 224.0.0.0/4 */
static inline bool gid_is_multicast(const struct gid *g)
{
	return g->octet[0] == 0xff || (gid_is_ipv4(g) && g->octet[12] >> 4 == 14);
}

/* AETH syndrome, IBTA 9.7.5.2.1: three bits of class, five of value. */
enum syndrome {
	SYNDROME_ACK = 0x00, /* low five bits: credit code */
	SYNDROME_ACK_NO_CREDITS = 0x1f, /* "credits are not counted" */
	SYNDROME_RNR = 0x20, /* low five bits: timer code */
	SYNDROME_NAK_SEQUENCE = 0x60,
	SYNDROME_NAK_INVALID_REQUEST = 0x61,
	SYNDROME_NAK_REMOTE_ACCESS = 0x62,
	SYNDROME_NAK_REMOTE_OPERATION = 0x63,
	SYNDROME_CLASS = 0xe0,
};

#define SELECTION_BITS 256u /* of a selective acknowledgement */
#define SELECTION_STEP 64u /* PSNs by which each selection_step moves the first bit on */

#define QPN_GSI	      1u /* general services: the connection manager */
#define QPN_MULTICAST 0xffffffu /* the destination of every datagram to a group */

/*
 * The first cache line holds what nearly every packet has. The rest follows by where it stands in
 * the frame.
 */
struct packet {
	/* BTH */
	uint8_t opcode;
	bool solicited;
	bool mig_req;
	bool fecn;
	bool becn;
	bool ack_req;
	bool selective; /* the sender knows selective acknowledgements (docs/wire-extensions.md) */
	uint8_t late; /* ... and is this late itself, in steps of transport/late.h; 0: unsaid */
	bool again; /* not on the wire: the transport sends this PSN once more */
	uint8_t pad; /* 0..3: from the BTH (decode) or from the length (encode) */
	/*
	 * Sent: fill in the IP and TCP or UDP checksums. Received: the packet is IPv4 with TCP or
	 * UDP, and both checksums are right. They are the checksums of the frame (RAW_PACKET) or of
	 * the payload (UD), if the engine checks them.
	 */
	bool checksum;
	bool tso_last; /* TSO on UD: this is the last segment */
	uint16_t pkey;
	uint16_t mss; /* sent: TSO, octets of payload of a segment; 0: no TSO */
	uint32_t dest_qpn; /* 24 bits */
	uint32_t psn; /* 24 bits */
	/* RETH, AtomicETH */
	uint64_t va;
	uint32_t rkey;
	uint32_t dma_length; /* RETH: octets of the whole message */
	/* Payload. Decode: points into the frame. Encode: NULL if the caller gathers it itself. */
	const uint8_t *payload;
	uint32_t payload_length; /* octets, without pad */
	/* ImmDt in network order, IETH, XRCETH */
	uint32_t imm;
	uint32_t invalidate_rkey;
	uint32_t srqn;
	/* Not on the wire: used inside the engine. */
	uint32_t sender; /* received: the local queue pair that sent it; 0: from the port */
	/* AETH, AtomicAckETH */
	uint8_t syndrome;
	/* The envelope. Decode fills it in; encode takes it from the flow. */
	uint8_t ecn; /* low two bits of the traffic class */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint32_t msn; /* 24 bits */
	bool multicast; /* the destination is a multicast address */
	uint16_t src_port;
	uint16_t ip_header; /* offset of the IP header in the frame, octets; UD receivers get it */
	struct gid src_gid;
	struct gid dst_gid;
	uint64_t original; /* AtomicAckETH: the value before */
	/* AtomicETH */
	uint64_t swap_add; /* the first operand on the wire (swap, or the addend) */
	uint64_t compare; /* the second operand */
	/* DETH, FETH */
	uint32_t qkey;
	uint32_t src_qpn;
	uint32_t feth;
	/* Not on the wire */
	uint32_t ah; /* UD, sent: the address handle of the destination */
	uint16_t tso_header; /* TSO: octets of header of each segment */
	uint16_t tso_segment; /* TSO on UD, where a segment is a packet: its number, from 0 */
	uint16_t vlan_tci; /* RAW_PACKET, received: the tag that was stripped */
	uint32_t flow_tag; /* RAW_PACKET, received: the tag of the rule that matched */
	/*
	 * Selective acknowledgement. Bit n % 64 of word n / 64 says that the packet PSN + 1 + n has
	 * come; each selection_step adds SELECTION_STEP to that PSN.
	 */
	uint64_t selection[SELECTION_BITS / 64];
	uint8_t selection_step; /* 7 bits */
};

static_assert(offsetof(struct packet, srqn) + sizeof(uint32_t) <= 64, "one cache line");

#endif
