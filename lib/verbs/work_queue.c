/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "verbs/qp.h"

int work_queue_init(struct work_queue *q, struct rte_ring *ring, uint32_t stride, uint32_t max_wr,
		    uint32_t max_sge, uint32_t remembered)
{
	uint32_t slots = power_of_two_above(remembered);

	queue_lock_init(&q->lock);
	q->ring = ring;
	q->stride = stride;
	q->max_wr = max_wr;
	q->max_sge = max_sge;
	q->mask = slots - 1;
	q->wr_id = calloc(slots, sizeof(*q->wr_id));
	q->signaled = calloc(slots, sizeof(*q->signaled));
	return q->wr_id == NULL || q->signaled == NULL ? ENOMEM : 0;
}

void work_queue_free(struct work_queue *q)
{
	free(q->wr_id);
	free(q->signaled);
}
