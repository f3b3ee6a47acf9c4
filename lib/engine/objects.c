/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles, and what is left of a client when it goes. */
#include <errno.h>
#include <sys/mman.h>

#include "engine/control.h"
#include "engine/raw_control.h"
#include "engine/srq.h"
#include "engine/window.h"
#include "engine/xrc.h"

/* Handles that rest before one is used again: a stale one in a program is noticed then. */
#define HANDLES_AT_REST 64u

/* Memory is touched only where handles are used. */
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

	if (t->count == t->limit)
		return 0;
	t->count++;
	if (t->used < t->limit && t->freed <= HANDLES_AT_REST)
		return ++t->used;
	handle = t->first_free;
	t->first_free = t->next_free[handle];
	t->freed--;
	return handle;
}

void handle_publish(struct handle_table *t, uint32_t handle, void *object)
{
	/* Pairs with the acquire in work.c: who sees the pointer sees the object. */
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
}

/* Queue pairs of a client that one message takes from an lcore: other work goes on in between. */
#define DETACH_AT_ONCE 256u

LIST_HEAD(qp_list, engine_qp);
LIST_HEAD(ah_list, engine_ah);

struct detach {
	struct client *client;
	uint32_t context; /* 0: all */
	uint32_t handle; /* next to look at */
	struct qp_list gone;
};

static bool belongs(uint32_t context, uint32_t to)
{
	return to == 0 || context == to;
}

/* On the lcore, so that no doorbell finds a queue pair between its handle and its end. */
static void detach_some(struct lcore *l, void *arg, nanotime now)
{
	struct detach *d = arg;
	struct handle_table *t = &d->client->objects->table[OBJECT_QP];
	uint32_t end = d->handle + DETACH_AT_ONCE;

	for (; d->handle < end && d->handle <= t->used; d->handle++) {
		struct engine_qp *q = t->slot[d->handle];

		if (q == NULL || q->lcore != l || !belongs(q->context, d->context))
			continue;
		handle_withdraw(t, d->handle);
		lcore_qp_detach(l, q, now);
		LIST_REMOVE(q, engine_link);
		LIST_INSERT_HEAD(&d->gone, q, engine_link);
	}
}

static void detach_all(struct client *c, uint32_t context, struct qp_list *gone)
{
	struct detach d = { .client = c, .context = context };

	LIST_INIT(&d.gone);
	for (uint32_t i = 0; i < c->engine->lcores; i++) {
		d.handle = 1;
		while (d.handle <= c->objects->table[OBJECT_QP].used)
			lcore_call(&c->engine->lcore[i], detach_some, &d);
	}
	gone->lh_first = d.gone.lh_first;
	if (gone->lh_first != NULL)
		gone->lh_first->engine_link.le_prev = &gone->lh_first;
}

/* The handle of the context that an object belongs to. */
static uint32_t context_of_object(enum object_kind kind, const void *object)
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

/* The next object of a context at or behind *handle, or NULL. */
static void *next_object(struct client *c, enum object_kind kind, uint32_t context,
			 uint32_t *handle)
{
	struct handle_table *t = &c->objects->table[kind];

	for (; *handle <= t->used; ++*handle) {
		void *object = t->slot[*handle];

		if (object != NULL && belongs(context_of_object(kind, object), context))
			return object;
	}
	return NULL;
}

#define FOR_EACH(object, kind)                                                                 \
	for (uint32_t handle_ = 1; (object = next_object(c, kind, context, &handle_)) != NULL; \
	     handle_++)

/* Who leads to something goes before it; memory that an lcore may read goes after a grace period. */
void objects_reclaim(struct client *c, uint32_t context)
{
	struct qp_list gone = LIST_HEAD_INITIALIZER(gone);
	struct ah_list gone_ahs = LIST_HEAD_INITIALIZER(gone_ahs);
	struct mcast_group *groups = NULL;
	struct engine_channel *ch;
	struct window *w;
	struct engine_srq *s;
	struct engine_cq *cq;
	struct target *t;
	struct xrcd *xrcd;
	struct engine_qp *q;
	struct engine_ah *ah;
	struct context *x;
	struct pd *p;
	struct mr *m;
	struct mr_import *i;
	struct dm *d;

	raw_reclaim(c, context);
	if (c->objects->table[OBJECT_QP].count > 0)
		detach_all(c, context, &gone);
	operations_finish(c->engine);
	FOR_EACH(t, OBJECT_TARGET)
	target_free(c, t);
	FOR_EACH(ah, OBJECT_AH)
	{
		ah_withdraw(c, ah);
		LIST_INSERT_HEAD(&gone_ahs, ah, engine_link);
	}
	FOR_EACH(w, OBJECT_MW)
	mw_withdraw(c, w);
	FOR_EACH(m, OBJECT_MR)
	mr_withdraw(c, m);
	FOR_EACH(s, OBJECT_SRQ)
	srq_withdraw(c, s);
	LIST_FOREACH(q, &gone, engine_link)
	groups = mcast_forget(c->engine, q, groups);
	engine_grace_period(c->engine);
	mcast_free(groups);
	while ((q = LIST_FIRST(&gone)) != NULL)
		qp_free(c, q);
	while ((ah = LIST_FIRST(&gone_ahs)) != NULL) {
		LIST_REMOVE(ah, engine_link);
		ah_free(c, ah);
	}
	FOR_EACH(s, OBJECT_SRQ)
	srq_free(c, s);
	FOR_EACH(xrcd, OBJECT_XRCD)
	xrcd_free(c, xrcd);
	FOR_EACH(cq, OBJECT_CQ)
	cq_free(c, cq);
	FOR_EACH(w, OBJECT_MW)
	mw_free(c, w);
	FOR_EACH(m, OBJECT_MR)
	mr_free(c, m);
	FOR_EACH(i, OBJECT_MR_IMPORT)
	mr_import_free(c, i);
	FOR_EACH(d, OBJECT_DM)
	dm_free(c, d);
	FOR_EACH(p, OBJECT_PD)
	pd_free(c, p);
	FOR_EACH(ch, OBJECT_CHANNEL)
	channel_free(c, ch);
	FOR_EACH(x, OBJECT_CONTEXT)
	context_free(c, x);
}
