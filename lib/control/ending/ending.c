/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of clients. Once it begins, the client is not served any more. It is done in slices,
 * between which the control thread serves others:
 *
 *	client_end -- objects withdrawn -- client_bury: copies are over -- client_finish -- released
 *
 * A closed context ends likewise, while the command that closes it is parked:
 *
 *	context_end -- objects withdrawn -- copies are over -- released -- answered
 *
 * Its connection is not read until then. If the client ends first, the end of the client takes
 * over. An embedding program's thread does the slices itself, and gives the lock to others between
 * them; the program's other commands wait for it.
 *
 * The arena and files take long to free; when they are not used any more they go to a thread for
 * that (disposal.h).
 *
 * Atomics: the page's `closed` is read by the client's library, engine.client by lcores until the
 * grace period of the withdrawal.
 */
#include <sys/epoll.h>
#include <unistd.h>

#include "drivers/client_memory/mover.h"
#include "control/control.h"
#include "lcore/moving/moving.h"

#define SLICE	   (LIMIT_SLICE_MS * TIME_MS)
#define SLICE_REST (LIMIT_SLICE_REST_MS * TIME_MS)

static void detach(struct lcore *l, void *arg, nanotime now)
{
	lcore_client_detach(l, arg);
}

static void withdraw_contexts(struct client *c)
{
	struct handle_table *t = &c->objects->table[OBJECT_CONTEXT];

	for (uint32_t i = 1; i <= t->used; i++)
		if (t->slot[i] != NULL)
			context_withdraw(t->slot[i]);
}

static void begin(struct client *c)
{
	struct engine *e = c->engine;

	c->dying = true;
	withdraw_contexts(c);
	for (uint32_t i = 0; i < e->lcores; i++) {
		lcore_call(&e->lcore[i], detach, c);
		epoll_ctl(e->lcore[i].wait_fd, EPOLL_CTL_DEL, c->objects->wake_fd[i], NULL);
	}
	reclaim_begin(&c->objects->reclaim, c, 0);
}

/* No lcore uses the client any more; its library learns that it is closed. */
static void retire(struct client *c)
{
	__atomic_store_n(&c->page->closed, 1, __ATOMIC_RELEASE);
	if (client_mover(c) != NULL)
		mover_stop(client_mover(c));
	client_bury(c);
}

static void enter(struct client *c, bool released)
{
	struct control *control = c->engine->control;

	c->objects->client = c;
	c->objects->releases = released;
	TAILQ_INSERT_TAIL(&control->ending, c->objects, ending_link);
}

static void leave(struct client *c)
{
	TAILQ_REMOVE(&c->engine->control->ending, c->objects, ending_link);
}

static void forget(struct client *c)
{
	struct engine *e = c->engine;

	if (client_mover(c) != NULL)
		mover_close(client_mover(c));
	__atomic_store_n(&e->client[c->number], NULL, __ATOMIC_RELEASE);
	e->client_count--;
	e->control->empty_since = clock_now();
	client_free(c);
}

/*
 * One slice was not enough. The others come first, so that a client that waits for a reply is not
 * behind all that died.
 */
static void step_back(struct client *c)
{
	leave(c);
	TAILQ_INSERT_TAIL(&c->engine->control->ending, c->objects, ending_link);
}

/* The client is in the list. True: it has left the list. */
static bool release(struct client *c, nanotime until)
{
	if (!reclaim_release(&c->objects->reclaim, until)) {
		step_back(c);
		return false;
	}
	leave(c);
	forget(c);
	return true;
}

/* ... everything is withdrawn; it returns to the list unless it waits for copies. */
static bool withdraw(struct client *c, nanotime until)
{
	if (!reclaim_withdraw(&c->objects->reclaim, until)) {
		step_back(c);
		return false;
	}
	leave(c);
	retire(c);
	return true;
}

/* ---- a context ---- */

static int close_finish(struct call *call);

static void close_leave(struct client *c)
{
	leave(c);
	c->objects->closes = NULL;
}

static void close_abandon(struct call *call)
{
	if (call->in_slices)
		close_leave(call->client);
}

static void close_enter(struct call *call, bool released)
{
	call->finish = close_finish;
	call->abandon = close_abandon;
	call->in_slices = true;
	call->client->objects->closes = call->connection;
	enter(call->client, released);
}

/* Between two slices of an embedding program's own thread. */
static void let_others(struct engine *e)
{
	pthread_mutex_unlock(&e->control_lock);
	usleep(LIMIT_SLICE_REST_MS * 1000);
	pthread_mutex_lock(&e->control_lock);
}

/*
 * An embedding program's own thread does it all: a thread that polls its engine must not wait for
 * another one.
 */
static void close_here(struct client *c, bool (*part)(struct reclaim *r, nanotime until))
{
	while (!part(&c->objects->reclaim, clock_now() + SLICE))
		let_others(c->engine);
}

static int close_finish(struct call *call)
{
	struct client *c = call->client;

	if (call->connection == NULL) {
		close_here(c, reclaim_release);
		c->objects->closing = false;
	} else if (!reclaim_release(&c->objects->reclaim, clock_now() + SLICE)) {
		close_enter(call, true);
	}
	return 0;
}

int context_end(struct call *call, struct context *x)
{
	struct client *c = call->client;
	struct reclaim *r = &c->objects->reclaim;

	/* No import may come between two slices. */
	context_withdraw(x);
	reclaim_begin(r, c, x->handle);
	if (call->connection == NULL) {
		c->objects->closing = true;
		close_here(c, reclaim_withdraw);
	} else if (!reclaim_withdraw(r, clock_now() + SLICE)) {
		close_enter(call, false);
		return 0;
	}
	return call_after_copies(call, close_finish, close_abandon);
}

static void close_go_on(struct client *c, nanotime until)
{
	struct reclaim *r = &c->objects->reclaim;
	struct connection *n = c->objects->closes;
	bool released = c->objects->releases;

	if (!(released ? reclaim_release(r, until) : reclaim_withdraw(r, until))) {
		step_back(c);
		return;
	}
	close_leave(c);
	if (released)
		call_done(n);
	else
		call_await_copies(n);
}

/* ---- slices ---- */

static void go_on(struct client *c, nanotime until)
{
	if (c->objects->closes != NULL)
		close_go_on(c, until);
	else if (c->objects->releases)
		release(c, until);
	else
		withdraw(c, until);
}

/* The first slice is always its own: most clients have few objects and are gone after it. */
void client_end(struct client *c)
{
	struct control *control = c->engine->control;
	nanotime until = clock_now() + SLICE;

	begin(c);
	enter(c, false);
	if (withdraw(c, until) && TAILQ_LAST(&control->ending, ending_list) == c->objects)
		release(c, until);
}

void client_finish(struct client *c)
{
	enter(c, true);
}

nanotime clients_go_on(struct engine *e, nanotime now)
{
	struct control *control = e->control;

	if (TAILQ_EMPTY(&control->ending))
		return TIME_NEVER;
	if (now < control->ending_at)
		return control->ending_at;
	while (!TAILQ_EMPTY(&control->ending) && clock_now() < now + SLICE)
		go_on(TAILQ_FIRST(&control->ending)->client, now + SLICE);
	control->ending_at = clock_now() + SLICE_REST;
	return TAILQ_EMPTY(&control->ending) ? TIME_NEVER : control->ending_at;
}

void clients_close(struct engine *e)
{
	while (!TAILQ_EMPTY(&e->control->ending))
		go_on(TAILQ_FIRST(&e->control->ending)->client, TIME_NEVER);
}

void client_leave(struct client *c)
{
	struct engine *e = c->engine;
	uint32_t number = c->number;
	struct client_objects *o;

	client_end(c);
	/* Until it is gone, or waits for copies of others that share its domains. */
	for (;;) {
		TAILQ_FOREACH(o, &e->control->ending, ending_link)
		if (o->client == c && e->client[number] == c)
			break;
		if (o == NULL)
			return;
		go_on(c, clock_now() + SLICE);
		let_others(e);
	}
}
