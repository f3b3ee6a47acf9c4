/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LEAVE_PROMOTED: a program takes its promoted memory back while its regions stay registered (a
 * fork that cannot hold back the program's threads). The pieces in the promoted file become peer
 * memory where they are: their keys stay valid, windows stay bound, nothing fails.
 *
 *	mover		lcores have the client's mover before they meet peer memory
 *	hold		atomics of peer memory wait: the CPU may still be making some in the file
 *	pieces		a look from now on finds peer memory
 *	grace period	lcores that had looked before are done
 *	jobs		what movers were to write in the file goes to peer memory
 *	let go		no thread accesses the file
 *
 * Nothing here waits for a copy that may block. A client has one command at a time, so none of its
 * regions is being made or changed meanwhile.
 */
#include <errno.h>

#include "control/control.h"
#include "drivers/client_memory/peer_atomic.h"

static bool is_promoted(const struct client *c, const struct mr *m, const void *at)
{
	for (uint32_t i = 0; i < m->uses; i++)
		if (backing_use_is_promoted(c, &m->use[i], at))
			return true;
	return false;
}

static void leave_pieces(const struct client *c, struct mr *m)
{
	for (uint32_t i = 0; i < m->region->pieces; i++) {
		struct region_piece *p = &m->region->piece[i];

		/* Release: pairs with the acquire in span_append. */
		if (p->direct != NULL && is_promoted(c, m, p->direct))
			__atomic_store_n(&p->direct, NULL, __ATOMIC_RELEASE);
	}
}

static void leave_all(struct client *c)
{
	struct mr *m;

	peer_locks_hold(c->memory->locks);
	LIST_FOREACH(m, &c->objects->promoted_mrs, promoted_link)
	leave_pieces(c, m);
	engine_grace_period(c->engine);
	client_memory_leave(c);
	peer_locks_let_go(c->memory->locks);
}

int cmd_leave_promoted(struct call *call)
{
	const struct request_leave_promoted *r =
		(const struct request_leave_promoted *)call->request;
	struct client *c = call->client;
	struct client_objects *o = c->objects;
	int error;

	if (o->promoted < 0)
		return call_fail(call, EINVAL, "the program has not passed its promoted file");
	if (r->leaves <= o->leaves)
		return call_fail(call, EINVAL, "the program has left its promoted file %u times",
				 o->leaves);
	if (!LIST_EMPTY(&o->promoted_mrs)) {
		error = client_mover_give(c);
		if (error != 0)
			return call_fail(
				call, error,
				"the engine cannot create a thread for the program's copies");
		engine_grace_period(c->engine);
		leave_all(c);
	}
	o->leaves = r->leaves;
	return 0;
}
