/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow rules by queue pair number, on a device that the test makes up. It reads rules as rte_flow.h
 * describes them, and the test compares frames with them. Also a device that takes no rules, or not
 * all.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/ethdev/private.h"
#include "wire/encode.h"

#define QUEUES 3u

/* The parts of a rule that the device remembers. */
struct rule {
	bool ipv6;
	uint16_t port, queue;
	int32_t offset; /* behind the UDP header */
	uint8_t octet, mask;
};
static struct rule rule[16];
static uint32_t rules, validated, refuse_from = UINT32_MAX;
static bool refuse_all;

static struct rule read_rule(const struct rte_flow_item *p, const struct rte_flow_action *a)
{
	const struct rte_flow_item_udp *udp = p[2].spec;
	const struct rte_flow_item_raw *raw = p[3].spec, *mask = p[3].mask;

	cr_assert_eq(p[0].type, RTE_FLOW_ITEM_TYPE_ETH);
	cr_assert_eq(p[2].type, RTE_FLOW_ITEM_TYPE_UDP);
	cr_assert_eq(p[3].type, RTE_FLOW_ITEM_TYPE_RAW);
	cr_assert_eq(p[4].type, RTE_FLOW_ITEM_TYPE_END);
	cr_assert(raw->relative && !raw->search && raw->length == 1);
	cr_assert_eq(a[0].type, RTE_FLOW_ACTION_TYPE_QUEUE);
	cr_assert_eq(a[1].type, RTE_FLOW_ACTION_TYPE_END);
	return (struct rule){ .ipv6 = p[1].type == RTE_FLOW_ITEM_TYPE_IPV6,
			      .port = rte_be_to_cpu_16(udp->hdr.dst_port),
			      .queue = ((const struct rte_flow_action_queue *)a->conf)->index,
			      .offset = raw->offset,
			      .octet = raw->pattern[0],
			      .mask = mask->pattern[0] };
}

static int validate(uint16_t id, const struct rte_flow_attr *attr,
		    const struct rte_flow_item *pattern, const struct rte_flow_action *actions,
		    struct rte_flow_error *error)
{
	cr_assert(attr->ingress);
	read_rule(pattern, actions);
	validated++;
	return refuse_all ? -ENOTSUP : 0;
}

static struct rte_flow *create(uint16_t id, const struct rte_flow_attr *attr,
			       const struct rte_flow_item *pattern,
			       const struct rte_flow_action *actions, struct rte_flow_error *error)
{
	if (rules >= refuse_from)
		return NULL;
	rule[rules] = read_rule(pattern, actions);
	return (struct rte_flow *)&rule[rules++];
}

static int destroy(uint16_t id, struct rte_flow *flow, struct rte_flow_error *error)
{
	cr_assert_gt(rules, 0);
	rules--;
	return 0;
}

static const struct steering_calls made_up = { validate, create, destroy };

/* A frame for this queue pair, and the offset of its BTH. */
static uint32_t frame_to(uint8_t *frame, uint32_t qpn, bool ipv6)
{
	struct address_vector av = { .hop_limit = 64, .src_port = 0xc000 };
	struct packet p = { .opcode = 4, .pkey = 0xffff, .dest_qpn = qpn };
	struct flow flow;

	av.dst_gid.octet[ipv6 ? 0 : 10] = av.dst_gid.octet[ipv6 ? 1 : 11] = 0xff;
	av.src_gid = av.dst_gid;
	flow_init(&flow, &av);
	cr_assert_eq(flow.ipv6, ipv6);
	packet_encode(frame, &flow, &p, 0);
	return flow.length;
}

/* The queue at which the frame arrives; UINT16_MAX: no rule matches it. */
static uint16_t queue_of(const uint8_t *frame, uint32_t bth, bool ipv6)
{
	uint16_t port = load_be16(frame + bth - 6), found = UINT16_MAX;

	for (uint32_t i = 0; i < rules; i++) {
		const struct rule *r = &rule[i];

		if (r->ipv6 != ipv6 || r->port != port ||
		    (frame[bth + (uint32_t)r->offset] & r->mask) != r->octet)
			continue;
		cr_assert_eq(found, UINT16_MAX, "two rules are for it");
		found = r->queue;
	}
	return found;
}

Test(steering, frames_arrive_where_their_number_says)
{
	struct steering *s = steering_begin(0, QUEUES, &made_up);

	cr_assert_not_null(s);
	cr_expect_eq(validated, 2 * QUEUES);
	for (uint32_t ipv6 = 0; ipv6 < 2; ipv6++)
		for (uint32_t low = 0; low < 16; low++) {
			uint8_t frame[256];
			uint32_t bth = frame_to(frame, 0xabcdf0 | low, ipv6 != 0);

			cr_expect_eq(queue_of(frame, bth, ipv6 != 0),
				     low < QUEUES ? low : UINT16_MAX, "number ...%x", low);
			store_be16(frame + bth - 6, 4792);
			cr_expect_eq(queue_of(frame, bth, ipv6 != 0), UINT16_MAX);
		}
	steering_end(s);
	cr_expect_eq(rules, 0, "a rule stays");
}

Test(steering, a_device_that_takes_no_such_rule_has_none)
{
	refuse_all = true;
	cr_expect_null(steering_begin(0, QUEUES, &made_up));
	cr_expect_eq(validated, 1);
	cr_expect_eq(rules, 0);
}

/* It has room for some rules only: those are removed again. */
Test(steering, all_or_none)
{
	refuse_from = 4;
	cr_expect_null(steering_begin(0, QUEUES, &made_up));
	cr_expect_eq(rules, 0, "a rule stays");
}
