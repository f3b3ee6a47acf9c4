/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames against rules. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "lcore/raw/flow_table.h"
#include "raw_frames.h"

#define RULES 12u

/* A rule in few words; numbers of rules are their queue pairs. */
struct rule_recipe {
	uint32_t kind, priority, actions;
	uint32_t layers;
	const char *dst_mac; /* full mask */
	const char *src; /* address, full mask */
	uint16_t type, dst_port, vlan; /* 0: any */
	uint32_t flags; /* IPv4, as a mask as well */
};

static void make_rule(struct flow_rule *r, const struct rule_recipe *w, uint32_t number)
{
	struct built_frame b = { .length = 0 };

	*r = (struct flow_rule){ .kind = w->kind,
				 .priority = w->priority,
				 .actions = w->actions,
				 .layers = w->layers,
				 .target.qpn = number };
	if (w->dst_mac != NULL) {
		put_mac(&b, w->dst_mac);
		memcpy(r->value.dst_mac, b.octet, 6);
		memset(r->mask.dst_mac, 0xff, 6);
	}
	if (w->src != NULL) {
		bool v6 = strchr(w->src, ':') != NULL;

		inet_pton(v6 ? AF_INET6 : AF_INET, w->src, r->value.src_ip);
		memset(r->mask.src_ip, 0xff, v6 ? 16 : 4);
	}
	store_be16(r->value.ether_type, w->type);
	store_be16(r->mask.ether_type, w->type != 0 ? 0xffff : 0);
	store_be16(r->value.dst_port, w->dst_port);
	store_be16(r->mask.dst_port, w->dst_port != 0 ? 0xffff : 0);
	store_be16(r->value.vlan_tag, w->vlan);
	store_be16(r->mask.vlan_tag, w->vlan != 0 ? 0x0fff : 0);
	r->value.ip_flags = r->mask.ip_flags = (uint8_t)w->flags;
}

static struct flow_table *make_table(const struct rule_recipe *recipe, uint32_t n)
{
	struct flow_table *t = calloc(1, flow_table_bytes(n));
	struct flow_rule r;

	for (uint32_t i = 0; i < n; i++) {
		make_rule(&r, &recipe[i], i);
		flow_table_add(t, &r);
	}
	return t;
}

/* A bit for each rule that sees the frame. */
static uint32_t seen_by(const struct flow_table *t, const struct frame_recipe *frame, bool roce,
			bool *taken)
{
	struct built_frame b;
	struct flow_match m;
	struct raw_frame f;
	uint32_t bits = 0;

	build_frame(&b, frame);
	raw_frame_parse(&f, b.octet, b.length);
	flow_table_match(t, &f, roce, &m);
	for (uint32_t i = 0; i < m.count; i++)
		bits |= 1u << m.rule[i]->target.qpn;
	*taken = m.taken;
	return bits;
}

#define UDP4 .src = "10.0.0.1", .dst = "10.0.0.2", .protocol = 17
#define TCP6 .src = "fd00::1", .dst = "fd00::2", .protocol = 6
#define IPV4 FLOW_LAYER_IPV4
#define IPV6 FLOW_LAYER_IPV6
#define UDP  FLOW_LAYER_UDP
#define TCP  FLOW_LAYER_TCP
#define ETH  FLOW_LAYER_ETH
#define VLAN FLOW_LAYER_VLAN

Test(flow_table, a_rule_and_a_frame)
{
	static const struct {
		const char *what;
		struct rule_recipe rule;
		struct frame_recipe frame;
		bool seen;
	} row[] = {
		{ "no spec: everything", { 0 }, { .payload = 46 }, true },
		{ "MAC", { .layers = ETH, .dst_mac = "020304050607" }, { UDP4 }, true },
		{ "other MAC", { .layers = ETH, .dst_mac = "020304050608" }, { UDP4 }, false },
		{ "type", { .layers = ETH, .type = 0x86dd }, { TCP6 }, true },
		{ "type behind tags",
		  { .layers = ETH, .type = 0x86dd },
		  { TCP6, .tags = 2 },
		  true },
		{ "other type", { .layers = ETH, .type = 0x86dd }, { UDP4 }, false },
		{ "VLAN", { .layers = ETH | VLAN, .vlan = 100 }, { UDP4, .tags = 1 }, true },
		{ "outer VLAN", { .layers = ETH | VLAN, .vlan = 101 }, { UDP4, .tags = 2 }, false },
		{ "other VLAN", { .layers = ETH | VLAN, .vlan = 7 }, { UDP4, .tags = 1 }, false },
		{ "no VLAN", { .layers = ETH | VLAN, .vlan = 100 }, { UDP4 }, false },
		{ "any IPv4", { .layers = IPV4 }, { UDP4, .tags = 1 }, true },
		{ "any IPv4, IPv6 comes", { .layers = IPV4 }, { TCP6 }, false },
		{ "IPv4 source", { .layers = IPV4, .src = "10.0.0.1" }, { UDP4 }, true },
		{ "other source", { .layers = IPV4, .src = "10.0.0.3" }, { UDP4 }, false },
		{ "IPv6 source", { .layers = IPV6, .src = "fd00::1" }, { TCP6 }, true },
		{ "other IPv6 source", { .layers = IPV6, .src = "fd00::2" }, { TCP6 }, false },
		{ "UDP port", { .layers = UDP, .dst_port = 53 }, { UDP4, .dst_port = 53 }, true },
		{ "other port",
		  { .layers = UDP, .dst_port = 53 },
		  { UDP4, .dst_port = 54 },
		  false },
		{ "TCP port", { .layers = TCP, .dst_port = 80 }, { TCP6, .dst_port = 80 }, true },
		{ "TCP wanted, UDP comes",
		  { .layers = TCP, .dst_port = 53 },
		  { UDP4, .dst_port = 53 },
		  false },
		{ "a later fragment has no port",
		  { .layers = UDP },
		  { UDP4, .fragment = 5 },
		  false },
		{ "don't fragment",
		  { .layers = IPV4, .flags = 2 },
		  { UDP4, .fragment = 0x4000 },
		  true },
		{ "may fragment", { .layers = IPV4, .flags = 2 }, { UDP4 }, false },
		{ "more fragments",
		  { .layers = IPV4, .flags = 4 },
		  { UDP4, .fragment = 0x2000 },
		  true },
	};
	bool taken;

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct flow_table *t = make_table(&row[i].rule, 1);

		cr_expect_eq(seen_by(t, &row[i].frame, false, &taken), row[i].seen, "%s",
			     row[i].what);
		cr_expect_eq(taken, row[i].seen, "%s", row[i].what);
		cr_expect_eq(seen_by(t, &row[i].frame, true, &taken), 0, "RoCE: %s", row[i].what);
		free(t);
	}
}

#define MULTICAST .dst_mac = "01005e000001"

Test(flow_table, rules_among_each_other)
{
	static const struct {
		const char *what;
		struct rule_recipe rule[RULES];
		uint32_t rules;
		struct frame_recipe frame;
		uint32_t seen;
		bool taken;
	} row[] = {
		{ "the lower value wins",
		  { { .priority = 2, .layers = IPV4 }, { .priority = 1, .layers = IPV4 } },
		  2,
		  { UDP4 },
		  1 << 1,
		  true },
		{ "if it matches",
		  { { .priority = 2, .layers = IPV4 }, { .priority = 1, .layers = IPV6 } },
		  2,
		  { UDP4 },
		  1 << 0,
		  true },
		{ "equal rules: a copy each",
		  { { .priority = 1, .layers = IPV4 },
		    { .priority = 1, .layers = IPV4 },
		    { .priority = 2, .layers = IPV4 } },
		  3,
		  { UDP4 },
		  3,
		  true },
		{ "do not trap",
		  { { .priority = 1, .layers = IPV4, .actions = FLOW_DONT_TRAP },
		    { .priority = 2, .layers = IPV4 },
		    { .priority = 3, .layers = IPV4 } },
		  3,
		  { UDP4 },
		  3,
		  true },
		{ "do not trap, and nobody else",
		  { { .priority = 1, .layers = IPV4, .actions = FLOW_DONT_TRAP } },
		  1,
		  { UDP4 },
		  1,
		  false },
		{ "drop", { { .actions = FLOW_DROP }, { .priority = 1 } }, 2, { UDP4 }, 1, true },
		{ "drop among equals",
		  { { 0 }, { .actions = FLOW_DROP }, { 0 } },
		  3,
		  { UDP4 },
		  1 << 1,
		  true },
		{ "drop behind a winner",
		  { { .priority = 5, .actions = FLOW_DROP }, { 0 } },
		  2,
		  { UDP4 },
		  1 << 1,
		  true },
		{ "drop leaves what a higher rule let pass",
		  { { .actions = FLOW_DONT_TRAP }, { .priority = 1, .actions = FLOW_DROP } },
		  2,
		  { UDP4 },
		  3,
		  true },
		{ "default: what nobody took",
		  { { .kind = FLOW_ALL_DEFAULT }, { .layers = IPV6 } },
		  2,
		  { UDP4 },
		  1,
		  true },
		{ "default: not what somebody took",
		  { { .kind = FLOW_ALL_DEFAULT }, { .layers = IPV4 } },
		  2,
		  { UDP4 },
		  2,
		  true },
		{ "multicast default: not unicast",
		  { { .kind = FLOW_MC_DEFAULT } },
		  1,
		  { UDP4 },
		  0,
		  false },
		{ "multicast default",
		  { { .kind = FLOW_MC_DEFAULT }, { .kind = FLOW_ALL_DEFAULT } },
		  2,
		  { UDP4, MULTICAST },
		  3,
		  true },
		{ "broadcast is multicast",
		  { { .kind = FLOW_MC_DEFAULT } },
		  1,
		  { UDP4, .dst_mac = "ffffffffffff" },
		  1,
		  true },
		{ "a sniffer sees all and takes nothing",
		  { { .kind = FLOW_SNIFFER } },
		  1,
		  { UDP4 },
		  1,
		  false },
		{ "a sniffer beside a winner",
		  { { .layers = IPV4 }, { .kind = FLOW_SNIFFER }, { .kind = FLOW_ALL_DEFAULT } },
		  3,
		  { UDP4 },
		  3,
		  true },
		{ "a sniffer sees what is dropped",
		  { { .actions = FLOW_DROP }, { .kind = FLOW_SNIFFER } },
		  2,
		  { UDP4 },
		  3,
		  true },
	};
	bool taken;

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct flow_table *t = make_table(row[i].rule, row[i].rules);
		uint32_t seen = seen_by(t, &row[i].frame, false, &taken);

		cr_expect_eq(seen, row[i].seen, "%s: %#x", row[i].what, seen);
		cr_expect_eq(taken, row[i].taken, "%s", row[i].what);
		free(t);
	}
}

Test(flow_table, roce_is_for_sniffers_only)
{
	static const struct rule_recipe rule[] = { { 0 },
						   { .kind = FLOW_ALL_DEFAULT },
						   { .kind = FLOW_SNIFFER },
						   { .kind = FLOW_SNIFFER } };
	struct flow_table *t = make_table(rule, 4);
	bool taken;

	cr_expect_eq(seen_by(t, &(struct frame_recipe){ UDP4, .dst_port = 4791 }, true, &taken),
		     3 << 2);
	cr_expect_not(taken);
	free(t);
}

Test(flow_table, more_matches_than_copies_are_cut)
{
	struct flow_table *t = calloc(1, flow_table_bytes(LIMIT_FLOWS));
	struct built_frame b;
	struct flow_match m;
	struct flow_rule r;
	struct raw_frame f;

	for (uint32_t i = 0; i < LIMIT_FLOWS; i++) {
		make_rule(&r, &(struct rule_recipe){ .priority = i % 3 }, i);
		flow_table_add(t, &r);
	}
	cr_assert_eq(t->count, LIMIT_FLOWS);
	for (uint32_t i = 1; i < t->count; i++)
		cr_assert(t->rule[i - 1].priority <= t->rule[i].priority);
	build_frame(&b, &(struct frame_recipe){ UDP4 });
	raw_frame_parse(&f, b.octet, b.length);
	flow_table_match(t, &f, false, &m);
	cr_expect_eq(m.count, LIMIT_FLOW_COPIES);
	free(t);
}
