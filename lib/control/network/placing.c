/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/network/placing.h"

#include "drivers/port.h"
#include "lcore/srq.h"
#include "wire/envelope.h"

static uint32_t fewest_of(const uint32_t *placed, uint32_t lcores)
{
	uint32_t fewest = 0;

	for (uint32_t i = 1; i < lcores; i++)
		if (placed[i] < placed[fewest])
			fewest = i;
	return fewest;
}

uint32_t placing_choose(const uint32_t *placed, uint32_t lcores, uint32_t now, uint32_t arrives)
{
	uint32_t fewest = fewest_of(placed, lcores), sum = 0, bound;

	for (uint32_t i = 0; i < lcores; i++)
		sum += placed[i];
	bound = placed[fewest] + 1 + sum / (8 * lcores);
	if (placed[arrives] < bound)
		return arrives;
	return placed[now] < bound ? now : fewest;
}

/*
 * The queue at which the peer's packets arrive. Their source port follows from the rule of Linux
 * and of hardware, which is also ours (flow_source_port). rxe has another rule, so its packets
 * arrive at any lcore, and cross to the right one.
 */
static uint16_t arrives_at(const struct engine *e, const struct engine_qp *q,
			   const struct qp_path *path, uint32_t dest_qpn)
{
	struct port *p = e->port;

	if (p == NULL || p->ops->queue_of == NULL)
		return UINT16_MAX;
	return p->ops->queue_of(p, &path->dgid, &path->sgid,
				flow_source_port(path->flow_label, dest_qpn, q->qpn));
}

/* Tag matching binds a queue pair to the lcore of its SRQ. */
static bool may_move(const struct engine_qp *q)
{
	return (q->type == QP_TYPE_RC || q->type == QP_TYPE_UC || q->type == QP_TYPE_XRC_SEND) &&
	       (q->srq == NULL || q->srq->lcore == NULL);
}

static void move_to(struct engine_qp *q, struct lcore *to)
{
	struct qp_move m = { q, to };

	if (q->lcore != to)
		lcore_call(q->lcore, lcore_qp_move, &m);
}

void placing_connect(struct engine *e, struct engine_qp *q, const struct qp_path *path,
		     uint32_t dest_qpn)
{
	uint32_t *placed = e->control->placed;
	uint16_t arrives;

	if (e->lcores == 1 || !may_move(q))
		return;
	placing_leave(e, q);
	arrives = arrives_at(e, q, path, dest_qpn);
	if (arrives < e->lcores)
		move_to(q, &e->lcore[placing_choose(placed, e->lcores, q->lcore->index, arrives)]);
	placed[q->lcore->index]++;
	q->placed = true;
}

void placing_leave(struct engine *e, struct engine_qp *q)
{
	if (q->placed)
		e->control->placed[q->lcore->index]--;
	q->placed = false;
}
