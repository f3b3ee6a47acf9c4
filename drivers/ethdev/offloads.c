/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a device is asked to do for the engine. Checksums and VLAN tags are not among it: the engine has them in its
 * headers already, and asking would keep many drivers from their fast paths (docs/decisions/0017-offloads.md).
 */
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>

#include "drivers/ethdev/private.h"

/* net_virtio makes the device filter whether it is asked to or not, and then no tagged frame arrives. */
static bool filters_anyway(const struct rte_eth_dev_info *info)
{
	return strncmp(info->driver_name, "net_virtio", strlen("net_virtio")) == 0;
}

/* A frame fits one buffer, so no driver has to look for chains: no SCATTER. */
uint64_t offloads_rx(const struct rte_eth_dev_info *info)
{
	return filters_anyway(info) ? info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER : 0;
}

/*
 * Whoever sends on a port is its one engine. Each frame is one buffer of that engine's pool, with one reference, so the
 * driver may give buffers back in bulk without a look at them.
 */
uint64_t offloads_tx(const struct rte_eth_dev_info *info)
{
	return info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
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
