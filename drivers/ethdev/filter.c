/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which frames a port lets through besides those for its own address. The engine tells a card which
 * groups it wants, and also a Linux interface that the kernel shares with the engine. Other
 * software ports have no filter, or one of the kernel's. A port that cannot be told lets all groups
 * through (allmulticast), and as a last resort everything. The list is set before allmulticast
 * ends.
 *
 * Control thread only. Other threads read `groups`, `hears_all` and `hears_others` of the port, so
 * these are atomic. No other data depends on them.
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <string.h>
#include <unistd.h>

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

static bool shares_interface(const struct ethdev *d, const struct rte_eth_dev_info *info)
{
	return d->link_ifindex != 0 && (strcmp(info->driver_name, "net_af_packet") == 0 ||
					strcmp(info->driver_name, "net_af_xdp") == 0);
}

static int let_in(struct ethdev *d, struct rte_ether_addr *group)
{
	if (d->filter < 0)
		return rte_eth_dev_mac_addr_add(d->id, group, 0);
	return interface_filter_add(d->filter, d->link_ifindex, PACKET_MR_MULTICAST, group)
		       ? 0
		       : -errno;
}

static void keep_out(struct ethdev *d, struct rte_ether_addr *group)
{
	if (d->filter < 0)
		rte_eth_dev_mac_addr_remove(d->id, group);
	else
		interface_filter_remove(d->filter, d->link_ifindex, PACKET_MR_MULTICAST, group);
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

/* Takes out unwanted groups first, to make room for new ones. */
static void take_out_others(struct ethdev *d, const struct mac *group, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < d->told_groups; i++) {
		if (is_wanted(&d->told[i], group, n))
			d->told[kept++] = d->told[i];
		else
			keep_out(d, &d->told[i]);
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
		ret = let_in(d, new);
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

/* Lets these groups through. Returns NULL, or why it cannot. */
static const char *tell(struct ethdev *d, const struct mac *group, uint32_t n)
{
	int ret;

	if (!d->filters_groups)
		return "it has no filter of its own";
	if (n > LIMIT_PORT_GROUPS)
		return "there are too many groups for its filter";
	ret = d->has_one_table || d->filter >= 0 ? tell_table(d, group, n) : tell_list(d, group, n);
	if (ret == -ENOTSUP)
		return "its driver takes no list of groups";
	return ret != 0 ? "its filter does not take all groups" : NULL;
}

static bool is_promiscuous(const struct ethdev *d)
{
	return d->groups_need_it || d->kernel_promiscuous || d->hears_others;
}

static int promiscuous_set(const struct ethdev *d, bool on)
{
	if (d->filter >= 0)
		return (on ? interface_filter_add : interface_filter_remove)(
			       d->filter, d->link_ifindex, PACKET_MR_PROMISC, NULL)
			       ? 0
			       : -errno;
	return on ? rte_eth_promiscuous_enable(d->id) : rte_eth_promiscuous_disable(d->id);
}

static void settle(struct ethdev *d)
{
	bool on = is_promiscuous(d);

	if (on != d->promiscuous && promiscuous_set(d, on) == 0)
		d->promiscuous = on;
}

static bool all_groups_come(const struct ethdev *d)
{
	return d->filter >= 0 ? d->all_groups : rte_eth_allmulticast_get(d->id) == 1;
}

static bool all_groups_set(struct ethdev *d, bool on)
{
	if (d->filter < 0)
		return (on ? rte_eth_allmulticast_enable : rte_eth_allmulticast_disable)(d->id) ==
		       0;
	if (!(on ? interface_filter_add : interface_filter_remove)(d->filter, d->link_ifindex,
								   PACKET_MR_ALLMULTI, NULL))
		return false;
	d->all_groups = on;
	return true;
}

static void open_all(struct ethdev *d)
{
	if (!all_groups_come(d))
		d->groups_need_it = !all_groups_set(d, true);
}

/* False: unwanted groups still come. */
static bool close_others(struct ethdev *d)
{
	d->groups_need_it = false;
	return !all_groups_come(d) || all_groups_set(d, false);
}

static void say(const struct ethdev *d, const char *why, uint32_t n)
{
	if (d->hears_others)
		LOG(INFO, "%s lets everything through: %s", d->port.name, d->port.hears_others);
	else if (why == NULL)
		LOG(INFO, "%s lets %u multicast addresses through", d->port.name, n);
	else
		LOG(INFO, "%s lets %s through: %s", d->port.name,
		    d->groups_need_it ? "everything" : "all multicast", why);
}

void filter_open(struct ethdev *d, const struct rte_eth_dev_info *info)
{
	d->filter = shares_interface(d, info) ? interface_filter_open() : -1;
	d->filters_groups = d->filter >= 0 || (d->id == d->behind && ethdev_is_card(info));
	d->has_one_table = has_one_table(info);
	d->port.hears_all = "the engine has not said which groups it wants";
	open_all(d);
	settle(d);
}

void filter_hear(struct ethdev *d, const struct port_hears *h)
{
	const char *why = h->all_groups != NULL ? h->all_groups : tell(d, h->group, h->groups);
	const char *before = d->port.hears_all, *others = d->port.hears_others;

	if (why != NULL)
		open_all(d);
	else if (!close_others(d))
		why = "it cannot stop that";
	d->hears_others = h->everything != NULL;
	settle(d);
	__atomic_store_n(&d->port.hears_all, why, __ATOMIC_RELAXED);
	__atomic_store_n(&d->port.hears_others, h->everything, __ATOMIC_RELAXED);
	__atomic_store_n(&d->port.groups, h->groups, __ATOMIC_RELAXED);
	if ((why != before && (d->filters_groups || d->groups_need_it)) || h->everything != others)
		say(d, why, h->groups);
}

void filter_promiscuous(struct ethdev *d, bool wanted)
{
	d->kernel_promiscuous = wanted;
	settle(d);
}

void filter_close(struct ethdev *d)
{
	if (d->filter >= 0)
		close(d->filter);
}
