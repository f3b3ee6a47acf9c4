/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doorbells: for each client and lcore, one ring of 32-bit queue pair handles in the arena (an
 * rte_ring with many producers). A queue pair is in it at most once, because only the thread that
 * changes its mark (qp_page.doorbell) from 0 to 1 enters it. The ring has room for every queue pair
 * of a client, so it is never full.
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

/*
 * Marks the number of a tag matching SRQ in the ring; handles of queue pairs never have this bit.
 */
#define DOORBELL_SRQ UINT32_C(0x80000000)

static_assert(DOORBELL_SLOTS > LIMIT_QPS + LIMIT_SRQS, "each is in the ring at most once");

/*
 * For the lcore: takes at most `max` handles and returns how many; 0 when the ring is empty or
 * broken. The client can write anything there, so the caller checks each handle.
 */
uint32_t doorbell_take(struct ring_side *bell, uint32_t *handles, uint32_t max);
/* For the lcore: clears the mark of a queue pair or SRQ, before it reads the ring of that one. */
void doorbell_clear(uint32_t *mark);

#endif
