/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/cq_resize.h"

#include <string.h>

#include "queue/ring_client.h"

uint32_t cq_ring_unpolled(const struct rte_ring *ring)
{
	return __atomic_load_n(&ring->prod.tail, __ATOMIC_ACQUIRE) -
	       __atomic_load_n(&ring->cons.tail, __ATOMIC_RELAXED);
}

struct completion *cq_backlog_take_over(struct cq_backlog *b, struct rte_ring *old,
					struct completion *memory, uint32_t slots)
{
	struct completion *before = b->held;
	const struct completion *c;

	if (b->count > 0)
		memcpy(memory, b->held + b->first, b->count * sizeof(*memory));
	b->held = memory;
	b->first = 0;
	while (b->count < slots && (c = ring_client_peek(old, sizeof(*c))) != NULL) {
		memory[b->count++] = *c;
		ring_client_release(old, 1);
	}
	return before;
}

static void forget(struct completion *c, uint32_t qp_handle)
{
	if (c->qp_handle == qp_handle)
		c->qp_handle = CQ_FORGOTTEN;
}

void cq_forget(struct cq_backlog *b, struct rte_ring *ring, uint32_t qp_handle)
{
	struct completion *slot = (struct completion *)(ring + 1);
	uint32_t n = cq_ring_unpolled(ring);

	for (uint32_t i = 0; i < b->count; i++)
		forget(&b->held[b->first + i], qp_handle);
	/* The slots between the tails belong to the program until it gives them back. */
	for (uint32_t i = 0; i < n; i++)
		forget(&slot[(ring->cons.tail + i) & ring->mask], qp_handle);
}

static bool satisfies(const struct completion *c, bool solicited)
{
	return c->qp_handle != CQ_FORGOTTEN && (!solicited || c->solicited);
}

bool cq_holds(const struct cq_backlog *b, const struct rte_ring *ring, bool solicited)
{
	const struct completion *slot = (const struct completion *)(ring + 1);
	uint32_t n = cq_ring_unpolled(ring);

	for (uint32_t i = 0; i < b->count; i++)
		if (satisfies(&b->held[b->first + i], solicited))
			return true;
	for (uint32_t i = 0; i < n; i++)
		if (satisfies(&slot[(ring->cons.tail + i) & ring->mask], solicited))
			return true;
	return false;
}
