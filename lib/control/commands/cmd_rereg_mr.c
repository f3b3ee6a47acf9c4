/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A region that changes its addresses, protection domain or access (ibv_rereg_mr(3)). What lcores
 * read is never changed but replaced: the old region is removed, the engine waits until no thread
 * uses it, and the new one appears under the same key. A peer sees a region that was deregistered
 * and registered again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"

#define REREG_KNOWN (REREG_TRANSLATION | REREG_PD | REREG_ACCESS)
#define WRITES	    (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)

static int check_object(struct call *call, const struct request_rereg_mr *r, const struct mr *m)
{
	const struct pd *p = object_find(call->client, OBJECT_PD, r->pd);

	if (m == NULL || m->leaving)
		return call_fail(call, EINVAL, "no such region");
	if (r->flags == 0 || (r->flags & ~(uint32_t)REREG_KNOWN) != 0)
		return call_fail(call, EINVAL, "unknown or no flags: 0x%x", r->flags);
	if (m->region->kind != REGION_MEMORY || m->dm != NULL)
		return call_fail(call, EINVAL, "null regions and device memory cannot be changed");
	if ((r->flags & REREG_PD) && (p == NULL || p->context != m->context))
		return call_fail(call, EINVAL, "no such protection domain in this context");
	if (region_windows(m->region) != 0)
		return call_fail(call, EBUSY, "%u memory windows are bound to the region",
				 region_windows(m->region));
	return 0;
}

/* An implicit region stays implicit; it has no addresses to change. */
static int check_implicit(struct call *call, const struct request_rereg_mr *r,
			  const struct mr_wish *w)
{
	if ((r->flags & REREG_TRANSLATION) || !(w->access & ACCESS_ON_DEMAND) ||
	    (w->access & ACCESS_HUGETLB))
		return call_fail(call, EINVAL, "an implicit region cannot become an ordinary one");
	return mr_check_access(call, w->access);
}

static int check_wish(struct call *call, const struct request_rereg_mr *r, const struct mr *m,
		      const struct mr_wish *w)
{
	if (m->implicit)
		return check_implicit(call, r, w);
	if (!(r->flags & REREG_TRANSLATION))
		return mr_check_access(call, w->access);
	if (mr_wish_implicit(w))
		return call_fail(call, EINVAL, "an ordinary region cannot become an implicit one");
	return mr_check_wish(call, w);
}

static bool is_read_only(const struct mr *m, const uint8_t *direct)
{
	for (uint32_t i = 0; i < m->uses; i++) {
		const struct backing_file *f = m->use[i].file;

		if (!f->writable && direct >= f->map.base && direct < f->map.base + f->map.length)
			return true;
	}
	return false;
}

/*
 * Copies the pieces. Files were mapped with the access of that time. If the region becomes writable
 * and they are mapped read-only, their pieces become peer memory.
 */
static int region_copy(const struct mr *m, uint32_t access, struct mr *copy)
{
	const struct region *old = m->region;
	size_t octets = sizeof(*old) + old->pieces * sizeof(old->piece[0]);
	struct region *r = malloc(octets);

	if (r == NULL)
		return ENOMEM;
	memcpy(r, old, octets);
	r->windows = 0;
	if ((access & WRITES) && !(old->access & WRITES))
		for (uint32_t i = 0; i < r->pieces; i++)
			if (is_read_only(m, r->piece[i].direct))
				r->piece[i].direct = NULL;
	copy->region = r;
	return 0;
}

/* The first octet's address in work requests from now on. */
static uint64_t iova_of(const struct request_rereg_mr *r, const struct mr *m, uint32_t access)
{
	const struct region *old = m->region;

	if (access & ACCESS_ZERO_BASED)
		return 0;
	if (r->flags & REREG_TRANSLATION)
		return r->iova;
	return old->access & ACCESS_ZERO_BASED ? old->piece[0].peer_address : old->iova;
}

static int build(struct call *call, const struct request_rereg_mr *r, const struct mr *m,
		 const struct mr_wish *w, struct mr *new)
{
	bool moves = (r->flags & REREG_TRANSLATION) != 0;
	int error = moves ? region_lay_out(call, w, new) : region_copy(m, w->access, new);

	/* A piece that was direct, in a file mapped read-only, may be peer memory now. */
	if (error == 0 && !moves && !call->client->embedded)
		error = client_mover_give(call->client);
	if (error != 0)
		return error;
	new->pd = r->flags &REREG_PD ? object_find(call->client, OBJECT_PD, r->pd) : m->pd;
	new->region->key = m->key;
	new->region->pd = new->pd->number;
	new->region->access = w->access;
	new->region->client = call->client->number;
	new->region->context = m->context;
	new->region->iova = iova_of(r, m, w->access);
	new->region->length = moves ? w->length : m->region->length;
	return 0;
}

/* As in cmd_dereg_mr an lcore may have bound a window between the first check and the second. */
static int take_out(struct call *call, struct mr *m)
{
	mr_withdraw(call->client, m);
	engine_grace_period(call->engine);
	if (region_windows(m->region) == 0)
		return 0;
	key_publish(&call->engine->keys, m->key, m->region);
	return call_fail(call, EBUSY, "a memory window is bound to the region");
}

static void replace(struct client *c, struct mr *m, const struct mr *new, bool moved)
{
	m->pd->users--;
	new->pd->users++;
	m->pd = new->pd;
	if (moved) {
		client_memory_revoke(c, m->region);
		region_exit_promoted(m);
		region_unmap(c, m);
		m->use = new->use;
		m->uses = new->uses;
		m->promoted = new->promoted;
		region_enter_promoted(c, m);
	}
	free(m->region);
	m->region = new->region;
}

/* A change that waits for copies: the region, and its new properties. */
struct change {
	struct mr *mr;
	struct mr new;
};

static void change_drop(struct client *client, struct change *c)
{
	region_unmap(client, &c->new);
	free(c->new.region);
	free(c);
}

static void abandon(struct call *call)
{
	change_drop(call->client, call->data);
}

static int finish(struct call *call)
{
	const struct request_rereg_mr *r = (const struct request_rereg_mr *)call->request;
	struct reply_reg_mr *reply = (struct reply_reg_mr *)&call->reply;
	struct change *c = call->data;
	struct mr *m = c->mr;

	replace(call->client, m, &c->new, (r->flags & REREG_TRANSLATION) != 0);
	free(c);
	m->leaving = false;
	key_publish(&call->engine->keys, m->key, m->region);
	reply->handle = m->handle;
	reply->lkey = m->key;
	reply->rkey = m->key;
	return 0;
}

static int check(struct call *call, const struct request_rereg_mr *r, const struct mr *m,
		 struct mr_wish *w)
{
	int error = mr_check_backings(call, r->backings, sizeof(*r));

	if (error == 0)
		error = check_object(call, r, m);
	if (error != 0)
		return error;
	if (!(r->flags & REREG_ACCESS))
		w->access = m->region->access;
	return check_wish(call, r, m, w);
}

int cmd_rereg_mr(struct call *call)
{
	const struct request_rereg_mr *r = (const struct request_rereg_mr *)call->request;
	struct mr *m = object_find(call->client, OBJECT_MR, r->mr);
	struct mr_wish w = { r->access,	  r->address, r->length, r->iova,
			     r->backings, r->leaves,  r->backing };
	int error = check(call, r, m, &w);
	struct change *c;

	if (error != 0)
		return error;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return ENOMEM;
	c->mr = m;
	error = build(call, r, m, &w, &c->new);
	if (error == 0)
		error = take_out(call, m);
	if (error != 0) {
		change_drop(call->client, c);
		return error;
	}
	m->leaving = true;
	call->data = c;
	return call_after_copies(call, finish, abandon);
}
