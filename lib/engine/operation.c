/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that stay at home, on their way from a queue pair to a window and back:
 *
 *	tx round	the core says NEXT_OPERATION: the queue pair is noted
 *	its end		frames were filled and sent; nothing of this lcore is in anybody's memory
 *		invalidate	at once; reported when the queue pair's copies on a mover are over
 *		bind, alone	at once
 *		bind, else	a ring to the control thread; when copies are over a message back
 */
#include <rte_errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/control.h"
#include "engine/moving.h"
#include "engine/window.h"

#define OPERATION_SLOTS	   1024u /* when they are all taken a queue pair waits with its lcore */
#define OPERATIONS_AT_ONCE 8u /* of an lcore */

/* A ring with one producer for each lcore: those of DPDK with many do not carry what others wrote. */
bool operations_prepare(struct engine *e)
{
	char name[RTE_RING_NAMESIZE];

	for (uint32_t i = 0; i < e->lcores; i++) {
		snprintf(name, sizeof(name), "uo%u-%08x", i, (uint32_t)e->id);
		e->operations[i] = rte_ring_create(name, OPERATION_SLOTS, SOCKET_ID_ANY,
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
	if (!q->operation_owed || q->last_ticket != 0 || q->gather_pending)
		return;
	q->operation_owed = false;
	qp_operation_done(q->core, STATUS_SUCCESS, REASON_NONE, now);
}

static void report(struct lcore *l, struct engine_qp *q, enum reason why, nanotime now)
{
	if (why != REASON_NONE)
		count_reason(l, why);
	qp_operation_done(q->core, why == REASON_NONE ? STATUS_SUCCESS : STATUS_MW_BIND_ERR, why,
			  now);
	qp_settled(l, q, now);
}

/* Nobody but this lcore reads keys, or copies what they lead to. */
static bool is_alone(const struct lcore *l, const struct engine_qp *q)
{
	return l->engine->lcores == 1 && client_mover(q->client) == NULL &&
	       !client_shares(q->client);
}

/* False: the ring is full. */
static bool pass_on(struct lcore *l, struct engine_qp *q, const struct key_operation *o)
{
	q->operation = *o;
	if (rte_ring_enqueue(l->engine->operations[l->index], q) != 0)
		return false;
	control_wake(l->engine);
	return true;
}

static void execute(struct lcore *l, struct engine_qp *q, nanotime now)
{
	const struct key_operation *o = qp_operation(q->core);

	if (o == NULL) { /* reset meanwhile */
		report(l, q, REASON_NONE, now);
	} else if (!o->bind) {
		window_invalidate(l->engine, o->key);
		q->operation_owed = true;
		qp_settled(l, q, now);
	} else if (is_alone(l, q) || !windows_exist(l->engine)) {
		report(l, q, window_bind(l->engine, q, o), now);
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

struct answer {
	struct engine_qp *qp;
	enum reason why;
};

static void answer(struct lcore *l, void *arg, nanotime now)
{
	const struct answer *a = arg;

	report(l, a->qp, a->why, now);
}

/*
 * A bind whose window was just unbound: what goes through it still may be under way. Its queue pair
 * does nothing else meanwhile.
 */
struct bind_wait {
	struct engine_qp *qp;
	struct settling settling;
	nanotime until;
	LIST_ENTRY(bind_wait) link;
};

#define BIND_WAIT (1 * TIME_S) /* then it fails */

static void finish(struct engine *e, struct engine_qp *q, enum reason why)
{
	struct answer a = { q, why };

	if (why == REASON_NONE)
		a.why = window_bind(e, q, &q->operation);
	lcore_call(q->lcore, answer, &a);
}

static bool clear(struct engine *e, struct engine_qp *q, struct settling *s, enum reason *why)
{
	*why = window_clear(e, q, &q->operation);
	if (*why != REASON_NONE)
		return true;
	engine_grace_period(e);
	return settle_begin(q->client, s);
}

static void forget(struct engine *e, struct bind_wait *b)
{
	LIST_REMOVE(b, link);
	settle_await_no_more(e);
	free(b);
}

/* NULL: those of all queue pairs that are detached. */
static void forget_of(struct engine *e, const struct engine_qp *q)
{
	struct bind_wait *b, *next;

	for (b = LIST_FIRST(&e->control->binds); b != NULL; b = next) {
		next = LIST_NEXT(b, link);
		if (q != NULL ? b->qp == q : b->qp->detached)
			forget(e, b);
	}
}

static void execute_bind(struct engine *e, struct engine_qp *q)
{
	struct bind_wait *b, at = { .qp = q };
	enum reason why;

	forget_of(e, q); /* it was reset meanwhile, and posted another one */
	if (clear(e, q, &at.settling, &why)) {
		finish(e, q, why);
		return;
	}
	b = malloc(sizeof(*b));
	if (b == NULL) {
		finish(e, q, REASON_BUSY);
		return;
	}
	*b = at;
	b->until = clock_now() + BIND_WAIT;
	LIST_INSERT_HEAD(&e->control->binds, b, link);
	settle_await(e);
}

static void go_on(struct engine *e, struct bind_wait *b, nanotime now)
{
	struct engine_qp *q = b->qp;
	enum reason why = REASON_NONE;

	if (q->detached) {
		forget(e, b);
		return;
	}
	if (now >= b->until)
		why = REASON_BUSY;
	else if (!settle_over(q->client, &b->settling))
		return;
	/* Another queue pair may have bound it meanwhile. */
	else if (!window_is_clear(e, &q->operation) && !clear(e, q, &b->settling, &why))
		return;
	forget(e, b);
	finish(e, q, why);
}

void operations_go_on(struct engine *e, nanotime now)
{
	struct bind_wait *b, *next;

	for (b = LIST_FIRST(&e->control->binds); b != NULL; b = next) {
		next = LIST_NEXT(b, link);
		go_on(e, b, now);
	}
}

/* The oldest of this lcore. False: there was none. */
static bool execute_next(struct engine *e, uint32_t lcore)
{
	struct engine_qp *q;
	void *p;

	if (e->operations[lcore] == NULL || rte_ring_dequeue(e->operations[lcore], &p) != 0)
		return false;
	q = p;
	if (!q->detached)
		execute_bind(e, q);
	return true;
}

void operations_finish(struct engine *e)
{
	for (uint32_t lcore = 0; lcore < e->lcores; lcore++)
		for (uint32_t i = 0; i < OPERATION_SLOTS && execute_next(e, lcore); i++)
			;
	forget_of(e, NULL);
}

/* Each waits for every lcore: others want the control path, too. */
void operations_continue(struct engine *e)
{
	bool more = false;

	for (uint32_t lcore = 0; lcore < e->lcores; lcore++) {
		uint32_t n = 0;

		while (n < OPERATIONS_AT_ONCE && execute_next(e, lcore))
			n++;
		more |= n == OPERATIONS_AT_ONCE;
	}
	if (more)
		control_wake(e);
}
