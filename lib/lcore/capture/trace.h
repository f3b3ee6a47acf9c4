/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last packets of one queue pair. Each lcore has a ring, in which the newest packet overwrites
 * the oldest one. A ring never blocks, because no thread takes packets out: the control thread
 * copies them.
 *
 *	slot	0	1	2	3	head counts the packets; packet i is in slot i mod `slots`
 *
 * Atomics: `turn` of a slot is 2 i + 1 while packet i is written there, and 2 i + 2 afterwards.
 * `turn` becomes odd before the octets change. A reader loads it before and after it copies the
 * octets: a copy between two equal, even numbers is whole. `head` is released after its slot.
 * `peer_qpn` stands by itself and needs no order.
 */
#ifndef LCORE_TRACE_H
#define LCORE_TRACE_H

#include <rte_mbuf.h>

#include "config/limits.h"
#include "lcore/lcore.h"
#include "protocol/command.h"
#include "queue/capture_ring.h"

struct trace_slot {
	uint64_t turn;
	struct traced_packet packet;
};

struct trace_ring {
	uint64_t head;
	struct trace_slot *slot;
};

struct trace {
	uint32_t qpn;
	uint32_t peer_qpn; /* atomic: the control path changes it; 0: none */
	uint32_t slots; /* of each ring */
	uint32_t rings;
	struct trace_ring ring[LIMIT_LCORES];
};

/* A trace of the packets to `qpn`, and of those that it sends to `peer_qpn`. NULL: no memory. */
struct trace *trace_make(uint32_t qpn, uint32_t peer_qpn, uint32_t slots, uint32_t rings);
void trace_free(struct trace *t);

/* Keeps those of the n frames that belong to the queue pair. Called on its lcore. */
void trace_frames(struct trace *t, uint32_t lcore, struct rte_mbuf *const *m, uint32_t n,
		  enum capture_way way, nanotime now);

/* Copies the whole packets of a ring, oldest first, at most t->slots. Any thread may call it. */
uint32_t trace_copy(const struct trace *t, uint32_t ring, struct traced_packet *to);
/* The number of packets since the beginning. */
uint64_t trace_seen(const struct trace *t);

#endif
