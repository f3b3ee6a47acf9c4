/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/bits.h"
#include "config/limits.h"
#include "wire/decode.h"
#include "wire/header.h"
#include "wire/icrc.h"
#include "wire/opcode.h"

/*
 * What is known of the frame so far. All offsets are octets from its start. The octets before `end`
 * were received.
 */
struct layout {
	const uint8_t *frame;
	size_t end; /* the end of the frame, and later of the UDP datagram */
	size_t l3; /* the IP header */
	size_t udp; /* the UDP header */
	uint16_t type; /* Ethernet */
};

static enum reason ethernet(struct layout *at, uint16_t vlan)
{
	uint16_t tag = 0;

	if (at->end < ETHER_LENGTH)
		return REASON_FRAME_SHORT;
	at->l3 = ETHER_LENGTH;
	at->type = load_be16(at->frame + ETHER_TYPE);
	if (at->type == ETHERTYPE_VLAN) {
		if (at->end < ETHER_LENGTH + VLAN_TAG_LENGTH)
			return REASON_FRAME_SHORT;
		tag = load_be16(at->frame + ETHER_LENGTH) & 0xfff;
		at->l3 += VLAN_TAG_LENGTH;
		at->type = load_be16(at->frame + at->l3 - 2);
	}
	/* Refuses stacked tags and other VLANs. A tag with id 0 carries only a priority. */
	if (tag != vlan || at->type == ETHERTYPE_VLAN || at->type == ETHERTYPE_SERVICE)
		return REASON_VLAN_TAG;
	return REASON_NONE;
}

static bool udp_port_is_ours(const struct layout *at)
{
	return at->end - at->udp >= UDP_LENGTH &&
	       load_be16(at->frame + at->udp + UDP_DST_PORT) == ROCE_UDP_PORT;
}

/* RFC 791: the one's complement sum of the 20 octets is all ones. */
static bool ipv4_checksum_right(const uint8_t *ip)
{
	uint64_t a, b, sum;
	uint32_t c;

	memcpy(&a, ip, 8);
	memcpy(&b, ip + 8, 8);
	memcpy(&c, ip + 16, 4);
	/*
	 * Modulo 2^16 - 1, 2^16 is 1, so wider words may be added instead of 16-bit ones. All ones
	 * is then a multiple of 2^16 - 1. The sum cannot be 0, because the version is not zero.
	 */
	sum = (a & 0xffffffff) + (a >> 32) + (b & 0xffffffff) + (b >> 32) + c;
	return sum % 0xffff == 0;
}

static inline bool ipv4_header_accepted(const uint8_t *ip, enum header_sum said)
{
	if (said == HEADER_SUM_UNKNOWN)
		return ipv4_checksum_right(ip);
	return said == HEADER_SUM_RIGHT;
}

static enum reason ipv4(struct layout *at, enum header_sum said)
{
	const uint8_t *ip = at->frame + at->l3;
	size_t room = at->end - at->l3;
	size_t header, total;

	if (room < IPV4_LENGTH)
		return REASON_FRAME_SHORT;
	header = (ip[IPV4_VERSION_IHL] & 15u) * 4;
	if (ip[IPV4_VERSION_IHL] >> 4 != 4 || header < IPV4_LENGTH)
		return REASON_IP_HEADER;
	if (ip[IPV4_PROTOCOL] != PROTOCOL_UDP)
		return REASON_NOT_ROCE;
	if (room < header + UDP_LENGTH)
		return REASON_FRAME_SHORT;
	at->udp = at->l3 + header;
	/* Only a first fragment has the UDP header. Such a fragment is judged by its port below. */
	if ((load_be16(ip + IPV4_FRAGMENT) & IPV4_IS_FRAGMENT & ~0x2000u) != 0)
		return REASON_IP_FRAGMENT;
	if (!udp_port_is_ours(at))
		return REASON_NOT_ROCE;
	if (header != IPV4_LENGTH)
		return REASON_IP_OPTIONS;
	if ((load_be16(ip + IPV4_FRAGMENT) & IPV4_IS_FRAGMENT) != 0)
		return REASON_IP_FRAGMENT;
	if (!ipv4_header_accepted(ip, said))
		return REASON_IP_CHECKSUM;
	total = load_be16(ip + IPV4_TOTAL_LENGTH);
	if (total < IPV4_LENGTH + UDP_LENGTH || total > room)
		return REASON_LENGTHS_DISAGREE;
	at->end = at->l3 + total;
	return REASON_NONE;
}

/* What follows extension headers is another protocol (MLD), or a UDP packet that we refuse. */
static enum reason ipv6_extended(struct layout *at, uint8_t next)
{
	size_t offset = at->l3 + IPV6_LENGTH;
	unsigned int i;

	for (i = 0; i < LIMIT_EXTENSION_HEADERS && next != PROTOCOL_UDP; i++) {
		if (next != PROTOCOL_HOP_BY_HOP && next != PROTOCOL_ROUTING &&
		    next != PROTOCOL_DESTINATION && next != PROTOCOL_FRAGMENT)
			return REASON_NOT_ROCE;
		if (at->end - offset < 8)
			return REASON_FRAME_SHORT;
		if (next == PROTOCOL_FRAGMENT)
			return REASON_IP_FRAGMENT;
		next = at->frame[offset];
		offset += 8 + 8u * at->frame[offset + 1];
		if (offset > at->end)
			return REASON_FRAME_SHORT;
	}
	at->udp = offset;
	return next != PROTOCOL_UDP || udp_port_is_ours(at) ? REASON_IP_OPTIONS : REASON_NOT_ROCE;
}

static enum reason ipv6(struct layout *at)
{
	const uint8_t *ip = at->frame + at->l3;
	size_t room = at->end - at->l3;
	size_t total;

	if (room < IPV6_LENGTH)
		return REASON_FRAME_SHORT;
	if (ip[0] >> 4 != 6)
		return REASON_IP_HEADER;
	if (ip[IPV6_NEXT_HEADER] != PROTOCOL_UDP)
		return ipv6_extended(at, ip[IPV6_NEXT_HEADER]);
	if (room < IPV6_LENGTH + UDP_LENGTH)
		return REASON_FRAME_SHORT;
	at->udp = at->l3 + IPV6_LENGTH;
	if (!udp_port_is_ours(at))
		return REASON_NOT_ROCE;
	total = IPV6_LENGTH + (size_t)load_be16(ip + IPV6_PAYLOAD_LENGTH);
	if (total < IPV6_LENGTH + UDP_LENGTH || total > room)
		return REASON_LENGTHS_DISAGREE;
	at->end = at->l3 + total;
	return REASON_NONE;
}

/*
 * The UDP checksum is not checked. RoCEv2 sends 0 (IBTA A17.3.2), and the ICRC, which is always
 * checked on frames from a port, detects more errors.
 */
static enum reason udp(struct layout *at)
{
	if (load_be16(at->frame + at->udp + UDP_SIZE) != at->end - at->udp)
		return REASON_LENGTHS_DISAGREE;
	if (at->end - at->udp < UDP_LENGTH + BTH_LENGTH + ICRC_LENGTH)
		return REASON_BTH_SHORT;
	return REASON_NONE;
}

/*
 * Recognises nearly every frame with few tests: no tag, IPv4 without options or fragments, our
 * port, the right lengths.
 */
static inline bool is_usual(struct layout *at, uint16_t vlan, enum header_sum said)
{
	const uint8_t *ip = at->frame + ETHER_LENGTH, *datagram = ip + IPV4_LENGTH;
	size_t total;

	if (vlan != 0 || at->end < ETHER_LENGTH + IPV4_LENGTH + UDP_LENGTH ||
	    load_be32(at->frame + ETHER_TYPE) >> 8 != (ETHERTYPE_IPV4 << 8 | 0x45))
		return false;
	total = load_be16(ip + IPV4_TOTAL_LENGTH);
	if (ip[IPV4_PROTOCOL] != PROTOCOL_UDP ||
	    (load_be16(ip + IPV4_FRAGMENT) & IPV4_IS_FRAGMENT) != 0 ||
	    load_be16(datagram + UDP_DST_PORT) != ROCE_UDP_PORT || total > at->end - ETHER_LENGTH ||
	    total < IPV4_LENGTH + UDP_LENGTH + BTH_LENGTH + ICRC_LENGTH ||
	    load_be16(datagram + UDP_SIZE) != total - IPV4_LENGTH ||
	    !ipv4_header_accepted(ip, said))
		return false;
	at->l3 = ETHER_LENGTH;
	at->udp = ETHER_LENGTH + IPV4_LENGTH;
	at->end = ETHER_LENGTH + total;
	at->type = ETHERTYPE_IPV4;
	return true;
}

/* Finds the layout of any other frame. */
static enum reason envelope(struct layout *at, uint16_t vlan, enum header_sum said)
{
	enum reason r;

	r = ethernet(at, vlan);
	if (r != REASON_NONE)
		return r;
	if (at->type == ETHERTYPE_IPV4)
		r = ipv4(at, said);
	else if (at->type == ETHERTYPE_IPV6)
		r = ipv6(at);
	else
		r = REASON_NOT_ROCE;
	return r == REASON_NONE ? udp(at) : r;
}

/* Reads the BTH and checks the lengths that follow from its opcode. Reads nothing after the BTH. */
static inline enum reason bth(struct packet *p, const uint8_t *b, size_t length)
{
	uint8_t opcode = b[BTH_OPCODE], flags = b[BTH_FLAGS], congestion;
	uint8_t pad = (flags & BTH_PAD_MASK) >> BTH_PAD_SHIFT;
	uint32_t word;
	size_t least;

	p->opcode = opcode;
	p->pad = pad;
	if ((flags & BTH_TVER_MASK) != 0)
		return REASON_TVER;
	if (!opcode_defined(opcode))
		return REASON_OPCODE_UNKNOWN;
	least = opcode_table[opcode].header_length + ICRC_LENGTH;
	if (length < least + pad)
		return length < least ? REASON_HEADER_SHORT : REASON_PAD_COUNT;
	p->solicited = (flags & BTH_SOLICITED) != 0;
	p->mig_req = (flags & BTH_MIG_REQ) != 0;
	p->pkey = load_be16(b + BTH_PKEY);
	word = load_be32(b + BTH_CONGESTION);
	p->dest_qpn = word & 0xffffff;
	congestion = (uint8_t)(word >> 24);
	p->fecn = (congestion & BTH_FECN) != 0;
	p->becn = (congestion & BTH_BECN) != 0;
	p->selective = (congestion & BTH_SELECTIVE) != 0;
	p->late = p->selective ? (congestion & BTH_LATE_MASK) >> BTH_LATE_SHIFT : 0;
	word = load_be32(b + BTH_ACK);
	p->ack_req = (word >> 24 & BTH_ACK_REQ) != 0;
	p->psn = word & 0xffffff;
	p->payload = b + least - ICRC_LENGTH;
	p->payload_length = (uint32_t)(length - least - pad);
	return REASON_NONE;
}

static const uint8_t *get_reth(struct packet *p, const uint8_t *h)
{
	p->va = load_be64(h);
	p->rkey = load_be32(h + 8);
	p->dma_length = load_be32(h + 12);
	return h + RETH_LENGTH;
}

static const uint8_t *get_aeth(struct packet *p, const uint8_t *h)
{
	uint32_t word = load_be32(h);

	p->syndrome = (uint8_t)(word >> 24);
	p->msn = word & 0xffffff;
	return h + AETH_LENGTH;
}

static const uint8_t *get_atomic_eth(struct packet *p, const uint8_t *h)
{
	p->va = load_be64(h);
	p->rkey = load_be32(h + 8);
	p->swap_add = load_be64(h + 12);
	p->compare = load_be64(h + 20);
	return h + ATOMIC_ETH_LENGTH;
}

static void get_selection(struct packet *p, const uint8_t *h)
{
	memset(p->selection, 0, sizeof(p->selection));
	p->selection_step = *(h - AETH_LENGTH - BTH_LENGTH + BTH_ACK) & BTH_STEP_MASK;
	for (uint32_t i = 0; i < SELECTION_LENGTH; i++)
		p->selection[i / 8] |= (uint64_t)h[i] << (i % 8 * 8);
}

/*
 * Reads the extended headers in the order in which they follow the BTH. bth() has checked that all
 * of them were received.
 */
static void all_extended_headers(struct packet *p, const uint8_t *h, unsigned int flags)
{
	if (flags & OP_XRCETH) {
		p->srqn = load_be24(h + 1);
		h += XRCETH_LENGTH;
	}
	if (flags & OP_DETH) {
		p->qkey = load_be32(h);
		p->src_qpn = load_be24(h + 5);
		h += DETH_LENGTH;
	}
	if (flags & OP_FETH) {
		p->feth = load_be32(h);
		h += FETH_LENGTH;
	}
	if (flags & OP_RETH)
		h = get_reth(p, h);
	if (flags & OP_ATOMIC_ETH)
		h = get_atomic_eth(p, h);
	if (flags & OP_AETH)
		h = get_aeth(p, h);
	if (flags & OP_ATOMIC_ACK_ETH) {
		p->original = load_be64(h);
		h += ATOMIC_ACK_ETH_LENGTH;
	}
	if (flags & OP_IMM) {
		memcpy(&p->imm, h, IMM_LENGTH);
		h += IMM_LENGTH;
	}
	if (flags & OP_IETH)
		p->invalidate_rkey = load_be32(h);
	if (flags & OP_SELECTION)
		get_selection(p, h);
}

/* Nearly all packets have at most one extended header, so the two usual ones come first. */
static inline void extended_headers(struct packet *p, const uint8_t *h)
{
	unsigned int flags = opcode_table[p->opcode].flags & OP_EXTENDED;

	if (flags == OP_RETH)
		get_reth(p, h);
	else if (flags == OP_AETH)
		get_aeth(p, h);
	else if (flags != 0)
		all_extended_headers(p, h, flags);
}

static void gid_from_ipv4(struct gid *g, const uint8_t *address)
{
	memset(g->octet, 0, 8);
	memcpy(g->octet + 8, "\0\0\xff\xff", 4);
	memcpy(g->octet + 12, address, 4);
}

static inline void addresses(struct packet *p, const struct layout *at)
{
	const uint8_t *ip = at->frame + at->l3;

	if (at->type == ETHERTYPE_IPV4) {
		p->traffic_class = ip[IPV4_TOS];
		p->hop_limit = ip[IPV4_TTL];
		gid_from_ipv4(&p->src_gid, ip + IPV4_SRC);
		gid_from_ipv4(&p->dst_gid, ip + IPV4_DST);
		p->multicast = ip[IPV4_DST] >> 4 == 14;
	} else {
		p->traffic_class = (uint8_t)(load_be16(ip) >> 4);
		p->hop_limit = ip[IPV6_HOP_LIMIT];
		memcpy(p->src_gid.octet, ip + IPV6_SRC, 16);
		memcpy(p->dst_gid.octet, ip + IPV6_DST, 16);
		p->multicast = ip[IPV6_DST] == 0xff;
	}
	p->ecn = p->traffic_class & 3;
	p->checksum = false; /* checksums in the payload are not checked here */
	p->sender = 0;
	p->src_port = load_be16(at->frame + at->udp + UDP_SRC_PORT);
	p->ip_header = (uint16_t)at->l3;
}

static inline bool icrc_right(const struct layout *at)
{
	const uint8_t *l3 = at->frame + at->l3;
	size_t covered = at->end - at->l3 - ICRC_LENGTH;

	return icrc_load(l3 + covered) == icrc_begin(l3, covered);
}

void packet_make_grh(uint8_t *frame, const struct packet *p)
{
	uint8_t *end = frame + (p->payload - frame), *ip = frame + p->ip_header;

	/* memmove, because the IP header and its new position overlap */
	if (ip[0] >> 4 == 6) {
		memmove(end - GRH_LENGTH, ip, IPV6_LENGTH);
		return;
	}
	memmove(end - IPV4_LENGTH, ip, IPV4_LENGTH);
	memset(end - GRH_LENGTH, 0, GRH_LENGTH - IPV4_LENGTH);
}

/*
 * Decodes what is inside a correct envelope. It is compiled twice: for the usual layout, which is a
 * constant there, and for all others.
 */
static inline __attribute__((always_inline)) enum reason content(
	struct packet *p, const struct layout *at, const struct decode_options *options)
{
	const uint8_t *b = at->frame + at->udp + UDP_LENGTH;
	enum reason r = bth(p, b, at->end - at->udp - UDP_LENGTH);

	if (r != REASON_NONE)
		return r;
	extended_headers(p, b + BTH_LENGTH);
	addresses(p, at);
	if (!options->check_icrc)
		return REASON_NONE;
	stage_switch(options->stages, STAGE_COPY_SUM);
	return icrc_right(at) ? REASON_NONE : REASON_ICRC;
}

static __attribute__((noinline)) enum reason decode_unusual(struct packet *p, const uint8_t *frame,
							    size_t length,
							    const struct decode_options *options,
							    enum header_sum said)
{
	struct layout at = { .frame = frame, .end = length };
	enum reason r = envelope(&at, options->vlan, said);

	return r == REASON_NONE ? content(p, &at, options) : r;
}

/* Inlined, so that `said` is a constant in packet_decode(). */
static inline __attribute__((always_inline)) enum reason decode(
	struct packet *p, const uint8_t *frame, size_t length, const struct decode_options *options,
	enum header_sum said)
{
	struct layout at = { .frame = frame, .end = length };

	if (!is_usual(&at, options->vlan, said))
		return decode_unusual(p, frame, length, options, said);
	return content(p, &at, options);
}

enum reason packet_decode(struct packet *p, const uint8_t *frame, size_t length,
			  const struct decode_options *options)
{
	return decode(p, frame, length, options, HEADER_SUM_UNKNOWN);
}

enum reason packet_decode_said(struct packet *p, const uint8_t *frame, size_t length,
			       const struct decode_options *options, enum header_sum said)
{
	return decode(p, frame, length, options, said);
}
