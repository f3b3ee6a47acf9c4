/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which groups a card lets through. It is told those that the engine wants; software ports have no filter, or one of the
 * kernel's. A port that cannot be told lets all groups through (allmulticast), and as a last resort everything. The list is
 * there before allmulticast ends.
 *
 * Control thread only; `groups` and `hears_all` of the port are read by others, so they are atomic. Nothing depends on them.
 */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/ethdev/private.h"
#include "drivers/log.h"

static bool same(const struct rte_ether_addr *a, const struct mac *b)
{
	return memcmp(a->addr_bytes, b->octet, sizeof(b->octet)) == 0;
}

/* net_virtio has one table for addresses of both kinds, and no list of groups. */
static bool has_one_table(const struct rte_eth_dev_info *info)
{
	return strncmp(info->driver_name, "net_virtio", strlen("net_virtio")) == 0;
}

static bool is_wanted(const struct rte_ether_addr *told, const struct mac *group, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (same(told, &group[i]))
			return true;
	return false;
}

static bool is_told(const struct ethdev *d, const struct mac *group)
{
	for (uint32_t i = 0; i < d->told_groups; i++)
		if (same(&d->told[i], group))
			return true;
	return false;
}

/* What is no longer wanted makes room for what is new. */
static void take_out_others(struct ethdev *d, const struct mac *group, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < d->told_groups; i++) {
		if (is_wanted(&d->told[i], group, n))
			d->told[kept++] = d->told[i];
		else
			rte_eth_dev_mac_addr_remove(d->id, &d->told[i]);
	}
	d->told_groups = kept;
}

static int tell_table(struct ethdev *d, const struct mac *group, uint32_t n)
{
	take_out_others(d, group, n);
	for (uint32_t i = 0; i < n; i++) {
		struct rte_ether_addr *new = &d->told[d->told_groups];
		int ret;

		if (is_told(d, &group[i]))
			continue;
		memcpy(new->addr_bytes, group[i].octet, sizeof(new->addr_bytes));
		ret = rte_eth_dev_mac_addr_add(d->id, new, 0);
		if (ret != 0)
			return ret;
		d->told_groups++;
	}
	return 0;
}

static int tell_list(struct ethdev *d, const struct mac *group, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		memcpy(d->told[i].addr_bytes, group[i].octet, sizeof(group[i].octet));
	d->told_groups = n;
	return rte_eth_dev_set_mc_addr_list(d->id, d->told, n);
}

/* NULL: it lets these through. Otherwise why it cannot. */
static const char *tell(struct ethdev *d, const struct mac *group, uint32_t n)
{
	int ret;

	if (!d->filters_groups)
		return "it has no filter of its own";
	if (n > LIMIT_PORT_GROUPS)
		return "there are too many groups for its filter";
	ret = d->has_one_table ? tell_table(d, group, n) : tell_list(d, group, n);
	if (ret == -ENOTSUP)
		return "its driver takes no list of groups";
	return ret != 0 ? "its filter does not take all groups" : NULL;
}

static void open_all(struct ethdev *d)
{
	if (rte_eth_allmulticast_get(d->id) == 1 || d->groups_need_it)
		return;
	d->groups_need_it = rte_eth_allmulticast_enable(d->id) != 0;
	if (d->groups_need_it)
		rte_eth_promiscuous_enable(d->id);
}

/* False: groups that nobody wants still come. */
static bool close_others(struct ethdev *d)
{
	if (d->groups_need_it && !d->promiscuous)
		rte_eth_promiscuous_disable(d->id);
	d->groups_need_it = false;
	return rte_eth_allmulticast_get(d->id) != 1 || rte_eth_allmulticast_disable(d->id) == 0;
}

static void say(const struct ethdev *d, const char *why, uint32_t n)
{
	if (why == NULL)
		LOG(INFO, "%s lets %u multicast addresses through", d->port.name, n);
	else
		LOG(INFO, "%s lets %s through: %s", d->port.name,
		    d->groups_need_it ? "everything" : "all multicast", why);
}

void multicast_open(struct ethdev *d, const struct rte_eth_dev_info *info)
{
	d->filters_groups = d->id == d->behind && ethdev_is_card(info);
	d->has_one_table = has_one_table(info);
	d->port.hears_all = "the engine has not said which groups it wants";
	open_all(d);
}

void multicast_hear(struct ethdev *d, const struct mac *group, uint32_t n, const char *all)
{
	const char *why = all != NULL ? all : tell(d, group, n), *before = d->port.hears_all;

	if (why != NULL)
		open_all(d);
	else if (!close_others(d))
		why = "it cannot stop that";
	__atomic_store_n(&d->port.hears_all, why, __ATOMIC_RELAXED);
	__atomic_store_n(&d->port.groups, n, __ATOMIC_RELAXED);
	if (why != before && (d->filters_groups || d->groups_need_it))
		say(d, why, n);
}
