/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which clients have a mover: those that may name memory that may block. A mover ends with its
 * client.
 *
 * Atomics: lcores look at client.mover and count direct moves while this file sets and reads them.
 */
#include <errno.h>

#include "drivers/client_memory/mover.h"
#include "control/control.h"
#include "lcore/moving/moving.h"

static int mover_make(struct client *c)
{
	struct mover_bell bell[LIMIT_LCORES];
	struct engine *e = c->engine;
	struct mover *m;

	if (client_mover(c) != NULL)
		return 0;
	for (uint32_t i = 0; i < e->lcores; i++)
		bell[i] = (struct mover_bell){ &e->lcore[i].sleeping, e->lcore[i].wake_fd };
	m = mover_create(c->memory, bell, e->lcores);
	if (m == NULL)
		return errno;
	/* Release: an lcore that sees the mover sees it complete. */
	__atomic_store_n(&c->mover, m, __ATOMIC_RELEASE);
	return 0;
}

/*
 * Clients whose queue pairs may name each other's memory. That goes on from domain to domain: a
 * target queue pair of one client takes a receive from another client's SRQ, in an XRC domain of
 * both, and that receive names a region of a third client, in a protection domain of the second and
 * the third.
 */
struct circle {
	uint32_t count;
	struct client *member[LIMIT_CLIENTS];
	bool in[LIMIT_CLIENTS]; /* by client.number */
};

static void circle_add(struct client *c, void *arg)
{
	struct circle *all = arg;

	if (c->dying || all->in[c->number])
		return;
	all->in[c->number] = true;
	all->member[all->count++] = c;
}

int client_movers_share(struct client *c)
{
	uint64_t walk = ++c->engine->control->domain_walks;
	struct circle all = { 0 };
	bool found = false;
	int error = 0;

	circle_add(c, &all);
	for (uint32_t i = 0; i < all.count; i++)
		domain_each_sharer(all.member[i], walk, circle_add, &all);
	for (uint32_t i = 0; i < all.count; i++)
		found |= client_mover(all.member[i]) != NULL;
	for (uint32_t i = 0; found && error == 0 && i < all.count; i++)
		error = mover_make(all.member[i]);
	return error;
}

int client_mover_give(struct client *c)
{
	int error = mover_make(c);

	return error != 0 ? error : client_movers_share(c);
}

struct revocation {
	const struct client *client;
	const struct region *region;
};

static void revoke_on_lcore(struct lcore *l, void *arg, nanotime now)
{
	const struct revocation *r = arg;

	moving_revoke(l, r->client, r->region);
}

static void movers_leave_direct(const struct engine *e)
{
	for (uint32_t i = 0; i < LIMIT_CLIENTS; i++)
		if (e->client[i] != NULL && client_mover(e->client[i]) != NULL)
			mover_leaves_direct(client_mover(e->client[i]));
}

void client_memory_revoke(struct client *c, const struct region *region)
{
	struct revocation r = { .client = c, .region = region };
	struct engine *e = c->engine;

	/* Acquire: counts every move that began before the caller's grace period. */
	if (__atomic_load_n(&e->direct_moves[c->number], __ATOMIC_ACQUIRE) == 0)
		return;
	for (uint32_t i = 0; i < e->lcores; i++)
		lcore_call(&e->lcore[i], revoke_on_lcore, &r);
	movers_leave_direct(e);
}

static void leave_on_lcore(struct lcore *l, void *arg, nanotime now)
{
	const struct client *c = arg;

	moving_leave(l, c, backing_maps_promoted);
}

void client_memory_leave(struct client *c)
{
	struct engine *e = c->engine;

	/* As in client_memory_revoke. */
	if (__atomic_load_n(&e->direct_moves[c->number], __ATOMIC_ACQUIRE) == 0)
		return;
	for (uint32_t i = 0; i < e->lcores; i++)
		lcore_call(&e->lcore[i], leave_on_lcore, c);
	movers_leave_direct(e);
}
