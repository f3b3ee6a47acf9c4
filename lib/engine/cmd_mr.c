/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions. An embedded program's memory is ours, so its regions are one direct piece; an
 * attached program's is peer memory, except where its backings can be mapped.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/bits.h"
#include "engine/control.h"

#define ACCESS_KNOWN                                                                            \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC | \
	 ACCESS_MW_BIND | ACCESS_ZERO_BASED | ACCESS_HUGETLB | ACCESS_OPTIONAL_RANGE)

static int check_access(struct call *call, uint32_t access)
{
	if (access & ACCESS_ON_DEMAND)
		return call_fail(call, EOPNOTSUPP, "on-demand paging is not supported");
	if (access & ~(uint32_t)ACCESS_KNOWN)
		return call_fail(call, EINVAL, "access flags 0x%x are not known",
				 access & ~(uint32_t)ACCESS_KNOWN);
	if ((access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)) &&
	    !(access & ACCESS_LOCAL_WRITE))
		return call_fail(call, EINVAL,
				 "IBV_ACCESS_REMOTE_WRITE and _ATOMIC need IBV_ACCESS_LOCAL_WRITE");
	return 0;
}

/* Nothing of the range wraps, neither where it is nor as it is called. */
static int check_range(struct call *call, const struct request_reg_mr *r)
{
	if (r->length == 0 || r->length > LIMIT_MR_LENGTH)
		return call_fail(call, EINVAL, "a region's length is 1 .. 2^47");
	if (r->address == 0 || r->address + r->length < r->address)
		return call_fail(call, EINVAL, "the address range wraps or begins at 0");
	if (r->iova + r->length < r->iova)
		return call_fail(call, EINVAL, "iova and length wrap");
	return 0;
}

/* Whether all pages of our own range are mapped. */
static bool is_mapped(uint64_t address, uint64_t length)
{
	uint64_t page = address & ~UINT64_C(4095);

	return msync((void *)(uintptr_t)page, address + length - page, MS_ASYNC) == 0;
}

static int check_reg_mr(struct call *call, const struct request_reg_mr *r)
{
	const struct pd *p = object_find(call->client, OBJECT_PD, r->pd);
	int error;

	if (r->backings > BACKING_MAX ||
	    call->length != sizeof(*r) + r->backings * sizeof(struct mr_backing))
		return call_fail(call, EPROTO, "%u backings do not fit the message", r->backings);
	if (p == NULL)
		return call_fail(call, EINVAL, "no such protection domain");
	error = check_access(call, r->access);
	if (error == 0)
		error = check_range(call, r);
	if (error == 0 && call->engine->mr_count >= LIMIT_MRS)
		error = call_fail(call, ENOMEM, "the engine has %u regions, all it can", LIMIT_MRS);
	return error;
}

int key_give(struct call *call, uint32_t *key)
{
	uint8_t variant;

	if (getrandom(&variant, sizeof(variant), 0) != sizeof(variant))
		return EAGAIN;
	*key = key_allocate(&call->engine->keys, variant);
	return *key != 0 ? 0 : call_fail(call, ENOMEM, "all keys are taken");
}

static int mr_build(struct call *call, const struct request_reg_mr *r, struct mr *m)
{
	int error;

	if (call->client->embedded && !is_mapped(r->address, r->length))
		return call_fail(call, EFAULT, "not all of the range is mapped");
	error = region_lay_out(call, r, m);
	if (error == 0)
		error = key_give(call, &m->key);
	if (error != 0)
		return error;
	m->region->key = m->key;
	m->region->pd = m->pd->number;
	m->region->access = r->access;
	m->region->client = call->client->number;
	m->region->iova = r->access & ACCESS_ZERO_BASED ? 0 : r->iova;
	m->region->length = r->length;
	return 0;
}

int cmd_reg_mr(struct call *call)
{
	const struct request_reg_mr *r = (const struct request_reg_mr *)call->request;
	struct handle_table *t = &call->client->objects->table[OBJECT_MR];
	struct reply_reg_mr *reply = (struct reply_reg_mr *)&call->reply;
	int error = check_reg_mr(call, r);
	struct mr *m;

	if (error != 0)
		return error;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return ENOMEM;
	m->pd = object_find(call->client, OBJECT_PD, r->pd);
	m->context = m->pd->context;
	m->handle = handle_reserve(t);
	error = m->handle == 0 ? call_fail(call, ENOMEM, "a program may have %u regions", t->limit)
			       : mr_build(call, r, m);
	if (error != 0) {
		if (m->handle != 0)
			handle_free(t, m->handle);
		region_unmap(m);
		free(m->region);
		free(m);
		return error;
	}
	m->pd->users++;
	call->engine->mr_count++;
	key_publish(&call->engine->keys, m->key, m->region);
	handle_publish(t, m->handle, m);
	reply->handle = m->handle;
	reply->lkey = m->key;
	reply->rkey = m->key;
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
	region_unmap(m);
	free(m->region);
	free(m);
}

/* Returns when no lcore can write there any more: copies are made before an lcore's poll ends. */
int cmd_dereg_mr(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct mr *m = object_find(call->client, OBJECT_MR, r->handle);

	if (m == NULL)
		return call_fail(call, EINVAL, "no such region");
	mr_withdraw(call->client, m);
	engine_grace_period(call->engine);
	client_mover_settle(call->client);
	mr_free(call->client, m);
	return 0;
}

int cmd_promoted_file(struct call *call)
{
	struct client_objects *o = call->client->objects;
	int error;

	if (call->in.count != 1)
		return call_fail(call, EPROTO, "one descriptor, of the promoted file, is wanted");
	if (o->promoted.base != NULL)
		return call_fail(call, EEXIST, "the program has passed its promoted file before");
	error = direct_open(&o->promoted, call->in.fd[0], 0, 0, true);
	return error == 0 ? 0 : call_fail(call, error, "this is no memfd sealed against shrinking");
}
