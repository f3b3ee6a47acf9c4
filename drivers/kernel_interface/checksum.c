/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/kernel_interface/checksum.h"

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "base/bits.h"

/* Offset of the checksum in the protocol's header; 0: the protocol has no such checksum. */
static uint32_t checksum_offset(uint8_t protocol, uint32_t length)
{
	if (protocol == IPPROTO_TCP && length >= sizeof(struct rte_tcp_hdr))
		return offsetof(struct rte_tcp_hdr, cksum);
	if (protocol == IPPROTO_UDP && length >= sizeof(struct rte_udp_hdr))
		return offsetof(struct rte_udp_hdr, dgram_cksum);
	return 0;
}

static bool complete_ipv4(uint8_t *l3, uint32_t room)
{
	struct rte_ipv4_hdr *ip = (void *)l3;
	uint32_t header, total, at;
	uint16_t sum;

	if (room < sizeof(*ip) || ip->version != 4)
		return false;
	header = rte_ipv4_hdr_len(ip);
	total = rte_be_to_cpu_16(ip->total_length);
	if (header < sizeof(*ip) || total < header || total > room ||
	    (rte_be_to_cpu_16(ip->fragment_offset) & 0x3fff) != 0)
		return false;
	at = checksum_offset(ip->next_proto_id, total - header);
	if (at == 0)
		return false;
	memcpy(&sum, l3 + header + at, sizeof(sum));
	if (sum != rte_ipv4_phdr_cksum(ip, 0))
		return false;
	memset(l3 + header + at, 0, sizeof(sum));
	sum = rte_ipv4_udptcp_cksum(ip, l3 + header);
	memcpy(l3 + header + at, &sum, sizeof(sum));
	return true;
}

/* Leaves a packet with extension headers, which are rare, as it is. */
static bool complete_ipv6(uint8_t *l3, uint32_t room)
{
	struct rte_ipv6_hdr *ip = (void *)l3;
	uint32_t payload, at;
	uint16_t sum;

	if (room < sizeof(*ip) || l3[0] >> 4 != 6)
		return false;
	payload = rte_be_to_cpu_16(ip->payload_len);
	at = checksum_offset(ip->proto, payload);
	if (at == 0 || payload > room - sizeof(*ip))
		return false;
	memcpy(&sum, l3 + sizeof(*ip) + at, sizeof(sum));
	if (sum != rte_ipv6_phdr_cksum(ip, 0))
		return false;
	memset(l3 + sizeof(*ip) + at, 0, sizeof(sum));
	sum = rte_ipv6_udptcp_cksum(ip, l3 + sizeof(*ip));
	memcpy(l3 + sizeof(*ip) + at, &sum, sizeof(sum));
	return true;
}

bool checksum_complete(uint8_t *frame, uint32_t length)
{
	uint32_t l3 = RTE_ETHER_HDR_LEN;
	uint16_t type;

	if (length < l3)
		return false;
	type = load_be16(frame + l3 - 2);
	while ((type == RTE_ETHER_TYPE_VLAN || type == RTE_ETHER_TYPE_QINQ) &&
	       length - l3 >= RTE_VLAN_HLEN) {
		l3 += RTE_VLAN_HLEN;
		type = load_be16(frame + l3 - 2);
	}
	if (type == RTE_ETHER_TYPE_IPV4)
		return complete_ipv4(frame + l3, length - l3);
	return type == RTE_ETHER_TYPE_IPV6 && complete_ipv6(frame + l3, length - l3);
}
