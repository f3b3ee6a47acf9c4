/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/doorbell.h"

#include <assert.h>
#include <string.h>

#include "config/limits.h"

static_assert((DOORBELL_SLOTS & (DOORBELL_SLOTS - 1)) == 0, "positions are masked");

uint32_t doorbell_take(struct ring_side *bell, uint32_t *handles, uint32_t max)
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
 * A read-modify-write, because a store would not pair with the exchange in doorbell_ring. The
 * second of the two sees the first: either we see the requests that the client published before
 * ringing, or the client reads our 0 and enters the queue pair again.
 */
void doorbell_clear(uint32_t *mark)
{
	__atomic_exchange_n(mark, 0, __ATOMIC_SEQ_CST);
}
