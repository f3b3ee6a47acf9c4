/* SPDX-License-Identifier: BSD-3-Clause */
/* A port in use: what lcores and the control thread need from it. open.c makes it. */
#include "drivers/ethdev/ethdev.h"

#include <errno.h>
#include <net/if.h>
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

/*
 * Each counter has one writer, which adds without a locked instruction. It is atomic because other
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
	       mac_word(rte_pktmbuf_mtod_offset(m, const uint8_t *, 6)) ==
		       __atomic_load_n(&d->own, __ATOMIC_RELAXED);
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
 * An interrupt of a card costs more than a nap. So an lcore naps while frames may follow soon, and
 * only a quiet one waits for the interrupt. The first frame switches the interrupt off, because no
 * lcore waits for it any more.
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

/*
 * Bursts with offloads. A port without offloads uses the two functions above, which never look into
 * a frame for this.
 */
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
	/* net_tap has no such operation. Its descriptor is always armed. */
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
	/*
	 * uio's descriptor counts in four octets, and would stay readable. So the lcore naps again.
	 */
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

static bool link_is_up(const struct ethdev *d)
{
	struct rte_eth_link link = { 0 };

	if (d->link_ifindex != 0)
		return ifindex_running(d->facts, d->link_ifindex);
	return rte_eth_link_get_nowait(d->id, &link) == 0 && link.link_status != 0;
}

/* A driver on a Linux interface only reports a fixed speed, so the interface is asked. */
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

/*
 * The MTU for frames: the one at the start, or that of the interface behind the port if it is
 * smaller.
 */
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
	/* atomic: lcores read them at any time; nothing else depends on them */
	__atomic_store_n(&p->link_up, up, __ATOMIC_RELAXED);
	__atomic_store_n(&d->own, mac_word(p->mac.octet), __ATOMIC_RELAXED);
	p->mtu = mtu;
	if (up)
		packet_rings_send(&d->packet_rings, d->link_ifindex);
	return changed;
}

/* Needed only if the kernel answers on this port, because the bell then rings for RoCE only. */
static void ethdev_bell_widen(struct port *p, bool every_frame)
{
	struct ethdev *d = ethdev_of(p);

	if (d->aside != NULL)
		aside_widen(d->aside, every_frame);
	for (uint16_t i = 0; p->kernel_answers && !d->xdp && i < p->queues; i++)
		if (d->queue[i].bell >= 0 && !d->queue[i].bell_is_interrupt)
			bell_filter(d->queue[i].bell, !every_frame);
}

static void ethdev_hear(struct port *p, const struct port_hears *h)
{
	filter_hear(ethdev_of(p), h);
}

static void ethdev_close(struct port *p)
{
	struct ethdev *d = ethdev_of(p);

	for (uint16_t i = 0; i < LIMIT_LCORES; i++)
		if (d->queue[i].bell >= 0 && !d->queue[i].bell_is_interrupt &&
		    !d->queue[i].bell_is_borrowed)
			close(d->queue[i].bell);
	filter_close(d);
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

#define ALIKE                                                                              \
	.bell_fd = ethdev_bell_fd, .bell_drain = ethdev_bell_drain,                        \
	.bell_widen = ethdev_bell_widen, .hear = ethdev_hear, .queue_of = ethdev_queue_of, \
	.refresh = ethdev_refresh, .close = ethdev_close

static const struct port_ops ethdev_ops = {
	.rx_burst = ethdev_rx_burst,
	.tx_burst = ethdev_tx_burst,
	ALIKE,
};

static const struct port_ops ethdev_ops_with_offloads = {
	.rx_burst = with_offloads_rx_burst,
	.tx_burst = with_offloads_tx_burst,
	ALIKE,
};

const struct port_ops *ethdev_ops_for(uint32_t offloads)
{
	return offloads != 0 ? &ethdev_ops_with_offloads : &ethdev_ops;
}

/* False: the program that embeds the engine made the port. */
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
