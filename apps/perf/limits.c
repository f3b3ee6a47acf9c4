/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures what this machine can do without an engine, in the same run: the copies, checksums and
 * hand-overs that every engine needs. Each figure is the best of several short rounds, because
 * these are limits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "base/bits.h"
#include "load.h"
#include "perf.h"
#include "wire/icrc.h"

#define BLOCK	      4096u
#define SMALL	      8u
#define ROUNDS	      5
#define ROUND_NS      (20 * TIME_MS)
#define RAW_BURST     32u
#define HEADER_OCTETS 70u /* Ethernet, IPv4, UDP, BTH, RETH: the headers of a WRITE ONLY */

/* Where the next payload of a message comes from, or goes to. */
struct place {
	uint8_t *octets;
	uint32_t at;
};

struct work {
	struct place from;
	struct place to;
	uint32_t message; /* octets; the next payload behind its end is the first one again */
	uint16_t port; /* a net_ring port that receives what it sends */
	struct rte_ring *ring; /* behind it */
	struct rte_mempool *pool;
	uint32_t payload;
	bool touch; /* copy and sum the payload at both ends */
	uint32_t sum;
};

/* ns per call, in the best round. */
static double best_ns(void (*once)(struct work *), struct work *w, uint32_t per_call)
{
	double best = 0;

	for (int round = 0; round < ROUNDS; round++) {
		nanotime begin = time_now(), now;
		uint64_t n = 0;
		double ns;

		do {
			for (int i = 0; i < 16; i++)
				once(w);
			n += 16;
			now = time_now();
		} while (now - begin < ROUND_NS);
		ns = (double)(now - begin) / (double)(n * per_call);
		if (round == 0 || ns < best)
			best = ns;
	}
	return best;
}

static void once_copy(struct work *w)
{
	memcpy(w->to.octets, w->from.octets, BLOCK);
	/* Keeps the compiler from dropping the copy. */
	__asm__ volatile("" : : "r"(w->to.octets) : "memory");
}

static void once_sum(struct work *w)
{
	w->sum = icrc_add(w->sum, w->from.octets, BLOCK);
}

static void once_copy_and_sum(struct work *w)
{
	w->sum = icrc_copy(w->sum, w->to.octets, w->from.octets, BLOCK);
	__asm__ volatile("" : : "r"(w->to.octets) : "memory");
}

/* The place of a payload. The next one follows it, if the message has room for it. */
static uint8_t *place_next(struct place *p, const struct work *w)
{
	uint8_t *octets = p->octets + p->at;

	p->at += w->payload;
	if (p->at + w->payload > w->message)
		p->at = 0;
	return octets;
}

/* Sends a burst of frames through a net_ring port and receives it on the same core. */
static void once_raw(struct work *w)
{
	struct rte_mbuf *m[RAW_BURST];
	uint8_t header[HEADER_OCTETS] = { 0 };
	uint32_t n;

	if (rte_pktmbuf_alloc_bulk(w->pool, m, RAW_BURST) != 0)
		return;
	for (uint32_t i = 0; i < RAW_BURST; i++) {
		uint8_t *frame = rte_pktmbuf_mtod(m[i], uint8_t *);

		memcpy(frame, header, sizeof(header));
		if (w->touch) {
			w->sum = icrc_add(0, frame, HEADER_OCTETS - 14);
			w->sum = icrc_copy(w->sum, frame + HEADER_OCTETS, place_next(&w->from, w),
					   w->payload);
			memcpy(frame + HEADER_OCTETS + w->payload, &w->sum, 4);
		}
		m[i]->data_len = (uint16_t)(HEADER_OCTETS + w->payload + 4);
		m[i]->pkt_len = m[i]->data_len;
	}
	n = rte_eth_tx_burst(w->port, 0, m, RAW_BURST);
	rte_pktmbuf_free_bulk(m + n, RAW_BURST - n);
	n = rte_eth_rx_burst(w->port, 0, m, RAW_BURST);
	for (uint32_t i = 0; i < n && w->touch; i++) {
		uint8_t *frame = rte_pktmbuf_mtod(m[i], uint8_t *), *to = place_next(&w->to, w);

		w->sum = icrc_add(0, frame, HEADER_OCTETS - 14);
		w->sum = icrc_add(w->sum, frame + HEADER_OCTETS, w->payload);
		memcpy(to, frame + HEADER_OCTETS, w->payload);
		__asm__ volatile("" : : "r"(to) : "memory");
	}
	rte_pktmbuf_free_bulk(m, n);
}

static double raw_pps(struct work *w, uint32_t payload, uint32_t message, bool touch)
{
	w->payload = payload;
	w->message = message;
	w->from.at = w->to.at = 0;
	w->touch = touch;
	return 1e9 / best_ns(once_raw, w, RAW_BURST);
}

static void messages_run(const struct perf_options *o, struct work *w, struct limit_result *r)
{
	r->sizes = o->sizes;
	for (uint32_t i = 0; i < o->sizes; i++) {
		uint32_t size = o->size[i], payload = MIN_OF(size, o->mtu);

		r->message[i].size = size;
		/* A last frame with less payload counts for its part. */
		r->message[i].per_s = raw_pps(w, payload, size, true) * payload / size;
	}
}

double limits_messages(const struct limit_result *l, uint32_t size)
{
	for (uint32_t i = 0; i < l->sizes; i++)
		if (l->message[i].size == size)
			return l->message[i].per_s;
	/* Atomics have this size, whatever sizes are asked for. */
	return size == SMALL ? l->raw_small_full_pps : 0;
}

/* The other end of the hand-over: returns every element. */
struct echo {
	struct rte_ring *there;
	struct rte_ring *back;
	uint32_t stop; /* atomic: read by the echo's lcore while the other thread sets it */
};

static int echo_main(void *arg)
{
	struct echo *e = arg;
	uint64_t element[8];

	while (__atomic_load_n(&e->stop, __ATOMIC_ACQUIRE) == 0)
		if (rte_ring_dequeue_elem(e->there, element, sizeof(element)) == 0)
			rte_ring_enqueue_elem(e->back, element, sizeof(element));
	return 0;
}

static double handoff_ns(unsigned int lcore)
{
	struct echo e = {
		.there = rte_ring_create_elem("limit-there", 64, 64, SOCKET_ID_ANY,
					      RING_F_SP_ENQ | RING_F_SC_DEQ),
		.back = rte_ring_create_elem("limit-back", 64, 64, SOCKET_ID_ANY,
					     RING_F_SP_ENQ | RING_F_SC_DEQ),
	};
	uint64_t element[8] = { 0 };
	nanotime begin;
	const uint32_t trips = 20000;

	if (e.there == NULL || e.back == NULL || rte_eal_remote_launch(echo_main, &e, lcore) != 0)
		return 0;
	begin = time_now();
	for (uint32_t i = 0; i < trips; i++) {
		rte_ring_enqueue_elem(e.there, element, sizeof(element));
		while (rte_ring_dequeue_elem(e.back, element, sizeof(element)) != 0)
			;
	}
	begin = time_now() - begin;
	__atomic_store_n(&e.stop, 1, __ATOMIC_RELEASE);
	rte_eal_wait_lcore(lcore);
	rte_ring_free(e.there);
	rte_ring_free(e.back);
	return (double)begin / trips / 2;
}

static int raw_port(struct work *w)
{
	static uint32_t opened; /* a vdev keeps its name when its port is closed */
	char name[RTE_RING_NAMESIZE];
	struct rte_eth_conf conf = { 0 };
	struct rte_ring *ring;
	int port;

	snprintf(name, sizeof(name), "limit-raw%" PRIu32, opened++);
	ring = rte_ring_create(name, 256, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	port = ring == NULL ? -1 : rte_eth_from_ring(ring);
	if (port < 0 || rte_eth_dev_configure((uint16_t)port, 1, 1, &conf) != 0 ||
	    rte_eth_rx_queue_setup((uint16_t)port, 0, 256, SOCKET_ID_ANY, NULL, w->pool) != 0 ||
	    rte_eth_tx_queue_setup((uint16_t)port, 0, 256, SOCKET_ID_ANY, NULL) != 0 ||
	    rte_eth_dev_start((uint16_t)port) != 0)
		return 1;
	w->port = (uint16_t)port;
	w->ring = ring;
	return 0;
}

static int work_begin(struct work *w, uint32_t octets)
{
	w->pool = rte_pktmbuf_pool_create("limit-pool", 1023, 64, 0, 128 + 4352, SOCKET_ID_ANY);
	if (posix_memalign((void **)&w->from.octets, 4096, octets) != 0 ||
	    posix_memalign((void **)&w->to.octets, 4096, octets) != 0 || w->pool == NULL ||
	    raw_port(w) != 0) {
		fputs("uroce perf: no memory to measure the limits; try --memory with more\n",
		      stderr);
		return 1;
	}
	memset(w->from.octets, 1, octets);
	memset(w->to.octets, 2, octets);
	return 0;
}

static void work_end(struct work *w)
{
	rte_eth_dev_stop(w->port);
	rte_eth_dev_close(w->port);
	rte_ring_free(w->ring);
	rte_mempool_free(w->pool);
	free(w->from.octets);
	free(w->to.octets);
}

int limits_run(const struct perf_options *o, struct limit_result *r)
{
	struct work w = { 0 };
	uint32_t octets = BLOCK;

	memset(r, 0, sizeof(*r));
	for (uint32_t i = 0; i < o->sizes; i++)
		octets = MAX_OF(octets, o->size[i]);
	if (work_begin(&w, octets) != 0)
		return 1;
	r->copy_ns = best_ns(once_copy, &w, 1);
	r->icrc_ns = best_ns(once_sum, &w, 1);
	r->copy_and_sum_ns = best_ns(once_copy_and_sum, &w, 1);
	r->raw_small_pps = raw_pps(&w, SMALL, SMALL, false);
	r->raw_small_full_pps = raw_pps(&w, SMALL, SMALL, true);
	r->raw_full_pps = raw_pps(&w, BLOCK, BLOCK, true);
	r->raw_full_bits = r->raw_full_pps * BLOCK * 8;
	messages_run(o, &w, r);
	if (o->placement != PLACE_ONE)
		r->handoff_ns = handoff_ns(rte_get_next_lcore(-1, 1, 0));
	work_end(&w);
	return 0;
}
