/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcore/turns/drains.h"

#include <stdlib.h>

bool drains_open(struct drains *d)
{
	TAILQ_INIT(&d->programs);
	d->program = calloc(LIMIT_CLIENTS, sizeof(*d->program));
	for (uint32_t i = 0; d->program != NULL && i < LIMIT_CLIENTS; i++)
		TAILQ_INIT(&d->program[i].qps);
	return d->program != NULL;
}

void drains_close(struct drains *d)
{
	free(d->program);
}

void drains_add(struct drains *d, struct engine_qp *q)
{
	struct drain_program *p = &d->program[q->client->number];

	if (q->drains != NULL)
		return;
	if (TAILQ_EMPTY(&p->qps))
		TAILQ_INSERT_TAIL(&d->programs, p, link);
	TAILQ_INSERT_TAIL(&p->qps, q, drain_link);
	q->drains = p;
	d->count++;
}

void drains_remove(struct drains *d, struct engine_qp *q)
{
	struct drain_program *p = q->drains;

	if (p == NULL)
		return;
	TAILQ_REMOVE(&p->qps, q, drain_link);
	if (TAILQ_EMPTY(&p->qps))
		TAILQ_REMOVE(&d->programs, p, link);
	q->drains = NULL;
	d->count--;
}

struct engine_qp *drains_take(struct drains *d)
{
	struct drain_program *p = TAILQ_FIRST(&d->programs);
	struct engine_qp *q;

	if (p == NULL)
		return NULL;
	TAILQ_REMOVE(&d->programs, p, link);
	TAILQ_INSERT_TAIL(&d->programs, p, link);
	q = TAILQ_FIRST(&p->qps);
	drains_remove(d, q);
	return q;
}
