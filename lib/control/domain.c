/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection domains. Keys and queue pairs carry the number of a domain. A process has a handle
 * (struct pd) of each domain that it allocated or imported. A domain lasts as long as any handle of
 * it.
 *
 * Queue pairs of one domain may name regions of several clients. If the memory of one of them may
 * block an lcore, movers make the copies of all that share a domain with it (movers.c).
 *
 * Atomics: lcores read client.shares at any time. It only ever becomes true, so relaxed is enough.
 */
#include <errno.h>
#include <stdlib.h>

#include "control/control.h"
#include "lcore/moving/moving.h"
#include "lcore/xrc.h"

static bool number_is_used(const struct control *c, uint32_t number)
{
	const struct domain *d;

	LIST_FOREACH(d, &c->domains[number % CONTROL_BUCKETS], link)
	if (d->number == number)
		return true;
	return false;
}

static struct domain *domain_create(struct engine *e)
{
	struct control *c = e->control;
	struct domain *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	/* Numbers repeat after 2^32 others. */
	do
		c->next_domain++;
	while (number_is_used(c, c->next_domain));
	d->number = c->next_domain;
	LIST_INIT(&d->pds);
	LIST_INSERT_HEAD(&c->domains[d->number % CONTROL_BUCKETS], d, link);
	return d;
}

static void domain_drop(struct domain *d)
{
	if (--d->handles > 0)
		return;
	LIST_REMOVE(d, link);
	free(d);
}

static void each_sharer_of_xrcds(struct client *c, uint64_t walk,
				 void (*visit)(struct client *sharer, void *arg), void *arg)
{
	struct handle_table *t = &c->objects->table[OBJECT_XRCD];

	for (uint32_t i = 1; i <= t->used; i++) {
		struct xrcd *mine = t->slot[i], *x;

		if (mine == NULL || mine->domain->handles == 1 || mine->domain->walk == walk)
			continue;
		mine->domain->walk = walk;
		LIST_FOREACH(x, &mine->domain->holders, domain_link)
		if (x->client != c)
			visit(x->client, arg);
	}
}

void domain_each_sharer(struct client *c, uint64_t walk,
			void (*visit)(struct client *sharer, void *arg), void *arg)
{
	struct handle_table *t = &c->objects->table[OBJECT_PD];

	if (!c->shares)
		return;
	each_sharer_of_xrcds(c, walk, visit, arg);
	for (uint32_t i = 1; i <= t->used; i++) {
		struct pd *mine = t->slot[i], *p;

		if (mine == NULL || mine->domain->handles == 1 || mine->domain->walk == walk)
			continue;
		mine->domain->walk = walk;
		LIST_FOREACH(p, &mine->domain->pds, domain_link)
		if (p->client != c)
			visit(p->client, arg);
	}
}

static void mark_sharing(struct domain *d)
{
	const struct pd *first = LIST_FIRST(&d->pds);
	struct pd *p;
	bool several = false;

	LIST_FOREACH(p, &d->pds, domain_link)
	several |= p->client != first->client;
	if (!several)
		return;
	LIST_FOREACH(p, &d->pds, domain_link)
	__atomic_store_n(&p->client->shares, true, __ATOMIC_RELAXED);
}

int xrcd_share(struct xrcd *x)
{
	bool several = false;
	struct xrcd *other;

	LIST_FOREACH(other, &x->domain->holders, domain_link)
	several |= other->client != x->client;
	if (!several)
		return 0;
	LIST_FOREACH(other, &x->domain->holders, domain_link)
	other->client->shares = true;
	return client_movers_share(x->client);
}

static void enter(struct client *c, struct pd *p, struct domain *d)
{
	p->domain = d;
	p->number = d->number;
	p->client = c;
	d->handles++;
	LIST_INSERT_HEAD(&d->pds, p, domain_link);
	handle_publish(&c->objects->table[OBJECT_PD], p->handle, p);
}

int pd_create(struct call *call, uint32_t context, struct domain *of, struct pd **out)
{
	struct client *c = call->client;
	struct handle_table *t = &c->objects->table[OBJECT_PD];
	struct pd *p = calloc(1, sizeof(*p));
	struct domain *d;
	int error;

	if (p == NULL)
		return ENOMEM;
	p->context = context;
	p->handle = handle_reserve(t);
	if (p->handle == 0) {
		free(p);
		return call_no_handle(call, OBJECT_PD);
	}
	d = of != NULL ? of : domain_create(call->engine);
	if (d == NULL) {
		handle_free(t, p->handle);
		free(p);
		return ENOMEM;
	}
	enter(c, p, d);
	mark_sharing(d);
	error = client_movers_share(c);
	if (error != 0) {
		pd_free(c, p);
		return call_fail(call, error,
				 "the engine cannot create a thread for the program's copies");
	}
	*out = p;
	return 0;
}

void pd_free(struct client *c, struct pd *p)
{
	struct handle_table *t = &c->objects->table[OBJECT_PD];

	handle_withdraw(t, p->handle);
	handle_free(t, p->handle);
	LIST_REMOVE(p, domain_link);
	domain_drop(p->domain);
	free(p);
}
