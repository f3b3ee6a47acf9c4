/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/ethdev/ethdev.h"

#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "config/limits.h"
#include "drivers/ethdev/private.h"
#include "drivers/interface.h"
#include "drivers/kernel_interface/kernel_interface.h"
#include "drivers/log.h"
#include "drivers/node.h"

static struct ethdev *ethdev_of(struct port *p)
{
	return container_of_type(p, struct ethdev, port);
}

static void __attribute__((format(printf, 3, 4)))
explain(char *why, size_t size, const char *text, ...)
{
	va_list arguments;

	va_start(arguments, text);
	vsnprintf(why, size, text, arguments);
	va_end(arguments);
}

/*
 * Each counter has one writer, which adds without a locked instruction. Atomic because other
 * threads read it at any time.
 */
static void count(atomic_uint_fast64_t *counter)
{
	uint64_t v = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, v + 1, memory_order_relaxed);
}

static bool is_own(const struct ethdev *d, const struct rte_mbuf *m)
{
	return m->data_len >= RTE_ETHER_HDR_LEN &&
	       memcmp(rte_pktmbuf_mtod_offset(m, const uint8_t *, 6), d->port.mac.octet, 6) == 0;
}

static bool is_acceptable(const struct ethdev *d, struct ethdev_queue *q, struct rte_mbuf *m)
{
	if (d->sees_own_frames && is_own(d, m)) {
		count(&q->source_own);
		return false;
	}
	if (m->nb_segs > 1 && rte_pktmbuf_linearize(m) != 0) {
		count(&q->truncated);
		return false;
	}
	return true;
}

static uint16_t read_aside(struct ethdev *d, struct rte_mbuf **frames, uint16_t n)
{
	uint32_t truncated = 0;
	uint16_t received = aside_rx_burst(d->aside, d->id, frames, n, &truncated);

	for (; truncated > 0; truncated--)
		count(&d->queue[0].truncated);
	return received;
}

/*
 * An interrupt of a card costs more than a nap, so an lcore naps while frames may follow soon, and only a quiet
 * one waits for the interrupt. From the first frame on it is off, because no lcore waits for it.
 */
static void frames_came(struct ethdev *d, struct ethdev_queue *q, uint16_t queue)
{
	q->naps = 0;
	if (q->armed)
		rte_eth_dev_rx_intr_disable(d->id, queue);
	q->armed = false;
}

static uint16_t ethdev_rx_burst(struct port *p, uint16_t queue, struct rte_mbuf **frames,
				uint16_t n)
{
	struct ethdev *d = ethdev_of(p);
	struct ethdev_queue *q = &d->queue[queue];
	uint16_t received = rte_eth_rx_burst(d->id, queue, frames, n), kept = 0;

	if (received > 0 && (q->naps > 0 || q->armed))
		frames_came(d, q, queue);
	if (unlikely(d->aside != NULL) && queue == 0)
		received += read_aside(d, frames + received, n - received);
	for (uint16_t i = 0; i < received; i++) {
		if (is_acceptable(d, q, frames[i]))
			frames[kept++] = frames[i];
		else
			rte_pktmbuf_free(frames[i]);
	}
	return kept;
}

static uint16_t ethdev_tx_burst(struct port *p, uint16_t queue, struct rte_mbuf **frames,
				uint16_t n)
{
	return rte_eth_tx_burst(ethdev_of(p)->id, queue, frames, n);
}

/* With offloads. A port without has the two above, and never looks at a frame for this. */
static uint16_t with_offloads_rx_burst(struct port *p, uint16_t queue, struct rte_mbuf **frames,
				       uint16_t n)
{
	uint16_t received = ethdev_rx_burst(p, queue, frames, n);
	uint16_t kept = offloaded_received(frames, received);

	for (uint16_t i = kept; i < received; i++)
		count(&ethdev_of(p)->queue[queue].truncated);
	return kept;
}

static uint16_t with_offloads_tx_burst(struct port *p, uint16_t queue, struct rte_mbuf **frames,
				       uint16_t n)
{
	return offloaded_tx_burst(ethdev_of(p), queue, frames, n);
}

static int ethdev_bell_fd(struct port *p, uint16_t queue)
{
	struct ethdev *d = ethdev_of(p);
	struct ethdev_queue *q = &d->queue[queue];

	if (!q->bell_is_interrupt)
		return q->bell;
	if (d->interrupts_read && q->naps < LIMIT_PORT_NAPS) {
		q->naps++;
		return -1;
	}
	/* net_tap has no such operation: its descriptor is always armed */
	if (rte_eth_dev_rx_intr_enable(d->id, queue) != 0 && d->interrupts_read)
		return -1;
	q->armed = true;
	return q->bell;
}

static void silence_interrupt(struct ethdev *d, struct ethdev_queue *q, uint16_t queue)
{
	uint64_t interrupts;

	rte_eth_dev_rx_intr_disable(d->id, queue);
	q->armed = false;
	if (!d->interrupts_read || read(q->bell, &interrupts, sizeof(interrupts)) >= 0 ||
	    errno == EAGAIN)
		return;
	/* uio's descriptor counts in four octets, and would stay readable: back to naps */
	q->bell = -1;
	q->bell_is_interrupt = false;
}

static void ethdev_bell_drain(struct port *p, uint16_t queue)
{
	struct ethdev *d = ethdev_of(p);
	struct ethdev_queue *q = &d->queue[queue];

	if (q->bell_is_interrupt)
		silence_interrupt(d, q, queue);
	else if (d->xdp && d->aside != NULL && queue == 0)
		aside_silence(d->aside);
	else if (!d->xdp && q->bell >= 0)
		bell_silence(q->bell);
}

static uint16_t ethdev_queue_of(struct port *p, const struct gid *from, const struct gid *to,
				uint16_t source_port)
{
	const struct ethdev *d = ethdev_of(p);

	return d->arrival == NULL ? UINT16_MAX : arrival_queue(d->arrival, from, to, source_port);
}

/* Where several queues share what arrives: by queue pair number if it can, else by its hash. */
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

static bool link_is_up(const struct ethdev *d)
{
	struct rte_eth_link link = { 0 };

	if (d->link_ifindex != 0)
		return ifindex_running(d->facts, d->link_ifindex);
	return rte_eth_link_get_nowait(d->id, &link) == 0 && link.link_status != 0;
}

/* A driver on a Linux interface only reports the speed that it was built with. */
static uint32_t link_speed(const struct ethdev *d)
{
	struct rte_eth_link link = { 0 };

	if (d->link_ifindex != 0)
		return ifindex_speed(d->facts, d->link_ifindex);
	if (rte_eth_link_get_nowait(d->id, &link) != 0 ||
	    link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN)
		return 0;
	return link.link_speed;
}

/* The MTU of frames: the one at the start, or less if the interface behind the port has less. */
static uint16_t mtu_now(const struct ethdev *d)
{
	uint32_t behind = d->link_ifindex != 0 ? ifindex_mtu(d->facts, d->link_ifindex) : 0;

	return behind != 0 ? (uint16_t)MIN_OF(behind, d->mtu) : d->mtu;
}

static bool ethdev_refresh(struct port *p)
{
	struct ethdev *d = ethdev_of(p);
	bool up = !removal_told(d) && link_is_up(d), changed = false;
	uint16_t mtu = mtu_now(d);
	uint32_t speed = link_speed(d);

	if (d->netdev != NULL)
		changed = netdev_refresh(d->netdev, p);
	if (p->kernel != NULL)
		changed = kernel_follow(d, &up, &mtu);
	changed |= up != p->link_up || mtu != p->mtu || speed != p->speed;
	p->speed = speed;
	/* atomic: lcores read it at any time; nothing else depends on it */
	__atomic_store_n(&p->link_up, up, __ATOMIC_RELAXED);
	p->mtu = mtu;
	return changed;
}

/* If the kernel answers on this port the bell rang for RoCE only. */
static void ethdev_bell_widen(struct port *p, bool every_frame)
{
	struct ethdev *d = ethdev_of(p);

	if (d->aside != NULL)
		aside_widen(d->aside, every_frame);
	for (uint16_t i = 0; p->kernel_answers && !d->xdp && i < p->queues; i++)
		if (d->queue[i].bell >= 0 && !d->queue[i].bell_is_interrupt)
			bell_filter(d->queue[i].bell, !every_frame);
}

static void ethdev_hear(struct port *p, const struct mac *group, uint32_t n, const char *all)
{
	multicast_hear(ethdev_of(p), group, n, all);
}

static void ethdev_close(struct port *p)
{
	struct ethdev *d = ethdev_of(p);

	for (uint16_t i = 0; i < LIMIT_LCORES; i++)
		if (d->queue[i].bell >= 0 && !d->queue[i].bell_is_interrupt &&
		    !d->queue[i].bell_is_borrowed)
			close(d->queue[i].bell);
	aside_close(d->aside);
	if (d->facts >= 0)
		close(d->facts);
	removal_forget(d);
	kernel_interface_close(p->kernel);
	steering_end(d->steering);
	free(d->arrival);
	rte_eth_dev_stop(d->id);
	if (d->netdev != NULL)
		netdev_close(d->netdev); /* removes the device that it created */
	else
		rte_eth_dev_close(d->id);
	claim_end(&d->claim);
	free(d);
}

static const struct port_ops ethdev_ops = {
	.rx_burst = ethdev_rx_burst,
	.tx_burst = ethdev_tx_burst,
	.bell_fd = ethdev_bell_fd,
	.bell_drain = ethdev_bell_drain,
	.bell_widen = ethdev_bell_widen,
	.hear = ethdev_hear,
	.queue_of = ethdev_queue_of,
	.refresh = ethdev_refresh,
	.close = ethdev_close,
};

static const struct port_ops ethdev_ops_with_offloads = {
	.rx_burst = with_offloads_rx_burst,
	.tx_burst = with_offloads_tx_burst,
	.bell_fd = ethdev_bell_fd,
	.bell_drain = ethdev_bell_drain,
	.bell_widen = ethdev_bell_widen,
	.hear = ethdev_hear,
	.queue_of = ethdev_queue_of,
	.refresh = ethdev_refresh,
	.close = ethdev_close,
};

/* Not one of a program's own frames. */
static bool is_of_ours(const struct port *p)
{
	return p->ops == &ethdev_ops || p->ops == &ethdev_ops_with_offloads;
}

bool ethdev_claim(struct port *p, uint16_t vlan, char *why, size_t why_size)
{
	struct ethdev *d;

	if (!is_of_ours(p))
		return true;
	d = ethdev_of(p);
	if (d->claims != 0 && !claim_take(&d->claim, d->claims, vlan, why, why_size))
		return false;
	return offloads_let_pass(d, vlan, why, why_size);
}

int ethdev_removed_fd(const struct port *p)
{
	const struct ethdev *d = (const void *)p;

	return is_of_ours(p) ? d->removed : -1;
}

uint64_t ethdev_dropped(const struct port *p, enum reason r)
{
	const struct ethdev *d = (const void *)p;
	uint64_t sum = 0;

	static_assert(offsetof(struct ethdev, port) == 0,
		      "a port is the first member of its ethdev");
	for (uint16_t i = 0; i < LIMIT_LCORES; i++) {
		if (r == REASON_SOURCE_OWN)
			sum += atomic_load_explicit(&d->queue[i].source_own, memory_order_relaxed);
		else if (r == REASON_RX_TRUNCATED)
			sum += atomic_load_explicit(&d->queue[i].truncated, memory_order_relaxed);
	}
	return sum;
}

/* Several queues share the traffic by UDP source port, if the device can hash it. */
static void spread_flows(struct rte_eth_conf *c, const struct rte_eth_dev_info *info)
{
	uint64_t hash = info->flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);

	if (hash == 0)
		return;
	c->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	c->rx_adv_conf.rss_conf.rss_hf = hash;
}

/* Of the software ports only tap has them; net_impair does not pass them on. Cards may have them. */
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
	if (d->id == d->behind) { /* net_impair has none, whatever is below it */
		c.rxmode.offloads = offloads_rx(info, d->wanted);
		c.txmode.offloads = offloads_tx(info, d->wanted);
		d->filters_vlans = (c.rxmode.offloads & RTE_ETH_RX_OFFLOAD_VLAN_FILTER) != 0;
	}
	d->port.offloads = offloads_granted(c.rxmode.offloads, c.txmode.offloads);
	d->port.ops = d->port.offloads != 0 ? &ethdev_ops_with_offloads : &ethdev_ops;
	ret = rte_eth_dev_configure(d->id, d->port.queues, d->port.queues, &c);
	if (ret != 0 && c.rxmode.mq_mode != 0) {
		c.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
		ret = rte_eth_dev_configure(d->id, d->port.queues, d->port.queues, &c);
	}
	return ret;
}

/* Sets up one rx queue; with net_af_xdp its bell is the socket that this makes. */
static int set_rx_queue(struct ethdev *d, uint16_t i, uint16_t descriptors, unsigned int socket,
			struct rte_mempool *pool)
{
	struct af_xdp_sockets before;
	int ret;

	if (d->xdp)
		af_xdp_sockets_find(&before);
	ret = rte_eth_rx_queue_setup(d->id, i, descriptors, socket, NULL, pool);
	if (ret == 0 && d->xdp) {
		d->queue[i].bell = af_xdp_socket_new(&before);
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
 * Sets an MTU only on hardware: net_af_packet would change the interface's, and other software
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

/* The default MTU: what the device reports, if that is known to be true. */
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
		}
	}
}

/*
 * net_e1000_em announces two queues for every card. Those of the 8254x have one: what is put into the other never leaves.
 * It spreads no frames, so that the second one of later cards would only send.
 */
static uint16_t queues_of(const struct rte_eth_dev_info *info)
{
	uint16_t announced = MIN_OF(info->max_rx_queues, info->max_tx_queues);

	return strcmp(info->driver_name, "net_e1000_em") == 0 ? 1 : announced;
}

/* Of a card, or of what is behind a Linux interface. Other software ports have none. */
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
	 * net_ring has no MAC address, and peers need one to answer. A random one is unique on this
	 * link.
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
	if (ret == -1 && (d->claims & CLAIM_MEMIF) != 0) /* net_memif's, not -EPERM */
		explain(why, size,
			"cannot %s port %s: no process listens on the memif's socket: start its server first",
			step, o->name);
	else if (ret != 0)
		explain(why, size, "cannot %s port %s: %s", step, o->name, rte_strerror(-ret));
	return ret == 0;
}

/* Whether a card has interrupts (vectors for all queues, a driver that knows them) shows when it starts. */
static bool start(struct ethdev *d, const struct ethdev_options *o,
		  const struct rte_eth_dev_info *info, char *why, size_t size)
{
	d->interrupts = may_interrupt(d, info);
	if (d->interrupts && try_start(d, o, info, why, size))
		return true;
	d->interrupts = false;
	return try_start(d, o, info, why, size);
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
	d->facts = d->link_ifindex != 0 ? interface_socket() : -1;
	d->removed = -1;
	multicast_open(d, &info);
	open_bells(d);
	removal_watch(d, &info);
	learn_arrival(d);
	if (o->kernel_interface != NULL && !kernel_join(d, o->kernel_interface, why, why_size)) {
		ethdev_close(&d->port);
		return NULL;
	}
	ethdev_refresh(&d->port);
	return &d->port;
}
