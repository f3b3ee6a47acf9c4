/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's memory of a queue pair, charged to its program. It comes in three parts. The core
 * comes at creation. Records of a peer's READs and atomics come when the program sets their number
 * (usually a few, the limit is 128). Room for many unsettled copies comes when the small table has
 * been full. Most queue pairs settle each copy at once; those that wait for peer memory ask once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_ring.h>

#include "base/bits.h"
#include "control/control.h"
#include "queue/pointers.h"

/* NULL: the program has reached its limit, or there is no memory. */
static void *take(struct engine_qp *q, size_t octets)
{
	struct account *a = &q->client->objects->account;
	void *memory;

	if (!account_take_memory(a, octets))
		return NULL;
	memory = aligned_alloc(64, octets);
	if (memory == NULL) {
		account_give_memory(a, octets);
		return NULL;
	}
	q->memory_octets += octets;
	q->memory_maps += memory_maps(octets);
	return memory;
}

static void give_back(struct engine_qp *q, void *memory, size_t octets)
{
	free(memory);
	account_give_memory(&q->client->objects->account, octets);
	q->memory_octets -= octets;
	q->memory_maps -= memory_maps(octets);
}

static int refused(struct call *call, size_t octets)
{
	account_explain_memory(&call->client->objects->account, octets, call->reply.why,
			       sizeof(call->reply.why));
	return ENOMEM;
}

int qp_memory_make(struct call *call, struct engine_qp *q, const struct qp_caps *caps,
		   size_t beside, void **at)
{
	size_t core = round_up(qp_memory_size(caps), 64);

	q->memory = take(q, core + round_up(beside, 64));
	if (q->memory == NULL)
		return refused(call, core + round_up(beside, 64));
	*at = (uint8_t *)q->memory + core;
	q->core = qp_init(q->memory, caps);
	return 0;
}

void qp_memory_free(struct engine_qp *q)
{
	struct account *a = &q->client->objects->account;

	free(q->memory);
	free(q->records);
	free(q->tickets);
	account_give(a, RESOURCE_MEMORY, q->memory_octets);
	account_give(a, RESOURCE_MAPPINGS, q->memory_maps);
	q->memory_octets = q->memory_maps = 0;
}

void qp_memory_inherit(struct engine_qp *q, struct client *from, struct client *heir)
{
	account_move(&from->objects->account, &heir->objects->account, RESOURCE_MEMORY,
		     q->memory_octets);
	account_move(&from->objects->account, &heir->objects->account, RESOURCE_MAPPINGS,
		     q->memory_maps);
}

/* ---- a peer's READs and atomics ---- */

struct gift {
	struct engine_qp *qp;
	void *memory;
	uint32_t records;
	void *old;
};

static void give_records(struct lcore *l, void *arg, nanotime now)
{
	struct gift *g = arg;

	g->old = qp_give_records(g->qp->core, g->memory, g->records);
}

int records_provide(struct call *call, struct engine_qp *q, uint32_t max_dest_rd_atomic)
{
	struct gift g = { .qp = q, .records = max_dest_rd_atomic };
	uint32_t before = qp_records(q->core);

	/* The number changes only here, under the control lock. */
	if (max_dest_rd_atomic <= before || max_dest_rd_atomic > LIMIT_RD_ATOMIC)
		return 0;
	g.memory = take(q, qp_records_size(max_dest_rd_atomic));
	if (g.memory == NULL)
		return refused(call, qp_records_size(max_dest_rd_atomic));
	lcore_call(q->lcore, give_records, &g);
	if (g.old != NULL)
		give_back(q, g.old, qp_records_size(before));
	q->records = g.memory;
	return 0;
}

/* ---- unsettled copies ---- */

bool crowded_prepare(struct engine *e)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "uq-%08x", (uint32_t)e->id);
	e->crowded = rte_ring_create(name, LIMIT_CROWDED, SOCKET_ID_ANY, RING_F_SC_DEQ);
	return e->crowded != NULL;
}

static void give_tickets(struct lcore *l, void *arg, nanotime now)
{
	struct engine_qp *q = arg;

	qp_give_tickets(q->core, q->tickets);
}

/* On failure the queue pair keeps its small table. */
static void provide(struct engine_qp *q)
{
	q->tickets = take(q, qp_tickets_size());
	if (q->tickets != NULL)
		lcore_call(q->lcore, give_tickets, q);
}

void crowded_provide(struct engine *e)
{
	uint32_t left = LIMIT_CROWDED_AT_ONCE;
	void *qpn;

	while (left > 0 && e->crowded != NULL && pointer_take(e->crowded, &qpn)) {
		struct engine_qp *q = directory_find(e, (uint32_t)(uintptr_t)qpn);

		/*
		 * Another queue pair may have the number by now. It gets room that it did not ask
		 * for, which is harmless.
		 */
		if (q != NULL && qp_tickets(q->core) < LIMIT_TICKETS)
			provide(q);
		left--;
	}
	if (left == 0)
		control_wake(e);
}
