/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcore/exception/exception.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rte_ether.h>
#include <rte_lcore.h>

#include "base/bits.h"
#include "drivers/kernel_interface/kernel_interface.h"
#include "drivers/log.h"
#include "lcore/capture/capture.h"
#include "lcore/inside.h"
#include "queue/fence.h"
#include "queue/pointers.h"

#define NAP TIME_MS /* while a ring is full or no buffer is free */

/* ---- lcores: towards the kernel ---- */

static void wake_thread(struct exception *x)
{
	uint64_t one = 1;

	/* EAGAIN: the counter is full, so the thread is awake or about to be. */
	while (write(x->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void exception_flush(struct lcore *l)
{
	struct exception *x = l->engine->exception;
	uint32_t n = l->exceptions;
	uint32_t in = pointers_put(x->up, (void **)l->exception, n);

	l->exceptions = 0;
	if (in < n) {
		l->stats.by_reason[REASON_KERNEL_FULL] += n - in;
		rte_pktmbuf_free_bulk(l->exception + in, n - in);
	}
	/* The fence puts the frames into the ring before the flag is read. It pairs with rest(). */
	queue_fence();
	if (__atomic_load_n(&x->sleeping, __ATOMIC_RELAXED))
		wake_thread(x);
}

/* The kernel's interface is untagged: it stands for the port's VLAN. */
static void strip_tag(struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	memmove(frame + RTE_VLAN_HLEN, frame, 2 * RTE_ETHER_ADDR_LEN);
	rte_pktmbuf_adj(m, RTE_VLAN_HLEN);
}

void exception_collect(struct lcore *l, struct rte_mbuf *m)
{
	if (l->engine->vlan != 0)
		strip_tag(m);
	l->exception[l->exceptions++] = m;
	if (l->exceptions == LIMIT_BURST)
		exception_flush(l);
}

/* ---- lcore 0: from the kernel ---- */

static void drop_pending(struct lcore *l, struct exception *x)
{
	l->stats.by_reason[REASON_TX_FULL] += x->pending_count;
	rte_pktmbuf_free_bulk(x->pending + x->pending_first, x->pending_count);
	x->pending_count = 0;
}

uint32_t exception_poll(struct lcore *l)
{
	struct exception *x = l->engine->exception;
	uint32_t sent, octets = 0;

	if (l->index != 0)
		return 0;
	if (x->pending_count == 0) {
		x->pending_first = 0;
		x->pending_count = pointers_take(x->down, (void **)x->pending, LIMIT_BURST);
		capture_frames(l, x->pending, x->pending_count, CAPTURE_SENT);
	}
	if (x->pending_count == 0)
		return 0;
	for (uint32_t i = 0; i < x->pending_count; i++)
		octets += x->pending[x->pending_first + i]->pkt_len;
	sent = port_send(l, x->pending + x->pending_first, x->pending_count);
	x->pending_first += sent;
	x->pending_count -= sent;
	/*
	 * Sent mbufs belong to the port now, so their octets are found by subtracting those that
	 * stay.
	 */
	for (uint32_t i = 0; i < x->pending_count; i++)
		octets -= x->pending[x->pending_first + i]->pkt_len;
	l->stats.tx_packets += sent;
	l->stats.tx_octets += octets;
	/*
	 * A full port is asked again at the next poll. A port without a link is not: its frames are
	 * dropped.
	 */
	if (sent == 0 && !__atomic_load_n(&l->engine->port->link_up, __ATOMIC_RELAXED))
		drop_pending(l, x);
	return 1;
}

/* ---- the thread ---- */

static void count(atomic_uint_fast64_t *counter, uint32_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static uint32_t upwards(struct exception *x)
{
	struct rte_mbuf *m[LIMIT_BURST];
	uint32_t n = pointers_take(x->up, (void **)m, LIMIT_BURST);
	uint32_t took;

	if (n == 0)
		return 0;
	took = kernel_interface_give(x->interface, m, n);
	count(&x->given, took);
	count(&x->refused, n - took);
	return n;
}

/* Takes as many frames as fit. The others stay in the interface's own queue. */
static uint32_t downwards(struct exception *x)
{
	uint32_t room = MIN_OF(rte_ring_free_count(x->down), LIMIT_BURST);
	struct engine *e = x->engine;
	struct rte_mbuf *m[LIMIT_BURST];
	uint32_t n = 0, got;

	if (room == 0 || x->gone)
		return 0;
	got = kernel_interface_take(x->interface, e->pool, m, room, &x->starved);
	for (uint32_t i = 0; i < got; i++) {
		m[i]->vlan_tci = e->vlan;
		if (e->vlan == 0 || rte_vlan_insert(&m[i]) == 0)
			m[n++] = m[i];
		else
			rte_pktmbuf_free(m[i]);
	}
	if (n == 0)
		return got;
	pointers_put(x->down, (void **)m, n);
	count(&x->taken, n);
	queue_fence(); /* pairs with idle.c */
	if (__atomic_load_n(&e->lcore[0].sleeping, __ATOMIC_RELAXED))
		lcore_wake(&e->lcore[0]);
	return got;
}

/* Sleeps until there is work. An lcore fills `up` before it reads `sleeping`. */
static void rest(struct exception *x)
{
	bool blocked = x->starved || rte_ring_free_count(x->down) == 0;
	struct pollfd p[2] = { { .fd = x->wake_fd, .events = POLLIN },
			       { .fd = kernel_interface_fd(x->interface), .events = POLLIN } };
	struct timespec nap = { .tv_nsec = NAP };
	uint64_t wakes;

	if (blocked || x->gone)
		p[1].fd = -1;
	__atomic_store_n(&x->sleeping, 1, __ATOMIC_RELAXED);
	queue_fence();
	if (rte_ring_empty(x->up) && !__atomic_load_n(&x->stop, __ATOMIC_ACQUIRE))
		ppoll(p, 2, blocked ? &nap : NULL, NULL);
	__atomic_store_n(&x->sleeping, 0, __ATOMIC_RELAXED);
	if (p[0].revents != 0 && read(x->wake_fd, &wakes, sizeof(wakes)) < 0 && errno != EAGAIN)
		LOG(ERR, "exception path: %s", strerror(errno));
	/* The interface was deleted, so its descriptor would be ready for ever. */
	x->gone |= (p[1].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

static void *exception_run(void *arg)
{
	struct exception *x = arg;
	/*
	 * An EAL lcore id gives the thread a mempool cache. The thread works without one, but
	 * slower.
	 */
	bool registered = rte_thread_register() == 0;

	while (!__atomic_load_n(&x->stop, __ATOMIC_ACQUIRE)) {
		uint32_t work = upwards(x);

		work += downwards(x);
		if (work == 0)
			rest(x);
	}
	if (registered)
		rte_thread_unregister();
	return NULL;
}

/* ---- beginning and end ---- */

static int make_rings(struct exception *x)
{
	struct engine *e = x->engine;
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "uk-%08x", (uint32_t)e->id);
	x->up = rte_ring_create(name, LIMIT_KERNEL_UP, e->port->socket, RING_F_SC_DEQ);
	snprintf(name, sizeof(name), "ud-%08x", (uint32_t)e->id);
	x->down = rte_ring_create(name, LIMIT_KERNEL_DOWN, e->port->socket,
				  RING_F_SP_ENQ | RING_F_SC_DEQ);
	x->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (x->up == NULL || x->down == NULL)
		return ENOMEM;
	return x->wake_fd < 0 ? errno : 0;
}

static int start_thread(struct exception *x)
{
	sigset_t all, old;
	int error;

	/* An embedding program's signals go to its own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&x->thread, NULL, exception_run, x);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	x->thread_runs = error == 0;
	if (x->thread_runs)
		pthread_setname_np(x->thread, "uroce-kernel");
	return error;
}

int exception_open(struct engine *e, char *why, size_t why_size)
{
	struct exception *x;
	int error;

	if (e->port == NULL || e->port->kernel == NULL)
		return 0;
	x = calloc(1, sizeof(*x));
	if (x == NULL)
		return ENOMEM;
	x->engine = e;
	x->interface = e->port->kernel;
	x->wake_fd = -1;
	exception_addresses_set(&x->own, e->gid);
	e->exception = x;
	error = make_rings(x);
	if (error == 0)
		error = start_thread(x);
	if (error != 0)
		snprintf(why, why_size, "cannot serve the kernel's interface %s: %s",
			 e->port->netdev, strerror(error));
	return error;
}

void exception_close(struct engine *e)
{
	struct exception *x = e->exception;

	if (x == NULL)
		return;
	if (x->thread_runs) {
		__atomic_store_n(&x->stop, 1, __ATOMIC_RELEASE);
		wake_thread(x);
		pthread_join(x->thread, NULL);
	}
	pointers_free_frames(x->up);
	pointers_free_frames(x->down);
	rte_pktmbuf_free_bulk(x->pending + x->pending_first, x->pending_count);
	if (x->wake_fd >= 0)
		close(x->wake_fd);
	e->exception = NULL;
	free(x);
}
