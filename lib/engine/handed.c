/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port of frames that a program hands in and takes out: two rings for each queue.
 *
 *	program	 uroce_hand_in  -> in  -> rx_burst   lcore
 *	program	 uroce_take_out <- out <- tx_burst   lcore
 *
 * Atomics: `asleep` and the ring `in` are a Dekker pair, with a full fence on both sides: either the
 * lcore that goes to sleep sees the frame, or the thread that hands it in sees that the lcore
 * sleeps. Only the lcore changes `asleep`. `up` is a flag that nothing depends on.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_ether.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "base/bits.h"
#include "engine/inside.h"
#include "queue/fence.h"
#include "queue/pointers.h"

struct handed_queue {
	struct rte_ring *in, *out;
	int bell; /* eventfd */
	uint32_t asleep; /* atomic: the bell rings for the next frame */
};

struct handed {
	struct port port; /* first */
	uint32_t up; /* atomic */
	struct handed_queue queue[LIMIT_LCORES];
};

static struct handed *handed_of(struct port *p)
{
	return container_of_type(p, struct handed, port);
}

static uint16_t handed_rx_burst(struct port *p, uint16_t queue, struct rte_mbuf **frames,
				uint16_t n)
{
	struct handed_queue *q = &handed_of(p)->queue[queue];
	uint16_t received = (uint16_t)pointers_take(q->in, (void **)frames, n);

	/* Something else woke the lcore, so nobody drained the bell. It need not ring any more. */
	if (received > 0 && __atomic_load_n(&q->asleep, __ATOMIC_RELAXED) != 0)
		__atomic_store_n(&q->asleep, 0, __ATOMIC_RELAXED);
	return received;
}

static uint16_t handed_tx_burst(struct port *p, uint16_t queue, struct rte_mbuf **frames,
				uint16_t n)
{
	return (uint16_t)pointers_put(handed_of(p)->queue[queue].out, (void *const *)frames, n);
}

static void ring_bell(const struct handed_queue *q)
{
	uint64_t one = 1;

	/* If its counter is full it is readable already. */
	if (write(q->bell, &one, sizeof(one)) < 0)
		return;
}

static int handed_bell_fd(struct port *p, uint16_t queue)
{
	struct handed_queue *q = &handed_of(p)->queue[queue];

	__atomic_store_n(&q->asleep, 1, __ATOMIC_RELAXED);
	queue_fence(); /* pairs with uroce_hand_in */
	if (!rte_ring_empty(q->in))
		ring_bell(q);
	return q->bell;
}

static void handed_bell_drain(struct port *p, uint16_t queue)
{
	struct handed_queue *q = &handed_of(p)->queue[queue];
	uint64_t n;

	__atomic_store_n(&q->asleep, 0, __ATOMIC_RELAXED);
	if (read(q->bell, &n, sizeof(n)) < 0)
		return;
}

static bool handed_refresh(struct port *p)
{
	bool up = __atomic_load_n(&handed_of(p)->up, __ATOMIC_RELAXED) != 0;
	bool changed = up != p->link_up;

	__atomic_store_n(&p->link_up, up, __ATOMIC_RELAXED);
	return changed;
}

static void handed_close(struct port *p)
{
	struct handed *h = handed_of(p);

	for (uint16_t i = 0; i < p->queues; i++) {
		pointers_free_frames(h->queue[i].in);
		pointers_free_frames(h->queue[i].out);
		if (h->queue[i].bell >= 0)
			close(h->queue[i].bell);
	}
	free(h);
}

static const struct port_ops handed_ops = {
	.rx_burst = handed_rx_burst,
	.tx_burst = handed_tx_burst,
	.bell_fd = handed_bell_fd,
	.bell_drain = handed_bell_drain,
	.refresh = handed_refresh,
	.close = handed_close,
};

/* NULL: the options are right. */
static const char *what_is_wrong(const struct uroce_handed_options *o)
{
	static const uint8_t none[6];

	if (rte_lcore_count() == 0)
		return "EAL is not initialised: call rte_eal_init() first";
	if (memcmp(o->mac, none, sizeof(none)) == 0 || (o->mac[0] & 1) != 0)
		return "mac must be the unicast address of the engine";
	if (o->mtu < 256 + HEADERS_MOST)
		return "mtu is too small: RoCE needs 336 or more";
	if (o->queues > UROCE_LCORES)
		return "queues must be 0 .. 16";
	if (o->depth > LIMIT_HANDED_MOST)
		return "depth must be 0 .. 65536";
	if (o->name != NULL && strlen(o->name) >= sizeof(((struct port *)0)->name))
		return "the name must have at most 63 characters";
	return NULL;
}

static void fill_facts(struct port *p, const struct uroce_handed_options *o)
{
	p->ops = &handed_ops;
	snprintf(p->name, sizeof(p->name), "%s", o->name != NULL ? o->name : "handed");
	memcpy(p->mac.octet, o->mac, sizeof(o->mac));
	p->mtu = o->mtu;
	p->socket = SOCKET_ID_ANY;
	p->node = -1;
	p->speed = o->speed;
	p->link_up = true;
	p->nap = LIMIT_PORT_NAP;
}

static struct rte_ring *make_ring(uint32_t depth, unsigned int flags)
{
	static uint32_t number; /* atomic: rings of all ports have names of their own */
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "uh-%u", __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED));
	return rte_ring_create(name, depth, SOCKET_ID_ANY, flags | RING_F_EXACT_SZ);
}

/* Any thread hands in; one lcore at a time receives, or sends on the queue; any thread takes out. */
static bool make_queue(struct handed_queue *q, uint32_t depth)
{
	q->in = make_ring(depth, RING_F_SC_DEQ);
	q->out = make_ring(depth, RING_F_SP_ENQ);
	q->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return q->in != NULL && q->out != NULL && q->bell >= 0;
}

struct uroce_port *uroce_port_handed(const struct uroce_handed_options *options, char *why,
				     size_t why_size)
{
	struct uroce_handed_options o;
	const char *wrong;
	struct handed *h;
	bool made = true;

	errno = EINVAL;
	if (!struct_take(&o, sizeof(o), options, "uroce_handed_options", why, why_size))
		return NULL;
	wrong = what_is_wrong(&o);
	if (wrong != NULL) {
		snprintf(why, why_size, "%s", wrong);
		return NULL;
	}
	h = calloc(1, sizeof(*h));
	if (h != NULL) {
		fill_facts(&h->port, &o);
		h->up = 1;
		for (uint16_t i = 0; i < MAX_OF(o.queues, 1) && made; i++) {
			made = make_queue(&h->queue[i], o.depth != 0 ? o.depth : LIMIT_HANDED);
			h->port.queues = i + 1;
		}
		if (made)
			return port_for_program(&h->port);
		handed_close(&h->port);
	}
	snprintf(why, why_size, "no memory for the rings of the port: give EAL more with -m");
	errno = ENOMEM;
	return NULL;
}

/* The queue of a handed port; NULL: the port is not a handed one, or has no such queue. */
static struct handed_queue *queue_of(struct uroce_port *port, uint16_t queue)
{
	struct port *p = port_of_program(port);

	if (p == NULL || p->ops != &handed_ops || queue >= p->queues)
		return NULL;
	return &handed_of(p)->queue[queue];
}

uint16_t uroce_hand_in(struct uroce_port *port, uint16_t queue, struct rte_mbuf **frames,
		       uint16_t n)
{
	struct handed_queue *q = queue_of(port, queue);
	uint16_t accepted;

	if (q == NULL)
		return 0;
	accepted = (uint16_t)pointers_put(q->in, (void *const *)frames, n);
	queue_fence(); /* the frames are in the ring before the flag is read: handed_bell_fd */
	if (accepted > 0 && __atomic_load_n(&q->asleep, __ATOMIC_RELAXED) != 0)
		ring_bell(q);
	return accepted;
}

uint16_t uroce_take_out(struct uroce_port *port, uint16_t queue, struct rte_mbuf **frames,
			uint16_t n)
{
	const struct handed_queue *q = queue_of(port, queue);

	if (q == NULL)
		return 0;
	return (uint16_t)pointers_take(q->out, (void **)frames, n);
}

int uroce_set_link(struct uroce_port *port, bool up)
{
	if (queue_of(port, 0) == NULL)
		return EINVAL;
	__atomic_store_n(&handed_of(port_of_program(port))->up, up, __ATOMIC_RELAXED);
	return 0;
}
