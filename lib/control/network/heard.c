/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The multicast addresses whose frames the port should receive: those that every host has, one for
 * each own IPv6 address (solicited nodes, RFC 4291 2.7.1), those of joined groups, which queriers
 * also use, and those that steering rules name. General queries of IGMP and MLD go to all hosts.
 * A rule for another host's address wants everything: not every port takes further unicast
 * addresses, and the table for them is small.
 */
#include <string.h>

#include "base/bits.h"
#include "control/control.h"
#include "lcore/raw/raw.h"

struct heard {
	struct mac group[LIMIT_PORT_GROUPS + 1]; /* one more shows that there are too many */
	uint32_t count;
	const char *all; /* why every group is wanted, or NULL */
	const char *everything; /* why frames to other hosts are wanted, or NULL */
};

static void add(struct heard *h, const struct mac *group)
{
	for (uint32_t i = 0; i < h->count; i++)
		if (memcmp(&h->group[i], group, sizeof(*group)) == 0)
			return;
	if (h->count <= LIMIT_PORT_GROUPS)
		h->group[h->count++] = *group;
}

static void add_hosts(struct heard *h)
{
	static const struct mac all[] = { { { 0x01, 0x00, 0x5e, 0, 0, 1 } },
					  { { 0x33, 0x33, 0, 0, 0, 1 } } };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		add(h, &all[i]);
}

static void add_addresses(struct heard *h, const struct engine *e)
{
	for (uint32_t i = 0; i < LIMIT_GIDS; i++) {
		const struct gid *gid = &e->gid[i].gid;
		const uint8_t *low = gid->octet + 13;

		if (!gid_is_zero(gid) && !gid_is_ipv4(gid))
			add(h, &(struct mac){ { 0x33, 0x33, 0xff, low[0], low[1], low[2] } });
	}
}

static void add_joined(struct heard *h, const struct engine *e)
{
	const struct gid *group;

	for (uint32_t at = 0; (group = neighbour_agent_group(e, &at)) != NULL;) {
		struct mac mac = mac_of_multicast(group);

		add(h, &mac);
	}
}

static bool matches(const uint8_t value[6], const uint8_t mask[6], const struct mac *mac)
{
	for (int i = 0; i < 6; i++)
		if (((value[i] ^ mac->octet[i]) & mask[i]) != 0)
			return false;
	return true;
}

/*
 * A rule for one unicast address wants no group; a rule for one group wants that group; other rules
 * may want any.
 */
static void add_rule(struct heard *h, const struct flow_rule *rule, const struct mac *own)
{
	static const uint8_t whole[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	const uint8_t *to = rule->value.dst_mac, *mask = rule->mask.dst_mac;
	struct mac mac;

	if (rule->kind == FLOW_NORMAL && (mask[0] & 1) != 0 && (to[0] & 1) == 0) {
		if (memcmp(mask, whole, sizeof(whole)) != 0 || !matches(to, mask, own))
			h->everything = "a steering rule wants frames to another unicast address";
		return;
	}
	if (rule->kind == FLOW_ALL_DEFAULT || rule->kind == FLOW_SNIFFER)
		h->everything = "a steering rule wants the frames of other hosts, too";
	if (rule->kind != FLOW_NORMAL || memcmp(mask, whole, sizeof(whole)) != 0) {
		h->all = "a steering rule may want any group";
		return;
	}
	memcpy(mac.octet, to, sizeof(mac.octet));
	add(h, &mac);
}

void heard_update(struct engine *e)
{
	struct heard h = { .count = 0 };
	struct engine_flow *f;

	if (e->port == NULL || e->port->ops->hear == NULL)
		return;
	if (e->port->kernel != NULL)
		h.all = "the kernel has groups of its own";
	add_hosts(&h);
	add_addresses(&h, e);
	add_joined(&h, e);
	LIST_FOREACH(f, &e->flow_list, link)
	add_rule(&h, &f->rule, &e->mac);
	e->port->ops->hear(e->port, &(struct port_hears){ .group = h.group,
							  .groups = h.count,
							  .all_groups = h.all,
							  .everything = h.everything });
}
