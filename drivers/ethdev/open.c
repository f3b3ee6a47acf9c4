/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens a DPDK port: learns what its driver can do, chooses MTU, rings and offloads, and starts it. */
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <rte_errno.h>
#include <rte_ether.h>

#include "base/bits.h"
#include "config/limits.h"
#include "drivers/ethdev/private.h"
#include "drivers/interface.h"
#include "drivers/log.h"
#include "drivers/node.h"

static void __attribute__((format(printf, 3, 4)))
explain(char *why, size_t size, const char *text, ...)
{
	va_list arguments;

	va_start(arguments, text);
	vsnprintf(why, size, text, arguments);
	va_end(arguments);
}

/*
 * If the device can hash it, the UDP source port chooses the queue, so that queues share the
 * traffic.
 */
static void spread_flows(struct rte_eth_conf *c, const struct rte_eth_dev_info *info)
{
	uint64_t hash = info->flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);

	if (hash == 0)
		return;
	c->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	c->rx_adv_conf.rss_conf.rss_hf = hash;
}

/*
 * Cards may have rx interrupts. Of the software ports only tap has them, and net_impair does not
 * pass them on.
 */
static bool may_interrupt(const struct ethdev *d, const struct rte_eth_dev_info *info)
{
	if (d->id != d->behind)
		return false;
	return d->interrupts_read || strcmp(info->driver_name, "net_tap") == 0;
}

static int configure(struct ethdev *d, const struct rte_eth_dev_info *info)
{
	struct rte_eth_conf c = { 0 };
	int ret;

	if (d->port.queues > 1)
		spread_flows(&c, info);
	c.intr_conf.rxq = d->interrupts;
	if (d->id == d->behind) { /* net_impair has no offloads, whatever is below it */
		c.rxmode.offloads = offloads_rx(info, d->wanted);
		c.txmode.offloads = offloads_tx(info, d->wanted);
		d->filters_vlans = (c.rxmode.offloads & RTE_ETH_RX_OFFLOAD_VLAN_FILTER) != 0;
	}
	d->port.offloads = offloads_granted(c.rxmode.offloads, c.txmode.offloads);
	d->port.ops = ethdev_ops_for(d->port.offloads);
	ret = rte_eth_dev_configure(d->id, d->port.queues, d->port.queues, &c);
	if (ret != 0 && c.rxmode.mq_mode != 0) {
		c.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
		ret = rte_eth_dev_configure(d->id, d->port.queues, d->port.queues, &c);
	}
	return ret;
}

/* Sets up one rx queue. With net_af_xdp, its bell is the socket that this creates. */
static int set_rx_queue(struct ethdev *d, uint16_t i, uint16_t descriptors, unsigned int socket,
			struct rte_mempool *pool)
{
	struct own_sockets before;
	int ret;

	if (d->xdp)
		own_sockets_find(AF_XDP, &before);
	ret = rte_eth_rx_queue_setup(d->id, i, descriptors, socket, NULL, pool);
	if (ret == 0 && d->xdp) {
		d->queue[i].bell = own_socket_new(AF_XDP, &before);
		d->queue[i].bell_is_borrowed = true;
	}
	return ret;
}

static int set_queues(struct ethdev *d, const struct ethdev_options *o)
{
	uint16_t rx = d->rings.rx, tx = d->rings.tx;
	unsigned int socket =
		o->socket < 0 ? (unsigned int)d->port.socket : (unsigned int)o->socket;
	int ret = rte_eth_dev_adjust_nb_rx_tx_desc(d->id, &rx, &tx);

	for (uint16_t i = 0; ret == 0 && i < d->port.queues; i++) {
		ret = set_rx_queue(d, i, rx, socket, o->pool);
		if (ret == 0)
			ret = rte_eth_tx_queue_setup(d->id, i, tx, socket, NULL);
	}
	return ret;
}

/*
 * Sets the MTU of hardware only. net_af_packet would change the interface's MTU, and other software
 * ports take theirs from their arguments.
 */
static int set_mtu(struct ethdev *d, const struct rte_eth_dev_info *info)
{
	static const char *const fixed[] = { "net_af_packet", "net_af_xdp", "net_memif",
					     "net_ring",      "net_null",   "net_pcap" };
	uint16_t now;

	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		if (strcmp(info->driver_name, fixed[i]) == 0)
			return 0;
	if (rte_eth_dev_get_mtu(d->id, &now) == 0 && now == d->port.mtu)
		return 0;
	return rte_eth_dev_set_mtu(d->id, d->port.mtu);
}

/* The default MTU: what the device reports, if the report can be trusted. */
static uint32_t natural_mtu(uint16_t id, const struct rte_eth_dev_info *info,
			    const struct carries *c)
{
	bool by_arguments = strcmp(info->driver_name, "net_af_packet") == 0 ||
			    strcmp(info->driver_name, "net_memif") == 0 ||
			    strcmp(info->driver_name, "net_ring") == 0;
	uint16_t mtu;

	if (by_arguments || rte_eth_dev_get_mtu(id, &mtu) != 0)
		return c->mtu;
	return MIN_OF(mtu, c->mtu);
}

static bool choose_mtu(struct ethdev *d, const struct ethdev_options *o,
		       const struct rte_eth_dev_info *info, char *why, size_t size)
{
	struct carries c;
	uint32_t mtu;

	ethdev_carries(d->behind, info, o->pool, &c);
	mtu = o->mtu != 0 ? o->mtu : natural_mtu(d->behind, info, &c);
	if (mtu > c.mtu) {
		explain(why, size, "%s carries an MTU of %u, not %u: %s", o->name, c.mtu, mtu,
			c.raise);
		return false;
	}
	d->mtu = (uint16_t)mtu;
	d->port.mtu = d->mtu;
	return true;
}

static void open_bells(struct ethdev *d)
{
	for (uint16_t i = 0; i < d->port.queues; i++) {
		struct ethdev_queue *q = &d->queue[i];

		if (d->interrupts) {
			q->bell = rte_eth_dev_rx_intr_ctl_q_get_fd(d->id, i);
			q->bell_is_interrupt = q->bell >= 0;
		} else if (d->link_ifindex != 0 && !d->xdp) {
			q->bell = bell_open(d->link_ifindex, d->port.kernel_answers);
			d->port.rings_early = true;
		}
	}
}

/*
 * net_e1000_em announces two queues for every card. Cards of the 8254x have one: frames put into
 * the second never leave. The driver does not spread frames, so the second queue of later cards
 * would only send.
 */
static uint16_t queues_of(const struct rte_eth_dev_info *info)
{
	uint16_t announced = MIN_OF(info->max_rx_queues, info->max_tx_queues);

	return strcmp(info->driver_name, "net_e1000_em") == 0 ? 1 : announced;
}

/*
 * The NUMA node of a card, or of the device behind a Linux interface. Other software ports have
 * none.
 */
static int device_node(const struct ethdev *d, const struct rte_eth_dev_info *info)
{
	char iface[IF_NAMESIZE];

	if (ethdev_is_card(info))
		return rte_eth_dev_socket_id(d->behind);
	if (d->link_ifindex == 0 || if_indextoname(d->link_ifindex, iface) == NULL)
		return -1;
	return node_of_interface(iface);
}

static void learn_facts(struct ethdev *d, const struct ethdev_options *o,
			const struct rte_eth_dev_info *info)
{
	struct port *p = &d->port;
	struct rte_ether_addr mac;
	uint16_t most = MIN_OF(queues_of(info), LIMIT_LCORES);

	d->wanted = offloads_wanted(info, o->offloads);
	snprintf(p->name, sizeof(p->name), "%s", o->name);
	/*
	 * net_ring has no MAC address, and peers need one to answer to. A random one is unique on
	 * this link.
	 */
	if (rte_eth_macaddr_get(d->id, &mac) != 0 || rte_is_zero_ether_addr(&mac)) {
		rte_eth_random_addr(mac.addr_bytes);
		rte_eth_dev_default_mac_addr_set(d->id, &mac);
	}
	memcpy(p->mac.octet, mac.addr_bytes, 6);
	if (ethdev_shares_mac(info)) {
		p->mac.octet[0] |= 2; /* locally administered */
		p->mac.octet[5] ^= 1; /* a tap accepts frames for any address */
	}
	p->queues = MAX_OF(MIN_OF(MAX_OF(o->queues, 1), most), 1);
	p->socket = rte_eth_dev_socket_id(d->id);
	d->link_ifindex = ethdev_ifindex(d->behind, info);
	p->ifindex = d->link_ifindex;
	p->node = device_node(d, info);
	d->claims = ethdev_claims(d->behind, info);
	d->claim = claim_none();
	p->nap = LIMIT_PORT_NAP;
	p->any_buffer = ethdev_takes_any_buffer(info);
	d->sees_own_frames = strcmp(info->driver_name, "net_af_packet") == 0;
	d->interrupts_read = d->id == d->behind && ethdev_is_card(info);
	d->xdp = d->id == d->behind && strcmp(info->driver_name, "net_af_xdp") == 0;
	for (uint16_t i = 0; i < LIMIT_LCORES; i++)
		d->queue[i].bell = -1;
}

static bool try_start(struct ethdev *d, const struct ethdev_options *o,
		      const struct rte_eth_dev_info *info, char *why, size_t size)
{
	const char *step = "configure";
	int ret = configure(d, info);

	if (ret == 0) {
		step = "set the MTU of";
		ret = set_mtu(d, info);
	}
	if (ret == 0) {
		step = "set up the queues of";
		ret = set_queues(d, o);
	}
	if (ret == 0) {
		step = "start";
		ret = rte_eth_dev_start(d->id);
	}
	if (ret == -1 && (d->claims & CLAIM_MEMIF) != 0) /* -1 is net_memif's own, not -EPERM */
		explain(why, size,
			"cannot %s port %s: no process listens on the memif's socket: start its server first",
			step, o->name);
	else if (ret != 0)
		explain(why, size, "cannot %s port %s: %s", step, o->name, rte_strerror(-ret));
	return ret == 0;
}

/*
 * Only starting shows whether a card has interrupts (vectors for all queues, and a driver that
 * knows them).
 */
static bool start(struct ethdev *d, const struct ethdev_options *o,
		  const struct rte_eth_dev_info *info, char *why, size_t size)
{
	d->interrupts = may_interrupt(d, info);
	if (d->interrupts && try_start(d, o, info, why, size))
		return true;
	d->interrupts = false;
	return try_start(d, o, info, why, size);
}

/*
 * Finds out how several queues share what arrives: by queue pair number if the device can, else by
 * its hash.
 */
static void learn_arrival(struct ethdev *d)
{
	if (d->port.queues == 1 || d->id != d->behind)
		return;
	d->steering = steering_begin(d->id, d->port.queues, &steering_by_dpdk);
	if (d->steering == NULL)
		d->arrival = arrival_learn(d->id);
	LOG(INFO, "%s: %s", d->port.name,
	    d->steering != NULL	 ? "flow rules lead packets to the lcore of their queue pair"
	    : d->arrival != NULL ? "its hash says at which lcore packets arrive"
				 : "nothing says at which lcore packets arrive");
}

struct port *ethdev_open(const struct ethdev_options *o, char *why, size_t why_size)
{
	struct rte_eth_dev_info info;
	struct ethdev *d;
	uint16_t id, behind;

	if (rte_eth_dev_get_port_by_name(o->name, &id) != 0 ||
	    rte_eth_dev_info_get(id, &info) != 0) {
		explain(why, why_size, "no such port: %s (add it with -a or --vdev)", o->name);
		return NULL;
	}
	d = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*d));
	if (d == NULL) {
		explain(why, why_size, "no memory for port %s", o->name);
		return NULL;
	}
	memset(d, 0, sizeof(*d));
	d->id = id;
	behind = id;
	ethdev_behind(&behind, &info);
	d->behind = behind;
	learn_facts(d, o, &info);
	if (!choose_mtu(d, o, &info, why, why_size) ||
	    !rings_choose(o, &info, d->port.queues, &d->rings, why, why_size) ||
	    !start(d, o, &info, why, why_size)) {
		free(d);
		return NULL;
	}
	d->own = mac_word(d->port.mac.octet);
	d->facts = d->link_ifindex != 0 ? interface_socket() : -1;
	d->removed = -1;
	filter_open(d, &info);
	open_bells(d);
	if (d->sees_own_frames)
		packet_rings_find(&d->packet_rings, d->link_ifindex);
	removal_watch(d, &info);
	learn_arrival(d);
	if (o->kernel_interface != NULL && !kernel_join(d, o->kernel_interface, why, why_size)) {
		d->port.ops->close(&d->port);
		return NULL;
	}
	d->port.ops->refresh(&d->port);
	return &d->port;
}
