/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which queue pair sends next on an lcore. Users take turns; so do the programs of a user, and the
 * queue pairs of a program. So thousands of queue pairs of one user keep another user waiting no
 * longer than one does:
 *
 *	users		A -- B -- C	after its turn, each goes behind the others
 *	programs	     B: 1 -- 2
 *	queue pairs		1: x -- y -- z
 */
#ifndef LCORE_TURNS_H
#define LCORE_TURNS_H

#include "lcore/client.h"

struct turn_user;

struct turn_program {
	struct ready_list qps; /* first */
	TAILQ_ENTRY(turn_program) link; /* while there are some */
	struct turn_user *user;
};

TAILQ_HEAD(turn_programs, turn_program);

struct turn_user {
	struct turn_programs programs;
	TAILQ_ENTRY(turn_user) link; /* while there are some */
};

TAILQ_HEAD(turn_users, turn_user);

struct turns {
	struct turn_users users;
	struct turn_user *user; /* LIMIT_CLIENTS, by client.user */
	struct turn_program *program; /* LIMIT_CLIENTS, by client.number */
};

/* False: no memory. */
bool turns_open(struct turns *t);
void turns_close(struct turns *t);

static inline bool turns_none(const struct turns *t)
{
	return TAILQ_EMPTY(&t->users);
}

/* The list of this program's queue pairs. */
static inline struct ready_list *turns_of(const struct turns *t, const struct client *c)
{
	return &t->program[c->number].qps;
}

/* Puts an unlisted queue pair last in its program's list. */
void turns_add(struct turns *t, struct engine_qp *q);
/* Removes it from its list, here or elsewhere. */
void turns_leave(struct turns *t, struct engine_qp *q);
/* Returns the queue pair whose turn it is, or NULL, and puts it behind all others. */
struct engine_qp *turns_next(struct turns *t);
/* Puts all queue pairs of this list back, first in their programs' lists, in order. */
void turns_return(struct turns *t, struct ready_list *list);

#endif
