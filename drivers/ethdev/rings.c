/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a device's rings are. If 0 is requested, rte_eth_dev_adjust_nb_rx_tx_desc() makes the
 * shortest ring that the device has. On some cards that is 32 frames, less than one burst.
 */
#include <stdio.h>

#include <rte_common.h>

#include "base/bits.h"
#include "drivers/ethdev/private.h"

static uint32_t most_of(const struct rte_eth_desc_lim *limits)
{
	return limits->nb_max != 0 ? limits->nb_max : UINT16_MAX;
}

static uint16_t preferred(uint16_t by_driver, uint16_t by_dpdk)
{
	return by_driver != 0 ? by_driver : by_dpdk;
}

/*
 * Limits rx rings, because their buffers are not available to frames that are sent or wait to be
 * sent. A power of two, which drivers like.
 */
static uint32_t share_of_pool(const struct ethdev_options *o, uint16_t queues)
{
	return rte_align32prevpow2(MAX_OF(o->pool->size / 4 / queues, 1));
}

bool rings_choose(const struct ethdev_options *o, const struct rte_eth_dev_info *info,
		  uint16_t queues, struct rings *r, char *why, size_t size)
{
	uint32_t least = MAX_OF(info->rx_desc_lim.nb_min, info->tx_desc_lim.nb_min);
	uint32_t most = MIN_OF(most_of(&info->rx_desc_lim), most_of(&info->tx_desc_lim));

	r->rx = r->tx = o->descriptors;
	if (o->descriptors == 0) {
		r->rx = (uint16_t)MIN_OF(preferred(info->default_rxportconf.ring_size,
						   RTE_ETH_DEV_FALLBACK_RX_RINGSIZE),
					 share_of_pool(o, queues));
		r->tx = preferred(info->default_txportconf.ring_size,
				  RTE_ETH_DEV_FALLBACK_TX_RINGSIZE);
		return true;
	}
	if (o->descriptors >= least && o->descriptors <= most)
		return true;
	snprintf(why, size, "%s has rings of %u to %u descriptors, not %u", o->name, least, most,
		 o->descriptors);
	return false;
}
