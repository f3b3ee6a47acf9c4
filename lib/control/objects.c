/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles, and the objects behind them. Lcores look objects up in these tables without a lock, so
 * the slots are atomic: release here, acquire in lcore/work.c.
 */
#include <errno.h>
#include <sys/mman.h>

#include "control/control.h"
#include "control/commands/raw_control.h"
#include "lcore/srq.h"
#include "lcore/window.h"
#include "lcore/xrc.h"

/*
 * A freed handle is reused only after LIMIT_HANDLES_AT_REST others, so that a program's stale
 * handle is noticed.
 */

/* Pages are used only for handles that exist. */
static void *table_memory(size_t octets)
{
	void *m = mmap(NULL, octets, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return m == MAP_FAILED ? NULL : m;
}

int handle_table_init(struct handle_table *t, uint32_t limit)
{
	*t = (struct handle_table){ .limit = limit };
	t->slot = table_memory((limit + 1) * sizeof(*t->slot));
	t->next_free = table_memory((limit + 1) * sizeof(*t->next_free));
	if (t->slot != NULL && t->next_free != NULL)
		return 0;
	handle_table_destroy(t);
	return ENOMEM;
}

void handle_table_destroy(struct handle_table *t)
{
	if (t->slot != NULL)
		munmap(t->slot, (t->limit + 1) * sizeof(*t->slot));
	if (t->next_free != NULL)
		munmap(t->next_free, (t->limit + 1) * sizeof(*t->next_free));
	*t = (struct handle_table){ 0 };
}

uint32_t handle_reserve(struct handle_table *t)
{
	uint32_t handle;

	if (t->count == t->limit ||
	    (t->account != NULL && !account_take(t->account, t->resource, 1)))
		return 0;
	t->count++;
	if (t->used < t->limit && t->freed <= LIMIT_HANDLES_AT_REST)
		return ++t->used;
	handle = t->first_free;
	t->first_free = t->next_free[handle];
	t->freed--;
	return handle;
}

void handle_publish(struct handle_table *t, uint32_t handle, void *object)
{
	/* Pairs with the acquire in work.c: an lcore that sees the pointer sees the object. */
	__atomic_store_n(&t->slot[handle], object, __ATOMIC_RELEASE);
}

void handle_withdraw(struct handle_table *t, uint32_t handle)
{
	__atomic_store_n(&t->slot[handle], NULL, __ATOMIC_RELEASE);
}

void handle_free(struct handle_table *t, uint32_t handle)
{
	if (t->freed++ == 0)
		t->first_free = handle;
	else
		t->next_free[t->last_free] = handle;
	t->last_free = handle;
	t->count--;
	if (t->account != NULL)
		account_give(t->account, t->resource, 1);
}

static const enum resource resource_of[OBJECT_KINDS] = {
	[OBJECT_CONTEXT] = RESOURCE_CONTEXTS,
	[OBJECT_PD] = RESOURCE_PDS,
	[OBJECT_MR] = RESOURCE_MRS,
	[OBJECT_CHANNEL] = RESOURCE_CHANNELS,
	[OBJECT_CQ] = RESOURCE_CQS,
	[OBJECT_QP] = RESOURCE_QPS,
	[OBJECT_AH] = RESOURCE_AHS,
	[OBJECT_DM] = RESOURCE_DMS,
	[OBJECT_MR_IMPORT] = RESOURCE_IMPORTS,
	[OBJECT_SRQ] = RESOURCE_SRQS,
	[OBJECT_RWQ_TABLE] = RESOURCE_TABLES,
	[OBJECT_RSS] = RESOURCE_RSS,
	[OBJECT_FLOW] = RESOURCE_FLOWS,
	[OBJECT_COUNTERS] = RESOURCE_COUNTERS,
	[OBJECT_MW] = RESOURCE_MRS,
	[OBJECT_XRCD] = RESOURCE_XRCDS,
	[OBJECT_TARGET] = RESOURCE_TARGETS,
	[OBJECT_CM_CHANNEL] = RESOURCE_CM_CHANNELS,
	[OBJECT_CM_ID] = RESOURCE_CM_IDS,
	[OBJECT_CM_JOIN] = RESOURCE_CM_JOINS,
};

bool objects_open(struct client *c)
{
	struct account *a = &c->objects->account;

	for (uint32_t kind = 0; kind < OBJECT_KINDS; kind++) {
		struct handle_table *t = &c->objects->table[kind];
		enum resource r = resource_of[kind];

		if (handle_table_init(t, (uint32_t)a->users->of_program[r]) != 0)
			return false;
		t->account = a;
		t->resource = r;
	}
	c->qp = (struct engine_qp **)c->objects->table[OBJECT_QP].slot;
	c->ah = (struct engine_ah **)c->objects->table[OBJECT_AH].slot;
	return true;
}

void objects_close(struct client *c)
{
	for (uint32_t kind = 0; kind < OBJECT_KINDS; kind++)
		handle_table_destroy(&c->objects->table[kind]);
}

int call_no_handle(struct call *call, enum object_kind kind)
{
	account_explain(&call->client->objects->account, resource_of[kind], 1, call->reply.why,
			sizeof(call->reply.why));
	return ENOMEM;
}

int call_take(struct call *call, enum resource r, uint64_t n)
{
	struct account *a = &call->client->objects->account;

	if (account_take(a, r, n))
		return 0;
	account_explain(a, r, n, call->reply.why, sizeof(call->reply.why));
	return ENOMEM;
}

int queues_take(struct call *call, size_t octets, uint64_t *offset)
{
	struct client *c = call->client;
	int error = call_take(call, RESOURCE_QUEUES, octets);

	*offset = 0;
	if (error != 0)
		return error;
	*offset = arena_allocate(c->arena, octets);
	if (*offset != 0)
		return 0;
	account_give(&c->objects->account, RESOURCE_QUEUES, octets);
	return call_fail(call, ENOMEM, "the program's memory for queues is full");
}

void queues_give(struct client *c, uint64_t offset, size_t octets)
{
	if (offset == 0)
		return;
	arena_free(c->arena, offset, octets);
	account_give(&c->objects->account, RESOURCE_QUEUES, octets);
}

uint32_t context_of_object(enum object_kind kind, const void *object)
{
	switch (kind) {
	case OBJECT_CONTEXT:
		return ((const struct context *)object)->handle;
	case OBJECT_PD:
		return ((const struct pd *)object)->context;
	case OBJECT_MR:
		return ((const struct mr *)object)->context;
	case OBJECT_CHANNEL:
		return ((const struct engine_channel *)object)->context;
	case OBJECT_CQ:
		return ((const struct engine_cq *)object)->context;
	case OBJECT_QP:
		return ((const struct engine_qp *)object)->context;
	case OBJECT_AH:
		return ((const struct engine_ah *)object)->context;
	case OBJECT_DM:
		return ((const struct dm *)object)->context;
	case OBJECT_MR_IMPORT:
		return ((const struct mr_import *)object)->context;
	case OBJECT_SRQ:
		return ((const struct engine_srq *)object)->context;
	case OBJECT_RWQ_TABLE:
	case OBJECT_RSS:
	case OBJECT_FLOW:
	case OBJECT_COUNTERS:
		return ((const struct raw_object *)object)->context;
	case OBJECT_MW:
		return ((const struct window *)object)->context;
	case OBJECT_XRCD:
		return ((const struct xrcd *)object)->context;
	case OBJECT_TARGET:
		return ((const struct target *)object)->context;
	case OBJECT_CM_CHANNEL:
	case OBJECT_CM_ID:
	case OBJECT_CM_JOIN:
	case OBJECT_KINDS:
		break;
	}
	return 0;
}

void *object_of_context(const struct client *c, enum object_kind kind, uint32_t handle,
			uint32_t context)
{
	void *object = object_find(c, kind, handle);

	return object != NULL && context_of_object(kind, object) == context ? object : NULL;
}
