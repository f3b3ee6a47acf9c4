/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_bus.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include <ethdev_driver.h>
#include <ethdev_vdev.h>

#include "base/bits.h"
#include "offers.h"

struct offers offers;

static struct rte_mempool *buffers;
static struct rte_ether_addr mac[1 + OFFERS_GROUPS] = { { { 2, 0, 0, 0, 0, 1 } } };

static int dev_configure(struct rte_eth_dev *dev)
{
	offers.rx_asked = dev->data->dev_conf.rxmode.offloads;
	offers.tx_asked = dev->data->dev_conf.txmode.offloads;
	return 0;
}

/* A device of the PCI bus, as DPDK tells a card from a software port. */
static struct rte_device *on_pci(struct rte_device *device)
{
	static struct rte_device card;

	card = *device;
	card.bus = rte_bus_find_by_name("pci");
	cr_assert_not_null(card.bus, "DPDK has no PCI bus");
	return &card;
}

static int infos_get(struct rte_eth_dev *dev, struct rte_eth_dev_info *info)
{
	if (offers.card)
		info->device = on_pci(dev->device);
	info->max_rx_pktlen = UINT16_MAX;
	info->max_rx_queues = info->max_tx_queues = (uint16_t)MAX_OF(offers.queues, 1);
	info->max_mac_addrs = 1 + offers.macs;
	info->rx_offload_capa = offers.rx_capa;
	info->tx_offload_capa = offers.tx_capa;
	info->rx_desc_lim.nb_min = info->tx_desc_lim.nb_min = offers.least;
	info->rx_desc_lim.nb_max = info->tx_desc_lim.nb_max =
		offers.most != 0 ? offers.most : UINT16_MAX;
	info->default_rxportconf.ring_size = info->default_txportconf.ring_size = offers.preferred;
	return 0;
}

static int rx_queue_setup(struct rte_eth_dev *dev, uint16_t index, uint16_t descriptors,
			  unsigned int socket, const struct rte_eth_rxconf *conf,
			  struct rte_mempool *pool)
{
	RTE_SET_USED(socket);
	RTE_SET_USED(conf);
	offers.rx_ring = descriptors;
	dev->data->rx_queues[index] = pool;
	return 0;
}

static int tx_queue_setup(struct rte_eth_dev *dev, uint16_t index, uint16_t descriptors,
			  unsigned int socket, const struct rte_eth_txconf *conf)
{
	RTE_SET_USED(socket);
	RTE_SET_USED(conf);
	offers.tx_ring = descriptors;
	dev->data->tx_queues[index] = dev;
	return 0;
}

static int nothing(struct rte_eth_dev *dev)
{
	RTE_SET_USED(dev);
	return 0;
}

static int dev_close(struct rte_eth_dev *dev)
{
	dev->data->mac_addrs = NULL; /* which is not memory of the heap */
	return 0;
}

static int link_update(struct rte_eth_dev *dev, int wait)
{
	RTE_SET_USED(wait);
	dev->data->dev_link.link_status = RTE_ETH_LINK_UP;
	return 0;
}

static int vlan_filter_set(struct rte_eth_dev *dev, uint16_t vlan, int on)
{
	RTE_SET_USED(dev);
	offers.vlan = on ? vlan : 0;
	return offers.vlan_answer;
}

static int vlan_offload_set(struct rte_eth_dev *dev, int mask)
{
	RTE_SET_USED(dev);
	RTE_SET_USED(mask);
	return 0;
}

static int set_mc_addr_list(struct rte_eth_dev *dev, struct rte_ether_addr *group, uint32_t n)
{
	RTE_SET_USED(dev);
	if (offers.list_answer != 0)
		return offers.list_answer;
	cr_assert_leq(n, OFFERS_GROUPS);
	memcpy(offers.group, group, n * sizeof(*group));
	offers.groups = n;
	return 0;
}

static int mac_addr_add(struct rte_eth_dev *dev, struct rte_ether_addr *one, uint32_t index,
			uint32_t pool)
{
	RTE_SET_USED(dev);
	RTE_SET_USED(pool);
	if (index == 0) /* its own, when it starts */
		return 0;
	cr_assert_lt(offers.groups, OFFERS_GROUPS);
	offers.group[offers.groups++] = *one;
	return 0;
}

static void mac_addr_remove(struct rte_eth_dev *dev, uint32_t index)
{
	uint32_t i = 0;

	while (i < offers.groups &&
	       !rte_is_same_ether_addr(&offers.group[i], &dev->data->mac_addrs[index]))
		i++;
	cr_assert_lt(i, offers.groups, "it never had this one");
	offers.group[i] = offers.group[--offers.groups];
}

static int allmulticast_enable(struct rte_eth_dev *dev)
{
	RTE_SET_USED(dev);
	return offers.all_answer;
}

static const struct eth_dev_ops ops = {
	.dev_configure = dev_configure,
	.dev_start = nothing,
	.dev_stop = nothing,
	.dev_close = dev_close,
	.dev_infos_get = infos_get,
	.rx_queue_setup = rx_queue_setup,
	.tx_queue_setup = tx_queue_setup,
	.link_update = link_update,
	.allmulticast_enable = allmulticast_enable,
	.allmulticast_disable = nothing,
	.promiscuous_enable = nothing,
	.promiscuous_disable = nothing,
	.set_mc_addr_list = set_mc_addr_list,
	.mac_addr_add = mac_addr_add,
	.mac_addr_remove = mac_addr_remove,
	.vlan_filter_set = vlan_filter_set,
	.vlan_offload_set = vlan_offload_set,
};

static uint16_t rx_burst(void *queue, struct rte_mbuf **frames, uint16_t n)
{
	uint16_t given = MIN_OF(offers.rx_count, n);

	RTE_SET_USED(queue);
	memcpy(frames, offers.rx, given * sizeof(frames[0]));
	offers.rx_count = 0;
	return given;
}

static uint16_t tx_burst(void *queue, struct rte_mbuf **frames, uint16_t n)
{
	uint16_t taken = MIN_OF(offers.tx_room, n);

	RTE_SET_USED(queue);
	for (uint16_t i = 0; i < taken; i++)
		offers.tx[offers.tx_count++] = frames[i];
	offers.tx_room = (uint16_t)(offers.tx_room - taken);
	return taken;
}

static uint16_t tx_prepare(void *queue, struct rte_mbuf **frames, uint16_t n)
{
	RTE_SET_USED(queue);
	return offers.prepare != NULL ? offers.prepare(frames, n) : n;
}

static int probe(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *dev = rte_eth_vdev_allocate(vdev, 0);

	if (dev == NULL)
		return -ENOMEM;
	dev->data->mac_addrs = mac;
	dev->dev_ops = &ops;
	dev->rx_pkt_burst = rx_burst;
	dev->tx_pkt_burst = tx_burst;
	dev->tx_pkt_prepare = tx_prepare;
	rte_eth_dev_probing_finish(dev);
	return 0;
}

static int drop_device(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));

	return dev == NULL ? 0 : rte_eth_dev_release_port(dev);
}

static struct rte_vdev_driver plain = { .probe = probe, .remove = drop_device };
static struct rte_vdev_driver e1000 = { .probe = probe, .remove = drop_device };
static struct rte_vdev_driver ixgbe = { .probe = probe, .remove = drop_device };
static struct rte_vdev_driver virtio = { .probe = probe, .remove = drop_device };

RTE_PMD_REGISTER_VDEV(net_offers, plain);
RTE_PMD_REGISTER_VDEV(net_e1000_em, e1000);
RTE_PMD_REGISTER_VDEV(net_ixgbe, ixgbe);
RTE_PMD_REGISTER_VDEV(net_virtio_offers, virtio);

/* ---- the engine's side ---- */

void offers_begin(void)
{
	static char prefix[64];
	char *arguments[] = { (char *)"offers",	  (char *)"--no-huge", (char *)"--no-shconf",
			      (char *)"--no-pci", (char *)"-m",	       (char *)"64",
			      (char *)"-l",	  (char *)"0",	       prefix };

	snprintf(prefix, sizeof(prefix), "--file-prefix=offers_%d", (int)getpid());
	cr_assert_geq(rte_eal_init(ARRAY_SIZE(arguments), arguments), 0, "EAL");
	buffers = rte_pktmbuf_pool_create("frames", OFFERS_POOL, 0, 0, 128 + 1536, SOCKET_ID_ANY);
	cr_assert_not_null(buffers);
}

struct rte_mbuf *offers_buffer(void)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(buffers);

	cr_assert_not_null(m);
	return m;
}

struct port *offers_open(const char *name, uint16_t descriptors, uint16_t vlan, char *why,
			 size_t size)
{
	struct ethdev_options o = { .name = name,
				    .queues = (uint16_t)MAX_OF(offers.queues, 1),
				    .mtu = 1500,
				    .descriptors = descriptors,
				    .offloads = offers.offloads,
				    .pool = buffers,
				    .socket = SOCKET_ID_ANY };
	struct port *p;

	rte_vdev_uninit(name); /* that of an earlier port, which was closed */
	cr_assert_eq(rte_vdev_init(name, NULL), 0, "%s", name);
	p = ethdev_open(&o, why, size);
	if (p == NULL || ethdev_claim(p, vlan, why, size))
		return p;
	p->ops->close(p);
	return NULL;
}
