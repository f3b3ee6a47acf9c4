/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Import (ibv_import_device(3) and related calls): a context that was opened with the token of
 * another context may import that context's objects. An import shares the object and does not copy
 * it:
 *
 *	PD	a handle of the same domain, which lasts as long as any handle
 *	DM	a handle of the same memory; likewise
 *	MR	its keys' numbers; the region belongs to its exporter and ends with it
 *
 * Each side frees its own handles. That does not end what others still have.
 */
#include <errno.h>
#include <stdlib.h>

#include "control/control.h"

int cmd_import_context(struct call *call)
{
	struct context *exporter, *x;
	int error;

	if (call->in.count != 1)
		return call_fail(call, EPROTO,
				 "the command needs one descriptor: a context's token");
	exporter = token_find(call->engine, call->in.fd[0]);
	if (exporter == NULL)
		return call_fail(call, EINVAL,
				 "the descriptor is not the token of an open context");
	error = context_create(call, &x);
	if (error != 0)
		return error;
	x->imported = true;
	x->exporter = exporter;
	LIST_INSERT_HEAD(&exporter->importers, x, import_link);
	return 0;
}

/* The object with that handle in the context from which x was imported, or in x itself. */
static void *find_exported(struct call *call, const struct context *x, enum object_kind kind,
			   uint32_t handle)
{
	if (x->imported)
		x = x->exporter;
	if (x == NULL) {
		call_fail(call, EINVAL, "the exporter's context is closed");
		return NULL;
	}
	return object_of_context(x->client, kind, handle, x->handle);
}

static int no_such(struct call *call, const char *what)
{
	return call->reply.why[0] != '\0' ? EINVAL
					  : call_fail(call, EINVAL, "no such %s to import", what);
}

int cmd_import_pd(struct call *call)
{
	const struct request_import *r = (const struct request_import *)call->request;
	const struct context *x = object_find(call->client, OBJECT_CONTEXT, r->into);
	struct reply_handle *reply = (struct reply_handle *)&call->reply;
	struct pd *exported, *p;
	int error;

	if (x == NULL)
		return call_fail(call, EINVAL, "no such context");
	exported = find_exported(call, x, OBJECT_PD, r->handle);
	if (exported == NULL)
		return no_such(call, "protection domain");
	error = pd_create(call, r->into, exported->domain, &p);
	if (error == 0)
		reply->handle = p->handle;
	return error;
}

int cmd_import_dm(struct call *call)
{
	const struct request_import *r = (const struct request_import *)call->request;
	const struct context *x = object_find(call->client, OBJECT_CONTEXT, r->into);
	struct dm *exported;

	if (x == NULL)
		return call_fail(call, EINVAL, "no such context");
	exported = find_exported(call, x, OBJECT_DM, r->handle);
	if (exported == NULL)
		return no_such(call, "device memory");
	return dm_create(call, r->into, exported->memory);
}

/* The region behind a handle of the exporter, which may have imported it itself, or NULL. */
static const struct region *find_region(struct call *call, const struct context *x, uint32_t handle)
{
	const struct mr *m = find_exported(call, x, OBJECT_MR, handle);
	const struct mr_import *i;

	if (m != NULL)
		return m->region;
	i = find_exported(call, x, OBJECT_MR_IMPORT, handle & ~MR_IMPORT_MARK);
	return i != NULL && (handle & MR_IMPORT_MARK) ? key_find(&call->engine->keys, i->key)
						      : NULL;
}

static int import_mr(struct call *call, struct pd *p, const struct region *region)
{
	struct handle_table *t = &call->client->objects->table[OBJECT_MR_IMPORT];
	struct reply_import_mr *reply = (struct reply_import_mr *)&call->reply;
	struct mr_import *i = calloc(1, sizeof(*i));

	if (i == NULL)
		return ENOMEM;
	i->handle = handle_reserve(t);
	if (i->handle == 0) {
		free(i);
		return call_no_handle(call, OBJECT_MR_IMPORT);
	}
	i->context = p->context;
	i->pd = p;
	i->key = region->key;
	p->users++;
	handle_publish(t, i->handle, i);
	reply->handle = i->handle | MR_IMPORT_MARK;
	reply->lkey = i->key;
	reply->rkey = i->key;
	reply->length = region->length;
	return 0;
}

int cmd_import_mr(struct call *call)
{
	const struct request_import *r = (const struct request_import *)call->request;
	struct pd *p = object_find(call->client, OBJECT_PD, r->into);
	const struct region *region;

	if (p == NULL)
		return call_fail(call, EINVAL, "no such protection domain");
	region =
		find_region(call, object_find(call->client, OBJECT_CONTEXT, p->context), r->handle);
	if (region == NULL)
		return no_such(call, "region");
	if (region->pd != p->number)
		return call_fail(call, EINVAL, "the region is in another protection domain");
	return import_mr(call, p, region);
}

void mr_import_free(struct client *c, struct mr_import *i)
{
	struct handle_table *t = &c->objects->table[OBJECT_MR_IMPORT];

	handle_withdraw(t, i->handle);
	handle_free(t, i->handle);
	i->pd->users--;
	free(i);
}

int cmd_unimport_mr(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct mr_import *i =
		object_find(call->client, OBJECT_MR_IMPORT, r->handle & ~MR_IMPORT_MARK);

	if (i == NULL || !(r->handle & MR_IMPORT_MARK))
		return call_fail(call, EINVAL, "no such imported region");
	mr_import_free(call->client, i);
	return 0;
}
