/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that send no packet (binds and invalidations), on their way from a queue pair to a
 * window and back:
 *
 *	tx round	the core says NEXT_OPERATION: the queue pair goes into a list
 *	its end		frames were filled and sent; no copy of this lcore is under way
 *		invalidate	at once; reported when the queue pair's copies at a mover are over
 *		bind, alone	at once
 *		bind, else	through a ring to the control thread, and back by a message when
 *				copies are over
 */
#include <rte_errno.h>
#include <rte_ring.h>
#include <stdio.h>
#include <stdlib.h>

#include "lcore/inside.h"
#include "lcore/moving/moving.h"
#include "lcore/window.h"
#include "queue/pointers.h"

/* A single-producer ring for each lcore: DPDK's multi-producer rings do not order other writes. */
bool operations_prepare(struct engine *e)
{
	char name[RTE_RING_NAMESIZE];

	for (uint32_t i = 0; i < e->lcores; i++) {
		snprintf(name, sizeof(name), "uo%u-%08x", i, (uint32_t)e->id);
		e->operations[i] = rte_ring_create(name, LIMIT_OPERATIONS, SOCKET_ID_ANY,
						   RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (e->operations[i] == NULL) {
			operations_destroy(e);
			return false;
		}
	}
	return true;
}

void operations_destroy(struct engine *e)
{
	for (uint32_t i = 0; i < e->lcores; i++) {
		rte_ring_free(e->operations[i]);
		e->operations[i] = NULL;
	}
}

void operation_begin(struct lcore *l, struct engine_qp *q)
{
	TAILQ_INSERT_TAIL(&l->operations, q, operation_link);
	q->operation_waits = true;
}

void operation_forget(struct lcore *l, struct engine_qp *q)
{
	if (q->operation_waits)
		TAILQ_REMOVE(&l->operations, q, operation_link);
	q->operation_waits = false;
	q->operation_owed = false;
}

void operation_settle(struct engine_qp *q, nanotime now)
{
	assert(q->operation_owed);
	if (q->last_ticket != 0 || q->gather_pending)
		return;
	q->operation_owed = false;
	qp_operation_done(q->core, STATUS_SUCCESS, REASON_NONE);
}

void operation_report(struct lcore *l, struct engine_qp *q, enum reason why, nanotime now)
{
	if (why != REASON_NONE)
		count_reason(l, why);
	qp_operation_done(q->core, why == REASON_NONE ? STATUS_SUCCESS : STATUS_MW_BIND_ERR, why);
	qp_settled(l, q, now);
}

/* Only this lcore reads keys and copies from or to what they name. */
static bool is_alone(const struct lcore *l, const struct engine_qp *q)
{
	return l->engine->lcores == 1 && client_mover(q->client) == NULL &&
	       !client_shares(q->client);
}

/* False: the ring is full. */
static bool pass_on(struct lcore *l, struct engine_qp *q, const struct key_operation *o)
{
	q->operation = *o;
	if (!pointer_put(l->engine->operations[l->index], q))
		return false;
	control_wake(l->engine);
	return true;
}

static void execute(struct lcore *l, struct engine_qp *q, nanotime now)
{
	const struct key_operation *o = qp_operation(q->core);

	if (o == NULL) { /* reset meanwhile */
		operation_report(l, q, REASON_NONE, now);
	} else if (!o->bind) {
		window_invalidate(l->engine, o->key);
		q->operation_owed = true;
		qp_settled(l, q, now);
	} else if (is_alone(l, q) || !windows_exist(l->engine)) {
		operation_report(l, q, window_bind(l->engine, q, o), now);
	} else if (!pass_on(l, q, o)) {
		operation_begin(l, q);
	}
}

uint32_t operations_run(struct lcore *l, nanotime now)
{
	struct operation_list list = TAILQ_HEAD_INITIALIZER(list);
	struct engine_qp *q;
	uint32_t n = 0;

	TAILQ_CONCAT(&list, &l->operations, operation_link);
	while ((q = TAILQ_FIRST(&list)) != NULL) {
		TAILQ_REMOVE(&list, q, operation_link);
		q->operation_waits = false;
		execute(l, q, now);
		n++;
	}
	return n;
}
