/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of lcores to the control thread: a ring takes them, an eventfd wakes the thread. */
#include <errno.h>
#include <unistd.h>

#include "lcore/inside.h"
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
	 */
	if (rte_ring_count(ring) <= e->lcores)
		control_wake(e);
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
