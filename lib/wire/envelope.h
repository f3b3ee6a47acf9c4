/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The envelope around a BTH: Ethernet [802.1Q] / IPv4 or IPv6 / UDP 4791. A flow is an envelope
 * that is written once, when a queue pair or address handle learns its address vector, and is
 * copied to the start of every packet. Only the lengths, the IPv4 checksum and the identification
 * differ between packets.
 */
#ifndef WIRE_ENVELOPE_H
#define WIRE_ENVELOPE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "wire/packet.h"

#define ROCE_UDP_PORT	  4791u
#define ENVELOPE_MAX	  (14 + 4 + 40 + 8) /* octets: Ethernet, one tag, IPv6, UDP */
#define ICRC_LENGTH	  4u
#define BTH_LENGTH	  12u
#define PACKET_HEADER_MAX (ENVELOPE_MAX + 12 + 4 + 8 + 4 + 16 + 28) /* an upper bound */

struct mac {
	uint8_t octet[6];
};

/* The octets of an Ethernet address as one word, which another thread can read while it changes. */
static inline uint64_t mac_word(const uint8_t octet[6])
{
	uint64_t word = 0;

	memcpy(&word, octet, 6);
	return word;
}

/* What a flow is made from. */
struct address_vector {
	struct gid src_gid;
	struct gid dst_gid;
	struct mac src_mac;
	struct mac dst_mac;
	uint16_t vlan; /* 0: untagged; else the VLAN id */
	uint8_t priority; /* PCP, from the service level */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint16_t src_port; /* 0xC000..0xFFFF, see flow_source_port() */
	uint32_t flow_label;
};

struct flow {
	uint8_t header[ENVELOPE_MAX]; /* ready to be copied */
	uint8_t length; /* octets of the header */
	uint8_t l3; /* offset of the IP header */
	bool ipv6;
};

void flow_init(struct flow *f, const struct address_vector *av);

/*
 * The UDP source port of a queue pair: computed from the flow label, or from both queue pair
 * numbers if the label is 0 (as Linux' rdma_flow_label_to_udp_sport and rdma_calc_flow_label).
 */
uint16_t flow_source_port(uint32_t flow_label, uint32_t local_qpn, uint32_t remote_qpn);

/* Sets a source port other than the flow's in an encoded frame, before the ICRC is computed. */
void envelope_set_source_port(uint8_t *frame, const struct flow *f, uint16_t port);

/* The MAC address of a multicast GID: 01:00:5e... for IPv4, 33:33... for IPv6. */
struct mac mac_of_multicast(const struct gid *group);

#endif
