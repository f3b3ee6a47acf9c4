/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcore/turns/turns.h"

#include <stddef.h>
#include <stdlib.h>

bool turns_open(struct turns *t)
{
	TAILQ_INIT(&t->users);
	t->user = calloc(LIMIT_CLIENTS, sizeof(*t->user));
	t->program = calloc(LIMIT_CLIENTS, sizeof(*t->program));
	if (t->user == NULL || t->program == NULL)
		return false;
	for (uint32_t i = 0; i < LIMIT_CLIENTS; i++) {
		TAILQ_INIT(&t->user[i].programs);
		TAILQ_INIT(&t->program[i].qps);
	}
	return true;
}

void turns_close(struct turns *t)
{
	free(t->user);
	free(t->program);
}

/* The program that owns this list. NULL: it is another kind of list. */
static struct turn_program *program_of(const struct turns *t, struct ready_list *list)
{
	static_assert(offsetof(struct turn_program, qps) == 0,
		      "a list is the address of its program");
	uintptr_t first = (uintptr_t)t->program, at = (uintptr_t)list;

	if (at - first >= LIMIT_CLIENTS * sizeof(*t->program))
		return NULL;
	return (struct turn_program *)(void *)list;
}

/* The program of this queue pair. If it was not listed, it is put last. */
static struct turn_program *enter(struct turns *t, const struct client *c)
{
	struct turn_program *p = &t->program[c->number];

	if (!TAILQ_EMPTY(&p->qps))
		return p;
	p->user = &t->user[c->user];
	if (TAILQ_EMPTY(&p->user->programs))
		TAILQ_INSERT_TAIL(&t->users, p->user, link);
	TAILQ_INSERT_TAIL(&p->user->programs, p, link);
	return p;
}

static void leave(struct turns *t, struct turn_program *p)
{
	TAILQ_REMOVE(&p->user->programs, p, link);
	if (TAILQ_EMPTY(&p->user->programs))
		TAILQ_REMOVE(&t->users, p->user, link);
}

void turns_add(struct turns *t, struct engine_qp *q)
{
	struct turn_program *p = enter(t, q->client);

	TAILQ_INSERT_TAIL(&p->qps, q, ready_link);
	q->stands_in = &p->qps;
}

void turns_leave(struct turns *t, struct engine_qp *q)
{
	/*
	 * The list tells the program. The queue pair's present client does not: that of an XRC
	 * target may change while it is listed.
	 */
	struct turn_program *p = program_of(t, q->stands_in);

	TAILQ_REMOVE(q->stands_in, q, ready_link);
	if (p != NULL && TAILQ_EMPTY(&p->qps))
		leave(t, p);
}

struct engine_qp *turns_next(struct turns *t)
{
	struct turn_user *u = TAILQ_FIRST(&t->users);
	struct turn_program *p;
	struct engine_qp *q;

	if (u == NULL)
		return NULL;
	p = TAILQ_FIRST(&u->programs);
	q = TAILQ_FIRST(&p->qps);
	if (TAILQ_NEXT(u, link) != NULL) {
		TAILQ_REMOVE(&t->users, u, link);
		TAILQ_INSERT_TAIL(&t->users, u, link);
	}
	if (TAILQ_NEXT(p, link) != NULL) {
		TAILQ_REMOVE(&u->programs, p, link);
		TAILQ_INSERT_TAIL(&u->programs, p, link);
	}
	if (TAILQ_NEXT(q, ready_link) != NULL) {
		TAILQ_REMOVE(&p->qps, q, ready_link);
		TAILQ_INSERT_TAIL(&p->qps, q, ready_link);
	}
	return q;
}

void turns_return(struct turns *t, struct ready_list *list)
{
	struct turn_program *p;
	struct engine_qp *q;

	while ((q = TAILQ_LAST(list, ready_list)) != NULL) {
		TAILQ_REMOVE(list, q, ready_link);
		p = enter(t, q->client);
		TAILQ_INSERT_HEAD(&p->qps, q, ready_link);
		q->stands_in = &p->qps;
	}
}
