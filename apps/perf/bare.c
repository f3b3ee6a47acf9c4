/* SPDX-License-Identifier: BSD-3-Clause */
#include "bare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include "base/prefetch.h"
#include "drivers/buffers.h"
#include "wire/icrc.h"

#define HEADER_OCTETS 70u /* Ethernet, IPv4, UDP, BTH, RETH: the headers of a WRITE ONLY */
#define SUMMED_FROM   14u /* the Ethernet header is not part of the ICRC */
#define AHEAD	      4u /* frames before a buffer is filled */
#define CACHED	      64u
#define BUFFER_OCTETS (RTE_PKTMBUF_HEADROOM + 4352u)

int bare_port_open(struct bare_port *p, uint32_t slots, uint32_t buffers)
{
	static uint32_t opened; /* a vdev keeps its name when its port is closed */
	char name[RTE_RING_NAMESIZE], pool[RTE_MEMPOOL_NAMESIZE];
	struct rte_eth_conf conf = { 0 };
	int port;

	snprintf(name, sizeof(name), "limit-raw%" PRIu32, opened);
	snprintf(pool, sizeof(pool), "limit-pool%" PRIu32, opened++);
	p->pool = buffers_make_private(pool, buffers, CACHED, BUFFER_OCTETS, 0);
	p->ring = rte_ring_create(name, slots, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	port = p->pool == NULL || p->ring == NULL ? -1 : rte_eth_from_ring(p->ring);
	p->id = port < 0 ? RTE_MAX_ETHPORTS : (uint16_t)port;
	return port < 0 || rte_eth_dev_configure(p->id, 1, 1, &conf) != 0 ||
	       rte_eth_rx_queue_setup(p->id, 0, (uint16_t)slots, SOCKET_ID_ANY, NULL, p->pool) !=
		       0 ||
	       rte_eth_tx_queue_setup(p->id, 0, (uint16_t)slots, SOCKET_ID_ANY, NULL) != 0 ||
	       rte_eth_dev_start(p->id) != 0;
}

void bare_port_close(struct bare_port *p)
{
	if (p->id != RTE_MAX_ETHPORTS) {
		rte_eth_dev_stop(p->id);
		rte_eth_dev_close(p->id);
	}
	rte_ring_free(p->ring);
	rte_mempool_free(p->pool);
}

void bare_begin(struct bare_end *e, const struct bare_kind *k)
{
	e->kind = *k;
	e->at = 0;
}

static uint8_t *next_payload(struct bare_end *e)
{
	uint8_t *octets = e->octets + e->at;

	e->at += e->kind.payload;
	if (e->at + e->kind.payload > e->kind.message)
		e->at = 0;
	return octets;
}

/* As an engine does: the buffer may be in the cache of another core. */
static void frame_ahead(const struct bare_end *e, struct rte_mbuf *m)
{
	const uint8_t *frame = (const uint8_t *)rte_mbuf_buf_addr(m, e->port->pool);

	prefetch_to_write(m);
	prefetch_to_write(&m->next);
	prefetch_to_write(frame + RTE_PKTMBUF_HEADROOM);
	prefetch_to_write(frame + RTE_PKTMBUF_HEADROOM + 64);
}

static void frame_fill(struct bare_end *e, struct rte_mbuf *m)
{
	static const uint8_t header[HEADER_OCTETS];
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t payload = e->kind.payload;

	memcpy(frame, header, sizeof(header));
	if (e->kind.touch) {
		e->sum = icrc_add(0, frame, HEADER_OCTETS - SUMMED_FROM);
		e->sum = icrc_copy(e->sum, frame + HEADER_OCTETS, next_payload(e), payload);
		memcpy(frame + HEADER_OCTETS + payload, &e->sum, 4);
	}
	m->data_len = (uint16_t)(HEADER_OCTETS + payload + 4);
	m->pkt_len = m->data_len;
}

uint32_t bare_send(struct bare_end *e)
{
	uint32_t sent;

	if (e->held == 0) {
		if (rte_pktmbuf_alloc_bulk(e->port->pool, e->m, BARE_BURST) != 0)
			return 0;
		e->held = BARE_BURST;
		for (uint32_t i = 0; i < BARE_BURST; i++) {
			if (i + AHEAD < BARE_BURST)
				frame_ahead(e, e->m[i + AHEAD]);
			frame_fill(e, e->m[i]);
		}
	}
	sent = rte_eth_tx_burst(e->port->id, 0, e->m, (uint16_t)e->held);
	e->held -= sent;
	memmove(e->m, e->m + sent, e->held * sizeof(e->m[0]));
	return sent;
}

uint32_t bare_receive(struct bare_end *e)
{
	uint32_t n = rte_eth_rx_burst(e->port->id, 0, e->m, BARE_BURST);

	for (uint32_t i = 0; i < n && e->kind.touch; i++) {
		uint8_t *frame = rte_pktmbuf_mtod(e->m[i], uint8_t *), *to = next_payload(e);

		e->sum = icrc_add(0, frame, HEADER_OCTETS - SUMMED_FROM);
		e->sum = icrc_add(e->sum, frame + HEADER_OCTETS, e->kind.payload);
		memcpy(to, frame + HEADER_OCTETS, e->kind.payload);
		/* Keeps the compiler from dropping the copy. */
		__asm__ volatile("" : : "r"(to) : "memory");
	}
	rte_pktmbuf_free_bulk(e->m, n);
	return n;
}

void bare_end(struct bare_end *e)
{
	rte_pktmbuf_free_bulk(e->m, e->held);
	e->held = 0;
}
