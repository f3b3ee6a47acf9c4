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
#include <string.h>

#include "config/limits.h"
#include "queue/ring.h"

#define DOORBELL_SLOTS	131072u
#define DOORBELL_STRIDE 4u

/*
 * Marks the number of a tag matching SRQ in the ring; handles of queue pairs never have this bit.
 */
#define DOORBELL_SRQ UINT32_C(0x80000000)

static_assert((DOORBELL_SLOTS & (DOORBELL_SLOTS - 1)) == 0, "positions are masked");
static_assert(DOORBELL_SLOTS > LIMIT_QPS + LIMIT_SRQS, "each is in the ring at most once");

/*
 * For the lcore: takes at most `max` handles and returns how many; 0 when the ring is empty or
 * broken. The client can write anything there, so the caller checks each handle.
 */
static inline uint32_t doorbell_take(struct ring_side *bell, uint32_t *handles, uint32_t max)
{
	uint32_t ready = ring_readable(bell);

	if (ready == RING_BROKEN || ready == 0)
		return 0;
	if (ready > max)
		ready = max;
	for (uint32_t i = 0; i < ready; i++)
		memcpy(&handles[i], ring_read_slot(bell, i), sizeof(handles[i]));
	ring_consume(bell, ready);
	return ready;
}

/*
 * For the lcore: clears the mark of a queue pair or SRQ. Call it before reading the ring of that
 * queue.
 *
 * This is a read-modify-write, because a store would not pair with the exchange in doorbell_ring.
 * The second of the two sees the first: either we see the requests that the client published before
 * ringing, or the client reads our 0 and enters the queue pair again.
 */
static inline void doorbell_clear(uint32_t *mark)
{
	__atomic_exchange_n(mark, 0, __ATOMIC_SEQ_CST);
}

#endif
