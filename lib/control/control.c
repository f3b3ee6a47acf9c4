/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control thread. It takes one event of its epoll set at a time, so that an event may remove
 * any watch. In between it updates the heartbeat, follows the port and runs the neighbour table's
 * timers.
 *
 * Atomics: events that an lcore could not send (event_owed, async_owed) are flags in the objects,
 * so that a full channel needs no queue. The heartbeat and the two flags of the thread are single
 * words.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_ring.h>

#include "base/bits.h"
#include "drivers/client_memory/mover.h"
#include "drivers/interface.h"
#include "drivers/node.h"
#include "control/cm/cm_control.h"
#include "control/binds.h"
#include "control/control.h"
#include "control/connection/porters.h"
#include "control/share/left.h"
#include "control/network/peers.h"
#include "lcore/srq.h"
#include "lcore/window.h"
#include "lcore/xrc.h"

#define BEAT_EVERY    (LIMIT_BEAT_MS * TIME_MS)
#define REFRESH_EVERY (LIMIT_REFRESH_MS * TIME_MS)

int watch_add(struct engine *e, struct watch *w)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = w };

	return epoll_ctl(e->control->epoll_fd, EPOLL_CTL_ADD, w->fd, &event) == 0 ? 0 : errno;
}

void watch_change(struct engine *e, struct watch *w, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = w };

	epoll_ctl(e->control->epoll_fd, EPOLL_CTL_MOD, w->fd, &event);
}

void watch_remove(struct engine *e, struct watch *w)
{
	if (w->fd < 0)
		return;
	epoll_ctl(e->control->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
	close(w->fd);
	w->fd = -1;
}

static void woken(struct watch *w, uint32_t events)
{
	struct control *c = container_of_type(w, struct control, wake);
	uint64_t count;

	if (read(w->fd, &count, sizeof(count)) < 0)
		return;
	if (c->neighbours != NULL)
		neighbour_agent_frames(c->engine, clock_now());
	operations_continue(c->engine);
	crowded_provide(c->engine);
}

/* ---- every now and then ---- */

static void retry_events(struct client *c)
{
	struct handle_table *t = &c->objects->table[OBJECT_CQ];

	for (uint32_t i = 1; i <= t->used; i++) {
		struct engine_cq *cq = t->slot[i];

		if (cq != NULL && __atomic_load_n(&cq->event_owed, __ATOMIC_ACQUIRE))
			cq_send_event(cq);
	}
}

#define EACH(type, object, kind)                                                           \
	for (uint32_t handle_ = 1; handle_ <= c->objects->table[kind].used; handle_++)     \
		for (type *object = c->objects->table[kind].slot[handle_]; object != NULL; \
		     object = NULL)

/*
 * A program that does not read its events is retried at intervals, because the walk through its
 * objects takes long. Acquire: sees what lcores marked as owed before they set async_owed.
 */
static void retry_async_events(struct client *c)
{
	struct owed_round round = { .full_fd = -1 };

	if (__atomic_load_n(&c->async_owed, __ATOMIC_RELAXED) == 0)
		return;
	if (c->objects->async_rest > 0 && --c->objects->async_rest > 0)
		return;
	__atomic_exchange_n(&c->async_owed, 0, __ATOMIC_ACQUIRE);
	EACH(struct engine_qp, q, OBJECT_QP)
	qp_tell_owed(q, &round);
	EACH(struct target, t, OBJECT_TARGET)
	target_tell_owed(t, &round);
	EACH(struct engine_cq, cq, OBJECT_CQ)
	cq_tell_owed(cq, &round);
	EACH(struct engine_srq, s, OBJECT_SRQ)
	srq_tell_owed(s, &round);
	EACH(struct context, x, OBJECT_CONTEXT)
	context_tell_owed(x, &round);
	c->objects->async_rest = round.told ? 0 : LIMIT_ASYNC_REST;
}

static void beat(struct engine *e, nanotime now)
{
	struct control *c = e->control;

	e->heartbeat++;
	for (uint32_t i = 0, left = e->client_count; i < LIMIT_CLIENTS && left > 0; i++) {
		struct client *client = e->client[i];

		if (client == NULL)
			continue;
		left--;
		__atomic_store_n(&client->page->heartbeat, e->heartbeat, __ATOMIC_RELAXED);
		if (client->dying)
			continue;
		if (client->objects->table[OBJECT_CHANNEL].count > 0)
			retry_events(client);
		retry_async_events(client);
		ahs_let_go(client);
	}
	listener_resume(&c->listener);
	connections_tick(e, now);
	porters_tick(e, now);
	if (e->client_count > c->grave_count || c->connection_count > 0)
		c->empty_since = now;
	else if (c->options.exit_when_idle > 0 &&
		 now - c->empty_since >= c->options.exit_when_idle * TIME_S)
		__atomic_store_n(&c->idle_expired, 1, __ATOMIC_RELEASE);
}

static void tell_all(struct engine *e, enum port_event event)
{
	for (uint32_t i = 0; i < LIMIT_CLIENTS; i++)
		if (e->client[i] != NULL)
			client_event(e->client[i], event);
}

static void refresh_addresses(struct engine *e)
{
	if (gid_table_update(e) == 0)
		return;
	neighbour_agent_announce(e);
	device_files_update(e); /* before programs are told to look */
	tell_all(e, EVENT_GID_CHANGE);
}

static void refresh_port(struct engine *e)
{
	struct control *c = e->control;
	bool was_up = c->link_up, other_mtu = engine_follow_mtu(e);
	bool other_mac = memcmp(&e->mac, &e->port->mac, sizeof(e->mac)) != 0;

	c->link_up = e->port->link_up;
	c->links_lost += was_up && !c->link_up;
	e->mac = e->port->mac;
	__atomic_store_n(&e->mac_word, mac_word(e->mac.octet), __ATOMIC_RELAXED);
	refresh_addresses(e);
	device_files_update(e);
	/*
	 * There is no event for a change of the MTU. PORT_ACTIVE is the nearest: programs then
	 * query the port.
	 */
	if (c->link_up != was_up || (c->link_up && other_mtu))
		tell_all(e, c->link_up ? EVENT_PORT_ACTIVE : EVENT_PORT_ERR);
	if (other_mac)
		cm_tell_address_change(e);
}

static void refresh(struct engine *e)
{
	if (e->port != NULL && e->port->ops->refresh(e->port))
		refresh_port(e);
	else if (e->port == NULL &&
		 (interface_events_happened(e->control->host_events) || e->control->addresses_late))
		refresh_addresses(e);
	if (e->control->listener.files_late)
		device_files_update(e);
}

/* Does all due work. Returns when to call again. */
static nanotime due(struct engine *e, nanotime now)
{
	struct control *c = e->control;
	nanotime next;

	if (now >= c->beat_at) {
		beat(e, now);
		c->beat_at = now + BEAT_EVERY;
	}
	if (now >= c->refresh_at) {
		refresh(e);
		c->refresh_at = now + REFRESH_EVERY;
	}
	next = time_earlier(c->beat_at, c->refresh_at);
	next = time_earlier(next, clients_go_on(e, now));
	next = time_earlier(next, settle_continue(e, now));
	/* Before the neighbours: it may ask for one. */
	next = time_earlier(next, cm_manager_tick(e, now));
	if (c->neighbours == NULL)
		return next;
	c->neighbours_at = neighbour_agent_tick(e, now);
	return time_earlier(next, c->neighbours_at);
}

static void *control_run(void *arg)
{
	struct engine *e = arg;
	struct control *c = e->control;
	struct node_policy own;

	/* Queue pairs, windows and tables are made here, for lcores beside the port. */
	node_prefer(&own, e->port != NULL ? e->port->node : -1);
	while (!__atomic_load_n(&c->stop, __ATOMIC_ACQUIRE)) {
		struct epoll_event event;
		nanotime now, next;
		int n;

		pthread_mutex_lock(&e->control_lock);
		now = clock_now();
		next = due(e, now);
		pthread_mutex_unlock(&e->control_lock);
		n = epoll_wait(c->epoll_fd, &event, 1,
			       next > now ? (int)((next - now + TIME_MS - 1) / TIME_MS) : 0);
		if (n != 1)
			continue;
		pthread_mutex_lock(&e->control_lock);
		((struct watch *)event.data.ptr)->ready(event.data.ptr, event.events);
		pthread_mutex_unlock(&e->control_lock);
	}
	return NULL;
}

/* ---- beginning and end ---- */

int control_open(struct engine *e, const struct uroce_options *o, char *why, size_t why_size)
{
	struct control *c = e->control;
	int error;

	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	e->control_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	c->wake.fd = e->control_fd;
	c->wake.ready = woken;
	if (c->epoll_fd < 0 || e->control_fd < 0 || watch_add(e, &c->wake) != 0) {
		snprintf(why, why_size, "no file descriptors: %s (ulimit -n)", strerror(errno));
		return errno;
	}
	/* If this fails, the addresses stay those of the start. */
	if (e->port == NULL && o->addresses == 0)
		c->host_events = interface_events_open();
	users_open(&c->users);
	left_open(e);
	error = crowded_prepare(e) ? peers_open(e) : ENOMEM;
	if (error == 0)
		error = cm_manager_open(e);
	if (error == 0)
		error = o->socket_path != NULL ? porters_open(e) : 0;
	if (error == 0)
		error = listener_open(&c->listener, o, why, why_size);
	if (error == 0)
		error = neighbour_agent_open(e, why, why_size);
	return error;
}

int control_start(struct engine *e, char *why, size_t why_size)
{
	struct control *c = e->control;
	sigset_t all, old;
	int error;

	c->empty_since = clock_now();
	device_files_open(e);
	error = listener_show(&c->listener, why, why_size);
	if (error != 0)
		return error;
	/* The signals of an embedding program are for its own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&c->thread, NULL, control_run, e);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error != 0) {
		snprintf(why, why_size, "cannot create the control thread: %s", strerror(error));
		return error;
	}
	pthread_setname_np(c->thread, "uroce-control");
	c->thread_runs = true;
	/*
	 * Last: frames in a program's port have buffers of the engine, which a failure would
	 * free.
	 */
	pthread_mutex_lock(&e->control_lock);
	neighbour_agent_announce(e);
	pthread_mutex_unlock(&e->control_lock);
	return 0;
}

/* Tells the clients and then takes them apart. Their libraries flush what was posted. */
void control_stop(struct engine *e)
{
	struct control *c = e->control;
	struct connection *n;

	if (c->thread_runs) {
		__atomic_store_n(&c->stop, 1, __ATOMIC_RELEASE);
		control_wake(e);
		pthread_join(c->thread, NULL);
		c->thread_runs = false;
	}
	device_files_close(e);
	listener_close(&c->listener);
	while ((n = LIST_FIRST(&c->connections)) != NULL)
		connection_end(n);
	trace_end(e);
	clients_close(e);
	porters_close(e);
}

void control_close(struct engine *e)
{
	struct control *c = e->control;

	cm_manager_close(e);
	rte_ring_free(e->crowded);
	e->crowded = NULL;
	neighbour_agent_close(e);
	peers_close(e);
	porters_close(e);
	left_close(e);
	watch_remove(e, &c->wake);
	interface_events_close(c->host_events);
	if (c->epoll_fd >= 0)
		close(c->epoll_fd);
	c->epoll_fd = -1;
}
