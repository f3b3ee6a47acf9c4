/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fields of a frame that a flow rule can match, in one flat struct: a rule is a value and a
 * mask of this type. Octets are in the frame's order. Fields of a layer that the frame does not
 * have are zero, and `layers` does not name that layer. The library fills values and masks from
 * ibv_flow_spec_*.
 */
#ifndef PROTOCOL_FLOW_KEY_H
#define PROTOCOL_FLOW_KEY_H

#include <assert.h>
#include <stdint.h>

enum flow_layer {
	FLOW_LAYER_ETH = 1 << 0,
	FLOW_LAYER_VLAN = 1 << 1,
	FLOW_LAYER_IPV4 = 1 << 2,
	FLOW_LAYER_IPV6 = 1 << 3,
	FLOW_LAYER_TCP = 1 << 4,
	FLOW_LAYER_UDP = 1 << 5,
	FLOW_LAYERS = 0x3f,
};

struct flow_key {
	uint8_t dst_mac[6];
	uint8_t src_mac[6];
	uint8_t ether_type[2]; /* behind the last VLAN tag (ibv_create_flow(3), note 3) */
	uint8_t vlan_tag[2]; /* of the first tag: priority, CFI, id */
	uint8_t src_ip[16]; /* IPv4: the first four octets */
	uint8_t dst_ip[16];
	uint8_t flow_label[4]; /* IPv6: the low 20 bits */
	uint8_t protocol; /* of layer 4, behind any IPv6 extension headers */
	uint8_t tos; /* traffic class */
	uint8_t ttl; /* hop limit */
	uint8_t ip_flags; /* IPv4: 2 don't fragment, 4 more fragments (ib_ipv4_flags) */
	uint8_t src_port[2];
	uint8_t dst_port[2];
	uint8_t reserved[4];
};

#define FLOW_KEY_WORDS 8u

static_assert(sizeof(struct flow_key) == FLOW_KEY_WORDS * 8, "compared by words");

/* ibv_flow_attr_type */
enum flow_kind {
	FLOW_NORMAL = 0,
	FLOW_ALL_DEFAULT = 1,
	FLOW_MC_DEFAULT = 2,
	FLOW_SNIFFER = 3,
	FLOW_KINDS,
};

enum flow_action {
	FLOW_DROP = 1 << 0,
	FLOW_TAG = 1 << 1,
	FLOW_DONT_TRAP = 1 << 2, /* rules of lower priority see the frame as well */
	FLOW_ACTIONS = 0x7,
};

#endif
