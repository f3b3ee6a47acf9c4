/* SPDX-License-Identifier: BSD-3-Clause */
/* Which clients have a mover: given when their memory may block or did. It goes with its client. */
#include <errno.h>

#include "drivers/client_memory/mover.h"
#include "control/control.h"
#include "lcore/moving/moving.h"

int client_mover_make(struct client *c)
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
	/* Release: an lcore that sees it sees it complete. */
	__atomic_store_n(&c->mover, m, __ATOMIC_RELEASE);
	return 0;
}

static void make_too(struct client *sharer, void *arg)
{
	if (!sharer->dying)
		client_mover_make(sharer);
}

int client_mover_give(struct client *c)
{
	int error = client_mover_make(c);

	/* Queue pairs that may name this client's memory must not wait for it on an lcore either. */
	if (error == 0)
		domain_each_sharer(c, make_too, NULL);
	return error;
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

void client_memory_revoke(struct client *c, const struct region *region)
{
	struct revocation r = { .client = c, .region = region };
	struct engine *e = c->engine;

	/* Acquire: whatever was begun before the caller's grace period is counted. */
	if (__atomic_load_n(&e->direct_moves[c->number], __ATOMIC_ACQUIRE) == 0)
		return;
	for (uint32_t i = 0; i < e->lcores; i++)
		lcore_call(&e->lcore[i], revoke_on_lcore, &r);
	for (uint32_t i = 0; i < LIMIT_CLIENTS; i++)
		if (e->client[i] != NULL && client_mover(e->client[i]) != NULL)
			mover_leaves_direct(client_mover(e->client[i]));
}
