/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions. An embedding program shares the engine's address space, so its regions are one
 * direct piece. An attached program's regions are peer memory, except where their backings can be
 * mapped.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/bits.h"
#include "control/control.h"

#define WRITES (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)
#define ACCESS_KNOWN                                                                           \
	(WRITES | ACCESS_REMOTE_READ | ACCESS_MW_BIND | ACCESS_ZERO_BASED | ACCESS_ON_DEMAND | \
	 ACCESS_HUGETLB | ACCESS_FLUSH_GLOBAL | ACCESS_OPTIONAL_RANGE)

int mr_check_access(struct call *call, uint32_t access)
{
	if (access & ACCESS_FLUSH_PERSISTENT)
		return call_fail(call, EOPNOTSUPP, "persistent memory is not available");
	if (access & ~(uint32_t)ACCESS_KNOWN)
		return call_fail(call, EINVAL, "unknown access flags 0x%x",
				 access & ~(uint32_t)ACCESS_KNOWN);
	if ((access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)) &&
	    !(access & ACCESS_LOCAL_WRITE))
		return call_fail(call, EINVAL,
				 "IBV_ACCESS_REMOTE_WRITE and _ATOMIC need IBV_ACCESS_LOCAL_WRITE");
	/*
	 * The engine touches memory of its own process directly: a page that is missing would kill
	 * it.
	 */
	if ((access & ACCESS_ON_DEMAND) && call->client->embedded)
		return call_fail(call, EOPNOTSUPP,
				 "on-demand paging is not available to embedded programs");
	return 0;
}

bool mr_wish_implicit(const struct mr_wish *w)
{
	return (w->access & ACCESS_ON_DEMAND) && w->address == 0 && w->length == UINT64_MAX;
}

static int check_implicit(struct call *call, const struct mr_wish *w)
{
	if (w->iova != 0 || (w->access & ACCESS_HUGETLB) || w->backings != 0)
		return call_fail(call, EINVAL,
				 "an implicit region has no iova, huge pages or files");
	return 0;
}

/* Whether all pages of the range are mapped in this process. */
static bool is_mapped(uint64_t address, uint64_t length)
{
	uint64_t page = address & ~UINT64_C(4095);

	return msync((void *)(uintptr_t)page, address + length - page, MS_ASYNC) == 0;
}

/* Neither the addresses nor the iova range may wrap. */
static int check_range(struct call *call, const struct mr_wish *w)
{
	if (w->length == 0 || w->length > LIMIT_MR_LENGTH)
		return call_fail(call, EINVAL, "a region's length must be 1 .. 2^47");
	if (w->address == 0 || w->address + w->length < w->address)
		return call_fail(call, EINVAL, "the address range wraps or begins at 0");
	if (w->iova + w->length < w->iova)
		return call_fail(call, EINVAL, "iova and length wrap");
	if (call->client->embedded && !is_mapped(w->address, w->length))
		return call_fail(call, EFAULT, "part of the range is not mapped");
	return 0;
}

int mr_check_wish(struct call *call, const struct mr_wish *w)
{
	int error = mr_check_access(call, w->access);

	if (error != 0)
		return error;
	return mr_wish_implicit(w) ? check_implicit(call, w) : check_range(call, w);
}

int mr_check_backings(struct call *call, uint32_t backings, size_t fixed)
{
	if (backings > BACKING_MAX || call->length != fixed + backings * sizeof(struct mr_backing))
		return call_fail(call, EPROTO, "%u backings do not fit the message", backings);
	return 0;
}

static int check_domain(struct call *call, const struct pd *p)
{
	return p != NULL ? 0 : call_fail(call, EINVAL, "no such protection domain");
}

int key_give(struct call *call, uint32_t *key)
{
	uint8_t variant;

	if (getrandom(&variant, sizeof(variant), 0) != sizeof(variant))
		return EAGAIN;
	*key = key_allocate(&call->engine->keys, variant);
	return *key != 0 ? 0 : call_fail(call, ENOMEM, "all keys are in use");
}

/* A region object with a handle and no content, or NULL. */
static struct mr *mr_new(struct call *call, struct pd *p, int *error)
{
	struct handle_table *t = &call->client->objects->table[OBJECT_MR];
	struct mr *m = calloc(1, sizeof(*m));

	*error = ENOMEM;
	if (m == NULL)
		return NULL;
	m->pd = p;
	m->context = p->context;
	m->handle = handle_reserve(t);
	if (m->handle != 0)
		return m;
	*error = call_no_handle(call, OBJECT_MR);
	free(m);
	return NULL;
}

static void mr_undo(struct call *call, struct mr *m)
{
	handle_free(&call->client->objects->table[OBJECT_MR], m->handle);
	region_unmap(call->client, m);
	free(m->region);
	free(m);
}

/* The region is complete: makes it visible through its key and handle. */
static void mr_enter(struct call *call, struct mr *m)
{
	struct reply_reg_mr *reply = (struct reply_reg_mr *)&call->reply;

	m->region->key = m->key;
	m->region->pd = m->pd->number;
	m->region->context = m->context;
	m->pd->users++;
	call->engine->mr_count++;
	call->engine->mr_made++;
	region_enter_promoted(call->client, m);
	key_publish(&call->engine->keys, m->key, m->region);
	handle_publish(&call->client->objects->table[OBJECT_MR], m->handle, m);
	reply->handle = m->handle;
	reply->lkey = m->key;
	reply->rkey = m->region->kind == REGION_NULL ? 0 : m->key;
}

static int mr_build(struct call *call, const struct mr_wish *w, struct mr *m)
{
	int error = region_lay_out(call, w, m);

	if (error == 0)
		error = key_give(call, &m->key);
	if (error != 0)
		return error;
	m->implicit = mr_wish_implicit(w);
	m->region->access = w->access;
	m->region->client = call->client->number;
	m->region->iova = w->access & ACCESS_ZERO_BASED ? 0 : w->iova;
	m->region->length = w->length;
	return 0;
}

int cmd_reg_mr(struct call *call)
{
	const struct request_reg_mr *r = (const struct request_reg_mr *)call->request;
	const struct mr_wish w = { r->access,	r->address, r->length, r->iova,
				   r->backings, r->leaves,  r->backing };
	struct pd *p = object_find(call->client, OBJECT_PD, r->pd);
	int error = mr_check_backings(call, r->backings, sizeof(*r));
	struct mr *m;

	if (error == 0)
		error = check_domain(call, p);
	if (error == 0)
		error = mr_check_wish(call, &w);
	if (error != 0)
		return error;
	m = mr_new(call, p, &error);
	if (m == NULL)
		return error;
	error = mr_build(call, &w, m);
	if (error != 0)
		mr_undo(call, m);
	else
		mr_enter(call, m);
	return error;
}

/* The largest possible region, without memory behind it. */
int cmd_alloc_null_mr(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct pd *p = object_find(call->client, OBJECT_PD, r->handle);
	int error = check_domain(call, p);
	struct mr *m;

	if (error != 0)
		return error;
	m = mr_new(call, p, &error);
	if (m == NULL)
		return error;
	m->region = calloc(1, sizeof(*m->region));
	error = m->region == NULL ? ENOMEM : key_give(call, &m->key);
	if (error != 0) {
		mr_undo(call, m);
		return error;
	}
	m->region->kind = REGION_NULL;
	m->region->access = ACCESS_LOCAL_WRITE;
	m->region->client = call->client->number;
	m->region->length = UINT64_MAX;
	mr_enter(call, m);
	return 0;
}

void mr_withdraw(struct client *c, struct mr *m)
{
	key_withdraw(&c->engine->keys, m->key);
}

void mr_free(struct client *c, struct mr *m)
{
	struct handle_table *t = &c->objects->table[OBJECT_MR];

	handle_withdraw(t, m->handle);
	handle_free(t, m->handle);
	key_free(&c->engine->keys, m->key);
	m->pd->users--;
	if (m->dm != NULL)
		m->dm->users--;
	c->engine->mr_count--;
	/* For a client that ends, all its memory at once: it may have very many regions. */
	client_memory_revoke(c, c->dying ? NULL : m->region);
	region_exit_promoted(m);
	region_unmap(c, m);
	free(m->region);
	free(m);
}

static int windows_left(struct call *call, const struct region *r)
{
	uint32_t windows = region_windows(r);

	return windows == 0 ? 0
			    : call_fail(call, EBUSY, "%u memory windows are bound to the region",
					windows);
}

/*
 * The reply means that no thread writes there any more: an lcore completes its copies before its
 * poll ends, and a mover's copies are waited for. An lcore may bind a window between the first
 * check and the grace period, so there is a second check.
 */
static int dereg_finish(struct call *call)
{
	mr_free(call->client, call->data);
	return 0;
}

int cmd_dereg_mr(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct mr *m = object_find(call->client, OBJECT_MR, r->handle);
	int error = 0;

	if (m == NULL || m->leaving)
		return call_fail(call, EINVAL, "no such region");
	error = windows_left(call, m->region);
	if (error != 0)
		return error;
	mr_withdraw(call->client, m);
	engine_grace_period(call->engine);
	error = windows_left(call, m->region);
	if (error != 0) {
		key_publish(&call->engine->keys, m->key, m->region);
		return error;
	}
	m->leaving = true;
	call->data = m;
	return call_after_copies(call, dereg_finish, NULL);
}

int cmd_promoted_file(struct call *call)
{
	struct client_objects *o = call->client->objects;
	int error;

	if (call->in.count != 1)
		return call_fail(call, EPROTO,
				 "the command needs one descriptor: the promoted file");
	if (o->promoted >= 0)
		return call_fail(call, EEXIST, "the program has already passed its promoted file");
	error = backing_promote(call->client, call->in.fd[0]);
	if (error == 0)
		call->in.fd[0] = -1;
	if (error == EOPNOTSUPP)
		call_fail(call, error, "the descriptor is not a memfd sealed against shrinking");
	return error;
}
