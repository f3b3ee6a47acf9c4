/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a peer's READs and atomics are remembered in. Most queue pairs grant a few, the limit is
 * 128, and a record takes more than a cache line: memory comes when a program says how many.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/control.h"

struct gift {
	struct engine_qp *qp;
	void *memory;
	uint32_t records;
	void *old;
};

static void give(struct lcore *l, void *arg, nanotime now)
{
	struct gift *g = arg;

	g->old = qp_give_records(g->qp->core, g->memory, g->records);
}

int records_provide(struct call *call, struct engine_qp *q, uint32_t max_dest_rd_atomic)
{
	struct client_objects *o = call->client->objects;
	struct gift g = { .qp = q, .records = max_dest_rd_atomic };
	size_t octets;

	/* The number changes here alone, under the control lock. */
	if (max_dest_rd_atomic <= qp_records(q->core) || max_dest_rd_atomic > LIMIT_RD_ATOMIC)
		return 0;
	octets = qp_records_size(max_dest_rd_atomic);
	if (o->memory + octets > LIMIT_CLIENT_MEMORY)
		return call_fail(call, ENOMEM,
				 "the program's queue pairs hold %llu MiB, all it may",
				 (unsigned long long)(o->memory >> 20));
	g.memory = aligned_alloc(64, octets);
	if (g.memory == NULL)
		return call_fail(call, ENOMEM, "the engine has no memory for %u READs and atomics",
				 max_dest_rd_atomic);
	lcore_call(q->lcore, give, &g);
	free(g.old);
	o->memory += octets - q->records_octets;
	q->records = g.memory;
	q->records_octets = octets;
	return 0;
}

void records_free(struct engine_qp *q)
{
	q->client->objects->memory -= q->records_octets;
	free(q->records);
	q->records = NULL;
	q->records_octets = 0;
}
