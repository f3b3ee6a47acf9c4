/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands and ends of clients that wait for copies: see settle.h.
 *
 * Atomics: `settlers` tells lcores whether to report ended copies, and `settle_news` is their
 * report. A copy that ends just before its waiter is counted is not reported: LIMIT_SETTLE_LOOK
 * finds it.
 */
#include "control/ending/settle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "drivers/client_memory/mover.h"
#include "drivers/log.h"
#include "control/binds.h"
#include "control/control.h"
#include "lcore/moving/moving.h"
#include "lcore/window.h"

#define LOOK_LEAVING (LIMIT_LEAVE_LOOK_MS * TIME_MS) /* between looks at another thread */

/* ---- what is under way ---- */

struct count {
	const struct client *client;
	struct settling *settling;
	bool begins;
	bool over; /* on all lcores so far */
};

static void count_on_lcore(struct lcore *l, void *arg, nanotime now)
{
	struct count *n = arg;
	uint64_t *newest = &n->settling->newest[l->index];

	/* A copy that has ended does not count, even if the lcore has not collected it yet. */
	moving_collect(l, now);
	if (n->begins)
		*newest = moving_newest(l);
	n->over &= moving_jobs_of(l, n->client, *newest) == 0 &&
		   moving_jobs_into(l, n->client, *newest) == 0;
	if (n->client->dying)
		n->over &= moving_left(l, n->client);
}

static bool count_all(struct client *c, struct settling *s, bool begins)
{
	struct count n = { .client = c, .settling = s, .begins = begins, .over = true };

	for (uint32_t i = 0; i < c->engine->lcores; i++)
		lcore_call(&c->engine->lcore[i], count_on_lcore, &n);
	return n.over;
}

bool settle_begin(struct client *c, struct settling *s)
{
	return (client_mover(c) == NULL && !client_shares(c)) || count_all(c, s, true);
}

bool settle_over(struct client *c, struct settling *s)
{
	return count_all(c, s, false);
}

void settle_await(struct engine *e)
{
	__atomic_fetch_add(&e->settlers, 1, __ATOMIC_SEQ_CST);
}

void settle_await_no_more(struct engine *e)
{
	__atomic_fetch_sub(&e->settlers, 1, __ATOMIC_RELAXED);
}

/* ---- commands ---- */

struct parked_call {
	struct call call;
	nanotime until;
	uint8_t request[LIMIT_COMMAND_BYTES] __attribute__((aligned(8)));
};

static int nothing_more(struct call *call)
{
	return 0;
}

int call_after_copies(struct call *call, int (*finish)(struct call *call),
		      void (*abandon)(struct call *call))
{
	if (finish == NULL)
		finish = nothing_more;
	if (settle_begin(call->client, &call->settling))
		return finish(call);
	call->finish = finish;
	call->abandon = abandon;
	return 0;
}

void call_begin_leaving(struct call *call, uint32_t turns)
{
	nanotime now = clock_now();
	nanotime patience = account_patience(&call->client->objects->account, now);

	call->leave.until = now + patience;
	call->leave.turns = patience > 0 ? turns : 1;
}

int call_after_leaving(struct call *call, int (*again)(struct call *call))
{
	call->finish = again;
	call->leaving = true;
	return 0;
}

bool call_park(struct connection *n, const struct call *call)
{
	struct parked_call *p = malloc(sizeof(*p));

	if (p == NULL) {
		if (call->abandon != NULL)
			call->abandon((struct call *)(uintptr_t)call);
		return false;
	}
	p->call = *call;
	memcpy(p->request, call->request, call->length);
	p->call.request = (const struct command_request *)p->request;
	p->until = clock_now() + LIMIT_COPY_WAIT * TIME_MS;
	n->parked = p;
	LIST_INSERT_HEAD(&n->engine->control->parked, n, parked_link);
	if (call->leaving)
		n->engine->control->settle_at = 0;
	watch_change(n->engine, &n->socket, 0);
	settle_await(n->engine);
	return true;
}

static void unpark(struct connection *n)
{
	call_close_descriptors(&n->parked->call);
	free(n->parked);
	n->parked = NULL;
	LIST_REMOVE(n, parked_link);
	settle_await_no_more(n->engine);
}

void call_abandon(struct connection *n)
{
	struct call *call;

	if (n->parked == NULL)
		return;
	call = &n->parked->call;
	if (call->abandon != NULL)
		call->abandon(call);
	unpark(n);
}

static void send_answer(struct connection *n)
{
	bool taken = connection_answer(n, &n->parked->call);
	unpark(n);
	if (taken)
		connection_go_on(n);
	else
		connection_end(n);
}

static void answer(struct connection *n)
{
	command_finish(&n->parked->call);
	if (!n->parked->call.in_slices)
		send_answer(n);
}

/* The clock of copies begins when it waits for them. */
static void look_at_leaving(struct connection *n, nanotime now)
{
	if (command_try(&n->parked->call))
		send_answer(n);
	else
		n->parked->until = now + LIMIT_COPY_WAIT * TIME_MS;
}

void call_await_copies(struct connection *n)
{
	struct parked_call *p = n->parked;

	p->call.in_slices = false;
	p->until = clock_now() + LIMIT_COPY_WAIT * TIME_MS;
	if (settle_begin(n->client, &p->call.settling))
		answer(n);
}

void call_done(struct connection *n)
{
	n->parked->call.in_slices = false;
	n->parked->call.finish = nothing_more;
	answer(n);
}

static void go_on(struct connection *n, nanotime now)
{
	struct client *c = n->client;

	if (n->parked->call.in_slices)
		return;
	if (n->parked->call.leaving) {
		look_at_leaving(n, now);
		return;
	}
	if (settle_over(c, &n->parked->call.settling)) {
		answer(n);
	} else if (now >= n->parked->until) {
		LOG(WARNING, "process %d (%s) disconnected: a copy of its memory hangs", n->pid,
		    c->objects->program);
		connection_end(n);
	}
}

void call_wait(struct call *call)
{
	struct engine *e = call->engine;
	nanotime until;

	while (call->leaving) {
		pthread_mutex_unlock(&e->control_lock);
		usleep(LIMIT_LEAVE_PAUSE_US);
		pthread_mutex_lock(&e->control_lock);
		if (command_try(call))
			return;
	}
	until = clock_now() + LIMIT_COPY_WAIT * TIME_MS;
	/*
	 * Its own memory never blocks. Memory of a client that shares a domain with it may: then
	 * the wait ends anyway.
	 */
	while (!settle_over(call->client, &call->settling) && clock_now() < until) {
		pthread_mutex_unlock(&e->control_lock);
		usleep(100);
		pthread_mutex_lock(&e->control_lock);
	}
	command_finish(call);
}

/* ---- clients that have ended ---- */

void client_bury(struct client *c)
{
	struct engine *e = c->engine;
	struct grave *g = &c->objects->grave;

	g->client = c;
	g->since = clock_now();
	if (settle_begin(c, &g->settling)) {
		client_finish(c);
		return;
	}
	LIST_INSERT_HEAD(&e->control->graves, g, link);
	e->control->grave_count++;
	settle_await(e);
}

static void forget(struct engine *e, struct grave *g)
{
	LIST_REMOVE(g, link);
	e->control->grave_count--;
	if (!g->old)
		settle_await_no_more(e);
}

static void look_at_grave(struct engine *e, struct grave *g, nanotime now)
{
	if (settle_over(g->client, &g->settling)) {
		forget(e, g);
		client_finish(g->client);
	} else if (!g->old && now - g->since >= LIMIT_GRAVE_NEW) {
		g->old = true;
		settle_await_no_more(e);
		LOG(WARNING, "a copy of %s's memory hangs, although %s has ended",
		    g->client->objects->program, g->client->objects->program);
	}
}

static void look_at_graves(struct engine *e, nanotime now)
{
	struct grave *g, *next;

	for (g = LIST_FIRST(&e->control->graves); g != NULL; g = next) {
		next = LIST_NEXT(g, link);
		look_at_grave(e, g, now);
	}
}

bool graves_close(struct engine *e)
{
	struct grave *g;

	for (uint32_t ms = 0; ms < LIMIT_CLOSE_MS && !LIST_EMPTY(&e->control->graves); ms++) {
		look_at_graves(e, clock_now());
		usleep(1000);
	}
	if (LIST_EMPTY(&e->control->graves))
		return true;
	/* Whatever their threads still use is never freed. */
	LIST_FOREACH(g, &e->control->graves, link)
	mover_close(client_mover(g->client));
	return false;
}

/* ---- */

nanotime settle_continue(struct engine *e, nanotime now)
{
	struct control *c = e->control;
	bool news = __atomic_exchange_n(&e->settle_news, 0, __ATOMIC_ACQ_REL) != 0;
	struct connection *n, *next;

	if (LIST_EMPTY(&c->parked) && LIST_EMPTY(&c->graves) && LIST_EMPTY(&c->binds))
		return TIME_NEVER;
	if (!news && now < c->settle_at)
		return c->settle_at;
	c->settle_at = now + (e->settlers > 0 ? LIMIT_SETTLE_LOOK : LIMIT_SETTLE_LOOK_LATER);
	for (n = LIST_FIRST(&c->parked); n != NULL; n = next) {
		next = LIST_NEXT(n, parked_link);
		go_on(n, now);
	}
	LIST_FOREACH(n, &c->parked, parked_link)
	if (n->parked->call.leaving)
		c->settle_at = time_earlier(c->settle_at,
					    now + (n->parked->call.leave.waits ? LOOK_LEAVING : 0));
	operations_go_on(e, now);
	look_at_graves(e, now);
	return c->settle_at;
}
