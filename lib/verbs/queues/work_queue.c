/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "verbs/memory/domain.h"
#include "verbs/queues/qp.h"

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
	q->lock.is_single = domain_is_single_threaded(q->domain);
	if (domain_alloc(q->domain, &q->memory, slots * (sizeof(*q->wr_id) + sizeof(*q->signaled)),
			 DOMAIN_QP) != 0)
		return ENOMEM;
	q->wr_id = q->memory.address;
	q->signaled = (uint8_t *)(q->wr_id + slots);
	return 0;
}

void work_queue_free(struct work_queue *q)
{
	domain_free(q->domain, &q->memory, DOMAIN_QP);
}
