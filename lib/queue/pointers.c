/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/pointers.h"

#include <rte_mbuf.h>
#include <rte_ring.h>

uint32_t pointers_put(struct rte_ring *r, void *const *p, uint32_t n)
{
	return rte_ring_enqueue_burst(r, p, n, NULL);
}

uint32_t pointers_take(struct rte_ring *r, void **p, uint32_t n)
{
	return rte_ring_dequeue_burst(r, p, n, NULL);
}

bool pointer_put(struct rte_ring *r, void *p)
{
	return pointers_put(r, &p, 1) == 1;
}

bool pointer_take(struct rte_ring *r, void **p)
{
	return pointers_take(r, p, 1) == 1;
}

void pointers_free_frames(struct rte_ring *r)
{
	void *m;

	while (r != NULL && pointer_take(r, &m))
		rte_pktmbuf_free(m);
	rte_ring_free(r);
}
