/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rule for each IP version and each queue. It matches UDP port 4791 and the last octet of the
 * destination queue pair number in the BTH, whose low four bits name an lcore. DPDK 22.11 has no
 * item for the BTH, so the octet is matched as a pattern after the UDP header, which few drivers
 * support. All rules are validated before any is made.
 */
#include <stdlib.h>

#include "base/bits.h"
#include "drivers/ethdev/private.h"
#include "wire/envelope.h"

#define QPN_OCTET 7 /* of the BTH: opcode, flags, pkey (2), reserved, number (3) */

struct steering {
	uint16_t id;
	const struct steering_calls *calls;
	uint32_t count;
	struct rte_flow *rule[2 * LIMIT_LCORES];
};

typedef bool visit_rule(struct steering *s, const struct rte_flow_attr *attr,
			const struct rte_flow_item *pattern, const struct rte_flow_action *actions);

static bool validate(struct steering *s, const struct rte_flow_attr *attr,
		     const struct rte_flow_item *pattern, const struct rte_flow_action *actions)
{
	struct rte_flow_error error;

	return s->calls->validate(s->id, attr, pattern, actions, &error) == 0;
}

static bool create(struct steering *s, const struct rte_flow_attr *attr,
		   const struct rte_flow_item *pattern, const struct rte_flow_action *actions)
{
	struct rte_flow_error error;

	s->rule[s->count] = s->calls->create(s->id, attr, pattern, actions, &error);
	if (s->rule[s->count] == NULL)
		return false;
	s->count++;
	return true;
}

static bool make_rule(struct steering *s, enum rte_flow_item_type ip, uint16_t queue,
		      visit_rule *visit)
{
	const struct rte_flow_attr attr = { .ingress = 1 };
	const struct rte_flow_item_udp udp = { .hdr.dst_port = RTE_BE16(ROCE_UDP_PORT) },
				       udp_mask = { .hdr.dst_port = RTE_BE16(0xffff) };
	const uint8_t octet = (uint8_t)queue, octet_mask = 15;
	const struct rte_flow_item_raw raw = { .relative = 1,
					       .offset = QPN_OCTET,
					       .length = 1,
					       .pattern = &octet },
				       raw_mask = { .relative = 1,
						    .search = 1,
						    .offset = -1,
						    .limit = 0xffff,
						    .length = 0xffff,
						    .pattern = &octet_mask };
	const struct rte_flow_item pattern[] = {
		{ .type = RTE_FLOW_ITEM_TYPE_ETH },
		{ .type = ip },
		{ .type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &udp, .mask = &udp_mask },
		{ .type = RTE_FLOW_ITEM_TYPE_RAW, .spec = &raw, .mask = &raw_mask },
		{ .type = RTE_FLOW_ITEM_TYPE_END },
	};
	const struct rte_flow_action_queue to = { .index = queue };
	const struct rte_flow_action actions[] = {
		{ .type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &to },
		{ .type = RTE_FLOW_ACTION_TYPE_END },
	};

	return visit(s, &attr, pattern, actions);
}

static bool each_rule(struct steering *s, uint16_t queues, visit_rule *visit)
{
	static const enum rte_flow_item_type ip[] = { RTE_FLOW_ITEM_TYPE_IPV4,
						      RTE_FLOW_ITEM_TYPE_IPV6 };

	for (size_t i = 0; i < ARRAY_SIZE(ip); i++)
		for (uint16_t queue = 0; queue < queues; queue++)
			if (!make_rule(s, ip[i], queue, visit))
				return false;
	return true;
}

struct steering *steering_begin(uint16_t id, uint16_t queues, const struct steering_calls *calls)
{
	struct steering *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->id = id;
	s->calls = calls;
	if (each_rule(s, queues, validate) && each_rule(s, queues, create))
		return s;
	steering_end(s);
	return NULL;
}

void steering_end(struct steering *s)
{
	struct rte_flow_error error;

	while (s != NULL && s->count > 0)
		s->calls->destroy(s->id, s->rule[--s->count], &error);
	free(s);
}

const struct steering_calls steering_by_dpdk = {
	.validate = rte_flow_validate,
	.create = rte_flow_create,
	.destroy = rte_flow_destroy,
};
