/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binds of memory windows that an lcore cannot make alone, because other lcores may read the window
 * or a copy through it may be under way. The control thread clears the window, waits for the lcores
 * and the copies, and then binds it.
 *
 * Atomics: lcores write a window's and a queue pair's fields when they bind. windows_leave() runs
 * after the queue pair was detached and a grace period, so relaxed loads see the last values.
 */
#include "control/binds.h"

#include <stdlib.h>

#include "control/control.h"
#include "lcore/window.h"
#include "queue/pointers.h"

struct answer {
	struct engine_qp *qp;
	enum reason why;
};

static void answer(struct lcore *l, void *arg, nanotime now)
{
	const struct answer *a = arg;

	operation_report(l, a->qp, a->why, now);
}

/*
 * A bind that waits for copies through the window, which was unbound for it. Its queue pair
 * executes nothing else meanwhile.
 */
struct bind_wait {
	struct engine_qp *qp;
	struct settling settling;
	nanotime until;
	LIST_ENTRY(bind_wait) link;
};

#define BIND_WAIT (LIMIT_BIND_WAIT_S * TIME_S)

static void report(struct engine_qp *q, enum reason why)
{
	struct answer a = { q, why };

	lcore_call(q->lcore, answer, &a);
}

static void finish(struct engine *e, struct engine_qp *q, enum reason why)
{
	if (why == REASON_NONE)
		why = window_bind(e, q, &q->operation);
	report(q, why);
}

struct want {
	const struct engine_qp *qp;
	bool is_there;
};

static void look_for_want(struct lcore *l, void *arg, nanotime now)
{
	struct want *w = arg;

	w->is_there = qp_operation(w->qp->core) != NULL;
}

/*
 * False: the queue pair was reset or failed since it posted the bind, and only waits for the report. The
 * program may have bound the window by another queue pair meanwhile, so the bind must not be made. It
 * cannot be reset before the bind is made, as that takes the control lock. If it fails before, whatever
 * the program then binds comes here later.
 */
static bool is_wanted(const struct engine_qp *q)
{
	struct want w = { .qp = q };

	lcore_call(q->lcore, look_for_want, &w);
	return w.is_there;
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

/* q == NULL: the binds of all detached queue pairs. */
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

	forget_of(e, q); /* it was reset meanwhile, and posted another bind */
	if (!is_wanted(q)) {
		report(q, REASON_NONE);
		return;
	}
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
	if (!is_wanted(q)) {
		forget(e, b);
		report(q, REASON_NONE);
		return;
	}
	if (now >= b->until)
		why = REASON_BUSY;
	else if (!settle_over(q->client, &b->settling))
		return;
	/* Another queue pair may have bound the window meanwhile. */
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

/* The oldest bind of this lcore. False: there was none. */
static bool execute_next(struct engine *e, uint32_t lcore)
{
	struct engine_qp *q;
	void *p;

	if (e->operations[lcore] == NULL || !pointer_take(e->operations[lcore], &p))
		return false;
	q = p;
	if (!q->detached)
		execute_bind(e, q);
	return true;
}

void operations_finish(struct engine *e)
{
	for (uint32_t lcore = 0; lcore < e->lcores; lcore++)
		for (uint32_t i = 0; i < LIMIT_OPERATIONS && execute_next(e, lcore); i++)
			;
	forget_of(e, NULL);
}

/* Each bind waits for every lcore, so other work of the control path comes in between. */
void operations_continue(struct engine *e)
{
	bool more = false;

	for (uint32_t lcore = 0; lcore < e->lcores; lcore++) {
		uint32_t n = 0;

		while (n < LIMIT_BINDS_AT_ONCE && execute_next(e, lcore))
			n++;
		more |= n == LIMIT_BINDS_AT_ONCE;
	}
	if (more)
		control_wake(e);
}

void windows_leave(struct engine_qp *q)
{
	struct handle_table *t = &q->client->objects->table[OBJECT_MW];

	for (uint32_t i = 1; i <= t->used; i++) {
		struct window *w = t->slot[i];

		if (__atomic_load_n(&q->windows, __ATOMIC_RELAXED) == 0)
			return;
		if (w != NULL && __atomic_load_n(&w->qp, __ATOMIC_RELAXED) == q)
			window_unbind(q->client->engine, w);
	}
}
