/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs in the kernel, in the interface's driver, for each frame that the interface receives:
 *
 *	of no VLAN, UDP port 4791, to an address of the engine or to a group	->	the engine
 *	everything else								->	the kernel
 *
 * A queue without a socket of an engine also leaves its frames to the kernel. Once the engine has
 * died, no queue has one.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "drivers/xdp/filter.h"

#define ROCE_PORT	  4791
#define VLAN_ID		  0xfff
#define IPV4_WORDS	  5 /* a header without options: RoCEv2 has none */
#define IPV4_FRAGMENT	  0x3fff /* more fragments, or an offset */
#define IPV4_MAPPED	  bpf_htonl(0xffff)
#define IPV4_GROUP(first) (((first)&0xf0) == 0xe0)

/* A VLAN tag; with the id 0 it has only a priority. */
struct tag {
	__be16 tci, type;
};

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, XDP_QUEUES);
	__type(key, __u32);
	__type(value, __u32);
} xsks_map SEC(".maps"); /* net_af_xdp looks for it by this name */

struct xdp_filter filter;

char terms[] SEC("license") = "Dual BSD/GPL";

static __always_inline bool is_ours(__u64 high, __u64 low)
{
	__u32 n = filter.addresses;

	for (__u32 i = 0; i < XDP_ADDRESSES; i++)
		if (i < n && filter.address[i][0] == high && filter.address[i][1] == low)
			return true;
	return false;
}

static __always_inline bool is_roce(const struct udphdr *udp, const void *end)
{
	return (const void *)(udp + 1) <= end && udp->dest == bpf_htons(ROCE_PORT);
}

static __always_inline bool takes_ipv4(const struct iphdr *ip, const void *end)
{
	union {
		__u32 half[2];
		__u64 all;
	} low;

	if ((const void *)(ip + 1) > end || ip->ihl != IPV4_WORDS || ip->protocol != IPPROTO_UDP ||
	    (ip->frag_off & bpf_htons(IPV4_FRAGMENT)) != 0 || !is_roce((const void *)(ip + 1), end))
		return false;
	low.half[0] = IPV4_MAPPED;
	low.half[1] = ip->daddr;
	return IPV4_GROUP(bpf_ntohl(ip->daddr) >> 24) || is_ours(0, low.all);
}

static __always_inline bool takes_ipv6(const struct ipv6hdr *ip, const void *end)
{
	union {
		__u32 part[4];
		__u64 half[2];
	} to;

	if ((const void *)(ip + 1) > end || ip->nexthdr != IPPROTO_UDP ||
	    !is_roce((const void *)(ip + 1), end))
		return false;
	for (int i = 0; i < 4; i++)
		to.part[i] = ip->daddr.in6_u.u6_addr32[i];
	return ip->daddr.in6_u.u6_addr8[0] == 0xff || is_ours(to.half[0], to.half[1]);
}

SEC("xdp")
int roce(struct xdp_md *frame)
{
	const void *end = (const void *)(long)frame->data_end;
	const struct ethhdr *ethernet = (const void *)(long)frame->data;
	const void *ip = ethernet + 1;
	bool takes = false;
	__u16 type;

	if (ip > end)
		return XDP_PASS;
	type = ethernet->h_proto;
	if (type == bpf_htons(ETH_P_8021Q)) {
		const struct tag *tag = ip;

		ip = tag + 1;
		if (ip > end || (tag->tci & bpf_htons(VLAN_ID)) != 0)
			return XDP_PASS;
		type = tag->type;
	}
	if (type == bpf_htons(ETH_P_IP))
		takes = takes_ipv4(ip, end);
	else if (type == bpf_htons(ETH_P_IPV6))
		takes = takes_ipv6(ip, end);
	return takes ? bpf_redirect_map(&xsks_map, frame->rx_queue_index, XDP_PASS) : XDP_PASS;
}
