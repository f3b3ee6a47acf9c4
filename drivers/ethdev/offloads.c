/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The offloads that a device is asked for. A card is asked for the IPv4 header's checksum, unless
 * its driver would leave a fast path for that. VLAN tags are included only if the user wants that,
 * because the engine already has them in its headers (docs/decisions/0017-offloads.md).
 */
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>

#include "base/bits.h"
#include "drivers/ethdev/private.h"
#include "drivers/offload.h"

static const struct {
	uint32_t offload;
	uint64_t rx, tx; /* the same in DPDK's flags */
} named[] = {
	{ OFFLOAD_IPV4_CKSUM_TX, 0, RTE_ETH_TX_OFFLOAD_IPV4_CKSUM },
	{ OFFLOAD_IPV4_CKSUM_RX, RTE_ETH_RX_OFFLOAD_IPV4_CKSUM, 0 },
	{ OFFLOAD_VLAN_TX, 0, RTE_ETH_TX_OFFLOAD_VLAN_INSERT },
	{ OFFLOAD_VLAN_RX, RTE_ETH_RX_OFFLOAD_VLAN_STRIP, 0 },
};

/* net_virtio always makes the device filter. Without this offload no tagged frame would arrive. */
static bool filters_anyway(const struct rte_eth_dev_info *info)
{
	return strncmp(info->driver_name, "net_virtio", strlen("net_virtio")) == 0;
}

/*
 * These drivers use their vector transmit path only while no offload except FAST_FREE is requested;
 * some of them not even with that.
 */
static bool sends_faster_without(const struct rte_eth_dev_info *info)
{
	static const char *const drivers[] = { "net_ixgbe", "net_i40e" };

	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++)
		if (strcmp(info->driver_name, drivers[i]) == 0)
			return true;
	return false;
}

/*
 * The default. A software port gets no offloads: those would be software of DPDK, and the engine's
 * own is cheaper.
 */
uint32_t offloads_wanted(const struct rte_eth_dev_info *info, uint32_t wanted)
{
	if (wanted != OFFLOAD_AUTO)
		return wanted;
	if (!ethdev_is_card(info))
		return 0;
	return OFFLOAD_IPV4_CKSUM_RX | (sends_faster_without(info) ? 0 : OFFLOAD_IPV4_CKSUM_TX);
}

/* Without SCATTER: a frame fits one buffer, so no driver has to look for chains. */
uint64_t offloads_rx(const struct rte_eth_dev_info *info, uint32_t wanted)
{
	uint64_t ask = filters_anyway(info) ? RTE_ETH_RX_OFFLOAD_VLAN_FILTER : 0;

	for (size_t i = 0; i < ARRAY_SIZE(named); i++)
		if ((wanted & named[i].offload) != 0)
			ask |= named[i].rx;
	return ask & info->rx_offload_capa;
}

/*
 * MBUF_FAST_FREE: only one engine sends on a port. Each frame is one buffer of that engine's pool,
 * with one reference, so the driver may give buffers back in bulk without checking them.
 */
uint64_t offloads_tx(const struct rte_eth_dev_info *info, uint32_t wanted)
{
	uint64_t ask = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;

	for (size_t i = 0; i < ARRAY_SIZE(named); i++)
		if ((wanted & named[i].offload) != 0)
			ask |= named[i].tx;
	return ask & info->tx_offload_capa;
}

uint32_t offloads_granted(uint64_t rx, uint64_t tx)
{
	uint32_t granted = 0;

	for (size_t i = 0; i < ARRAY_SIZE(named); i++)
		if ((named[i].rx & rx) != 0 || (named[i].tx & tx) != 0)
			granted |= named[i].offload;
	return granted;
}

bool offloads_let_pass(const struct ethdev *d, uint16_t vlan, char *why, size_t size)
{
	int ret;

	if (vlan == 0 || !d->filters_vlans)
		return true;
	ret = rte_eth_dev_vlan_filter(d->id, vlan, 1);
	if (ret != 0)
		snprintf(why, size,
			 "%s drops tagged frames, and cannot be told to let VLAN %u pass: %s",
			 d->port.name, vlan, rte_strerror(-ret));
	return ret == 0;
}
