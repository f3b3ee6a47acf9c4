/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The largest frame that really fits through a port. max_rx_pktlen cannot be trusted: af_packet and
 * memif report 1518 whatever their arguments are, and an af_packet frame that does not fit its ring
 * is cut without notice.
 */
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_kvargs.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "drivers/ethdev/private.h"
#include "drivers/interface.h"
#include "drivers/xdp/xdp.h"

#define ETHERNET_OVERHEAD   (RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN)
#define DRIVER_DEFAULT_SIZE 2048u /* default of net_af_packet's framesz and net_memif's bsize */
#define VIRTIO_HEADER	    12u /* part of its buffers, although it lies in the headroom */
#define DRIVER_HEADER	    32u /* most that a driver needs beside a frame: net_sfc needs 22 */

void ethdev_devarg(const struct rte_eth_dev_info *info, const char *key, char *value, size_t size)
{
	const struct rte_devargs *args = rte_dev_devargs(info->device);
	struct rte_kvargs *list;
	const char *found;

	value[0] = '\0';
	if (args == NULL || args->args == NULL)
		return;
	list = rte_kvargs_parse(args->args, NULL);
	if (list == NULL)
		return;
	found = rte_kvargs_get(list, key);
	if (found != NULL)
		snprintf(value, size, "%s", found);
	rte_kvargs_free(list);
}

static uint32_t devarg_number(const struct rte_eth_dev_info *info, const char *key, uint32_t other)
{
	char text[32];

	ethdev_devarg(info, key, text, sizeof(text));
	return text[0] == '\0' ? other : (uint32_t)strtoul(text, NULL, 0);
}

bool ethdev_shares_mac(const struct rte_eth_dev_info *info)
{
	char remote[IF_NAMESIZE];

	ethdev_devarg(info, "remote", remote, sizeof(remote));
	return strcmp(info->driver_name, "net_tap") == 0 && remote[0] == '\0';
}

void ethdev_behind(uint16_t *id, struct rte_eth_dev_info *info)
{
	char name[RTE_ETH_NAME_MAX_LEN];
	uint16_t lower;

	/* bounded, although a net_impair cannot be below itself */
	for (int depth = 0; depth < 8 && strcmp(info->driver_name, "net_impair") == 0; depth++) {
		ethdev_devarg(info, "port", name, sizeof(name));
		if (rte_eth_dev_get_port_by_name(name, &lower) != 0 ||
		    rte_eth_dev_info_get(lower, info) != 0)
			return;
		*id = lower;
	}
}

uint32_t ethdev_ifindex(uint16_t id, const struct rte_eth_dev_info *info)
{
	char name[IF_NAMESIZE];

	if (strcmp(info->driver_name, "net_af_packet") == 0 ||
	    strcmp(info->driver_name, "net_af_xdp") == 0) {
		ethdev_devarg(info, "iface", name, sizeof(name));
		return if_nametoindex(name);
	}
	return strcmp(info->driver_name, "net_tap") == 0 ? info->if_index : 0;
}

static void lower(struct carries *c, uint32_t mtu, const char *raise)
{
	if (mtu >= c->mtu)
		return;
	c->mtu = mtu;
	snprintf(c->raise, sizeof(c->raise), "%s", raise);
}

static uint32_t less(uint32_t size, uint32_t overhead)
{
	return size > overhead ? size - overhead : 0;
}

static void packet_ring_carries(uint16_t id, const struct rte_eth_dev_info *info, struct carries *c)
{
	uint32_t frame = devarg_number(info, "framesz", DRIVER_DEFAULT_SIZE);

	lower(c, less(frame, PACKET_RING_OVERHEAD),
	      "raise framesz= (and blocksz=, a multiple of it) in the port's --vdev");
	lower(c, ifindex_mtu(-1, ethdev_ifindex(id, info)),
	      "raise the interface's MTU (ip link set mtu)");
}

/* Octets of a buffer that the driver keeps for itself, beside the headroom. */
static uint32_t driver_header(const struct rte_eth_dev_info *info)
{
	if (strcmp(info->driver_name, "net_af_xdp") == 0)
		return XDP_HEADROOM;
	/* net_virtio, net_virtio_user */
	return strncmp(info->driver_name, "net_virtio", strlen("net_virtio")) == 0 ? VIRTIO_HEADER
										   : 0;
}

/* For drivers that report no MTU but a frame length. Cards report it correctly (net_e1000_em). */
static void device_carries(const struct rte_eth_dev_info *info, struct carries *c)
{
	static const char largest[] = "that is the device's maximum";

	if (info->max_mtu != 0)
		lower(c, info->max_mtu, largest);
	if (info->max_mtu == UINT16_MAX && ethdev_is_card(info))
		lower(c, less(info->max_rx_pktlen, RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN), largest);
}

bool ethdev_is_card(const struct rte_eth_dev_info *info)
{
	return info->device != NULL && strcmp(rte_bus_name(rte_dev_bus(info->device)), "pci") == 0;
}

void ethdev_carries(uint16_t id, const struct rte_eth_dev_info *info,
		    const struct rte_mempool *pool, struct carries *c)
{
	uint32_t room = rte_pktmbuf_data_room_size((struct rte_mempool *)(uintptr_t)pool);

	c->mtu = UINT16_MAX;
	lower(c, less(room, RTE_PKTMBUF_HEADROOM + ETHERNET_OVERHEAD + driver_header(info)),
	      "raise the packet buffers' size");
	if (strcmp(info->driver_name, "net_af_packet") == 0)
		packet_ring_carries(id, info, c);
	else if (strcmp(info->driver_name, "net_memif") == 0)
		lower(c, less(devarg_number(info, "bsize", DRIVER_DEFAULT_SIZE), ETHERNET_OVERHEAD),
		      "raise bsize= in the port's --vdev, on both sides");
	else
		device_carries(info, c);
}

uint32_t ethdev_buffer_octets(const char *name, uint16_t mtu)
{
	uint32_t octets = ethdev_mbuf_octets(mtu) + DRIVER_HEADER;
	struct rte_eth_dev_info info;
	uint16_t id;

	if (rte_eth_dev_get_port_by_name(name, &id) != 0 || rte_eth_dev_info_get(id, &info) != 0)
		return octets;
	ethdev_behind(&id, &info);
	if (strcmp(info.driver_name, "net_af_xdp") == 0)
		return xdp_buffer_octets(mtu);
	if (strcmp(info.driver_name, "net_af_packet") == 0)
		octets = MAX_OF(octets, devarg_number(&info, "framesz", DRIVER_DEFAULT_SIZE));
	return octets;
}
