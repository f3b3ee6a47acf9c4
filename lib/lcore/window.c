/* SPDX-License-Identifier: BSD-3-Clause */
/* Binds and invalidates memory windows (window.h). */
#include "lcore/window.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "lcore/inside.h"
#include "lcore/moving/moving.h"

#define REMOTE	     (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC)
#define ACCESS_KNOWN (REMOTE | ACCESS_LOCAL_WRITE | ACCESS_ZERO_BASED | ACCESS_OPTIONAL_RANGE)

int windows_prepare(struct engine *e)
{
	struct window **table;

	if (e->window != NULL)
		return 0;
	table = calloc(LIMIT_ENGINE_MRS, sizeof(*table));
	if (table == NULL || !operations_prepare(e)) {
		free(table);
		return ENOMEM;
	}
	/* Release: an lcore that sees the table sees it empty, and the way to the control thread. */
	__atomic_store_n(&e->window, table, __ATOMIC_RELEASE);
	return 0;
}

void windows_destroy(struct engine *e)
{
	operations_destroy(e);
	free(e->window);
	e->window = NULL;
}

/* The window of this key's slot, whatever the key's variant. */
static struct window *window_find(const struct engine *e, uint32_t key)
{
	struct window **table = __atomic_load_n(&e->window, __ATOMIC_ACQUIRE);
	uint32_t slot = key_slot(&e->keys, key);

	if (table == NULL || slot >= LIMIT_ENGINE_MRS)
		return NULL;
	return __atomic_load_n(&table[slot], __ATOMIC_ACQUIRE);
}

void window_show(struct engine *e, struct window *w)
{
	__atomic_store_n(&e->window[w->slot], w, __ATOMIC_RELEASE);
}

void window_hide(struct engine *e, struct window *w)
{
	__atomic_store_n(&e->window[w->slot], NULL, __ATOMIC_RELEASE);
}

void window_unbind(struct engine *e, struct window *w)
{
	struct engine_qp *q = __atomic_load_n(&w->qp, __ATOMIC_RELAXED);

	if (!__atomic_load_n(&w->bound, __ATOMIC_ACQUIRE))
		return;
	key_withdraw(&e->keys, w->key);
	region_window_unbound((struct region *)(uintptr_t)w->region->parent);
	if (q != NULL)
		__atomic_fetch_sub(&q->windows, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&w->qp, NULL, __ATOMIC_RELAXED);
	/* Release: the next bind sees all of the above. */
	__atomic_store_n(&w->bound, 0, __ATOMIC_RELEASE);
}

void window_invalidate(struct engine *e, uint32_t key)
{
	struct window *w = window_find(e, key);

	/* A window that is being deallocated is already hidden; withdraw its key anyway. */
	if (w != NULL)
		window_unbind(e, w);
	else
		key_withdraw(&e->keys, key);
}

/*
 * IBTA 10.6.7.2.3 and 10.6.7.2.4 (protocol-map 156, 157). This does not ask which variant the key
 * has now, because a program whose last bind failed cannot know.
 */
static enum reason check_window(const struct window *w, const struct engine_qp *q,
				const struct key_operation *o)
{
	if (w == NULL || o->new_key == 0 || (o->new_key ^ o->key) >> 8 != 0)
		return REASON_KEY_UNKNOWN;
	if (w->pd_number != o->user.pd || w->client != q->client || w->context != q->context)
		return REASON_KEY_PD;
	if ((o->access & ~(uint32_t)ACCESS_KNOWN) != 0 ||
	    (w->type == WINDOW_TYPE_1 && (o->access & ACCESS_ZERO_BASED)))
		return REASON_KEY_ACCESS;
	if (w->type == WINDOW_TYPE_1)
		return REASON_NONE;
	if (__atomic_load_n(&w->bound, __ATOMIC_ACQUIRE))
		return REASON_WINDOW_BOUND;
	return o->length != 0 ? REASON_NONE : REASON_KEY_RANGE;
}

/* C10-72 .. C10-75 (protocol-map 158), with the access that is asked for now (H-103). */
static enum reason check_region(const struct region *r, const struct window *w,
				const struct key_operation *o)
{
	if (r == NULL)
		return REASON_KEY_UNKNOWN;
	if (r->pd != w->pd_number || r->client != w->client->number || r->context != w->context)
		return REASON_KEY_PD;
	if (r->kind != REGION_MEMORY || !(r->access & ACCESS_MW_BIND) ||
	    (r->access & ACCESS_ZERO_BASED))
		return REASON_KEY_ACCESS;
	if ((o->access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)) &&
	    !(r->access & ACCESS_LOCAL_WRITE))
		return REASON_KEY_ACCESS;
	if (o->address < r->iova || !range_inside(o->address - r->iova, o->length, r->length))
		return REASON_KEY_RANGE;
	return REASON_NONE;
}

static void fill(struct window *w, const struct key_operation *o, const struct region *parent)
{
	*w->region = (struct region){
		.key = o->new_key,
		.pd = w->pd_number,
		.access = o->access & REMOTE,
		.client = parent->client,
		.context = parent->context,
		.iova = o->access & ACCESS_ZERO_BASED ? 0 : o->address,
		.length = o->length,
		.kind = REGION_WINDOW,
		.window_qpn = w->type == WINDOW_TYPE_2 ? o->user.qpn : 0,
		.parent = parent,
		.parent_offset = o->address - parent->iova,
	};
}

static enum reason check(const struct engine *e, const struct window *w, const struct engine_qp *q,
			 const struct key_operation *o, const struct region **r)
{
	enum reason why = check_window(w, q, o);

	*r = NULL;
	if (why != REASON_NONE || o->length == 0)
		return why;
	*r = key_find(&e->keys, o->region_key);
	return check_region(*r, w, o);
}

enum reason window_clear(struct engine *e, const struct engine_qp *q, const struct key_operation *o)
{
	struct window *w = window_find(e, o->key);
	const struct region *r;
	enum reason why = check(e, w, q, o, &r);

	if (why == REASON_NONE)
		window_unbind(e, w);
	return why;
}

bool window_is_clear(const struct engine *e, const struct key_operation *o)
{
	const struct window *w = window_find(e, o->key);

	return w == NULL || !__atomic_load_n(&w->bound, __ATOMIC_ACQUIRE);
}

enum reason window_bind(struct engine *e, const struct engine_qp *q, const struct key_operation *o)
{
	struct window *w = window_find(e, o->key);
	const struct region *r;
	enum reason why = check(e, w, q, o, &r);

	if (why != REASON_NONE)
		return why;
	window_unbind(e, w);
	w->key = o->new_key;
	if (r == NULL)
		return REASON_NONE; /* length 0: unbinding was the request */
	fill(w, o, r);
	region_window_bound((struct region *)(uintptr_t)r);
	if (w->type == WINDOW_TYPE_2) {
		__atomic_store_n(&w->qp, (struct engine_qp *)(uintptr_t)q, __ATOMIC_RELAXED);
		__atomic_fetch_add(&w->qp->windows, 1, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&w->bound, 1, __ATOMIC_RELEASE);
	key_publish(&e->keys, w->key, w->region);
	return REASON_NONE;
}
