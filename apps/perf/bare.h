/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames like an engine's, sent and received without one: `uroce perf` compares engines with them.
 *
 *	bare_send --tx--> ring --rx--> bare_receive
 */
#ifndef APPS_PERF_BARE_H
#define APPS_PERF_BARE_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#define BARE_BURST 32u

/* A net_ring port that receives what it sends, and the buffers of its frames. */
struct bare_port {
	uint16_t id;
	struct rte_ring *ring;
	struct rte_mempool *pool;
};

struct bare_kind {
	uint32_t payload; /* octets of a frame */
	uint32_t message; /* octets; the payload behind its end is the first one again */
	bool touch; /* copy and sum the payload */
};

/* The sender or the receiver. Each is one thread's; a thread may have both. */
struct bare_end {
	const struct bare_port *port;
	struct bare_kind kind;
	uint8_t *octets; /* where payloads come from, or go to: as many as the message has */
	uint32_t at; /* of the next payload */
	uint32_t sum;
	uint32_t held; /* frames that the port did not take; they go first next time */
	struct rte_mbuf *m[BARE_BURST];
};

/* Opens a port with this many slots and buffers. Returns 0, or 1 if there is no memory; then close it, too. */
int bare_port_open(struct bare_port *p, uint32_t slots, uint32_t buffers);
void bare_port_close(struct bare_port *p);

/* The end's next payload is the first one of a message of this kind. */
void bare_begin(struct bare_end *e, const struct bare_kind *k);
/* Sends up to a burst: headers, payloads copied and summed. Returns the number of frames that left. */
uint32_t bare_send(struct bare_end *e);
/* Receives up to a burst: payloads are summed and copied. Returns the number of frames. */
uint32_t bare_receive(struct bare_end *e);
/* Frees what the port did not take. */
void bare_end(struct bare_end *e);

#endif
