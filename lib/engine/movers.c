/* SPDX-License-Identifier: BSD-3-Clause */
/* Which clients have a mover: given when their memory may block or did, taken when they go. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "drivers/client_memory/mover.h"
#include "engine/control.h"
#include "engine/moving.h"

#define SETTLE_MS 1000u /* how long copies under way are waited for */

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

static void on_lcore(struct lcore *l, void *arg, nanotime now)
{
	moving_give_back(l, arg, now);
}

static void give_back(struct mover_batch *batch, void *arg)
{
	struct client *c = arg;

	lcore_call(&c->engine->lcore[batch->lcore], on_lcore, batch);
}

static void leave_on_lcore(struct lcore *l, void *arg, nanotime now)
{
	moving_leave_behind(l, arg);
}

void client_mover_take(struct client *c)
{
	struct mover *m = client_mover(c);
	struct mover_batch *held;

	if (m == NULL)
		return;
	/* The job that a stuck thread holds stays with it for ever; its lcore has 63 others. */
	held = mover_destroy(m, SETTLE_MS, give_back, c);
	if (held != NULL) {
		fprintf(stderr, "uroce: a copy of %s's memory does not end; left behind\n",
			c->objects->program);
		lcore_call(&c->engine->lcore[held->lcore], leave_on_lcore, held);
	}
	__atomic_store_n(&c->mover, NULL, __ATOMIC_RELEASE);
}

struct count {
	const struct client *client;
	bool begun; /* `newest` is known */
	uint64_t newest[LIMIT_LCORES]; /* job when it began: what comes behind it does not matter */
	uint32_t jobs; /* of its own mover, and of others' movers with its memory */
};

static void count_jobs(struct lcore *l, void *arg, nanotime now)
{
	struct count *n = arg;
	uint64_t *newest = &n->newest[l->index];

	if (!n->begun)
		*newest = moving_newest(l);
	n->jobs += moving_jobs_of(l, n->client, *newest) + moving_jobs_into(l, n->client, *newest);
}

static void count_all(const struct client *c, struct count *n)
{
	n->jobs = 0;
	for (uint32_t i = 0; i < c->engine->lcores; i++)
		lcore_call(&c->engine->lcore[i], count_jobs, n);
	n->begun = true;
}

bool client_mover_settle(struct client *c)
{
	struct count n = { .client = c };

	if (client_mover(c) == NULL && !client_shares(c))
		return true;
	for (uint32_t waited_us = 0; waited_us < SETTLE_MS * 1000; waited_us += 100) {
		count_all(c, &n);
		if (n.jobs == 0)
			return true;
		usleep(100);
	}
	return false;
}
