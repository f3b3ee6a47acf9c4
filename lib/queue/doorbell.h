/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doorbells: one ring of 32-bit queue pair handles per client and lcore (an rte_ring in
 * multi-producer mode in the arena). A queue pair stands in it at most once, because whoever
 * wants to enter it first turns its mark (qp_page.doorbell) from 0 to 1; so the ring, which has
 * room for every queue pair of a client, is never full.
 *
 *	client                                  lcore
 *	publish requests (release)              take handles
 *	mark: exchange 0 -> 1 (seq_cst)   <-->  mark: exchange -> 0 (seq_cst), then read the ring
 *	if it was 0: enqueue the handle
 *	fence (seq_cst); sleeping?        <-->  sleeping = 1, fence (seq_cst), look once more, wait
 *	if so: write the eventfd
 */
#ifndef QUEUE_DOORBELL_H
#define QUEUE_DOORBELL_H

#include <assert.h>

#include "config/limits.h"
#include "queue/ring.h"

#define DOORBELL_SLOTS	131072u
#define DOORBELL_STRIDE 4u

/* What stands there for a tag matching SRQ, with its number: beside every queue pair's handle. */
#define DOORBELL_SRQ UINT32_C(0x80000000)

static_assert(DOORBELL_SLOTS > LIMIT_QPS + LIMIT_SRQS, "each stands there once");

/* Engine: takes at most max handles; 0 when empty or broken. The handles are unchecked numbers. */
uint32_t doorbell_take(struct ring_side *bell, uint32_t *handles, uint32_t max);
/* Engine: clears a queue pair's mark; call before reading its ring. */
void doorbell_clear(uint32_t *mark);

#endif
