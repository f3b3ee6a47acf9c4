/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs with requests left in their send rings. Their programs take turns, so that the rings
 * of one program do not keep others waiting.
 */
#ifndef LCORE_DRAINS_H
#define LCORE_DRAINS_H

#include "lcore/client.h"

struct drain_program {
	struct drain_list qps;
	TAILQ_ENTRY(drain_program) link; /* while there are some */
};

TAILQ_HEAD(drain_programs, drain_program);

struct drains {
	struct drain_programs programs;
	uint32_t count; /* how many queue pairs are listed */
	struct drain_program *program; /* LIMIT_CLIENTS, by client.number */
};

/* False: no memory. */
bool drains_open(struct drains *d);
void drains_close(struct drains *d);

static inline bool drains_none(const struct drains *d)
{
	return d->count == 0;
}

/* Puts the queue pair last in its program's list, unless it is listed already. */
void drains_add(struct drains *d, struct engine_qp *q);
/* Removes the queue pair, if it is listed. */
void drains_remove(struct drains *d, struct engine_qp *q);
/* Takes the queue pair whose turn it is off the list. NULL: the list is empty. */
struct engine_qp *drains_take(struct drains *d);

#endif
