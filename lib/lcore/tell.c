/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of lcores to the control thread: a ring takes them, an eventfd wakes the thread. */
#include <errno.h>
#include <unistd.h>

#include <rte_ring.h>

#include "lcore/inside.h"
#include "queue/fence.h"
#include "queue/pointers.h"

void control_wake(struct engine *e)
{
	uint64_t one = 1;

	/* EAGAIN: the counter is full, so the thread is awake or about to be. */
	while (write(e->control_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void control_tell(struct engine *e, const struct rte_ring *ring)
{
	/*
	 * An lcore that comes alone finds one entry, its own. If all lcores come at the same time,
	 * each may see the entries of all. More entries than lcores mean that an lcore came twice.
	 * It woke the thread for its first entry.
	 *
	 * The fence pairs with that of control_has_more: we see how far the thread has emptied the
	 * ring, or it sees our entry.
	 */
	queue_fence();
	if (rte_ring_count(ring) <= e->lcores)
		control_wake(e);
}

bool control_has_more(const struct rte_ring *ring)
{
	queue_fence();
	return !rte_ring_empty(ring);
}

void copy_over_tell(struct engine *e)
{
	if (__atomic_exchange_n(&e->settle_news, 1, __ATOMIC_ACQ_REL) == 0)
		control_wake(e);
}

void qp_crowded(struct lcore *l, struct engine_qp *q)
{
	struct engine *e = l->engine;

	if (q->crowded || e->crowded == NULL || qp_tickets(q->core) == LIMIT_TICKETS)
		return;
	/* Full: the next packet asks again. */
	if (!pointer_put(e->crowded, (void *)(uintptr_t)q->qpn))
		return;
	q->crowded = true;
	control_wake(e);
}
