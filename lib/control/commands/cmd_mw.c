/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows as objects. lcore/window.c binds them.
 *
 * Atomics: an lcore sets `bound` when it binds the window; acquire pairs with its release.
 */
#include <errno.h>
#include <stdlib.h>

#include "control/control.h"
#include "lcore/window.h"

static int check_alloc_mw(struct call *call, const struct request_alloc_mw *r)
{
	if (object_find(call->client, OBJECT_PD, r->pd) == NULL)
		return call_fail(call, EINVAL, "no such protection domain");
	if (r->type != WINDOW_TYPE_1 && r->type != WINDOW_TYPE_2)
		return call_fail(call, EINVAL, "window type %u must be 1 or 2", r->type);
	return windows_prepare(call->engine);
}

static int window_build(struct call *call, const struct request_alloc_mw *r, struct window *w)
{
	struct handle_table *t = &call->client->objects->table[OBJECT_MW];
	int error;

	w->region = calloc(1, sizeof(*w->region));
	if (w->region == NULL)
		return ENOMEM;
	w->type = (uint8_t)r->type;
	w->client = call->client;
	w->pd = object_find(call->client, OBJECT_PD, r->pd);
	w->pd_number = w->pd->number;
	w->context = w->pd->context;
	w->handle = handle_reserve(t);
	if (w->handle == 0)
		return call_no_handle(call, OBJECT_MW);
	error = key_give(call, &w->key);
	if (error != 0)
		handle_free(t, w->handle);
	return error;
}

int cmd_alloc_mw(struct call *call)
{
	const struct request_alloc_mw *r = (const struct request_alloc_mw *)call->request;
	struct reply_alloc_mw *reply = (struct reply_alloc_mw *)&call->reply;
	int error = check_alloc_mw(call, r);
	struct window *w;

	if (error != 0)
		return error;
	w = calloc(1, sizeof(*w));
	error = w == NULL ? ENOMEM : window_build(call, r, w);
	if (error != 0) {
		if (w != NULL)
			free(w->region);
		free(w);
		return error;
	}
	w->slot = key_slot(&call->engine->keys, w->key);
	w->pd->users++;
	call->engine->mr_count++;
	call->engine->mr_made++;
	handle_publish(&call->client->objects->table[OBJECT_MW], w->handle, w);
	reply->handle = w->handle;
	reply->rkey = w->key;
	window_show(call->engine, w);
	return 0;
}

void mw_withdraw(struct client *c, struct window *w)
{
	window_hide(c->engine, w);
	window_unbind(c->engine, w);
}

void mw_free(struct client *c, struct window *w)
{
	struct handle_table *t = &c->objects->table[OBJECT_MW];

	handle_withdraw(t, w->handle);
	handle_free(t, w->handle);
	key_free(&c->engine->keys, w->key);
	w->pd->users--;
	c->engine->mr_count--;
	free(w->region);
	free(w);
}

static int dealloc_finish(struct call *call)
{
	mw_free(call->client, call->data);
	return 0;
}

/*
 * First no lcore may bind the window, then no copy may use it (protocol-map 156: a bound window is
 * unbound).
 */
int cmd_dealloc_mw(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct window *w = object_find(call->client, OBJECT_MW, r->handle);

	if (w == NULL || w->leaving)
		return call_fail(call, EINVAL, "no such window");
	window_hide(call->engine, w);
	engine_grace_period(call->engine);
	call->data = w;
	if (!__atomic_load_n(&w->bound, __ATOMIC_ACQUIRE)) {
		/*
		 * An lcore that had found the window before may have unbound it in that grace
		 * period, while a second lcore, already past its own part, still used the key.
		 */
		engine_grace_period(call->engine);
		return dealloc_finish(call);
	}
	w->leaving = true;
	window_unbind(call->engine, w);
	engine_grace_period(call->engine);
	return call_after_copies(call, dealloc_finish, NULL);
}
