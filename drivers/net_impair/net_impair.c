/* SPDX-License-Identifier: BSD-3-Clause */
/* The DPDK driver around impair.h. arguments.h lists the arguments of --vdev net_impair0,... */
#include <errno.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_spinlock.h>

#include <ethdev_driver.h>
#include <ethdev_vdev.h>

#include "config/limits.h"
#include "drivers/net_impair/arguments.h"
#include "drivers/net_impair/live.h"

struct impair_queue {
	struct impair *impair;
	uint16_t index;
	rte_spinlock_t lock; /* for tx, because receiving also sends frames that became due */
	struct impair_path path;
};

struct impair {
	uint16_t lower; /* port */
	bool rx, tx; /* the impaired directions */
	struct impair_rules rules;
	struct rte_ether_addr mac;
	struct impair_queue *rxq[LIMIT_LCORES], *txq[LIMIT_LCORES];
};

static struct impair *impair_of(struct rte_eth_dev *dev)
{
	return dev->data->dev_private;
}

/* Sends frames that are due to the lower port. Frames that it does not accept stay in line. */
static void send_due(struct impair_queue *q)
{
	struct rte_mbuf *frames[LIMIT_BURST];
	uint64_t now = rte_get_tsc_cycles();

	for (uint32_t i = 0; i < IMPAIR_LINE / LIMIT_BURST; i++) {
		uint16_t n = impair_take(&q->path, frames, LIMIT_BURST, now);
		uint16_t sent =
			n == 0 ? 0 : rte_eth_tx_burst(q->impair->lower, q->index, frames, n);

		if (sent < n)
			impair_put_back(&q->path, frames + sent, (uint16_t)(n - sent));
		if (sent < LIMIT_BURST)
			break;
	}
}

static uint16_t impair_tx(void *queue, struct rte_mbuf **frames, uint16_t n)
{
	struct impair_queue *q = queue;
	uint64_t now = rte_get_tsc_cycles();
	uint16_t accepted;

	rte_spinlock_lock(&q->lock);
	accepted = (uint16_t)RTE_MIN((uint32_t)n, impair_room(&q->path));
	for (uint16_t i = 0; i < accepted; i++)
		impair_admit(&q->path, frames[i], now);
	send_due(q);
	rte_spinlock_unlock(&q->lock);
	return accepted;
}

static uint16_t impair_rx(void *queue, struct rte_mbuf **frames, uint16_t n)
{
	struct impair_queue *q = queue;
	struct impair_queue *tx = q->impair->txq[q->index];
	uint64_t now = rte_get_tsc_cycles();
	uint16_t wanted = (uint16_t)RTE_MIN((uint32_t)n, impair_room(&q->path));
	uint16_t received;

	/*
	 * Delayed frames must leave even if the queue sends nothing, so polling rx also sends them.
	 */
	if (tx != NULL && rte_spinlock_trylock(&tx->lock)) {
		send_due(tx);
		rte_spinlock_unlock(&tx->lock);
	}
	received = rte_eth_rx_burst(q->impair->lower, q->index, frames, wanted);
	for (uint16_t i = 0; i < received; i++)
		impair_admit(&q->path, frames[i], now);
	return impair_take(&q->path, frames, n, now);
}

static int dev_configure(struct rte_eth_dev *dev)
{
	struct rte_eth_conf conf = dev->data->dev_conf;

	return rte_eth_dev_configure(impair_of(dev)->lower, dev->data->nb_rx_queues,
				     dev->data->nb_tx_queues, &conf);
}

/* Makes queue `index` of `queues`. */
static struct impair_queue *queue_new(struct impair *s, uint16_t index, uint16_t queues,
				      bool suffers, uint64_t salt, unsigned int socket)
{
	struct impair_queue *q = rte_zmalloc_socket("net_impair", sizeof(*q), 0, (int)socket);

	if (q == NULL)
		return NULL;
	q->impair = s;
	q->index = index;
	rte_spinlock_init(&q->lock);
	impair_path_init(&q->path, suffers ? &s->rules : NULL, 2u * index + salt, queues);
	return q;
}

static int rx_queue_setup(struct rte_eth_dev *dev, uint16_t index, uint16_t descriptors,
			  unsigned int socket, const struct rte_eth_rxconf *conf,
			  struct rte_mempool *pool)
{
	struct impair *s = impair_of(dev);
	int ret;

	RTE_SET_USED(conf);
	ret = rte_eth_rx_queue_setup(s->lower, index, descriptors, socket, NULL, pool);
	if (ret != 0)
		return ret;
	s->rxq[index] = queue_new(s, index, dev->data->nb_rx_queues, s->rx, 0, socket);
	dev->data->rx_queues[index] = s->rxq[index];
	return s->rxq[index] == NULL ? -ENOMEM : 0;
}

static int tx_queue_setup(struct rte_eth_dev *dev, uint16_t index, uint16_t descriptors,
			  unsigned int socket, const struct rte_eth_txconf *conf)
{
	struct impair *s = impair_of(dev);
	int ret;

	RTE_SET_USED(conf);
	ret = rte_eth_tx_queue_setup(s->lower, index, descriptors, socket, NULL);
	if (ret != 0)
		return ret;
	s->txq[index] = queue_new(s, index, dev->data->nb_tx_queues, s->tx, 1, socket);
	dev->data->tx_queues[index] = s->txq[index];
	return s->txq[index] == NULL ? -ENOMEM : 0;
}

static void queue_release(struct impair_queue **q)
{
	if (*q == NULL)
		return;
	impair_path_clear(&(*q)->path);
	rte_free(*q);
	*q = NULL;
}

static void rx_queue_release(struct rte_eth_dev *dev, uint16_t index)
{
	queue_release(&impair_of(dev)->rxq[index]);
}

static void tx_queue_release(struct rte_eth_dev *dev, uint16_t index)
{
	queue_release(&impair_of(dev)->txq[index]);
}

static int dev_start(struct rte_eth_dev *dev)
{
	return rte_eth_dev_start(impair_of(dev)->lower);
}

static int dev_stop(struct rte_eth_dev *dev)
{
	return rte_eth_dev_stop(impair_of(dev)->lower);
}

static int dev_close(struct rte_eth_dev *dev)
{
	struct impair *s = impair_of(dev);

	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return 0;
	for (uint16_t i = 0; i < LIMIT_LCORES; i++) {
		queue_release(&s->rxq[i]);
		queue_release(&s->txq[i]);
	}
	dev->data->mac_addrs = NULL; /* part of dev_private */
	if (rte_eth_dev_is_valid_port(s->lower))
		rte_eth_dev_close(s->lower);
	return 0;
}

static int infos_get(struct rte_eth_dev *dev, struct rte_eth_dev_info *info)
{
	struct rte_eth_dev_info lower;
	int ret = rte_eth_dev_info_get(impair_of(dev)->lower, &lower);

	if (ret != 0)
		return ret;
	info->if_index = lower.if_index;
	info->min_mtu = lower.min_mtu;
	info->max_mtu = lower.max_mtu;
	info->min_rx_bufsize = lower.min_rx_bufsize;
	info->max_rx_pktlen = lower.max_rx_pktlen;
	info->max_mac_addrs = 1;
	info->max_rx_queues = RTE_MIN(lower.max_rx_queues, (uint16_t)LIMIT_LCORES);
	info->max_tx_queues = RTE_MIN(lower.max_tx_queues, (uint16_t)LIMIT_LCORES);
	info->flow_type_rss_offloads = lower.flow_type_rss_offloads;
	info->reta_size = lower.reta_size;
	info->hash_key_size = lower.hash_key_size;
	info->rx_desc_lim = lower.rx_desc_lim;
	info->tx_desc_lim = lower.tx_desc_lim;
	return 0;
}

static int link_update(struct rte_eth_dev *dev, int wait)
{
	RTE_SET_USED(wait);
	return rte_eth_link_get_nowait(impair_of(dev)->lower, &dev->data->dev_link);
}

static int promiscuous_enable(struct rte_eth_dev *dev)
{
	return rte_eth_promiscuous_enable(impair_of(dev)->lower);
}

static int promiscuous_disable(struct rte_eth_dev *dev)
{
	return rte_eth_promiscuous_disable(impair_of(dev)->lower);
}

static int allmulticast_enable(struct rte_eth_dev *dev)
{
	return rte_eth_allmulticast_enable(impair_of(dev)->lower);
}

static int allmulticast_disable(struct rte_eth_dev *dev)
{
	return rte_eth_allmulticast_disable(impair_of(dev)->lower);
}

static int mtu_set(struct rte_eth_dev *dev, uint16_t mtu)
{
	return rte_eth_dev_set_mtu(impair_of(dev)->lower, mtu);
}

static void add_counters(struct impair_counters *sum, struct impair_queue *const *q)
{
	for (uint16_t i = 0; i < LIMIT_LCORES; i++) {
		if (q[i] == NULL)
			continue;
#define X(name) sum->name += q[i]->path.counters.name;
		IMPAIR_COUNTERS(X)
#undef X
		sum->octets += q[i]->path.counters.octets;
	}
}

static int stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats)
{
	struct impair_counters rx = { 0 }, tx = { 0 };

	add_counters(&rx, impair_of(dev)->rxq);
	add_counters(&tx, impair_of(dev)->txq);
	stats->ipackets = rx.passed;
	stats->ibytes = rx.octets;
	stats->opackets = tx.passed;
	stats->obytes = tx.octets;
	return 0;
}

static const char *const xstat_names[] = {
#define X(name) "rx_impair_" #name,
	IMPAIR_COUNTERS(X)
#undef X
#define X(name) "tx_impair_" #name,
		IMPAIR_COUNTERS(X)
#undef X
};

static int xstats_names(struct rte_eth_dev *dev, struct rte_eth_xstat_name *names, unsigned int n)
{
	RTE_SET_USED(dev);
	for (unsigned int i = 0;
	     names != NULL && n >= RTE_DIM(xstat_names) && i < RTE_DIM(xstat_names); i++)
		strlcpy(names[i].name, xstat_names[i], sizeof(names[i].name));
	return (int)RTE_DIM(xstat_names);
}

static int xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *stats, unsigned int n)
{
	struct impair_counters rx = { 0 }, tx = { 0 };
	unsigned int i = 0;

	if (n < RTE_DIM(xstat_names))
		return (int)RTE_DIM(xstat_names);
	add_counters(&rx, impair_of(dev)->rxq);
	add_counters(&tx, impair_of(dev)->txq);
#define X(name) stats[i] = (struct rte_eth_xstat){ .id = i, .value = rx.name }, i++;
	IMPAIR_COUNTERS(X)
#undef X
#define X(name) stats[i] = (struct rte_eth_xstat){ .id = i, .value = tx.name }, i++;
	IMPAIR_COUNTERS(X)
#undef X
	return (int)i;
}

static void reset_counters(struct impair_queue *const *q)
{
	for (uint16_t i = 0; i < LIMIT_LCORES; i++)
		if (q[i] != NULL)
			memset(&q[i]->path.counters, 0, sizeof(q[i]->path.counters));
}

static int stats_reset(struct rte_eth_dev *dev)
{
	reset_counters(impair_of(dev)->rxq);
	reset_counters(impair_of(dev)->txq);
	return 0;
}

static const struct eth_dev_ops impair_ops = {
	.dev_configure = dev_configure,
	.dev_start = dev_start,
	.dev_stop = dev_stop,
	.dev_close = dev_close,
	.dev_infos_get = infos_get,
	.rx_queue_setup = rx_queue_setup,
	.tx_queue_setup = tx_queue_setup,
	.rx_queue_release = rx_queue_release,
	.tx_queue_release = tx_queue_release,
	.link_update = link_update,
	.promiscuous_enable = promiscuous_enable,
	.promiscuous_disable = promiscuous_disable,
	.allmulticast_enable = allmulticast_enable,
	.allmulticast_disable = allmulticast_disable,
	.mtu_set = mtu_set,
	.stats_get = stats_get,
	.stats_reset = stats_reset,
	.xstats_get = xstats_get,
	.xstats_get_names = xstats_names,
	.xstats_reset = stats_reset,
};

static int probe(struct rte_vdev_device *vdev)
{
	struct impair_arguments a;
	struct rte_eth_dev *dev;
	struct impair *s;
	int ret = impair_arguments_read(rte_vdev_device_args(vdev), &a);

	if (ret != 0)
		return ret;
	vdev->device.numa_node = rte_eth_dev_socket_id(a.lower);
	dev = rte_eth_vdev_allocate(vdev, sizeof(struct impair));
	if (dev == NULL)
		return -ENOMEM;
	s = impair_of(dev);
	*s = (struct impair){ .lower = a.lower, .rx = a.rx, .tx = a.tx, .rules = a.rules };
	rte_eth_macaddr_get(s->lower, &s->mac);
	dev->data->mac_addrs = &s->mac;
	dev->dev_ops = &impair_ops;
	dev->rx_pkt_burst = impair_rx;
	dev->tx_pkt_burst = impair_tx;
	rte_eth_dev_probing_finish(dev);
	return 0;
}

static int drop_device(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));

	if (dev == NULL)
		return 0; /* already closed */
	dev_close(dev);
	return rte_eth_dev_release_port(dev);
}

struct impair_rules *net_impair_rules(uint16_t port)
{
	if (!rte_eth_dev_is_valid_port(port) || rte_eth_devices[port].dev_ops != &impair_ops)
		return NULL;
	return &impair_of(&rte_eth_devices[port])->rules;
}

static struct rte_vdev_driver impair_driver = { .probe = probe, .remove = drop_device };

RTE_PMD_REGISTER_VDEV(net_impair, impair_driver);
RTE_PMD_REGISTER_PARAM_STRING(net_impair,
			      "port=<name> seed=<int> drop=<p> duplicate=<p> reorder=<p> "
			      "overtaken=<int> corrupt=<p> ce=<p> delay_us=<int> rate=<bits/s> "
			      "queue=<octets> ecn=<octets> dir=tx|rx|both");
