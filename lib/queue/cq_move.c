/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/cq_move.h"

#include <string.h>

#include "queue/ring_client.h"

uint32_t cq_ring_unpolled(const struct rte_ring *ring)
{
	return __atomic_load_n(&ring->prod.tail, __ATOMIC_ACQUIRE) -
	       __atomic_load_n(&ring->cons.tail, __ATOMIC_RELAXED);
}

struct completion *cq_backlog_take_over(struct cq_backlog *b, struct rte_ring *old,
					struct completion *room, uint32_t slots)
{
	struct completion *before = b->held;
	const struct completion *c;

	if (b->count > 0)
		memcpy(room, b->held + b->first, b->count * sizeof(*room));
	b->held = room;
	b->first = 0;
	while (b->count < slots && (c = ring_client_peek(old, sizeof(*c))) != NULL) {
		room[b->count++] = *c;
		ring_client_release(old, 1);
	}
	return before;
}
